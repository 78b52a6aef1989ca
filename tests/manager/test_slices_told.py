"""What people and machines are told of slices (SL-70, SL-71, SL-72): events, conditions, why one waits, figures."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.adapters.metrics import ManagerMetrics
from gatelift.core.api.commands import OfSlice, SliceMoment
from gatelift.core.told import slice_moments
from gatelift_kinds.job.elastic_kind import ElasticJobKind
from gatelift_kinds.registry import BARE_KIND, POD_GROUP_KIND, POD_KIND, Registry
from gatelift_kinds.shared.sizes import told
from gatelift_kube.deciding.writes import Create, Delete, EmitEvent, Patch, WriteError
from gatelift_wire.values.keys import ANNOTATION_SIZE
from support.manager.slice_world import THE_JOB, a_running_chain, all_slices, hold_queue, ref_of, resize, the_attempt
from support.manager.world import World

from .test_sizes import answer

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])
OURS = "WorkloadSlice"
SLICE = "gatelift.dev/Slice"


def said(world: World, *, job: bool) -> list[tuple[str, str]]:
    """Return the events about slices at the Job, or at its Workloads, in order."""
    found = [one for one in world.emitted if one.reason.startswith(OURS) or one.reason == "OutOfSync"]
    return [(one.reason, one.message) for one in found if (one.ref == THE_JOB) is job]


def moments(world: World) -> list[OfSlice]:
    return [one.moment for one in world.notes if isinstance(one, SliceMoment)]


def waits_for(world: World) -> tuple[str, str]:
    """Return reason and message of what the last slice waits for."""
    found = world.condition(all_slices(world)[-1], "QuotaReserved")
    return found.get("reason", ""), found.get("message", "")


def names(world: World) -> list[str]:
    return [one["metadata"]["name"] for one in all_slices(world)]


def figures(world: World) -> ManagerMetrics:
    """Return the metrics as the notes of a world have made them."""
    metrics = ManagerMetrics()
    for note in world.notes:
        metrics.performed(note)
    metrics.refresh(world.machine, waiting=0, writes_held=0)
    return metrics


def figure(metrics: ManagerMetrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, {"cluster_queue": "shared", **labels}) or 0


# --- events --------------------------------------------------------------------------------------------------------


@HOME
def test_sl_71_a_growth_is_told_at_the_job_and_at_its_workloads(clusters: Any) -> None:
    world = a_running_chain(clusters=clusters)
    resize(world, 5)
    world.advance(5.0)
    first, second = names(world)
    made = f"Workload {second} is to grow what runs from 3 pods to 5 pods, and waits for the difference"
    grown = f"Workload {second} has quota for 5 pods, in the place of 3 pods"
    assert said(world, job=True) == [
        ("WorkloadSliceCreated", made),
        ("WorkloadSliceAdmitted", grown),
        ("WorkloadSliceReplaced", f"Workload {first} (3 pods) is replaced by Workload {second}"),
    ]
    at_workloads = said(world, job=False)
    assert at_workloads[:2] == said(world, job=True)[:2]
    assert at_workloads[2][1].startswith("Replaced to accommodate a workload (UID: ")
    assert moments(world) == [OfSlice.MADE, OfSlice.ADMITTED, OfSlice.REPLACED]


def test_sl_71_each_is_told_with_the_write_that_succeeds_and_not_with_those_that_fail() -> None:
    world = a_running_chain()
    tries: list[bool] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        finishes = isinstance(command, Patch) and b"WorkloadSliceReplaced" in command.body
        tries.append(finishes)
        return WriteError.NOT_DONE if finishes and sum(tries) < 3 else None

    world.fail = fail
    resize(world, 5)
    world.advance(60.0)
    assert sum(tries) == 3
    assert [reason for reason, _ in said(world, job=False)].count("WorkloadSliceReplaced") == 1
    assert moments(world).count(OfSlice.REPLACED) == 1


def test_sl_71_a_growth_that_is_edited_and_one_that_is_withdrawn_are_told() -> None:
    world = a_running_chain(cpu=4)
    for size in (6, 8, 3):
        resize(world, size)
        world.advance(5.0)
    name = names(world)[1]
    assert said(world, job=True)[1:] == [
        ("WorkloadSliceResized", f"Workload {name} asks for 8 pods now"),
        ("OutOfSync", f"Workload {name} (8 pods) is withdrawn: another size is wanted by now"),
    ]
    assert said(world, job=False)[2] == ("OutOfSync", "The workload slice is out of sync with its parent job")
    assert moments(world) == [OfSlice.MADE, OfSlice.EDITED, OfSlice.WITHDRAWN]


def test_sl_71_a_shrink_is_told_when_it_is_wanted_and_when_its_quota_is_free() -> None:
    world = a_running_chain()
    resize(world, 2)
    world.advance(5.0)
    answer(world)
    (name,) = names(world)
    assert said(world, job=True) == [
        (
            "WorkloadSliceResized",
            f"Workload {name} asks for 2 pods now: quota of the others is free when they are out of the way",
        ),
        ("WorkloadSliceReleased", "No more than 2 pods can run: the quota of what ran above that is free"),
    ]
    assert moments(world) == [OfSlice.LOWERED, OfSlice.RELEASED]


def test_sl_71_that_all_pods_of_a_growth_are_ready_is_told_once() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    key = the_attempt(world).key
    for ready in (3, 5, 4, 5):
        world.agents["a"].count(key, active=5, ready=ready)
        world.advance(2.0)
    assert moments(world).count(OfSlice.RUNNING) == 1
    assert said(world, job=True)[-1] == ("WorkloadSliceRunning", "All pods of the larger size are ready: 5 pods")


def test_sl_71_ready_pods_of_what_waits_yet_are_no_growth_that_runs() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    world.agents["a"].count(the_attempt(world).key, active=6, ready=6)
    world.advance(2.0)
    assert OfSlice.RUNNING not in moments(world)


@pytest.mark.parametrize(
    ("tells", "reason", "moment"),
    [
        (slice_moments.refused, "SizeRefused", OfSlice.REFUSED),
        (slice_moments.rolled_back, "ResizeRolledBack", OfSlice.ROLLED_BACK),
        (slice_moments.moved, "ResizeMoved", OfSlice.MOVED),
    ],
    ids=["refused", "rolled back", "moved"],
)
def test_sl_71_what_a_growth_came_to_at_its_cluster_is_told_at_both(tells: Any, reason: str, moment: OfSlice) -> None:
    world = a_running_chain()
    core = world.machine.core
    core.begin_call(world.now)
    tells(core, core.knowledge.workloads[ref_of(all_slices(world)[0]).key], "in words")
    events = [one for one in core.commands if isinstance(one, EmitEvent)]
    assert [(one.ref.resource.kind, one.reason, one.warning) for one in events] == [
        ("Workload", reason, True),
        ("Job", reason, True),
    ]
    assert [one.moment for one in core.commands if isinstance(one, SliceMoment)] == [moment]


def test_sl_03_of_an_ordinary_job_nothing_of_slices_is_said() -> None:
    world = a_running_chain()
    world.api.edit(THE_JOB, lambda job: job["metadata"]["labels"].update(x="y"))
    world.advance(5.0)
    assert (said(world, job=True), said(world, job=False), moments(world)) == ([], [], [])


# --- conditions ----------------------------------------------------------------------------------------------------


@HOME
def test_sl_72_each_slice_says_its_size_and_who_took_its_place(clusters: Any) -> None:
    world = a_running_chain(clusters=clusters)
    resize(world, 5)
    world.advance(5.0)
    first, second = all_slices(world)
    names_ = names(world)
    past, current = world.condition(first, SLICE), world.condition(second, SLICE)
    assert (past["status"], past["reason"]) == ("False", "WorkloadSliceReplaced")
    assert past["message"] == f"size 1, 3 pods: replaced by Workload {names_[1]} (size 2, 5 pods)"
    assert (current["status"], current["reason"]) == ("True", "Current")
    assert current["message"] == f"size 2, 5 pods may run, in the place of Workload {names_[0]} (3 pods)"


def test_sl_72_what_was_withdrawn_and_what_has_shrunk_say_so() -> None:
    world = a_running_chain(cpu=4)
    for size in (6, 2):
        resize(world, size)
        world.advance(5.0)
    answer(world)
    record, withdrawn = sorted(all_slices(world), key=lambda one: "Finished" in str(one["status"]["conditions"]))
    assert world.condition(withdrawn, SLICE)["message"] == "size 2, 6 pods: never ran, and is not wanted any more"
    assert world.condition(record, SLICE)["message"] == f"size {_number(record)}, 2 pods may run"


def _number(document: Any) -> str:
    return str(document["metadata"]["annotations"][ANNOTATION_SIZE])


def test_sl_72_a_slice_that_waits_for_quota_says_what_it_would_grow() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    reason, message = waits_for(world)
    assert reason == "WaitingForQuota"
    assert message.startswith("It grows what runs from 3 pods to 6 pods: couldn't assign flavors to pod set main")
    events = [one for one in world.emitted if one.reason == reason and one.ref == THE_JOB]
    assert [one.message for one in events] == [message]


@HOME
def test_hd_623_what_is_queued_again_is_not_said_to_run_with_the_size_of_before(clusters: Any) -> None:
    """HD-623: evicted after a growth it went on saying so, and with another size than it was admitted with again."""
    world = a_running_chain(clusters=clusters)
    resize(world, 5)
    world.advance(5.0)
    assert world.condition(all_slices(world)[-1], SLICE)["message"].startswith("size 2, 5 pods may run")
    hold_queue(world, "HoldAndDrain")
    assert not world.condition(all_slices(world)[-1], SLICE)
    resize(world, 4)
    hold_queue(world, "None")
    assert world.condition(all_slices(world)[-1], "Admitted")["status"] == "True"
    assert not world.condition(all_slices(world)[-1], SLICE), "as a first slice that was never resized"


def test_hd_623_what_is_over_is_not_said_to_run() -> None:
    """HD-623: of a Job that has ended the last slice went on saying that its pods may run."""
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    attempt = the_attempt(world)
    over = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done"}
    world.agents[attempt.cluster].finish(attempt.key, {"succeeded": 100, "conditions": [over]}, message="done")
    world.advance(10.0)
    last = all_slices(world)[-1]
    assert world.condition(last, "Finished")["reason"] == "Succeeded"
    said_of_it = world.condition(last, SLICE)
    assert (said_of_it["status"], said_of_it["message"]) == ("False", "size 2, 5 pods: has ended")


def test_sl_72_a_slice_behind_one_that_is_queued_again_says_so() -> None:
    world = a_running_chain(cpu=6)
    resize(world, 9)
    world.advance(5.0)
    hold_queue(world, "HoldAndDrain")
    name = names(world)[0]
    text = f"Workload {name} comes first, which waits for quota with the size that it had: this grows it after that"
    assert waits_for(world) == ("GrowthWaits", text)
    hold_queue(world, "None")
    assert waits_for(world)[1].startswith("It grows what runs from 3 pods to 9 pods: couldn't")


def test_hd_710_a_slice_behind_one_that_is_deactivated_says_which_to_activate() -> None:
    world = a_running_chain(cpu=6)
    resize(world, 9)
    world.advance(5.0)
    first = all_slices(world)[0]
    world.api.edit(ref_of(first), lambda one: one["spec"].update(active=False))
    world.advance(10.0)
    name = first["metadata"]["name"]
    text = f"Workload {name} comes first, which is deactivated: activate that one, and this grows it after that"
    assert waits_for(world) == ("GrowthWaits", text)
    world.api.edit(ref_of(first), lambda one: one["spec"].update(active=True))
    world.advance(10.0)
    assert waits_for(world)[1].startswith("It grows what runs from 3 pods to 9 pods: couldn't")


def test_sl_01_sl_72_switched_off_what_waits_says_that_what_runs_keeps_its_size() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    world.settings["kinds"] = Registry(POD_GROUP_KIND, POD_KIND, ElasticJobKind(on=False), BARE_KIND)
    world.restart()
    world.advance(30.0)
    reason, message = waits_for(world)
    assert (reason, message.split(":")[0]) == ("GrowthWaits", "its object keeps the size that it has")


def test_sl_72_a_number_that_nobody_can_read_is_named_with_the_way_out() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    record, target = (ref_of(one) for one in all_slices(world))
    world.api.edit(record, lambda one: one["metadata"]["annotations"].update({ANNOTATION_SIZE: "0"}))
    world.advance(30.0)
    found = world.condition(world.api.objects[target], "QuotaReserved")
    assert found["reason"] == "SizeUnreadable"
    assert found["message"].startswith(f"metadata.annotations[gatelift.dev/size] of Workload {record.key.name} is no")
    assert "put it back" in found["message"]
    world.api.edit(record, lambda one: one["metadata"]["annotations"].update({ANNOTATION_SIZE: "1"}))
    world.advance(30.0)
    assert waits_for(world)[1].startswith("It grows what runs from 3 pods to 6 pods: couldn't")


@pytest.mark.parametrize(
    ("counts", "text"),
    [({"main": 1}, "1 pod"), ({"main": 0}, "0 pods"), ({"w": 9, "d": 1}, "d 1, w 9"), ({}, "no pods")],
)
def test_sl_72_counts_in_words(counts: dict[str, int], text: str) -> None:
    assert told(counts) == text


# --- figures -------------------------------------------------------------------------------------------------------


def test_sl_70_slices_are_counted_by_what_became_of_them() -> None:
    world = a_running_chain(cpu=6)
    for size in (5, 9, 5, 4):
        resize(world, size)
        world.advance(5.0)
    metrics = figures(world)
    found = {one: figure(metrics, "gatelift_workload_slices_total", moment=one.value) for one in OfSlice}
    assert {one.value: count for one, count in found.items() if count} == {
        "made": 2,
        "admitted": 1,
        "replaced": 1,
        "withdrawn": 1,
        "lowered": 1,
    }
    assert figure(metrics, "kueue_replaced_workload_slices_total", replica_role="leader") == 1


def test_sl_70_how_long_it_took_from_wish_to_running_and_to_released() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(20.0)
    world.agents["a"].count(the_attempt(world).key, active=5, ready=5)
    world.advance(1.0)
    resize(world, 2)
    world.advance(30.0)
    answer(world)
    metrics = figures(world)
    running, released = (f"gatelift_slice_wish_to_{what}_seconds" for what in ("running", "released"))
    assert (figure(metrics, f"{running}_count"), figure(metrics, f"{released}_count")) == (1, 1)
    assert 20.0 <= figure(metrics, f"{running}_sum") < 21.0
    assert 30.0 <= figure(metrics, f"{released}_sum") < 33.0


def test_sl_70_what_was_wanted_before_a_leader_began_is_not_measured() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    world.restart()
    world.advance(20.0)
    world.agents["a"].count(the_attempt(world).key, active=5, ready=5)
    world.advance(2.0)
    assert figure(figures(world), "gatelift_slice_wish_to_running_seconds_count") == 0


def test_sl_70_pods_that_wait_and_quota_that_drains_are_shown_until_it_is_over() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    cpu = {"flavor": "default", "resource": "cpu"}
    assert figure(figures(world), "gatelift_slice_pods_waiting") == 3
    resize(world, 1)
    world.advance(5.0)
    metrics = figures(world)
    assert figure(metrics, "gatelift_slice_pods_waiting") == 0
    assert figure(metrics, "gatelift_slice_quota_draining", **cpu) == 2
    answer(world)
    assert figure(figures(world), "gatelift_slice_quota_draining", **cpu) == 0
