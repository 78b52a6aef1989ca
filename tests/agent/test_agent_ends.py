"""How placements end other than well: stops, evictions by somebody else, vanished objects, refusals, conflicts."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_agent.core.placement.placements import IllegalMoveError, PlacementState
from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import Create, Delete, ObjectGone, ObjectSeen, Patch, WriteError
from gatelift_kube.values.resources import JOB, NAMESPACE, NODE, POD
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.single import DeleteObject, SetUserGates
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC, commit_messages, decode


def _started() -> Stage:
    stage = Stage()
    stage.start()
    return stage


def _running() -> Stage:
    stage = _started()
    stage.place()
    stage.run()
    return stage


# --- stops -------------------------------------------------------------------------------------------------------


def test_a_running_pod_that_is_stopped_is_reported_when_its_kubelet_says_so() -> None:
    stage = _running()
    stage.send(m.Stop(key=KEY, reason="Evicted", grace_seconds=5.0))
    [delete] = stage.written(Delete)
    assert delete.grace_seconds == 5
    assert stage.pod()["metadata"]["deletionTimestamp"]
    assert stage.peer.of(m.Stopped) == []
    stage.finish(phase="Failed")
    [stopped] = stage.peer.of(m.Stopped)
    assert stopped.reason == "Evicted"
    assert b'"Failed"' in stopped.objects[0].status
    assert stage.document(POD, "p") is not None, "its state is kept until the manager has it"
    stage.send(m.Forget(key=KEY))
    assert stage.document(POD, "p") is None


def test_the_grace_of_a_stop_never_lengthens_the_pods_own() -> None:
    stage = _started()
    stage.place(spec={**POD_SPEC, "terminationGracePeriodSeconds": 3})
    stage.run()
    stage.send(m.Stop(key=KEY, reason="Evicted", grace_seconds=60.0))
    assert stage.written(Delete)[0].grace_seconds is None
    assert stage.pod()["metadata"]["deletionGracePeriodSeconds"] == 3


def test_a_stop_that_is_repeated_is_answered_again() -> None:
    stage = _running()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.finish(phase="Failed")
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert len(stage.peer.of(m.Stopped)) == 2
    assert len(stage.written(Delete)) == 1


def test_a_stop_of_what_has_finished_is_answered_with_both_words() -> None:
    stage = _running()
    stage.finish()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert len(stage.peer.of(m.Finished)) == 2
    assert len(stage.peer.of(m.Stopped)) == 1


def test_a_job_that_is_stopped_is_suspended_and_reported_when_its_pods_are_gone() -> None:
    stage = _started()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    assert stage.job()["spec"]["suspend"] is False
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.job()["spec"]["suspend"] is True
    assert stage.peer.of(m.Stopped) == []
    for pod in stage.store.look_all(("", "pods")):
        stage.remove(POD, pod["metadata"]["name"])  # as the Job controller does when it sees the suspension
    while cluster.react():
        pass
    [stopped] = stage.peer.of(m.Stopped)
    assert stopped.objects[0].kind == "Job"
    stage.send(m.Forget(key=KEY))
    assert stage.document(JOB, "j") is None


def test_forgetting_what_still_runs_stops_it_first() -> None:
    stage = _running()
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "Draining"
    assert stage.pod()["metadata"]["deletionTimestamp"]
    stage.finish(phase="Failed")
    assert stage.document(POD, "p") is None
    assert stage.state() == "none"


def test_a_newer_epoch_waits_until_the_older_one_is_gone() -> None:
    stage = _running()
    stage.place(PlacementKey("w-1", 2))
    assert stage.state(PlacementKey("w-1", 2)) == "Committed"
    assert stage.pod()["metadata"]["deletionTimestamp"]
    stage.finish(phase="Failed")
    stage.pass_seconds(2.0)
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/epoch"] == "2"
    assert stage.state() == "none"
    assert stage.state(PlacementKey("w-1", 2)) == "Running"


# --- somebody else -----------------------------------------------------------------------------------------------


def test_a_pod_that_somebody_deletes_is_evicted_when_it_has_stopped() -> None:
    stage = _running()
    stage.remove(POD, "p")
    assert stage.peer.of(m.Evicted) == []
    stage.finish(phase="Failed")
    [evicted] = stage.peer.of(m.Evicted)
    assert evicted.reason == "WorkerObjectDeleted"
    assert "team-a/p was deleted in the worker cluster by somebody else" in evicted.message
    assert stage.written(Delete) == []


def test_a_stop_that_comes_while_an_eviction_is_under_way_is_answered_too() -> None:
    stage = _running()
    stage.remove(POD, "p")
    stage.send(m.Stop(key=KEY, reason="Preempted", grace_seconds=1.0))
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Evicted)) == 1
    assert [each.reason for each in stage.peer.of(m.Stopped)] == ["Preempted"]


def test_a_delete_whose_uid_is_another_one_by_now_has_nothing_left_to_delete() -> None:
    stage = _running()
    stage.fail = lambda write: WriteError.PRECONDITION if isinstance(write, Delete) else None
    stage.finish()
    stage.send(m.Forget(key=KEY))
    assert len(stage.written(Delete)) == 1
    assert stage.state() == "none"


def test_a_gated_pod_that_somebody_deletes_is_evicted_at_once() -> None:
    stage = _started()
    stage.peer.grants = False
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    stage.hold = lambda _write: False
    stage.remove(POD, "p")
    stage.land()
    stage.pass_seconds(5.0)
    assert len(stage.peer.of(m.Evicted)) == 1


def test_a_pod_that_had_succeeded_before_somebody_deleted_it_has_finished() -> None:
    stage = _running()
    stage.finish()
    stage.remove(POD, "p")
    assert len(stage.peer.of(m.Finished)) == 1
    assert stage.peer.of(m.Evicted) == []


def test_labels_that_somebody_takes_away_are_put_back() -> None:
    stage = _running()
    stage.change(POD, "p", {"metadata": {"labels": None}})
    stage.pass_seconds(2.0)
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/origin"] == ORIGIN
    assert stage.state() == "Running"
    stage.finish()
    assert len(stage.peer.of(m.Finished)) == 1


def test_a_pod_that_vanishes_on_a_living_node_stays_unknown_until_its_kubelet_is_heard() -> None:
    stage = _started()
    _node(stage, "2026-01-01T00:00:00Z")
    stage.place()
    stage.run()
    stage.pass_seconds(100.0)  # it has been ready for long
    _beat(stage, "2026-01-01T00:01:00Z")
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    assert stage.state() == "Draining"
    stage.pass_seconds(300.0)
    assert stage.peer.of(m.Evicted) == []
    _beat(stage, "2026-01-01T00:05:00Z")
    assert stage.peer.of(m.Evicted) == []
    _beat(stage, "2026-01-01T00:06:00Z")
    assert len(stage.peer.of(m.Evicted)) == 1


def test_a_pod_that_vanishes_with_its_node_has_stopped() -> None:
    stage = _started()
    _node(stage, "2026-01-01T00:00:00Z")
    stage.place()
    stage.run()
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    kind = stage.store.kinds.of(NODE)
    stage.store.delete(kind, "", "node-1", Deletion(), stage.now)
    stage.settle()
    assert len(stage.peer.of(m.Evicted)) == 1


def test_a_job_that_somebody_deletes_is_let_go_so_that_its_pods_end() -> None:
    stage = _started()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.remove(JOB, "j")
    assert stage.document(JOB, "j") is None
    assert stage.peer.of(m.Evicted) == []
    while cluster.react():
        pass
    assert len(stage.peer.of(m.Evicted)) == 1


def test_pods_that_a_deleted_job_leaves_as_orphans_are_deleted_by_us() -> None:
    stage = _started()
    cluster = Cluster(stage, finishes=False)
    stage.place(kind="Job", name="j")
    while cluster.react():
        pass
    stage.remove(JOB, "j", propagation="Orphan")
    for pod in stage.store.look_all(("", "pods")):  # as the garbage collector does before it lets the Job go
        stage.change(POD, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
    stage.change(JOB, "j", {"metadata": {"finalizers": None}})
    assert stage.document(JOB, "j") is None
    stage.pass_seconds(5.0)
    assert stage.written(Delete) == []
    stage.pass_seconds(6.0)
    assert len(stage.written(Delete, POD)) == 2
    assert stage.peer.of(m.Evicted) == []
    while cluster.react():
        pass
    assert len(stage.peer.of(m.Evicted)) == 1


def test_a_pod_that_somebody_lifts_counts_as_running() -> None:
    stage = _started()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    stage.place()
    stage.hold = lambda _write: False
    stage.change(POD, "p", {"spec": {"schedulingGates": None}})
    stage.land()
    stage.pass_seconds(1.0)
    assert stage.state() == "Running"
    assert len(stage.peer.of(m.GatesLifted)) == 1


# --- refusals and conflicts --------------------------------------------------------------------------------------


def test_a_foreign_pod_of_the_same_name_is_a_conflict_and_is_not_touched() -> None:
    stage = _started()
    stage.create(POD, {"metadata": {"name": "p", "namespace": NAMESPACE_NAME}, "spec": dict(POD_SPEC)})
    before = stage.pod()
    stage.place()
    stage.pass_seconds(5.0)
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is Refusal.NAME_CONFLICT
    assert "another object has this name" in refused.text
    assert stage.pod() == before


def test_a_foreign_pod_with_labels_of_another_manager_is_not_touched() -> None:
    stage = _started()
    labels = {"gatelift.dev/origin": "other", "gatelift.dev/workload-uid": "w-1", "gatelift.dev/epoch": "1"}
    stage.create(
        POD, {"metadata": {"name": "p", "namespace": NAMESPACE_NAME, "labels": labels}, "spec": dict(POD_SPEC)}
    )
    before = stage.pod()
    stage.place()
    stage.pass_seconds(40.0)
    assert stage.document(POD, "p") == before
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.NAME_CONFLICT]


@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (WriteError.NAMESPACE_MISSING, Refusal.NAMESPACE_MISSING),
        (WriteError.INVALID, Refusal.INVALID),
        (WriteError.FORBIDDEN, Refusal.NAMESPACE_NOT_ALLOWED),
        (WriteError.DENIED, Refusal.DENIED),
        (WriteError.QUOTA, Refusal.QUOTA_BUSY),
        (WriteError.TOO_LARGE, Refusal.TOO_LARGE),
    ],
)
def test_a_create_that_is_refused_ends_the_placement_with_a_typed_refusal(error: WriteError, refusal: Refusal) -> None:
    stage = _started()
    stage.fail = lambda write: error if isinstance(write, Create) and write.ref.resource == POD else None
    stage.place()
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is refusal
    assert stage.state() == "none"


def test_a_lift_that_is_denied_ends_the_placement_and_removes_its_pod() -> None:
    stage = _started()
    stage.fail = lambda write: (
        WriteError.DENIED if isinstance(write, Patch) and b"schedulingGates" in write.body else None
    )
    stage.place()
    stage.pass_seconds(1.0)
    assert stage.peer.of(m.Refused)[0].refusal is Refusal.DENIED
    assert stage.document(POD, "p") is None


def test_a_namespace_that_stops_accepting_refuses_new_work_and_keeps_what_runs() -> None:
    stage = _running()
    kind = stage.store.kinds.of(NAMESPACE)
    body = b'{"metadata":{"labels":{"gatelift.dev/accept":null}}}'
    stage.store.patch(kind, "", NAMESPACE_NAME, body, "application/merge-patch+json", stage.now)
    stage.settle()
    stage.offer(PlacementKey("w-2", 1), name="q")
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.NAMESPACE_NOT_ALLOWED
    stage.restart()
    assert stage.state() == "Running", "what runs in a namespace that accepts no more is still known after a restart"
    stage.finish()
    assert len(stage.peer.of(m.Finished)) == 1


# --- the API server ----------------------------------------------------------------------------------------------


def test_an_unreachable_api_stops_offers_and_credits_and_touches_nothing() -> None:
    stage = _running()
    stage.post(events.ApiHealthChanged(reachable=False, latency_seconds=0.0))
    stage.offer(PlacementKey("w-2", 1), name="q")
    assert stage.peer.of(m.Bid)[-1].refusal is Refusal.API_UNREACHABLE
    writes = len(stage.writes)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(30.0)
    assert len(stage.writes) == writes
    stage.post(events.ApiHealthChanged(reachable=True, latency_seconds=0.0))
    assert len(stage.written(Delete)) == 1


def test_a_delete_of_unknown_outcome_is_tried_again() -> None:
    stage = _running()
    failures = iter([WriteError.UNKNOWN, WriteError.UNKNOWN])
    stage.fail = lambda write: next(failures, None) if isinstance(write, Delete) else None
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(5.0)
    assert len(stage.written(Delete)) == 3
    assert stage.pod()["metadata"]["deletionTimestamp"]


def test_a_late_create_of_a_placement_that_was_stopped_is_removed() -> None:
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == POD
    stage.place()
    create = stage.held[0].command
    stage.hold = lambda _write: False
    stage.lose()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(12.0)
    assert len(stage.peer.of(m.Stopped)) == 1
    stage.send(m.Forget(key=KEY))
    stage._write(create, answered=False)  # later than any write may land: removed all the same
    stage.settle()
    stage.pass_seconds(2.0)
    assert stage.document(POD, "p") is None
    assert len(stage.peer.of(m.Stopped)) == 1


def test_a_stale_watch_event_does_not_bring_back_what_was_removed() -> None:
    stage = _running()
    stage.finish()
    old = stage.store.find(("", "pods"), NAMESPACE_NAME, "p")
    assert old is not None
    stage.send(m.Forget(key=KEY))
    writes = len(stage.writes)
    pod = decode(POD, old)
    stage.post(ObjectSeen(POD, pod, old.raw))
    stage.post(ObjectGone(POD, pod))
    assert len(stage.writes) == writes
    assert stage.state() == "none"


def test_every_command_in_every_state_has_an_answer_or_is_a_no_op() -> None:
    for state in PlacementState:
        for message in _all_commands():
            stage = _started()
            stage.place()
            placement = stage.placement()
            assert placement is not None
            placement.state = state
            try:
                stage.send(message)
            except IllegalMoveError as error:
                pytest.fail(f"{type(message).__name__} in {state.value}: {error}")
            stage.send(m.Cordon(cordoned=False))
            assert stage.peer.open, f"{type(message).__name__} in {state.value}"


def _all_commands() -> tuple[m.Message, ...]:
    return (
        *commit_messages(),
        m.Offer(key=KEY, kind="Pod", namespace=NAMESPACE_NAME, name="p", queue="queue"),
        m.Confirm(keys=(KEY,)),
        m.Withdraw(key=KEY),
        DeleteObject(key=KEY, name="p"),
        SetUserGates(key=KEY, name="p", gates=()),
        m.CertificateRenewed(certificate=b"c", ca_bundle=b"b"),
    )


def _node(stage: Stage, heartbeat: str) -> None:
    stage.create(NODE, {"metadata": {"name": "node-1"}})
    _beat(stage, heartbeat)


def _beat(stage: Stage, heartbeat: str) -> None:
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    body = {"status": {"conditions": [condition]}}
    kind = stage.store.kinds.of(NODE)
    media = "application/merge-patch+json"
    stage.store.patch(kind, "", "node-1", msgspec.json.encode(body), media, stage.now, subresource="status")
    stage.settle()
