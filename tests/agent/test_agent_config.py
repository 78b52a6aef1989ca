"""The agent's configuration: what is accepted, what a person reads when it is not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift_agent import config as configuration
from gatelift_agent.core.values.settings import KeepFinished, NominalCapacity
from gatelift_wire.values import tokens

TOKEN = tokens.compose("w1", bytes(24), b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")
GOOD: dict[str, Any] = {"cluster": "w1", "manager": "manager.example.com:7443"}


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("GATELIFT_"):
            monkeypatch.delenv(name)


def _load(tmp_path: Path, document: object) -> configuration.AgentConfiguration:
    path = tmp_path / "agent.yaml"
    path.write_text(document if isinstance(document, str) else yaml.safe_dump(document))
    return configuration.load(path)


def test_two_settings_are_enough(tmp_path: Path) -> None:
    loaded = _load(tmp_path, GOOD)
    settings = loaded.core_settings("i", "1")
    assert settings.lease == f"{loaded.namespace}/gatelift-agent"
    assert settings.kinds == ("PodGroup", "Pod", "Job")
    assert settings.capacity == ()
    assert "gatelift-system" in settings.policy.denied_namespaces


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATELIFT_AGENT_MANAGER", "other:1")
    monkeypatch.setenv("GATELIFT_AGENT_POLICY__HOST_NETWORK", "true")
    loaded = _load(tmp_path, {**GOOD, "policy": {"privileged": True}})
    assert loaded.manager == "other:1"
    assert loaded.core_settings("i", "1").policy.host_network
    assert loaded.core_settings("i", "1").policy.privileged


def test_the_environment_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATELIFT_AGENT_CLUSTER", "w1")
    monkeypatch.setenv("GATELIFT_AGENT_MANAGER", "m:1")
    assert configuration.load(None).cluster == "w1"


def test_capacities_are_quantities(tmp_path: Path) -> None:
    capacity = [
        {"flavor": "default", "resource": "cpu", "nominal": "2500m"},
        {"flavor": "default", "resource": "memory", "nominal": "1Gi"},
        {"flavor": "gpu", "resource": "nvidia.com/gpu", "nominal": 4},
    ]
    assert _load(tmp_path, {**GOOD, "capacity": capacity}).core_settings("i", "1").capacity == (
        NominalCapacity(flavor="default", resource="cpu", nominal=2500),
        NominalCapacity(flavor="default", resource="memory", nominal=1024**3),
        NominalCapacity(flavor="gpu", resource="nvidia.com/gpu", nominal=4),
    )


def test_lists_and_mappings_of_the_environment_are_json(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "CLUSTER": "w1",
        "MANAGER": "m:1",
        "CAPACITY": '[{"flavor": "default-flavor", "resource": "cpu", "nominal": "64"}]',
        "POLICY__SERVICE_ACCOUNTS": '{"default": "batch"}',
    }.items():
        monkeypatch.setenv(f"GATELIFT_AGENT_{name}", value)
    settings = configuration.load(None).core_settings("i", "1")
    assert settings.capacity == (NominalCapacity(flavor="default-flavor", resource="cpu", nominal=64000),)
    assert settings.policy.service_accounts == {"default": "batch"}


def test_is_46_what_failed_stays_for_an_hour_and_what_succeeded_not_unless_the_worker_says_so(tmp_path: Path) -> None:
    kept = _load(tmp_path, GOOD).core_settings("i", "1").keep
    assert kept == KeepFinished(failed_seconds=3600.0, succeeded_seconds=0.0, objects_max=1000)
    said = {"failedSeconds": 0, "succeededSeconds": 60, "objectsMax": 10}
    kept = _load(tmp_path, {**GOOD, "keepFinished": said}).core_settings("i", "1").keep
    assert kept == KeepFinished(failed_seconds=0.0, succeeded_seconds=60.0, objects_max=10)


def test_a_token_is_never_shown(tmp_path: Path) -> None:
    assert TOKEN not in repr(_load(tmp_path, {**GOOD, "token": TOKEN}))


BAD: dict[str, tuple[object, str]] = {
    "no cluster": ({"manager": "m:1"}, "cluster: is required; set it in the file or as GATELIFT_AGENT_CLUSTER"),
    "no manager": ({"cluster": "w1"}, "manager: is required; set it in the file or as GATELIFT_AGENT_MANAGER"),
    "unknown key": ({**GOOD, "polcy": {}}, "polcy: is no key of the configuration; remove it or mend its spelling"),
    "unknown key inside": ({**GOOD, "policy": {"hostPat": True}}, "policy.hostPat: is no key"),
    "bad name": ({**GOOD, "cluster": "No Good"}, "cluster: cluster name 'No Good': must be a DNS label"),
    "name of the management cluster": ({**GOOD, "cluster": "local"}, "cluster: 'local' is the management cluster"),
    "no port": ({**GOOD, "manager": "manager"}, "manager: 'manager' is no address; write host:port"),
    "port too high": ({**GOOD, "enrol": "m:70000"}, "enrol: 'm:70000' is no address; write host:port"),
    "unknown kind": ({**GOOD, "kinds": ["Pod", "Cron"]}, "kinds: 'Cron' is not served; known are PodGroup, Pod, Job"),
    "bad quantity": (
        {**GOOD, "capacity": [{"flavor": "f", "resource": "cpu", "nominal": "lots"}]},
        "capacity.0.nominal: ",
    ),
    "more capacities than a message holds": (
        {**GOOD, "capacity": [{"flavor": f"f{number}", "resource": "cpu", "nominal": "1"} for number in range(1025)]},
        "capacity: ",
    ),
    "not a number": ({**GOOD, "replicas": "many"}, "replicas: "),
    "too many replicas": ({**GOOD, "replicas": 99}, "replicas: "),
    "token of nobody": ({**GOOD, "token": "secret"}, "token: is not one of ours"),
    "token of another": (
        {**GOOD, "cluster": "w2", "token": TOKEN},
        "token: is for cluster w1, this is w2; use the token of this cluster",
    ),
    "contradicting times": ({**GOOD, "leaderElection": {"leaseSeconds": 5}}, "leaderElection: "),
    "kept for too long": ({**GOOD, "keepFinished": {"failedSeconds": 1e7}}, "keepFinished.failedSeconds: "),
    "kept for less than nothing": (
        {**GOOD, "keepFinished": {"succeededSeconds": -1}},
        "keepFinished.succeededSeconds: ",
    ),
    "kept for ever": ({**GOOD, "keepFinished": {"failedSeconds": float("nan")}}, "keepFinished.failedSeconds: "),
    "too much kept": ({**GOOD, "keepFinished": {"objectsMax": 10_001}}, "keepFinished.objectsMax: "),
    "not YAML": ("cluster: [", "is not YAML"),
    "not a mapping": ("- a", "a mapping of settings is needed"),
}


@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_a_mistake_is_one_line_with_path_rule_and_way_out(tmp_path: Path, case: str) -> None:
    document, text = BAD[case]
    with pytest.raises(configuration.ConfigError) as raised:
        _load(tmp_path, document)
    assert text in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(configuration.ConfigError, match="name a readable file"):
        configuration.load(tmp_path / "missing.yaml")


def test_is_26_guarded_metrics_need_a_port_of_their_own(tmp_path: Path) -> None:
    guarded = {**GOOD, "metricsAuthentication": True}
    with pytest.raises(configuration.ConfigError, match=r"must be an address .* write 0\.0\.0\.0:8080"):
        _load(tmp_path, guarded)
    assert _load(tmp_path, {**guarded, "metrics": "0.0.0.0:8080"}).metrics_authentication


def test_pods_of_drivers_are_left_alone_unless_the_setting_says_so(tmp_path: Path) -> None:
    """HD-380."""
    assert not _load(tmp_path, GOOD).core_settings("i", "1").adopts
    assert _load(tmp_path, {**GOOD, "groupMembers": "adopt"}).core_settings("i", "1").adopts
    with pytest.raises(configuration.ConfigError, match="groupMembers"):
        _load(tmp_path, {**GOOD, "groupMembers": "yes"})
