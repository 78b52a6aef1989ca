"""How slices end (KEP-77): past ones, the record, one that waits, and a chain that is evicted."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.job.elastic_kind import ElasticJobKind
from gatelift_kinds.registry import BARE_KIND, POD_GROUP_KIND, POD_KIND, WITH_SLICES, Registry
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import ObjectRef
from gatelift_wire.values.keys import ANNOTATION_EPOCH
from gatelift_wire.values.messages import Commit, Stop
from support.manager.builders import Doc
from support.manager.slice_world import (
    QUEUE,
    THE_JOB,
    a_running_chain,
    all_slices,
    chain_of,
    charged,
    finished,
    hold_queue,
    number,
    ref_of,
    resize,
    seen,
    the_attempt,
    used,
)
from support.manager.world import World

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])


# --- past slices, deletions, ends ----------------------------------------------------------------------------------


@HOME
@pytest.mark.parametrize("finish", [False, True], ids=["deleted", "finished by hand"])
def test_sl_13_a_past_slice_may_go_and_nothing_that_runs_ends(clusters: Any, *, finish: bool) -> None:
    """SL-13, EJ-003, EJ-012, MK-004: the origin among them."""
    world = a_running_chain(clusters=clusters)
    resize(world, 5)
    world.advance(5.0)
    first = all_slices(world)[0]
    if finish:
        _finish(world, ref_of(first))
    else:
        world.api.delete(ref_of(first))
    world.advance(30.0)
    assert len(all_slices(world)) == (2 if finish else 1)
    assert (used(world), list(world.running)) == (5, world.runs)
    assert not world.messages(Stop)
    world.restart()
    world.advance(30.0)
    assert (used(world), list(world.running), len(world.runs)) == (5, world.runs, 1)
    resize(world, 7)
    world.advance(5.0)
    assert (seen(world)[-1], used(world), len(world.runs)) == ((3, 7, 7, ""), 7, 1)


def _finish(world: World, ref: ObjectRef) -> None:
    over = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "by hand",
        "lastTransitionTime": "2026-11-21T00:20:00Z",
    }

    def change(workload: Doc) -> None:
        kept = [one for one in workload["status"]["conditions"] if one["type"] != "Finished"]
        workload["status"]["conditions"] = [*kept, over]

    world.api.edit(ref, change)


@pytest.mark.parametrize("waits", [False, True], ids=["alone", "with a slice that waits"])
def test_ej_004_ej_019_deleting_the_record_ends_the_run_and_begins_a_new_chain(*, waits: bool) -> None:
    world = a_running_chain(cpu=6)
    resize(world, 5)
    world.advance(5.0)
    if waits:
        resize(world, 9)
        world.advance(5.0)
    before = [one for one in all_slices(world) if charged(one) == 5]
    world.api.delete(ref_of(before[0]))
    if waits:
        world.advance(5.0)
        assert not world.running, "what was wanted fits nowhere yet"
        resize(world, 4)
    world.advance(30.0)
    alive = [one for one in all_slices(world) if not finished(world, one)]
    assert [(number(one) > 0, charged(one)) for one in alive] == [(True, 4 if waits else 5)]
    assert chain_of(alive[0]) == alive[0]["metadata"]["uid"]
    assert "kueue.x-k8s.io/workload-slice-replacement-for" not in alive[0]["metadata"]["annotations"]
    assert (len(world.runs), used(world)) == (2, 4 if waits else 5)


def test_a_slice_that_waits_may_be_deleted_and_is_made_again() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    target = all_slices(world)[1]
    world.api.delete(ref_of(target))
    world.advance(10.0)
    assert seen(world) == [(1, 3, 3, ""), (3, 6, None, "")], "by a number that no slice had (HD-590)"
    assert all_slices(world)[1]["metadata"]["uid"] != target["metadata"]["uid"]
    assert (used(world), len(world.runs)) == (3, 1)


def test_sl_17_the_end_of_the_job_takes_all_slices_with_it() -> None:
    world = a_running_chain(cpu=6)
    resize(world, 5)
    world.advance(5.0)
    resize(world, 9)
    world.advance(5.0)
    assert len(all_slices(world)) == 3
    world.api.delete(THE_JOB)
    world.advance(30.0)
    assert (all_slices(world), used(world), list(world.running)) == ([], 0, [])


def test_a_slice_that_waits_ends_with_what_runs() -> None:
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    agent = world.agents["a"]
    over = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done"}
    agent.finish(the_attempt(world).key, {"succeeded": 100, "conditions": [over]}, message="done")
    world.advance(30.0)
    assert [finished(world, one) for one in all_slices(world)] == ["Succeeded", "OutOfSync"]
    assert (used(world), len(world.runs)) == (0, 1)


def test_sl_01_switched_off_what_has_grown_keeps_its_size_and_is_known_by_its_chain() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    for kinds in (Registry(POD_GROUP_KIND, POD_KIND, ElasticJobKind(on=False), BARE_KIND), WITH_SLICES):
        world.settings["kinds"] = kinds
        world.restart()
        world.advance(30.0)
        assert (used(world), list(world.running), len(all_slices(world))) == (5, world.runs, 2)
    resize(world, 6)
    world.advance(5.0)
    assert (used(world), len(world.runs), len(world.messages(Stop))) == (6, 1, 0)


# --- eviction ------------------------------------------------------------------------------------------------------


def test_ej_001_ej_020_an_evicted_chain_is_queued_with_its_size_and_what_waits_stays_behind_it() -> None:
    """EJ-001, EJ-020, Kueue's #15399 and #15661: WS-050, WS-059."""
    world = a_running_chain(cpu=6)
    resize(world, 9)
    world.advance(5.0)
    hold_queue(world, "HoldAndDrain")
    assert (seen(world), used(world), list(world.running)) == ([(1, 3, None, ""), (2, 9, None, "")], 0, [])
    hold_queue(world, "None")
    assert (seen(world), used(world)) == ([(1, 3, 3, ""), (2, 9, None, "")], 3)
    assert {one["metadata"]["annotations"][ANNOTATION_EPOCH] for one in all_slices(world)} == {"2"}
    resize(world, 6)
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (3, 6, 6, "")]
    assert (used(world), [epoch for _, epoch, _ in world.runs]) == (6, [1, 2])


def test_ej_020_a_grown_chain_that_is_evicted_comes_back_as_the_same_slice() -> None:
    world = a_running_chain()
    resize(world, 5)
    world.advance(5.0)
    hold_queue(world, "HoldAndDrain")
    assert (used(world), list(world.running)) == (0, [])
    hold_queue(world, "None")
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (2, 5, 5, "")]
    first = all_slices(world)[0]["metadata"]["uid"]
    assert world.runs == [(first, 1, "a"), (first, 2, "a")]
    assert [message.pod_sets[0].count for _, message in world.messages(Commit)] == [3, 5]


def test_sl_40_an_end_says_the_next_epoch_on_what_waits_before_anything_else() -> None:
    world = a_running_chain(cpu=6)
    resize(world, 9)
    world.advance(5.0)
    target = ref_of(all_slices(world)[1])
    begun = len(world.api.writes)
    hold_queue(world, "HoldAndDrain")
    written = [(verb, ref == target) for verb, ref, body in world.api.writes[begun:] if _ends(ref, body)]
    assert written == [("patch", True), ("replace status", False), ("patch", False)]


def _ends(ref: ObjectRef, body: Any) -> bool:
    """Say whether a write raises an epoch, or gives quota back."""
    raises = "annotations" in body.get("metadata", {})
    gives_back = body.get("status", {}).get("admission", "") is None
    return ref.resource.kind == "Workload" and (raises or gives_back)


def deactivate(world: World, one: Doc, *, active: bool = False) -> None:
    """Let a person deactivate a slice, or activate it; nothing is settled."""
    world.api.edit(ref_of(one), lambda workload: workload["spec"].update(active=active))


def test_sl_34_hd_631_a_slice_that_waits_is_deactivated_and_all_of_its_chain_is() -> None:
    """SL-34, HD-631: it waited for the end of what ran, and so did all that its user wanted after that."""
    world = a_running_chain(cpu=6)
    resize(world, 9)
    world.advance(5.0)
    deactivate(world, all_slices(world)[1])
    world.advance(20.0)
    assert [one["spec"].get("active", True) for one in all_slices(world)] == [False, True]
    assert (used(world), list(world.running)) == (0, [])
    assert world.condition(all_slices(world)[0], "Evicted")["reason"] == "Deactivated"
    resize(world, 6)
    world.advance(20.0)
    deactivate(world, all_slices(world)[0], active=True)
    world.advance(20.0)
    assert [one[1:] for one in seen(world) if not one[3]] == [(6, 6, "")]
    assert (used(world), len(world.runs)) == (6, 2)


@pytest.mark.parametrize("steps", range(12))
def test_sl_34_hd_672_a_deactivation_is_not_lost_with_a_slice_whose_place_is_being_taken(steps: int) -> None:
    """HD-672: it landed in the moment in which the next slice became the record, and what ran ran on."""
    world = a_running_chain(cpu=6)
    first = all_slices(world)[0]
    resize(world, 5)
    for _ in range(steps):
        world.step()
    if not finished(world, all_slices(world)[0]):
        deactivate(world, first)
        world.advance(30.0)
        assert (used(world), list(world.running)) == (0, [])
        (left,) = [one for one in all_slices(world) if not finished(world, one) and not one["spec"].get("active", True)]
        deactivate(world, left, active=True)
    world.advance(30.0)
    assert used(world) == 5


@pytest.mark.parametrize("steps", range(1, 8))
def test_sl_34_a_leader_that_begins_in_an_eviction_leaves_what_waits(steps: int) -> None:
    """Whichever object it looks at first: what waits stays the slice that it is, behind what goes back."""
    world = a_running_chain(cpu=6)
    resize(world, 9)
    world.advance(5.0)
    world.agents["a"].silent = True
    world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="HoldAndDrain"))
    while not world.condition(all_slices(world)[0], "Evicted"):
        assert world.step()
    world.restart()
    for _ in range(steps):
        world.step()
        world.api.edit(THE_JOB, lambda job: job["metadata"]["labels"].update({"looked": str(world.now)}))
    world.advance(10.0)
    assert [one[::3] for one in seen(world)] == [(1, ""), (2, "")]


def test_hd_600_the_end_of_a_record_goes_on_once_a_write_to_what_waits_behind_it_was_refused() -> None:
    """Whoever ends a record writes to what waits first (Size 1): a webhook that says no holds nothing up for ever."""
    world = a_running_chain(parallelism=3)
    resize(world, 99)
    world.advance(5.0)
    target, refused = all_slices(world)[-1], list[str]()

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        is_touch = command.ref == ref_of(target) and b'"gatelift.dev/epoch"' in getattr(command, "body", b"")
        if not is_touch or refused:
            return None
        refused.append(str(command.ref))
        return WriteError.DENIED

    world.fail = fail
    hold_queue(world, "HoldAndDrain")
    world.advance(60.0)
    assert refused
    assert ([charged(one) for one in all_slices(world)], used(world)) == ([None, None], 0)
