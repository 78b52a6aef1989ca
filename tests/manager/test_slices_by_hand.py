"""SL-75: what people do to slices by hand, in each state: what runs is charged, nothing runs twice, and it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift_kinds.shared import markers
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_SIZE
from gatelift_wire.values.messages import Stop
from support.manager.builders import NAMESPACE, Doc
from support.manager.slice_world import (
    THE_JOB,
    a_running_chain,
    all_slices,
    an_elastic_job,
    charged,
    count,
    finished,
    ref_of,
    resize,
    seen,
    used,
)
from support.manager.world import World

Edit = Callable[[Doc], None]


def waiting() -> World:
    """Return a world whose Job of three runs, and is to have six, which do not fit."""
    world = a_running_chain(cpu=4)
    resize(world, 6)
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, ""), (2, 6, None, "")]
    return world


def counted(pods: int) -> Edit:
    return lambda one: one["spec"]["podSets"][0].update(count=pods)


def marked(**marks: Any) -> Edit:
    def edit(one: Doc) -> None:
        for key, value in marks.items():
            name = {"size": ANNOTATION_SIZE, "chain": ANNOTATION_CHAIN, "replaces": markers.SLICE_REPLACEMENT}[key]
            one["metadata"]["annotations"].pop(name, None)
            if value is not None:
                one["metadata"]["annotations"][name] = value

    return edit


def open_slices(world: World) -> list[tuple[int, int | None]]:
    """Return what those ask for and are charged that are not finished, those with quota first."""
    found = [(count(one), charged(one)) for one in world.all("Workload") if not finished(world, one)]
    return sorted(found, key=lambda one: (one[1] is None, one[0]))


# --- counts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pods", [1, 2, 4, 9, 2**31 - 1])
def test_sl_75_the_count_of_what_runs_edited_by_hand_charges_and_frees_nothing_and_is_put_back(pods: int) -> None:
    """SL-75, HD-708: up is no growth, down frees nothing, which only a cluster's answer does."""
    world = a_running_chain()
    world.api.edit(ref_of(all_slices(world)[0]), counted(pods))
    world.advance(30.0)
    assert used(world) == 3
    assert open_slices(world)[-1] == (3, 3)
    assert (len(world.runs), list(world.running), world.messages(Stop)) == (1, world.runs, [])


@pytest.mark.parametrize("pods", [1, 4, 90])
def test_sl_75_the_count_of_what_waits_edited_by_hand_is_put_back_to_what_its_job_asks(pods: int) -> None:
    world = waiting()
    world.api.edit(ref_of(all_slices(world)[1]), counted(pods))
    world.advance(30.0)
    assert open_slices(world) == [(3, 3), (6, None)]
    assert (used(world), len(world.runs)) == (3, 1)


# --- marks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "whose"),
    [
        (marked(replaces="elsewhere/job-work-23e5d"), "of another namespace"),
        (marked(replaces=f"{NAMESPACE}/nobody"), "of nobody"),
        (marked(replaces="no key at all"), "no key"),
        (marked(replaces=None), "of none"),
        (marked(chain="forged"), "of another chain"),
        (marked(chain=None), "of its own chain"),
        (marked(size="1"), "a number that is taken"),
        (marked(size="-1"), "a negative number"),
        (marked(size="two"), "no number"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_sl_75_sl_49_a_mark_of_what_waits_that_is_forged_gets_no_quota_by_it(edit: Edit, whose: str) -> None:
    world = waiting()
    world.api.edit(ref_of(all_slices(world)[1]), edit)
    world.advance(30.0)
    assert used(world) == 3, whose
    assert open_slices(world) == [(3, 3), (6, None)], "it is made anew"
    assert (len(world.runs), world.messages(Stop)) == (1, [])
    resize(world, 4)
    world.advance(10.0)
    assert (open_slices(world), used(world), len(world.runs)) == ([(4, 4)], 4, 1)


def test_sl_75_a_slice_that_replaces_itself_is_no_next_one() -> None:
    world = waiting()
    target = ref_of(all_slices(world)[1])
    world.api.edit(target, marked(replaces=f"{NAMESPACE}/{target.key.name}"))
    world.advance(30.0)
    assert (open_slices(world), used(world), len(world.runs)) == ([(3, 3), (6, None)], 3, 1)


def test_sl_75_slices_that_replace_each_other_in_a_ring_change_nothing_that_runs() -> None:
    world = waiting()
    first, second = (ref_of(one) for one in all_slices(world))
    world.api.edit(first, marked(replaces=f"{NAMESPACE}/{second.key.name}"))
    world.advance(30.0)
    assert (open_slices(world), used(world), len(world.runs)) == ([(3, 3), (6, None)], 3, 1)
    resize(world, 4)
    world.advance(10.0)
    assert (open_slices(world), used(world), len(world.runs)) == ([(4, 4)], 4, 1)


def test_hd_591_sl_75_sl_49_another_job_that_names_this_chain_changes_nothing_of_it_and_is_told() -> None:
    world = a_running_chain(cpu=10)
    first = all_slices(world)[0]
    world.api.apply(an_elastic_job("thief", parallelism=2))
    world.advance(5.0)
    theirs = next(one for one in all_slices(world) if "thief" in one["metadata"]["name"])
    meta = first["metadata"]
    world.api.edit(ref_of(theirs), marked(chain=meta["uid"], replaces=f"{NAMESPACE}/{meta['name']}", size="7"))
    world.advance(30.0)
    assert (charged(world.api.objects[ref_of(first)]), used(world)) == (3, 5)
    told = [one.reason for one in world.emitted if one.ref == ref_of(theirs)]
    assert told.count("SliceNotBelieved") == 1, "HD-591: as it becomes so, not only where it was made so"
    assert world.runs[0] in list(world.running)


def test_sl_75_what_runs_asks_to_be_elastic_no_more_by_hand_and_goes_on() -> None:
    world = a_running_chain()
    world.api.edit(ref_of(all_slices(world)[0]), lambda one: one["metadata"]["annotations"].pop(markers.ELASTIC_JOB))
    world.advance(30.0)
    assert (used(world), len(world.runs), list(world.running)) == (3, 1, world.runs)


# --- deletions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["target", "past", "origin"])
def test_sl_75_what_does_not_run_is_deleted_by_hand_and_what_runs_goes_on(which: str) -> None:
    world = a_running_chain(cpu=6)
    for size in (4, 5, 9):
        resize(world, size)
        world.advance(5.0)
    found = dict(zip(("origin", "past", "record", "target"), all_slices(world), strict=True))
    world.api.delete(ref_of(found[which]))
    world.advance(30.0)
    assert open_slices(world) == [(5, 5), (9, None)]
    assert (used(world), len(world.runs), world.messages(Stop)) == (5, 1, [])


def test_sl_75_all_slices_deleted_at_once_end_the_run_once_and_begin_one_chain() -> None:
    world = waiting()
    for one in all_slices(world):
        world.api.delete(ref_of(one))
    world.advance(10.0)
    resize(world, 3)
    world.advance(30.0)
    assert open_slices(world) == [(3, 3)]
    assert (used(world), len(world.runs), len(world.running)) == (3, 2, 1)


# --- the Job -------------------------------------------------------------------------------------------------------


def test_sl_75_another_template_together_with_another_size_is_queued_anew_as_ever() -> None:
    world = a_running_chain()

    def change(job: Doc) -> None:
        job["spec"]["parallelism"] = 5
        job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
        job["metadata"]["generation"] += 1

    world.api.edit(THE_JOB, change)
    world.advance(60.0)
    assert open_slices(world) == [(5, 5)]
    assert (used(world), len(world.runs), len(world.running)) == (10, 2, 1)


@pytest.mark.parametrize("wanted", [0, 2**31 - 1])
def test_sl_75_sizes_at_the_ends_of_what_a_job_may_say_stop_and_start_nothing(wanted: int) -> None:
    world = a_running_chain(cpu=4)
    resize(world, wanted)
    world.advance(10.0)
    assert (used(world), len(world.runs), world.messages(Stop)) == (3, 1, [])
    resize(world, 3)
    world.advance(10.0)
    assert (open_slices(world), used(world), len(world.runs)) == ([(3, 3)], 3, 1)
