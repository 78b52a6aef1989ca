"""Taking a worker cluster in by the key that its agent prints (IS-24), and letting it go when it is empty (IS-25)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from gatelift.cli import approving
from gatelift.cli.main import app
from gatelift_kube.values.resources import CONFIG_MAP, WORKER_CLUSTER, WORKLOAD
from support.manager.cli_stage import Said, Stage, admitted, condition

KEY = "0123456789abcdef" + "f" * 48
ASKED = {"enrolment": {"keyDigest": KEY, "tokenDigest": "t", "requestedAt": "2026-01-01T00:00:00Z"}}


def waits(stage: Stage) -> None:
    """Let an agent wait for a person."""
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={"tokenDigest": "t"}, status=ASKED)


def spec_of(stage: Stage) -> dict[str, Any]:
    found = stage.server.find(WORKER_CLUSTER, "worker-1")
    assert found is not None
    spec: dict[str, Any] = found["spec"]
    return spec


def answered(stage: Stage, answer: str, monkeypatch: pytest.MonkeyPatch) -> Said:
    """Approve as a person at a terminal does who is asked."""
    monkeypatch.setattr(approving, "is_terminal", lambda: True)
    arguments = ("--kubeconfig", str(stage.kubeconfig), "cluster", "approve", "worker-1")
    result = CliRunner().invoke(app, arguments, input=answer)
    return Said(result.exit_code, result.stdout, result.stderr)


def test_is_20_the_commands_that_take_a_cluster_in_hold_its_namespaces_to_baseline(stage: Stage) -> None:
    stage.server.put(CONFIG_MAP, "gatelift-ca", "gatelift-system", data={"ca.crt": "PEM"})
    said = stage.run("cluster", "add", "worker-1", "--manager", "m.example:7443").out
    (label,) = (line for line in said.splitlines() if "kubectl label namespace" in line)
    assert {"gatelift.dev/accept=true", "pod-security.kubernetes.io/enforce=baseline"} < {*label.split()}


def test_is_24_the_list_shows_the_key_that_waits(stage: Stage) -> None:
    waits(stage)
    assert "waits for approval (key 0123456789abcdef)" in stage.run("cluster", "list").out


def test_is_24_a_person_is_shown_the_key_and_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The symptom: whatever key came first was approved by the cluster's name, and shown afterwards."""
    waits(stage)
    said = answered(stage, "y\n", monkeypatch)
    assert said.code == 0
    assert said.out.index(KEY) < said.out.index("Does the agent print this key")
    assert spec_of(stage)["approvedRequest"] == KEY


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_is_24_nothing_is_approved_without_a_yes(stage: Stage, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    waits(stage)
    assert answered(stage, answer, monkeypatch).code == 1
    assert "approvedRequest" not in spec_of(stage)


def test_is_24_a_script_has_to_name_the_key(stage: Stage) -> None:
    waits(stage)
    said = stage.run("cluster", "approve", "worker-1")
    assert said.code == 2
    assert "--key: is needed where nobody can be asked" in said.line
    assert "approvedRequest" not in spec_of(stage)


@pytest.mark.parametrize("prefix", [KEY, KEY[:16], KEY[:20].upper()])
def test_is_24_the_beginning_of_the_key_is_enough(stage: Stage, prefix: str) -> None:
    waits(stage)
    assert stage.run("cluster", "approve", "worker-1", "--key", prefix).code == 0
    assert spec_of(stage)["approvedRequest"] == KEY


@pytest.mark.parametrize("prefix", [KEY[:15], "g" * 16, "0", KEY + "0"])
def test_is_24_what_is_no_beginning_of_a_key_is_refused(stage: Stage, prefix: str) -> None:
    waits(stage)
    said = stage.run("cluster", "approve", "worker-1", "--key", prefix)
    assert said.code == 2
    assert "--key: must be the first 16 digits" in said.line
    assert "approvedRequest" not in spec_of(stage)


def test_is_24_another_key_than_the_agents_is_not_approved(stage: Stage) -> None:
    waits(stage)
    said = stage.run("cluster", "approve", "worker-1", "--key", "f" * 16)
    assert said.code == 1
    assert "another agent has used the token first" in said.line
    assert "approvedRequest" not in spec_of(stage)


def test_is_24_what_asked_with_an_earlier_token_is_not_approved(stage: Stage) -> None:
    """Whoever was first with a token that was replaced for that is no more shown, nor taken."""
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={"tokenDigest": "the next"}, status=ASKED)
    assert "waits for approval" not in stage.run("cluster", "list").out
    said = stage.run("cluster", "approve", "worker-1", "--key", KEY[:16])
    assert said.code == 1
    assert "has not asked for a certificate yet" in said.line
    assert "approvedRequest" not in spec_of(stage)


@pytest.mark.parametrize("status", [{}, {"keyDigest": KEY}], ids=["approved", "enrolled"])
def test_is_24_what_was_approved_waits_no_more(stage: Stage, status: dict[str, Any]) -> None:
    approved = {"approvedRequest": "" if status else KEY}
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={"tokenDigest": "t", **approved}, status={**ASKED, **status})
    assert "waits for approval" not in stage.run("cluster", "list").out


def test_is_24_what_is_approved_is_what_was_shown(stage: Stage) -> None:
    waits(stage)
    assert stage.run("cluster", "approve", "worker-1", "--key", KEY[:16]).code == 0
    (asked,) = stage.server.asked("PATCH", "workerclusters")
    assert "resourceVersion" in json.loads(asked.body)["metadata"], "it has not changed since"


def in_use(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={"approvedRequest": KEY}, status={"keyDigest": KEY})
    stage.workload("one", status=admitted("worker-1"))
    stage.workload("two", status=admitted("worker-2"))
    done = admitted("worker-1")
    stage.workload("three", status={**done, "conditions": [*done["conditions"], condition("Finished", "True", "S")]})


def test_is_25_a_cluster_with_work_on_it_is_not_removed(stage: Stage) -> None:
    """The symptom: it was revoked without a question, and its work stayed charged for ever."""
    in_use(stage)
    said = stage.run("cluster", "remove", "worker-1")
    assert (said.code, said.out) == (1, "")
    assert "worker-1: 1 placements are left" in said.line
    assert "--now revokes it all the same" in said.line
    assert "revoked" not in spec_of(stage)


def test_is_25_nor_one_with_work_whose_workload_is_gone(stage: Stage) -> None:
    left = {"kind": "Job", "namespace": "team", "name": "j", "workloadUID": "u", "epoch": 1}
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={}, status={"predecessors": [left]})
    assert "1 placements are left" in stage.run("cluster", "remove", "worker-1").line


def test_is_25_now_it_is_and_what_is_left_is_told(stage: Stage) -> None:
    in_use(stage)
    said = stage.run("cluster", "remove", "worker-1", "--now")
    assert said.code == 0
    assert "1 placements are left and stay charged" in said.out
    assert "gatelift cluster fenced worker-1" in said.out
    assert spec_of(stage) | {"tokenDigest": ""} == {"revoked": True, "approvedRequest": "", "tokenDigest": ""}


def test_is_25_now_it_is_by_who_may_not_list_workloads(stage: Stage) -> None:
    in_use(stage)
    refusal = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "you may not", "code": 403}
    stage.server.fault("GET", WORKLOAD.plural, times=9, status=403, body=refusal)
    assert stage.run("cluster", "remove", "worker-1").code == 4
    assert "revoked" not in spec_of(stage)
    assert stage.run("cluster", "remove", "worker-1", "--now").code == 0
    assert spec_of(stage)["revoked"] is True


def test_is_25_an_empty_one_is_removed_and_the_next_step_told(stage: Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "worker-1", spec={})
    said = stage.run("cluster", "remove", "worker-1")
    assert said.code == 0
    assert "then: kubectl delete workercluster worker-1" in said.out
    assert spec_of(stage)["revoked"] is True
