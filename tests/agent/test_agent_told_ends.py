"""The agent of `local` says on the user's pod why it ends before it deletes it (PG-26); nothing waits for that word."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kinds.shared.gathered import OVER_AT_HOME
from gatelift_kube.deciding.writes import ApiWrite, Delete, Patch, WriteError
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC

GATE = {"name": "kueue.x-k8s.io/admission"}


def _stage(*, runs: bool = True) -> Stage:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    meta = {
        "name": "p",
        "namespace": NAMESPACE_NAME,
        "labels": {"kueue.x-k8s.io/managed": "true"},
        "finalizers": ["kueue.x-k8s.io/managed"],
    }
    gates = [GATE] if runs else [GATE, {"name": "example.com/own"}]
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": gates}})
    stage.settle()
    stage.place()
    if runs:
        stage.run()
    return stage


TRIES_MAX = 10
"""After so many it can be written: who tries for ever is seen, and not waited for."""


def _target(stage: Stage) -> dict[str, Any] | None:
    conditions = stage.pod()["status"].get("conditions") or []
    return next((one for one in conditions if one["type"] == "TerminationTarget"), None)


def _is_word(write: ApiWrite) -> bool:
    return isinstance(write, Patch) and b"TerminationTarget" in write.body


def test_pg_26_the_pod_says_why_before_it_is_deleted() -> None:
    stage = _stage()
    before = len(stage.written(object))
    stage.send(m.Stop(key=KEY, reason="Preempted", message="Preempted to accommodate a workload"))
    assert [type(write) for write in stage.written(object)[before:]] == [Patch, Delete]
    assert _target(stage) == {
        "type": "TerminationTarget",
        "status": "True",
        "reason": "WorkloadEvictedDueToPreempted",
        "message": "Preempted to accommodate a workload",
    }


@pytest.mark.parametrize("error", list(WriteError))
def test_pg_26_a_word_that_cannot_be_written_keeps_no_pod_from_being_deleted(error: WriteError) -> None:
    stage = _stage()
    tried: list[ApiWrite] = []

    def fail(write: ApiWrite) -> WriteError | None:
        if not _is_word(write):
            return None
        tried.append(write)
        return error if len(tried) < TRIES_MAX else None

    stage.fail = fail
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert len(stage.written(Delete)) == 1, "at once, and not after a pause"
    assert len(tried) == 1


def test_pg_1_who_is_seen_to_be_over_at_home_is_not_deleted_before_the_watch_shows_it_here() -> None:
    """The manager's watch was first: its word of the end of a group comes before this one shows the pod's own."""
    stage = _stage()
    stage.send(m.Stop(key=KEY, reason=OVER_AT_HOME))
    assert stage.written(Delete) == []
    assert stage.peer.of(m.Stopped) == []
    stage.finish()
    stage.settle()
    assert stage.written(Delete) == []
    assert len(stage.peer.of(m.Stopped)) + len(stage.peer.of(m.Finished)) == 1


def test_pg_26_a_new_process_deletes_what_the_one_before_it_has_told() -> None:
    stage = _stage()
    stage.hold = lambda write: isinstance(write, Delete)
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert _target(stage) is not None
    stage.hold = lambda _write: False
    stage.crash()
    stage.start()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert len([write for write in stage.writes if _is_word(write)]) == 1
    assert stage.pod()["metadata"].get("deletionTimestamp")


def test_pg_26_a_gated_pod_is_not_deleted_and_says_nothing_of_an_end() -> None:
    stage = _stage(runs=False)
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert stage.written(Delete) == []
    assert _target(stage) is None
    assert len(stage.peer.of(m.Stopped)) == 1


def test_pg_26_at_a_worker_the_agent_may_write_no_status_and_deletes_at_once() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert len(stage.written(Delete)) == 1
    assert not [write for write in stage.writes if _is_word(write)]
