"""The stand-in kubelet's decisions: starting, ending, stopping with grace, writes that fail, nodes that are lost."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest

from gatelift_kube.deciding.writes import Create, Delete, ObjectSeen, Patch, Synced, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects import core
from gatelift_kube.values.resources import LEASE, NODE, POD
from gatelift_sandbox.behaviour import LOST, Behaviour
from gatelift_sandbox.kubelet.machine import AppendRecord, KubeletMachine, TimePassed
from support.servers.sandbox_rig import NODE_SETTINGS, WALL, Rig


def status_in(write: Create | Patch | Delete) -> dict[str, Any]:
    assert isinstance(write, Patch)
    assert write.subresource == "status"
    found: dict[str, Any] = json.loads(write.body)["status"]
    return found


def container_in(write: Create | Patch | Delete) -> dict[str, Any]:
    found: dict[str, Any] = status_in(write)["containerStatuses"][0]
    return found


# --- a cluster that is put back to a backup


def test_a_pod_that_a_backup_shows_without_a_node_is_stopped() -> None:
    rig = Rig()
    rig.run()
    del rig.pods["p"]["spec"]["nodeName"]
    rig.see()
    rig.pass_time(31.0)
    assert rig.notes[-1].stopped is not None


def test_an_end_that_a_backup_does_not_know_is_told_again() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=5))
    rig.pass_time(5.0)
    rig.done(rig.write())
    rig.pods["p"]["status"] = {"phase": "Running"}
    rig.version = 0
    rig.machine.restored(rig.now)
    rig.see()
    assert status_in(rig.write())["phase"] == "Succeeded"
    assert len(rig.notes) == 2, "its containers ran once"


def test_an_end_that_was_only_read_is_told_again_when_a_backup_does_not_know_it() -> None:
    rig = Rig()
    rig.a_pod()
    rig.pods["p"]["status"] = {"phase": "Failed"}
    rig.see()
    rig.pods["p"]["status"] = {"phase": "Running"}
    rig.version = 0
    rig.machine.restored(rig.now)
    rig.see()
    assert status_in(rig.write())["phase"] == "Failed"
    assert rig.notes == [], "its containers do not run again"


# --- starting and ending


def test_a_bound_pod_runs_at_once_and_is_recorded_with_its_placement() -> None:
    rig = Rig()
    rig.a_pod()
    rig.see()
    status = status_in(rig.write())
    assert status["phase"] == "Running"
    assert status["podIP"].startswith("10.244.")
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    (note,) = rig.notes
    assert (note.pod_uid, note.workload_uid, note.epoch, note.cluster) == ("uid-p", "w", 2, "c")
    assert (note.started, note.stopped) == (100.0, None)


def test_a_status_is_written_under_the_version_that_was_read() -> None:
    rig = Rig()
    rig.a_pod()
    rig.see()
    write = rig.write()
    assert isinstance(write, Patch)
    assert json.loads(write.body)["metadata"] == {"uid": "uid-p", "resourceVersion": "1"}


def test_pods_of_other_nodes_are_left_alone() -> None:
    rig = Rig()
    rig.a_pod(spec={"nodeName": "elsewhere"})
    rig.see()
    assert rig.take_writes() == []
    assert rig.notes == []


@pytest.mark.parametrize(
    ("behaviour", "phase", "reason", "code"),
    [
        (Behaviour(run_seconds=5), "Succeeded", "Completed", 0),
        (Behaviour(run_seconds=5, exit_code=3), "Failed", "Error", 3),
        (Behaviour(run_seconds=5, exceed_memory=True), "Failed", "OOMKilled", 137),
    ],
)
def test_a_pod_ends_when_and_how_it_was_told(behaviour: Behaviour, phase: str, reason: str, code: int) -> None:
    rig = Rig()
    rig.run(behaviour=behaviour)
    rig.pass_time(4.9)
    assert rig.take_writes() == []
    rig.pass_time(0.1)
    write = rig.write()
    assert status_in(write)["phase"] == phase
    terminated = container_in(write)["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == (reason, code)
    assert (rig.notes[-1].stopped, rig.notes[-1].exit_code) == (105.0, code)


def test_without_an_annotation_a_pod_runs_for_ever() -> None:
    rig = Rig()
    rig.run()
    rig.pass_time(1_000)
    assert rig.take_writes() == []
    assert rig.machine.running == 1


def test_a_pod_with_an_unreadable_annotation_fails_and_says_which() -> None:
    rig = Rig()
    rig.a_pod(metadata={"annotations": {"sandbox.gatelift.dev/run-seconds": "soon"}})
    rig.see()
    status = status_in(rig.write())
    assert (status["phase"], status["reason"]) == ("Failed", "InvalidSandboxAnnotation")
    assert "run-seconds: 'soon'" in status["message"]
    assert rig.notes == []


def test_init_containers_have_ended_well_and_sidecars_run() -> None:
    rig = Rig()
    inits = [{"name": "setup", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]
    rig.a_pod(spec={"initContainers": inits})
    rig.see()
    setup, side = status_in(rig.write())["initContainerStatuses"]
    assert setup["state"]["terminated"]["exitCode"] == 0
    assert "running" in side["state"]


def test_a_failing_container_is_restarted_with_a_growing_delay_where_the_policy_says_so() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=1, exit_code=1), spec={"restartPolicy": "OnFailure"})
    rig.pass_time(1)
    first = rig.write()
    assert container_in(first)["restartCount"] == 1
    assert "running" in container_in(first)["state"]
    rig.done(first)
    rig.pass_time(1)
    second = rig.write()
    assert container_in(second)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert container_in(second)["lastState"]["terminated"]["exitCode"] == 1
    assert {c["status"] for c in status_in(second)["conditions"] if c["type"] == "Ready"} == {"False"}
    rig.done(second)
    rig.pass_time(10)
    third = rig.write()
    assert (container_in(third)["restartCount"], "running" in container_in(third)["state"]) == (2, True)
    assert len(rig.notes) == 1


def test_the_policy_on_failure_lets_a_success_end_the_pod() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=1), spec={"restartPolicy": "OnFailure"})
    rig.pass_time(1)
    assert status_in(rig.write())["phase"] == "Succeeded"


# --- stopping


def test_a_deleted_pod_stops_then_says_so_then_goes() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(stop_seconds=5))
    rig.delete()
    assert rig.take_writes() == []
    rig.pass_time(4.9)
    assert rig.take_writes() == []
    rig.pass_time(0.1)
    write = rig.write()
    assert (status_in(write)["phase"], container_in(write)["state"]["terminated"]["exitCode"]) == ("Failed", 143)
    assert rig.notes[-1].stopped == 105.0
    rig.done(write)
    removal = rig.write()
    assert isinstance(removal, Delete)
    assert (removal.uid, removal.grace_seconds) == ("uid-p", 0)


def test_the_grace_period_cuts_a_slow_stop_short() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(stop_seconds=60))
    rig.delete(grace=10)
    rig.pass_time(10)
    assert container_in(rig.write())["state"]["terminated"]["exitCode"] == 137
    assert rig.notes[-1].stopped == 110.0


def test_a_second_deletion_can_only_shorten_the_grace() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(stop_seconds=60))
    rig.delete(grace=30)
    rig.pass_time(2)
    rig.delete(grace=5)
    rig.delete(grace=30)
    rig.pass_time(5)
    assert rig.notes[-1].stopped == 107.0


def test_a_stop_that_is_under_way_is_not_begun_again_by_a_second_deletion() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(stop_seconds=4))
    rig.delete(grace=30)
    rig.pass_time(2)
    rig.delete(grace=20)
    rig.pass_time(2)
    assert (rig.notes[-1].stopped, rig.notes[-1].exit_code) == (104.0, 143)


def test_containers_have_a_second_even_with_grace_zero() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(stop_seconds=60))
    rig.vanish()  # a forced deletion: the object is gone at once
    assert [note.stopped for note in rig.notes] == [None]
    rig.pass_time(30)
    assert (rig.notes[-1].stopped, rig.notes[-1].exit_code) == (130.0, 137)
    assert rig.take_writes() == []
    rig = Rig()
    rig.run(behaviour=Behaviour(stop_seconds=60), metadata={"finalizers": ["x/y"]})
    rig.delete(grace=0)
    rig.pass_time(1)
    assert rig.notes[-1].stopped == 101.0


def test_a_container_that_was_told_to_stop_does_not_end_in_its_own_way() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=3, stop_seconds=5))
    rig.delete()
    rig.pass_time(5)
    assert (rig.notes[-1].stopped, rig.notes[-1].exit_code) == (105.0, 143)


def test_a_finished_pod_that_is_deleted_goes_at_once_and_once_only() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=1), metadata={"finalizers": ["x/y"]})
    rig.pass_time(1)
    rig.done(rig.write())
    rig.delete()
    rig.done(rig.write())
    rig.see()  # the finalizer keeps it
    rig.pass_time(100)
    assert rig.take_writes() == []


def test_a_pod_deleted_before_it_started_never_runs() -> None:
    rig = Rig()
    rig.a_pod()
    rig.delete()
    told = rig.write()
    assert isinstance(told, Patch)
    assert json.loads(told.body)["status"]["phase"] == "Failed", "as a kubelet says before it lets a pod go"
    rig.done(told)
    assert isinstance(rig.write(), Delete)
    assert rig.notes == []


def test_a_pod_waiting_for_a_restart_stops_at_once() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=1, exit_code=1, stop_seconds=9), spec={"restartPolicy": "Always"})
    rig.pass_time(2)
    rig.take_writes()
    rig.delete()
    assert rig.notes[-1].stopped == 102.0


# --- writes that fail


def test_after_a_conflict_the_status_is_written_again_from_the_newer_version() -> None:
    rig = Rig()
    rig.a_pod()
    rig.see()
    first = rig.write()
    rig.pods["p"]["status"]["conditions"].append({"type": "Foreign", "status": "True"})
    rig.see()
    assert rig.take_writes() == [], "one write at a time"
    rig.fail(first, WriteError.CONFLICT)
    rig.pass_time(0.1)
    assert "Foreign" in {c["type"] for c in status_in(rig.write())["conditions"]}


@pytest.mark.parametrize("error", [WriteError.UNKNOWN, WriteError.FORBIDDEN])
def test_any_other_failure_is_tried_again_after_a_while(error: WriteError) -> None:
    rig = Rig()
    rig.a_pod()
    rig.see()
    rig.fail(rig.write(), error)
    assert rig.take_writes() == []
    rig.pass_time(1)
    assert status_in(rig.write())["phase"] == "Running"


def test_a_deletion_of_which_nothing_is_known_is_tried_again_and_one_of_nothing_is_not() -> None:
    rig = Rig()
    rig.a_pod()
    rig.delete()
    rig.done(rig.write())
    rig.fail(rig.write(), WriteError.UNKNOWN)
    rig.pass_time(1)
    rig.fail(rig.write(), WriteError.NOT_FOUND)
    rig.pass_time(10)
    assert rig.take_writes() == []


def test_a_watch_event_older_than_the_answer_to_a_write_changes_nothing() -> None:
    rig = Rig()
    rig.a_pod()
    rig.see()
    older = json.dumps(rig.pods["p"]).encode()
    rig.done(rig.write())
    rig.machine.handle(ObjectSeen(POD, core.Pod(), older), rig.now)
    rig.delete()
    write = rig.write()
    assert isinstance(write, Patch)
    assert json.loads(write.body)["metadata"]["resourceVersion"] == str(rig.version)


def test_an_answer_older_than_what_the_watch_has_told_changes_nothing() -> None:
    """The end of a pod that was deleted just then was written under that old version for ever, and it seemed to run."""
    rig = Rig()
    rig.a_pod()
    rig.see()
    write = rig.write()
    older = rig.carry_out(write)
    rig.delete(grace=0)
    rig.answer(write, older)
    rig.pass_time(1.5)
    end = rig.write()
    assert isinstance(end, Patch)
    assert json.loads(end.body)["metadata"]["resourceVersion"] == str(rig.version)
    assert status_in(end)["phase"] == "Failed"
    rig.done(end)
    assert isinstance(rig.write(), Delete)


# --- nodes


def test_a_node_registers_with_its_capacity_and_renews_its_lease() -> None:
    machine = KubeletMachine("c", [NODE_SETTINGS], now=0.0, wall_offset=WALL)
    register, lease = machine.handle(TimePassed(), 0.0)
    assert isinstance(register, Create)
    assert isinstance(lease, Create)
    assert json.loads(register.body)["status"]["allocatable"]["cpu"] == "8"
    assert (lease.ref.key.namespace, lease.ref.key.name) == ("kube-node-lease", "n0")
    machine.handle(WriteDone(write_id=register.write_id, object=None), 0.0)
    machine.handle(WriteDone(write_id=lease.write_id, object=None), 0.0)
    assert machine.next_deadline() == 10.0
    (renewal,) = machine.handle(TimePassed(), 10.0)
    assert isinstance(renewal, Patch)
    assert "renewTime" in json.loads(renewal.body)["spec"]


def test_a_lease_that_is_there_already_is_renewed_at_once() -> None:
    machine = KubeletMachine("c", [NODE_SETTINGS], now=0.0, wall_offset=WALL)
    _, lease = machine.handle(TimePassed(), 0.0)
    assert isinstance(lease, Create)
    failed = WriteFailed(write_id=lease.write_id, error=WriteError.ALREADY_EXISTS, message="")
    (renewal,) = machine.handle(failed, 0.0)
    assert isinstance(renewal, Patch)


def test_a_node_that_somebody_deleted_registers_again() -> None:
    rig = Rig()
    rig.pass_time(59)
    rig.now = 160.0
    status = next(
        c for c in rig.machine.handle(TimePassed(), rig.now) if isinstance(c, Patch) and c.ref.resource == NODE
    )
    rig.machine.handle(WriteFailed(write_id=status.write_id, error=WriteError.NOT_FOUND, message=""), rig.now)
    again = rig.machine.handle(TimePassed(), rig.now + 1)
    assert any(isinstance(c, Create) and c.ref.resource == NODE for c in again)


def test_a_lost_node_writes_nothing_while_its_containers_run_on_and_end() -> None:
    rig = Rig()
    rig.run(behaviour=Behaviour(run_seconds=50))
    rig.node(**{LOST: "true"})
    rig.a_pod("new")
    rig.see("new")
    rig.pass_time(200)
    assert rig.take_writes() == []
    assert [(n.pod_uid, n.stopped) for n in rig.notes] == [("uid-p", None), ("uid-p", 150.0)]
    rig.node()
    writes = rig.take_writes()
    assert {w.ref.key.name for w in writes} == {"n0", "p", "new"}
    assert {w.ref.resource for w in writes} == {NODE, LEASE, POD}


def test_a_lost_node_learns_of_a_forced_deletion_when_it_is_back_and_stops_then() -> None:
    rig = Rig()
    rig.run()
    rig.node(**{LOST: "true"})
    rig.vanish()
    rig.pass_time(100)
    assert rig.notes[-1].stopped is None
    rig.node()
    rig.pass_time(0)
    assert rig.notes[-1].stopped == 200.0


def test_a_lost_node_has_nothing_to_wake_for() -> None:
    rig = Rig()
    rig.node(**{LOST: "true"})
    assert rig.machine.next_deadline() == inf


# --- a new life of the kubelet


def test_a_restarted_kubelet_goes_on_with_what_runs() -> None:
    before = Rig()
    before.run(behaviour=Behaviour(run_seconds=30))
    after = Rig(earlier=tuple(before.notes))
    after.pods = before.pods
    after.now += 10
    after.see()
    assert after.take_writes() == []
    assert after.notes == []
    after.pass_time(20)
    assert status_in(after.write())["phase"] == "Succeeded"
    assert (after.notes[-1].started, after.notes[-1].stopped) == (100.0, 130.0)


def test_a_restarted_kubelet_ends_what_is_no_longer_known_to_the_api() -> None:
    before = Rig()
    before.run()
    after = Rig(earlier=tuple(before.notes))
    after.now += 10
    (note,) = after.machine.handle(Synced(POD), after.now)
    assert isinstance(note, AppendRecord)
    assert (note.record.stopped, note.record.exit_code) == (110.0, 137)


def test_a_pod_that_had_ended_before_is_only_removed_when_it_is_deleted() -> None:
    rig = Rig()
    rig.a_pod(phase="Succeeded")
    rig.see()
    assert rig.take_writes() == []
    rig.delete()
    assert isinstance(rig.write(), Delete)
