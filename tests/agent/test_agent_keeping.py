"""IS-46: what failed stays at the worker for a while; it is over all the same, and nothing that may run is kept."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode, KeepFinished
from gatelift_kinds.any_pod import status as pod_status
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import Delete, ObjectGone, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.drivers import fail_pod, failed_job, namespace_goes, running_job
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, commit_messages

HOUR = 3600.0
KEEP = KeepFinished(failed_seconds=HOUR)
NEXT = PlacementKey("w-1", 2)
OTHER = PlacementKey("w-2", 1)


def kept_job() -> Stage:
    stage = failed_job(keep=KEEP)
    stage.send(m.Forget(key=KEY))
    return stage


def kept_pod(name: str = "p", key: PlacementKey = KEY, stage: Stage | None = None, **keep: Any) -> Stage:
    if stage is None:
        stage = Stage(keep=KeepFinished(**{"failed_seconds": HOUR, **keep}))
        stage.start()
    stage.place(key, name=name)
    stage.run(name)
    fail_pod(stage, name)
    stage.send(m.Forget(key=key))
    return stage


def there(stage: Stage) -> list[str]:
    """Return the names of the Jobs and pods at the worker."""
    found = [*stage.store.look_all(("batch", "jobs")), *stage.store.look_all(("", "pods"))]
    return sorted(each["metadata"]["name"] for each in found)


def listed(stage: Stage) -> list[str]:
    """Return the state of each placement that an inventory of this moment names."""
    count = len(stage.peer.inventories)
    stage.cut_stream()
    stage.mend(resume=False)
    assert len(stage.peer.inventories) > count
    return [entry.state for entry in stage.peer.inventories[-1]]


def restarted(stage: Stage) -> list[str]:
    """Let another process begin, and return what its first inventory names."""
    stage.restart()
    return [entry.state for entry in stage.peer.inventories[-1]]


# --- how long --------------------------------------------------------------------------------------------------------


def test_is_46_a_job_that_failed_stays_with_its_pods_for_its_time_and_then_goes() -> None:
    stage = kept_job()
    assert (stage.state(), there(stage)) == ("Kept", ["j", "j-0", "j-1"])
    assert stage.job()["metadata"].get("finalizers", []) == []
    stage.pass_seconds(HOUR - 10.0)
    assert there(stage) == ["j", "j-0", "j-1"]
    stage.pass_seconds(10.0)
    assert stage.document(JOB, "j") is None
    assert stage.state() == "none"


def test_is_46_a_pod_that_failed_stays_and_what_succeeded_goes_at_once() -> None:
    stage = kept_pod()
    assert there(stage) == ["p"]
    stage.place(OTHER, name="q")
    stage.run("q")
    stage.finish("q")
    stage.send(m.Forget(key=OTHER))
    assert there(stage) == ["p"]


def test_is_46_what_succeeded_stays_where_the_worker_says_so() -> None:
    stage = Stage(keep=KeepFinished(succeeded_seconds=60.0))
    stage.start()
    stage.place()
    stage.run()
    stage.finish()
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(50.0)
    assert there(stage) == ["p"]
    stage.pass_seconds(20.0)
    assert there(stage) == []


def test_is_46_keeping_costs_no_write() -> None:
    kept, removed = kept_job(), failed_job()
    removed.send(m.Forget(key=KEY))
    kept.pass_seconds(HOUR + 10.0)
    assert there(removed) == ["j-0", "j-1"]  # the garbage collector's
    for kind in (Patch, Delete):
        assert len(kept.written(kind)) == len(removed.written(kind))


def test_is_46_its_time_runs_from_its_end_also_while_the_manager_is_away() -> None:
    stage, _ = running_job(keep=KEEP)
    stage.cut_stream()
    end = failed_end(stage)
    stage.pass_seconds(HOUR + 60.0)
    assert there(stage) == ["j", "j-0", "j-1"]  # nobody has its end yet
    stage.mend(resume=False)
    assert len(stage.peer.of(m.Finished)) == 1
    stage.send(m.Forget(key=KEY))
    assert stage.document(JOB, "j") is None
    assert stage.now > end + HOUR


def failed_end(stage: Stage) -> float:
    for name in ("j-0", "j-1"):
        fail_pod(stage, name)
    said = [{"type": kind, "status": "True"} for kind in ("FailureTarget", "Failed")]
    status = {"failed": 2, "active": 0, "conditions": said, "startTime": "2026-01-01T00:00:00Z"}
    stage.change(JOB, "j", {"status": status}, "status")
    return stage.now


def test_is_46_its_end_tells_for_how_long_it_stays() -> None:
    assert [end.kept_seconds for end in failed_job(keep=KEEP).peer.of(m.Finished)] == [HOUR]
    assert [end.kept_seconds for end in failed_job().peer.of(m.Finished)] == [0.0]


# --- over all the same -----------------------------------------------------------------------------------------------


def test_is_46_what_is_kept_takes_no_room_and_stands_in_no_inventory() -> None:
    stage = kept_job()
    world = stage.machine.world
    assert all(not entry.used for entry in world.admission.entries())
    assert listed(stage) == []
    assert there(stage) == ["j", "j-0", "j-1"]


def test_is_46_a_restarted_agent_lists_it_not_and_removes_it_at_its_time() -> None:
    stage = kept_job()
    stage.pass_seconds(HOUR / 2)
    assert restarted(stage) == []
    assert stage.state() == "Kept"
    assert len(stage.peer.of(m.Finished)) == 1
    stage.pass_seconds(HOUR / 2 - 60.0)
    assert restarted(stage) == []
    assert there(stage) == ["j", "j-0", "j-1"]
    stage.pass_seconds(70.0)
    assert stage.document(JOB, "j") is None


def test_is_46_a_restart_after_its_time_removes_it() -> None:
    stage = kept_pod()
    stage.crash()
    stage.now += 2 * HOUR
    stage.start()
    assert there(stage) == []


def test_is_46_what_says_that_it_ended_in_the_future_stays_no_longer_than_its_time() -> None:
    stage = kept_pod()
    later = to_text(stage.now + 100 * HOUR)
    ready = [{"type": "Ready", "status": "False", "lastTransitionTime": later}]
    stage.change(POD, "p", {"status": {"conditions": ready}}, "status")
    stage.restart()
    stage.pass_seconds(HOUR + 10.0)
    assert there(stage) == []


def test_is_46_its_epoch_stays_used_and_a_stop_is_answered_at_once() -> None:
    stage = kept_pod()
    stage.offer(KEY)
    assert [bid.refusal for bid in stage.peer.of(m.Bid)][-1] is not None
    stage.send(*commit_messages(KEY))
    assert len(stage.peer.of(m.Refused)) == 1
    assert there(stage) == ["p"]
    stage.send(m.Stop(key=KEY, reason="NotLive"))
    assert len(stage.peer.of(m.Stopped)) == 1
    assert there(stage) == []


@pytest.mark.parametrize("by_us", [True, False], ids=["stopped", "evicted"])
def test_is_46_what_was_stopped_or_evicted_is_not_kept_though_its_pod_failed_by_that(*, by_us: bool) -> None:
    stage = Stage(keep=KEEP)
    stage.start()
    stage.place()
    stage.run()
    if by_us:
        stage.send(m.Stop(key=KEY, reason="Preempted"))
    else:
        stage.remove(POD, "p")
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Stopped if by_us else m.Evicted)) == 1
    stage.send(m.Forget(key=KEY))
    assert (stage.state(), there(stage)) == ("none", [])


def test_is_46_a_job_that_failed_as_it_was_stopped_is_not_kept() -> None:
    stage, _ = running_job(keep=KEEP)
    stage.hold = lambda _: True
    stage.send(m.Stop(key=KEY, reason="Preempted"))
    failed_end(stage)
    stage.hold = lambda _: False
    stage.land()
    stage.pass_seconds(60.0)
    assert len(stage.peer.of(m.Stopped)) == 1
    assert stage.peer.of(m.Finished) == []
    stage.send(m.Forget(key=KEY))
    assert stage.document(JOB, "j") is None


def test_is_46_what_somebody_deletes_before_the_manager_knows_of_its_end_goes() -> None:
    stage = failed_job(keep=KEEP)
    stage.remove(JOB, "j")
    stage.send(m.Forget(key=KEY))
    assert stage.document(JOB, "j") is None
    assert stage.state() == "none"


def test_is_46_at_home_the_objects_are_the_users_own_and_nothing_is_kept_or_removed() -> None:
    stage = Stage(mode=AgentMode.LOCAL, keep=KEEP)
    pod = {"metadata": {"name": "p", "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/managed": "true"}}}
    gates = [{"name": "kueue.x-k8s.io/admission"}]
    spec = {"containers": [{"name": "main", "image": "app"}], "schedulingGates": gates}
    stage.create(POD, {**pod, "spec": spec})
    stage.start()
    stage.place()
    stage.run()
    fail_pod(stage, "p")
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "none"
    stage.pass_seconds(2 * HOUR)
    assert there(stage) == ["p"]


# --- when it gives way -----------------------------------------------------------------------------------------------


def test_is_46_it_goes_when_its_user_deletes_the_object_at_home() -> None:
    stage = kept_job()
    stage.send(m.Forget(key=KEY))  # said again: it says no more than the first one
    assert stage.state() == "Kept"
    stage.send(m.Forget(key=KEY, gone=True))
    assert stage.document(JOB, "j") is None
    assert stage.state() == "none"


def test_is_46_of_what_is_gone_at_home_when_its_end_is_known_nothing_is_kept() -> None:
    stage = failed_job(keep=KEEP)
    stage.send(m.Forget(key=KEY, gone=True))
    assert stage.document(JOB, "j") is None
    stage.send(m.Forget(key=OTHER, gone=True))  # of what never was here
    assert stage.peer.open


def test_is_46_it_gives_way_to_the_next_epoch_of_its_workload() -> None:
    stage = kept_pod()
    first = stage.pod()["metadata"]["uid"]
    stage.place(NEXT)
    assert stage.state(NEXT) == "Running"
    assert stage.pod()["metadata"]["uid"] != first


def test_is_46_it_gives_way_to_another_object_of_its_name_whose_create_waits_for_its_end() -> None:
    stage = kept_pod()
    first = stage.pod()["metadata"]["uid"]
    stage.hold = lambda write: isinstance(write, Delete)
    stage.place(OTHER)
    stage.pass_seconds(5.0)
    assert stage.pod()["metadata"]["uid"] == first
    assert stage.state(OTHER) == "Applying"
    stage.hold = lambda _: False
    stage.land()
    stage.pass_seconds(1.0)
    assert stage.state(OTHER) == "Running"
    assert stage.pod()["metadata"]["uid"] != first
    assert listed(stage) == ["Running"]


@pytest.mark.parametrize("watch_is_slow", [True, False])
def test_is_46_a_name_that_is_needed_while_what_has_it_is_being_deleted_is_free_at_once(*, watch_is_slow: bool) -> None:
    stage = kept_pod()
    stage.hold = lambda write: isinstance(write, Delete)
    stage.send(m.Forget(key=KEY, gone=True))
    stage.place(OTHER)
    held = stage.machine.world.objects.get(ObjectRef(POD, ObjectKey(NAMESPACE_NAME, "p")))
    assert held is not None
    stage.hold = lambda _: False
    stage.watching = not watch_is_slow
    stage.land()
    stage.watching = True
    if watch_is_slow:
        stage.post(ObjectGone(POD, held.object))
    stage.pass_seconds(5.0)
    assert stage.peer.of(m.Refused) == []


def test_is_46_a_finalizer_of_somebody_else_holds_up_the_name_and_nothing_else() -> None:
    stage = kept_pod()
    stage.change(POD, "p", {"metadata": {"finalizers": ["example.com/look"]}})
    stage.place(OTHER)
    stage.pass_seconds(10.0)
    assert stage.state(OTHER) == "Applying"
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.pass_seconds(1.0)
    assert stage.state(OTHER) == "Running"


def test_is_46_what_is_kept_longest_goes_where_there_would_be_too_much() -> None:
    stage = kept_pod(objects_max=2)
    for number in (2, 3):
        stage.pass_seconds(1.0)
        kept_pod(f"p-{number}", PlacementKey(f"w-{number}", 1), stage)
    assert there(stage) == ["p-2", "p-3"]
    stage.restart()
    stage.pass_seconds(1.0)
    kept_pod("p-4", PlacementKey("w-4", 1), stage)
    assert there(stage) == ["p-3", "p-4"]


def test_is_46_a_deletion_by_hand_waits_for_nobody_and_a_label_taken_off_is_put_back() -> None:
    stage = kept_pod()
    stage.change(POD, "p", {"metadata": {"labels": {"gatelift.dev/origin": None}}})
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/origin"]
    assert stage.state() == "Kept"
    stage.remove(POD, "p")
    assert there(stage) == []
    stage.pass_seconds(1.0)
    assert stage.state() == "none"


@pytest.mark.parametrize("told", [True, False], ids=["its objects first", "unseen"])
def test_is_46_its_namespace_goes_and_nothing_of_it_is_remembered(*, told: bool) -> None:
    stage = kept_job()
    if not told:
        stage.watched = set()
    for resource, name in ((JOB, "j"), (POD, "j-0"), (POD, "j-1")):
        kind = stage.store.kinds.of(resource)
        stage.store.delete(kind, NAMESPACE_NAME, name, Deletion(grace_seconds=0), stage.now)
    stage.fail = lambda write: WriteError.FORBIDDEN if write.ref.key.namespace == NAMESPACE_NAME else None
    stage.settle()
    namespace_goes(stage)
    assert stage.state() == "none"
    asked = len(stage.writes)
    stage.pass_seconds(2 * HOUR)
    assert [write for write in stage.writes[asked:] if write.ref.key.namespace == NAMESPACE_NAME] == []
    assert NAMESPACE_NAME not in stage.watched


# --- what may run is never kept --------------------------------------------------------------------------------------


def test_is_46_a_pod_that_runs_is_listed_though_our_finalizer_was_taken_off_it() -> None:
    stage = Stage(keep=KEEP)
    stage.start()
    stage.place()
    stage.run()
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    assert restarted(stage) == ["Running"]


def test_is_46_a_pod_whose_containers_run_is_not_kept_whatever_its_phase_says() -> None:
    stage = Stage(keep=KEEP)
    stage.start()
    stage.place()
    stage.run()
    runs = [{"name": "main", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}]
    stage.change(POD, "p", {"status": {"phase": "Failed", "containerStatuses": runs}}, "status")
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "none"
    assert there(stage) == []


def test_is_46_a_job_that_is_over_and_of_which_a_pod_runs_is_not_kept_by_the_next_process() -> None:
    stage = kept_job()
    stage.crash()
    stage.change(POD, "j-0", {"status": {"phase": "Running"}}, "status")
    stage.start()
    stage.pass_seconds(1.0)
    assert stage.document(JOB, "j") is None


@pytest.mark.parametrize("counted", [True, False])
def test_is_46_a_job_with_a_pod_that_is_gone_and_that_nobody_counted_is_not_kept_by_the_next_process(
    *, counted: bool
) -> None:
    stage = failed_job(keep=KEEP)
    stage.change(JOB, "j", {"status": {"failed": 2 if counted else 1}}, "status")
    stage.send(m.Forget(key=KEY))
    assert stage.state() == "Kept"
    stage.crash()
    stage.remove(POD, "j-0", grace=0)
    stage.start()
    stage.pass_seconds(1.0)
    assert (stage.document(JOB, "j") is not None) is counted


def test_is_46_a_job_of_which_a_pod_still_stops_by_its_own_status_is_not_kept() -> None:
    stage = failed_job(keep=KEEP)
    stage.change(JOB, "j", {"status": {"terminating": 1}}, "status")
    stage.send(m.Forget(key=KEY))
    assert stage.document(JOB, "j") is None


def test_is_46_what_is_kept_and_runs_again_is_listed_and_stopped() -> None:
    stage = kept_job()
    stage.hold = lambda write: isinstance(write, Delete)
    stage.change(POD, "j-0", {"status": {"phase": "Running"}}, "status")
    assert stage.state() == "Draining"
    assert listed(stage) == ["Draining"]
    stage.hold = lambda _: False
    stage.land()
    assert stage.document(JOB, "j") is None
    stage.change(POD, "j-0", {"status": {"phase": "Failed"}}, "status")
    stage.pass_seconds(60.0)
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(60.0)
    assert stage.state() == "none"


def test_is_46_a_pod_that_is_kept_and_runs_again_is_listed_and_stopped() -> None:
    stage = kept_pod()
    stage.hold = lambda write: isinstance(write, Delete)
    stage.change(POD, "p", {"status": {"phase": "Running"}}, "status")
    assert listed(stage) == ["Draining"]
    stage.hold = lambda _: False
    stage.land()
    assert stage.pod()["metadata"]["deletionTimestamp"]


def test_is_46_what_is_kept_and_cannot_be_read_any_more_is_listed_as_what_may_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = kept_pod()

    def fails(_raw: bytes) -> bool:
        raise ValueError("a status that nobody can read")

    monkeypatch.setattr(Contained, "surfaces", False)
    monkeypatch.setattr(pod_status, "containers_run", fails)
    stage.hold = lambda write: isinstance(write, Delete)
    stage.change(POD, "p", {"metadata": {"labels": {"example.com/late": "yes"}}})
    assert listed(stage) == ["Draining"]
