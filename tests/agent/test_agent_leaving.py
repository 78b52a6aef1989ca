"""The second moment of an end (KEP-6143): an agent says that all of a placement leaves, by accepted deletions only."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_kube.deciding.writes import Delete
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.release import Leaving
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, POD_SPEC

LONG = {**POD_SPEC, "terminationGracePeriodSeconds": 60}


def running() -> Stage:
    stage = Stage()
    stage.start()
    stage.place(spec=LONG)
    stage.run()
    return stage


def said(stage: Stage) -> list[m.CountsReport]:
    return [each for each in stage.peer.of(m.CountsReport) if each.leaving is not None]


def test_a_pod_is_said_to_leave_once_its_deletion_is_accepted_and_before_it_has_stopped() -> None:
    stage = running()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    [word] = said(stage)
    assert word.leaving == Leaving(grace_seconds=60.0, running_grace_seconds=60.0)
    assert [(each.active, each.terminating, each.remaining) for each in word.pod_sets] == [(0, 1, 1)]
    assert stage.peer.of(m.Stopped) == []
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Stopped)) == 1
    assert len(said(stage)) == 1


def test_nothing_is_said_while_a_deletion_is_not_answered() -> None:
    stage = running()
    stage.hold = lambda write: isinstance(write, Delete)
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    assert said(stage) == [], "nobody has accepted it"
    stage.remove(POD, "p", grace=60)
    assert said(stage) == [], "somebody else deleted it, and ours is under way"
    stage.land()
    assert len(said(stage)) == 1


def test_a_pod_that_somebody_else_deletes_is_not_asked_to_stop_and_keeps_its_quota() -> None:
    stage = running()
    stage.remove(POD, "p", grace=60)
    assert said(stage) == []


def test_it_is_said_again_in_each_session_with_how_long_ago_it_was() -> None:
    stage = running()
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.pass_seconds(20.0)
    stage.cut_stream()
    stage.mend(resume=False)
    word = said(stage)[-1].leaving
    assert word is not None
    assert 19.0 < word.since_seconds < 22.0
    assert (word.grace_seconds, word.running_grace_seconds) == (60.0, 60.0)


def test_a_job_leaves_once_its_controller_has_seen_the_stop_and_each_pod_of_it_is_deleted() -> None:
    stage = Stage()
    stage.start()
    stage.place(kind="Job", name="j")
    pods = [made_by_the_job(stage, name) for name in ("j-1", "j-2")]
    stage.change(JOB, "j", {"status": {"active": 2, "startTime": "2026-01-01T00:00:00Z"}}, "status")
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    conditions = [*stage.job()["status"].get("conditions", []), {"type": "Suspended", "status": "True"}]
    stage.remove(POD, pods[0], grace=30)
    stage.change(JOB, "j", {"status": {"active": 0, "terminating": 2, "conditions": conditions}}, "status")
    assert said(stage) == [], "its controller counts none, and one that is known has not been deleted"
    stage.remove(POD, pods[1], grace=30)
    [word] = said(stage)
    assert [(each.active, each.terminating) for each in word.pod_sets] == [(0, 2)]
    assert word.leaving is not None
    assert word.leaving.grace_seconds == 30.0


def test_a_job_whose_controller_has_not_seen_the_stop_may_make_more_and_does_not_leave() -> None:
    stage = Stage()
    stage.start()
    stage.place(kind="Job", name="j")
    pod = made_by_the_job(stage, "j-1")
    stage.change(JOB, "j", {"status": {"active": 1, "startTime": "2026-01-01T00:00:00Z"}}, "status")
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    stage.remove(POD, pod, grace=30)
    assert said(stage) == []


def made_by_the_job(stage: Stage, name: str) -> str:
    """Let the Job controller make a pod that runs; return its name."""
    job = stage.job()
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job["metadata"]["uid"], "controller": True}
    template = job["spec"]["template"]
    meta = {**template["metadata"], "name": name, "namespace": NAMESPACE_NAME, "ownerReferences": [owner]}
    stage.create(POD, {"metadata": meta, "spec": {**template["spec"], "nodeName": "node-1"}})
    stage.change(POD, name, {"status": {"phase": "Running"}}, "status")
    return name


@pytest.mark.parametrize(
    ("rule", "settings", "free_at"),
    [
        pytest.param("OnTerminating", {}, 0.0, id="as all leave"),
        pytest.param("AfterGrace", {}, 60.0, id="when the time of those that run is over"),
        pytest.param("OnTerminal", {}, None, id="when it has stopped"),
        pytest.param("", {}, None, id="a manager that says no rule means the stop"),
        pytest.param("OnTerminating", {"holds_quota": True}, None, id="this worker insists on the stop"),
    ],
)
def test_the_workers_own_quota_is_free_by_the_rule_of_the_commit(
    rule: str, settings: dict[str, Any], free_at: float | None
) -> None:
    """QR-8."""
    room = NominalCapacity(flavor="default", resource="cpu", nominal=1000)
    asked = m.PodSetRequest(name="main", count=1, requests=(("cpu", 1000),), flavors=(("cpu", "default"),))
    stage = Stage(capacity=(room,), **settings)
    stage.start()
    stage.offer(pod_sets=(asked,))
    stage.commit(spec=LONG, pod_sets=(asked,), release=rule)
    stage.run()
    assert used(stage) == 1000
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    if free_at:
        stage.pass_seconds(free_at - 1.0)
        assert used(stage) == 1000
        stage.pass_seconds(1.0)
    assert used(stage) == (1000 if free_at is None else 0)
    stage.finish(phase="Failed")
    assert used(stage) == 0


def used(stage: Stage) -> int:
    """Return what the agent has charged of its capacity."""
    return stage.machine.world.admission.entries()[0].used
