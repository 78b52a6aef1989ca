"""The agent of `local`: objects are the user's own, found and not made; a stop writes to a gated pod (R7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, Patch
from gatelift_kube.objects.kueue import ResourceFlavor, ResourceFlavorSpec
from gatelift_kube.values.resources import JOB, POD, RESOURCE_FLAVOR
from gatelift_sandbox.embedded.builtin import kinds
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY, NAMESPACE_NAME, ORIGIN, ORIGIN_WITHOUT_MARKS, POD_SPEC, commit_messages

GATE = {"name": "kueue.x-k8s.io/admission"}


def _stage() -> Stage:
    stage = Stage(mode=AgentMode.LOCAL)
    stage.start()
    return stage


def _user_pod(stage: Stage, *gates: str) -> None:
    meta: dict[str, Any] = {
        "name": "p",
        "namespace": NAMESPACE_NAME,
        "labels": {"kueue.x-k8s.io/managed": "true"},
        "finalizers": ["kueue.x-k8s.io/managed"],
    }
    gated = [GATE, *({"name": name} for name in gates)]
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": gated}})
    stage.settle()


def _user_job(stage: Stage) -> None:
    meta = {"name": "j", "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/queue-name": "queue"}}
    stage.create(JOB, {"metadata": meta, "spec": JOB_SPEC})
    stage.settle()


def test_the_users_own_pod_is_found_let_go_by_one_patch_and_never_removed() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.place()
    assert [type(write) for write in stage.written(object)] == [Patch]
    labels = stage.pod()["metadata"]["labels"]
    assert labels["gatelift.dev/workload-uid"] == "w-1"
    assert labels["gatelift.dev/epoch"] == "1"
    assert stage.state() == "Running"
    stage.run()
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "none"
    assert stage.document(POD, "p") is not None
    assert [type(write) for write in stage.written(object)] == [Patch]


def test_a_gated_pod_of_the_user_that_is_stopped_is_written_to_and_stays() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.hold = lambda write: isinstance(write, Patch) and b"schedulingGates" in write.body
    stage.place()
    lift = stage.held[0].command
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped) == []
    stage.hold = lambda _write: False
    stage.lose()
    stage.pass_seconds(1.0)
    assert len(stage.peer.of(m.Stopped)) == 1
    assert stage.written(Delete) == []
    version = stage.store.version
    stage._write(lift)
    assert stage.store.version == version, "the late lift must not land"
    assert stage.pod()["spec"]["schedulingGates"] == [GATE]


def test_the_same_pod_is_let_go_in_a_later_epoch() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.peer.grants = False
    stage.hold = lambda write: isinstance(write, Patch) and b"schedulingGates" in write.body
    stage.place()
    stage.hold = lambda _write: False
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.lose()
    stage.pass_seconds(1.0)
    stage.send(m.Forget(key=KEY))
    stage.peer.grants = True
    stage.pass_seconds(15.0)
    stage.place(PlacementKey("w-1", 2))
    assert stage.state(PlacementKey("w-1", 2)) == "Running"
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/epoch"] == "2"


def test_a_pod_that_was_let_go_and_is_stopped_is_deleted_as_kueue_does() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.place()
    stage.run()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert len(stage.written(Delete)) == 1
    assert stage.peer.of(m.Stopped) == []
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Stopped)) == 1


def test_is_46_of_the_users_own_pod_nothing_is_told_but_its_end() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.place()
    stage.run()
    ends = [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]
    stage.change(POD, "p", {"status": {"phase": "Failed", "containerStatuses": ends}}, "status")
    assert [(each.succeeded, each.failed) for each in stage.peer.of(m.Finished)] == [(False, None)]


def test_a_gate_of_the_users_own_goes_first() -> None:
    stage = _stage()
    _user_pod(stage, "example.com/own")
    stage.place()
    assert stage.state() == "Gated"
    stage.change(POD, "p", {"spec": {"schedulingGates": [GATE]}})
    assert stage.state() == "Running"


def test_a_pod_that_is_not_there_is_waited_for_and_then_refused() -> None:
    stage = _stage()
    stage.place()
    assert stage.state() == "Applying"
    stage.pass_seconds(11.0)
    assert stage.peer.of(m.Refused)[0].refusal is Refusal.NAME_CONFLICT


def test_another_pod_of_the_same_name_is_not_the_one_that_was_admitted() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.offer()
    late = commit_messages()[1]
    late = replace(late, objects=tuple(replace(one, template="the-one-before") for one in late.objects))
    stage.send(late)
    assert stage.state() == "Applying", "the watch may be behind"
    before = stage.pod()["metadata"]["resourceVersion"]
    stage.pass_seconds(11.0)
    assert stage.peer.of(m.Refused)[0].refusal is Refusal.NAME_CONFLICT
    assert len(stage.written(Patch)) == 1, "asked for by its UID"
    assert stage.pod()["metadata"]["resourceVersion"] == before
    assert stage.pod()["spec"]["schedulingGates"] == [GATE]


def test_a_job_is_let_go_with_the_flavors_placement_and_gets_its_template_back_when_it_is_stopped() -> None:
    stage = _stage()
    flavors = [kind for kind in kinds() if kind.resource == RESOURCE_FLAVOR]
    assert flavors == []  # it comes with the CRDs; the core takes it as any other object
    stage.machine.world.flavors["spot"] = _flavor()
    _user_job(stage)
    sets = (m.PodSetRequest(name="main", count=2, requests=(("cpu", 1000),), flavors=(("cpu", "spot"),)),)
    stage.offer(kind="Job", name="j", pod_sets=sets)
    stage.commit(kind="Job", name="j", pod_sets=sets)
    template = stage.job()["spec"]["template"]
    assert stage.job()["spec"]["suspend"] is False
    assert template["spec"]["nodeSelector"] == {"pool": "spot"}
    cluster = Cluster(stage, finishes=False)
    while cluster.react():
        pass
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.job()["spec"]["suspend"] is True
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])
    while cluster.react():
        pass
    assert len(stage.peer.of(m.Stopped)) == 1
    template = stage.job()["spec"]["template"]
    assert "nodeSelector" not in template["spec"]
    assert stage.written(Create) == []


def test_after_a_restart_what_was_let_go_is_known_by_its_labels() -> None:
    stage = _stage()
    _user_pod(stage)
    stage.place()
    stage.run()
    stage.restart()
    [entry] = stage.peer.inventories[-1]
    assert (entry.key, entry.lifted, entry.state) == (KEY, True, "Running")
    stage.finish()
    assert len(stage.peer.of(m.Finished)) == 1


def _runs_without_labels() -> Stage:
    """Return a stage whose agent was restarted after somebody took our labels off the pod that runs."""
    stage = Stage(mode=AgentMode.LOCAL)
    stage.origin = ORIGIN_WITHOUT_MARKS
    stage.start()
    _user_pod(stage)
    stage.place()
    stage.run()
    stage.crash()
    ours = dict.fromkeys(("gatelift.dev/origin", "gatelift.dev/workload-uid", "gatelift.dev/epoch"))
    stage.change(POD, "p", {"metadata": {"labels": ours}})
    stage.start()
    assert stage.placement() is None
    return stage


def test_hd_55_what_runs_without_labels_is_taken_up_by_its_uid_and_by_nothing_else() -> None:
    stage = _runs_without_labels()
    [template] = commit_messages()[1].objects
    named = replace(template, template="uid-of-another")
    stage.send(replace(commit_messages()[1], objects=(named,)))
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    assert stage.placement() is None


def test_hd_55_what_runs_without_labels_is_not_taken_up_for_an_epoch_that_was_stopped() -> None:
    stage = _runs_without_labels()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.commit()
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.EPOCH_STALE]
    assert stage.placement() is None


def test_hd_249_what_shows_its_end_is_not_taken_up_and_not_written_to() -> None:
    """HD-249: that is the manager's own to see; nothing of it runs that a room would be charged for."""
    stage = _runs_without_labels()
    stage.finish()
    before = stage.pod()["metadata"]
    stage.commit()
    stage.pass_seconds(10.0)
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    assert len(stage.peer.of(m.GatesLifted)) == 1, "as it was let go, and not again"
    assert stage.pod()["metadata"] == before


@pytest.mark.parametrize("origin", [ORIGIN_WITHOUT_MARKS, "another"])
def test_hd_249_what_was_let_go_for_another_origin_has_not_left_its_former_attempt(origin: str) -> None:
    """HD-249: epochs of two installations are not each other's; only what is this one's own is taken up."""
    stage = Stage(mode=AgentMode.LOCAL)
    stage.origin = ORIGIN_WITHOUT_MARKS
    stage.start()
    _user_pod(stage)
    stage.place()
    stage.run()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    labels = {"gatelift.dev/origin": origin, "gatelift.dev/workload-uid": SECOND.uid, "gatelift.dev/epoch": "1"}
    stage.change(POD, "p", {"metadata": {"labels": labels}})
    assert stage.placement() is not None
    stage.commit(SECOND)
    taken = [each.key for each in stage.peer.of(m.GatesLifted)] == [KEY, SECOND]
    assert taken is (origin == ORIGIN_WITHOUT_MARKS)


def test_hd_240_pods_of_a_job_that_bears_no_mark_any_more_are_waited_for() -> None:
    """HD-240: no write of ours stops such a Job, and it is still when none of its pods holds anything any more."""
    stage = _stage()
    _user_job(stage)
    stage.change(JOB, "j", {"status": {"active": 1}}, "status")
    meta: dict[str, Any] = {"name": "j-0", "namespace": NAMESPACE_NAME, "ownerReferences": _controlled_by(stage.job())}
    meta["labels"] = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": "w-0", "gatelift.dev/epoch": "1"}
    stage.create(POD, {"metadata": meta, "spec": POD_SPEC})
    stage.run("j-0")
    stage.place(kind="Job", name="j")
    stage.change(JOB, "j", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}})
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(30.0)
    assert stage.peer.of(m.Stopped) == []
    stage.finish("j-0")
    stage.pass_seconds(30.0)
    assert [each.key for each in stage.peer.of(m.Stopped)] == [KEY]
    assert stage.written(object, JOB) == []


def _controlled_by(job: dict[str, Any]) -> list[dict[str, Any]]:
    meta = job["metadata"]
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}]


def _flavor() -> Any:

    return ResourceFlavor(spec=ResourceFlavorSpec(node_labels={"pool": "spot"}))


SECOND = PlacementKey("w-2", 1)
"""The first attempt of another Workload of the same object: its user has deleted the first one."""


def test_a_stop_of_one_workload_does_not_hold_back_the_next_one_of_the_same_pod() -> None:
    stage = _stage()
    _user_pod(stage, "example.com/own")
    stage.place()
    stage.send(m.Stop(key=KEY, reason="WorkloadDeleted"))
    stage.send(m.Forget(key=KEY))
    stage.change(POD, "p", {"spec": {"schedulingGates": [GATE]}})
    stage.place(SECOND)
    assert stage.state(SECOND) == "Running"


def test_what_was_let_go_for_another_workload_is_not_stopped_for_the_one_before() -> None:
    stage = _stage()
    _user_pod(stage, "example.com/own")
    stage.place()
    stage.place(SECOND)
    labels = {"gatelift.dev/workload-uid": SECOND.uid, "gatelift.dev/epoch": "1"}
    stage.change(POD, "p", {"metadata": {"labels": labels}, "spec": {"schedulingGates": []}})
    stage.send(m.Stop(key=KEY, reason="NotLive"))
    assert [each.key for each in stage.peer.of(m.Stopped)] == [KEY]
    assert stage.written(Delete) == []
    assert stage.state(SECOND) == "Running"


def _lift_of_a_dead_leader() -> tuple[Stage, ApiWrite]:
    """Return a stage whose agent died while it let the pod go, and the write that is still on its way."""
    stage = _stage()
    _user_pod(stage)
    stage.hold = lambda write: isinstance(write, Patch)
    stage.place()
    (lift,) = (each.command for each in stage.held)
    stage.crash()
    stage.start()
    assert stage.placement() is None
    return stage, lift


def test_hd_101_a_commit_is_refused_only_after_a_write_that_an_earlier_leaders_lift_cannot_outlive() -> None:
    stage, lift = _lift_of_a_dead_leader()
    stage.held.clear()
    stage.commit()
    assert stage.peer.of(m.Refused) == []
    stage.land()
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    stage._write(lift)
    assert stage.pod()["spec"]["schedulingGates"] == [GATE]
    assert stage.placement() is None


def test_hd_101_a_stop_behind_the_commit_that_names_its_object_is_answered_by_stopped_alone() -> None:
    stage, lift = _lift_of_a_dead_leader()
    stage.held.clear()
    [admitted] = (replace(one, template=stage.pod()["metadata"]["uid"]) for one in commit_messages()[1].objects)
    stage.send(replace(commit_messages()[1], objects=(admitted,)), m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped) == []
    stage.land()
    assert [stopped.reason for stopped in stage.peer.of(m.Stopped)] == ["Evicted"]
    assert stage.peer.of(m.Refused) == []
    stage._write(lift)
    assert stage.pod()["spec"]["schedulingGates"] == [GATE]


def test_hd_101_an_object_that_is_gone_or_another_one_is_asked_for_and_not_changed() -> None:
    stage, _ = _lift_of_a_dead_leader()
    stage.held.clear()
    before = stage.pod()["metadata"]["resourceVersion"]
    stage.send(commit_messages()[1])
    assert stage.peer.of(m.Refused) == []
    stage.land()
    assert stage.pod()["metadata"]["resourceVersion"] == before
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    assert stage.placement() is None


def test_hd_133_a_lift_that_lands_before_the_refusals_write_is_taken_up_and_not_deleted() -> None:
    stage, lift = _lift_of_a_dead_leader()
    stage.held.clear()
    stage.commit()
    stage._write(lift, answered=False)
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(1.0)
    assert stage.state() == "Running"
    assert stage.peer.of(m.Refused) == []
    assert [each.key for each in stage.peer.of(m.GatesLifted)] == [KEY]
    assert stage.written(Delete) == []
    assert "gatelift.dev/stopping" not in stage.pod()["metadata"].get("labels", {})
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


def test_hd_133_what_ran_and_ended_before_the_refusals_write_is_reported_as_it_ended() -> None:
    stage, lift = _lift_of_a_dead_leader()
    stage.held.clear()
    stage.commit()
    stage._write(lift, answered=False)
    stage.finish()
    stage.hold = lambda _write: False
    stage.land()
    assert stage.peer.of(m.Refused) == []
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


def test_hd_133_a_lift_that_lands_before_the_write_of_a_stop_is_stopped() -> None:
    stage, lift = _lift_of_a_dead_leader()
    stage.held.clear()
    [admitted] = (replace(one, template=stage.pod()["metadata"]["uid"]) for one in commit_messages()[1].objects)
    stage.send(replace(commit_messages()[1], objects=(admitted,)), m.Stop(key=KEY, reason="Evicted"))
    stage._write(lift, answered=False)
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(1.0)
    assert len(stage.written(Delete)) == 1
    assert stage.peer.of(m.GatesLifted) == []


def test_hd_133_what_a_stop_was_written_to_is_not_taken_up_when_somebody_lets_it_go() -> None:
    stage, _ = _lift_of_a_dead_leader()
    stage.held.clear()
    stage.commit()
    stage.hold = lambda _write: False
    stage.land()
    assert len(stage.peer.of(m.Refused)) == 1
    stage.change(POD, "p", {"spec": {"schedulingGates": []}})
    assert stage.placement() is None
