"""The configuration file: what is accepted, and the line a person sees for what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from gatelift import admission_settings, config, introduction
from gatelift.assembly import new_machine
from gatelift.core.clusters.links import Links
from gatelift.core.state.readiness_values import ReadinessSettings, RetentionSettings
from gatelift.durations import parse_duration
from gatelift.introduction import Introduction
from gatelift_wire.sessions.leases import LeaseStanding

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"

BAD = {
    "an unknown key at the top": ("mangeJobs: true", "mangeJobs: is no key of the configuration"),
    "an unknown key inside a section": (
        "multiKueue:\n  gcIntervall: 1m",
        "multiKueue.gcIntervall: is no key of the configuration",
    ),
    "an unknown key of our own section": ("gatelift:\n  lisen: x", "gatelift.lisen: is no key of the configuration"),
    "a negative duration": ("multiKueue:\n  workerLostTimeout: -5m", "multiKueue.workerLostTimeout: '-5m' is negative"),
    "a duration without a unit": (
        "multiKueue:\n  gcInterval: 5 parsecs",
        "multiKueue.gcInterval: '5 parsecs' is not a duration: write it like 30s",
    ),
    "a framework that does not exist": (
        "integrations:\n  frameworks: [pod, cronjob]",
        "integrations.frameworks: 'cronjob' is no framework; known are pod",
    ),
    "an external framework without a version": (
        "integrations:\n  externalFrameworks: [JobSet.jobset.x-k8s.io]",
        "integrations.externalFrameworks: 'JobSet.jobset.x-k8s.io' is no kind; write it as Kind.version.group",
    ),
    "a step size of zero": (
        "multiKueue:\n  incrementalDispatcherConfig:\n    stepSize: 0",
        "multiKueue.incrementalDispatcherConfig.stepSize: must be at least 1",
    ),
    "leader election switched off": (
        "leaderElection:\n  leaderElect: false",
        "leaderElection.leaderElect: must be true",
    ),
    "another kind": ("kind: Pod", "kind: must be 'Configuration' (found 'Pod')"),
    "a list instead of a mapping": ("- a", "holds a list, a mapping of settings is needed"),
    "an empty list instead of a mapping": ("[]", "holds a list, a mapping of settings is needed"),
    "a word that means nothing": ("false", "holds a bool, a mapping of settings is needed"),
    "an empty text": ("''", "holds a str, a mapping of settings is needed"),
    "fewer writes than one a second": (
        "clientConnection:\n  qps: 1.0e-300",
        "clientConnection.qps: must be at least 1 (found 1e-300)",
    ),
    "a tag of a whole number that is none (IS-7)": (
        "d: !!int '0b'",
        "a tag ('!!int', '!!float') that its value does not",
    ),
    "a tag of a number that is none (IS-7)": ("d: !!float 'x'", "does not fit; leave the tag out"),
    "broken YAML": ("a: [1", "is not YAML; mend the syntax there"),
    "an integer of 5,000 digits (IS-7)": (
        "clientConnection:\n  burst: " + "9" * 5000,
        "clientConnection.burst: must be a whole number (found '999",
    ),
    "another one, in another base (IS-7)": (
        "clientConnection:\n  qps: 0x" + "f" * 5000,
        "clientConnection.qps: must be a number (found '0xff",
    ),
    "an integer that Python writes nowhere (IS-7)": ("featureGates:\n  x: " + "1" + ":59" * 3000, "featureGates.x: "),
    "a key that is no text (IS-7)": ("1: 2", "1: a key has to be a text: mend its spelling, or put it in quotes"),
    "a key inside of a section that is no text (IS-7)": (
        "clientConnection:\n  7: 3",
        "clientConnection.7: a key has to be a text: mend its spelling, or put it in quotes",
    ),
    "a key that is a list (IS-7)": ("gatelift:\n  ? [a, b]\n  : 1", "line 2: is not YAML; mend the syntax there"),
    "a date that there is not (IS-7)": ("fairSharing: 2026-99-99", "fairSharing: must be a mapping"),
    "two documents": ("a: 1\n---\nb: 2", "holds more than one document; keep one"),
    "a number of offers out of bounds": (
        "gatelift:\n  dispatch:\n    offersAtOnce: 500",
        "gatelift.dispatch.offersAtOnce: must be at most 64",
    ),
}


@pytest.mark.parametrize(("text", "expected"), BAD.values(), ids=BAD.keys())
def test_a_mistake_is_one_line_that_names_path_and_way_out(tmp_path: Path, text: str, expected: str) -> None:
    """Also a number that Python writes nowhere, and a key that is no text (IS-7)."""
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(config.ConfigError) as caught:
        config.load(path)
    assert expected in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 500


def test_a_missing_file_says_which_and_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(config.ConfigError, match=r"cannot be read .*name a readable file"):
        config.load(tmp_path / "none.yaml")


def test_no_file_gives_the_defaults() -> None:
    loaded = config.load(None)
    assert loaded.gatelift.leases.lost_after == 60.0
    assert loaded.without_effect() == ()


def test_a_configuration_of_kueue_is_accepted_and_what_has_no_effect_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        HEAD
        + """
namespace: gatelift-system
manageJobsWithoutQueueName: false
clientConnection: {qps: 50, burst: 100}
integrations: {frameworks: [batch/job, pod, jobset.x-k8s.io/jobset]}
waitForPodsReady: {enable: true, timeout: 5m}
multiKueue: {workerLostTimeout: 10m, origin: multikueue}
featureGates: {PartialAdmission: true}
"""
    )
    loaded = config.load(path)
    assert loaded.multi_kueue.worker_lost_timeout == 600.0
    assert (loaded.client_connection.qps, loaded.client_connection.burst) == (50, 100)
    assert set(loaded.without_effect()) == {
        "integrations.frameworks: jobset.x-k8s.io/jobset",
        "featureGates.PartialAdmission",
        "multiKueue.origin",
        "multiKueue.workerLostTimeout",
    }


def test_is_6_the_name_of_a_lease_is_not_taken_from_the_file_and_a_note_says_so(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "leaderElection: {resourceName: c1f6bfd2.kueue.x-k8s.io}\n")
    said = " ".join(config.load(path).without_effect())
    assert said.startswith("leaderElection.resourceName: the Lease is gatelift-manager, whatever stands here")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("resources: {deviceClassMappings: [{name: gpu}]}", "resources.deviceClassMappings"),
        ("integrations: {frameworks: [pod]}", "integrations.frameworks: without batch/job"),
        ("health: {readinessEndpointName: ready}", "health.readinessEndpointName"),
        ("gatelift: {leases: {renew: 5s, stopAfter: 2h}}", "gatelift.leases.stopAfter"),
        ("multiKueue: {dispatcherName: kueue.x-k8s.io/multikueue-dispatcher-incremental}", "multiKueue.dispatcherName"),
    ],
)
def test_a_setting_that_nothing_reads_is_never_silent(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text + "\n")
    [said] = config.load(path).without_effect()
    assert said.startswith(named)


def test_every_path_that_is_called_in_use_exists() -> None:
    def paths(section: type[BaseModel], prefix: str = "") -> Iterator[str]:
        for name, field in section.model_fields.items():
            path = prefix + to_camel(name)
            yield path
            for part in (field.annotation, *get_args(field.annotation)):
                if isinstance(part, type) and issubclass(part, BaseModel):
                    yield from paths(part, f"{path}.")

    assert set(paths(config.Configuration)) >= config.IN_USE


@pytest.mark.parametrize(
    ("text", "strategies"),
    [
        ("", ()),
        ("fairSharing: {}", config.FAIR_STRATEGIES),
        ("fairSharing: {enable: true, preemptionStrategies: [LessThanInitialShare]}", ("LessThanInitialShare",)),
        ("fairSharing: {enable: false}", ()),
    ],
)
def test_fair_sharing_is_what_the_file_says(tmp_path: Path, text: str, strategies: tuple[str, ...]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text + "\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    assert new_machine(loaded, "origin", "one").core.ledger.engine.state.settings.fair_sharing == strategies


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", None),
        ("waitForPodsReady: {enable: false}", None),
        ("waitForPodsReady: {}", ReadinessSettings()),
        ("waitForPodsReady: {timeout: 5m}", ReadinessSettings(timeout=300.0, recovery_timeout=300.0)),
        (
            """waitForPodsReady: {timeout: 5m, recoveryTimeout: 0s, blockAdmission: true, requeuingStrategy:
              {backoffLimitCount: 3, backoffBaseSeconds: 10, backoffMaxSeconds: 40}}""",
            ReadinessSettings(
                timeout=300.0,
                recovery_timeout=0.0,
                backoff_base=10.0,
                backoff_max=40.0,
                backoff_limit=3,
                block_admission=True,
            ),
        ),
    ],
)
def test_waiting_for_pods_is_what_the_file_says(tmp_path: Path, text: str, settings: ReadinessSettings | None) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text + "\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    assert new_machine(loaded, "origin", "one").core.settings.readiness == settings


def test_what_is_over_is_kept_as_long_as_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 0s}}\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    settings = new_machine(loaded, "origin", "one").core.settings.retention
    assert settings == RetentionSettings(after_finished=3600.0, after_deactivated=0.0)


def test_resources_that_do_not_count_are_told_to_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        HEAD + "resources: {excludeResourcePrefixes: [example.com/], quotaCheckStrategy: IgnoreUndeclared}\n"
    )
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    settings = new_machine(loaded, "origin", "one").core.ledger.engine.state.settings
    assert (settings.excluded_prefixes, settings.ignore_undeclared) == (("example.com/",), True)


@pytest.mark.parametrize(
    ("text", "periods"),
    [
        ("", (0.05, 1.0, 1.0)),
        (
            "gatelift: {admission: {wakePeriod: 0s, wakePeriodMax: 500ms, preemptionPatience: 2s}}",
            (0.0, 0.5, 2.0),
        ),
    ],
)
def test_how_long_what_comes_free_is_collected_is_a_setting(
    tmp_path: Path, text: str, periods: tuple[float, float, float]
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text + "\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    settings = new_machine(loaded, "origin", "one").core.ledger.engine.state.settings
    assert (settings.wake_period, settings.wake_period_max, settings.preemption_patience) == periods


@pytest.mark.parametrize(("timestamp", "by_creation"), [("Creation", True), ("Eviction", False)])
def test_by_which_time_it_queues_again_is_what_the_file_says(tmp_path: Path, timestamp: str, by_creation: bool) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + f"waitForPodsReady: {{requeuingStrategy: {{timestamp: {timestamp}}}}}\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    settings = new_machine(loaded, "origin", "one").core.ledger.engine.state.settings
    assert settings.by_creation is by_creation


def test_transformations_are_told_to_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        HEAD
        + """resources:
  transformations:
  - {input: example.com/gpu-slice, strategy: Replace, outputs: {example.com/credits: 2, cpu: 500m}}
  - {input: example.com/seat, multiplyBy: cpu, outputs: {example.com/credits: "0.5"}}
"""
    )
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    first, second = new_machine(loaded, "origin", "one").core.ledger.engine.state.settings.transformations
    assert (first.input, first.strategy, first.outputs) == (
        "example.com/gpu-slice",
        "Replace",
        {"example.com/credits": "2", "cpu": "500m"},
    )
    assert (second.strategy, second.multiply_by, second.outputs) == ("Retain", "cpu", {"example.com/credits": "0.5"})


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[{input: a, outputs: {b: much}}]", "'much' is not a quantity"),
        ("[{input: a}, {input: a}]", "input a has two entries"),
        ("[{input: a, strategy: Keep}]", "strategy"),
        ("[{outputs: {b: 1}}]", "input"),
    ],
)
def test_transformations_that_mean_nothing_are_refused(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + f"resources: {{transformations: {text}}}\n")
    with pytest.raises(config.ConfigError, match=r"resources\.transformations") as refused:
        config.load(path)
    assert named in str(refused.value)


def test_strategies_of_fair_sharing_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}\n")
    with pytest.raises(config.ConfigError, match="both in that order"):
        config.load(path)


def test_what_is_in_use_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        HEAD
        + """
metrics: {bindAddress: ":9090"}
leaderElection: {leaseDuration: 20s}
featureGates: {WorkloadPriorityClassDefaulting: false}
gatelift: {leases: {renew: 5s}, dispatch: {offersAtOnce: 2}}
"""
    )
    assert config.load(path).without_effect() == ()


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "gatelift:\n  listen: 127.0.0.1:1\n  dispatch: {offersAtOnce: 2}\n")
    monkeypatch.setenv("GATELIFT_LISTEN", "127.0.0.1:9")
    monkeypatch.setenv("GATELIFT_DISPATCH__OFFERS_AT_ONCE", "7")
    loaded = config.load(path)
    assert loaded.gatelift.listen == "127.0.0.1:9"
    assert loaded.gatelift.dispatch.offers_at_once == 7


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("30s", 30), ("1h30m", 5400), ("500ms", 0.5), (12, 12.0), ("1.5h", 5400)]
)
def test_durations_read_as_go_writes_them(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


def test_the_times_of_leases_reach_the_sessions(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + "gatelift: {leases: {renew: 20s, suspectAfter: 45s, lostAfter: 10m}}\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    links = new_machine(loaded, "origin", "one").core.links
    assert isinstance(links, Links)
    session = links._new_session()
    session.lead(1, 1000.0)
    assert session.lease_seconds == 450.0, "three quarters of the time until the cluster counts as lost"
    assert [session.standing(1000.0 + after) for after in (44.0, 46.0, 599.0, 601.0)] == [
        LeaseStanding.CURRENT,
        LeaseStanding.SUSPECT,
        LeaseStanding.SUSPECT,
        LeaseStanding.LOST,
    ]


def test_what_a_manager_tells_those_who_take_clusters_in(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    text = "gatelift: {advertise: 'm.example:443', enrolListen: '0.0.0.0:8444', certificates: {tokenLifetime: 2h}}"
    path.write_text(HEAD + text + "\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    said = introduction.of(loaded)
    assert said == Introduction(manager="m.example:443", enrol="m.example:8444", token_seconds=7200)
    assert introduction.read(said.data()) == said
    assert introduction.read({"ca.crt": "PEM", "tokenSeconds": "long"}) == Introduction()
    assert introduction.of(config.load(None)) == Introduction()


@pytest.mark.parametrize(("text", "boosts"), [("", False), ("featureGates: {PriorityBoost: true}", True)])
def test_the_gate_priority_boost_reaches_the_engine_and_is_off_by_default(
    tmp_path: Path, text: str, *, boosts: bool
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HEAD + text + "\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    assert admission_settings.of(loaded).priority_boost is boosts
