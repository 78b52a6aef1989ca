"""How many slices that are over are kept of one elastic object (SL-16), and what a long history costs and says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gatelift import config
from gatelift.assembly import new_machine
from gatelift.core.records.chain import Role
from gatelift.core.records.chains import SliceIndex
from gatelift.core.state.readiness_values import SLICE_HISTORY, RetentionSettings
from gatelift_wire.values.messages import Stop
from support.manager.slice_world import (
    THE_JOB,
    a_running_chain,
    all_slices,
    finished,
    number,
    ref_of,
    resize,
    seen,
    used,
)
from support.manager.world import World

from .test_chains import ANOTHER, OWNER, a_slice

HOME = pytest.mark.parametrize("clusters", [(), ("a", "b")], ids=["at home", "at a worker"])


def grown(times: int, *, limit: int = SLICE_HISTORY, **of_world: Any) -> World:
    """Return a world whose Job has grown so often, by one pod each time."""
    world = a_running_chain(cpu=100, retention=RetentionSettings(slice_history=limit), **of_world)
    for more in range(times):
        resize(world, 4 + more)
        world.advance(5.0)
    return world


# --- the limit -----------------------------------------------------------------------------------------------------


@HOME
def test_sl_16_the_oldest_past_slice_goes_when_there_are_more_than_are_kept(clusters: Any) -> None:
    world = grown(4, limit=2, clusters=clusters)
    assert seen(world) == [(3, 5, 5, "WorkloadSliceReplaced"), (4, 6, 6, "WorkloadSliceReplaced"), (5, 7, 7, "")]
    assert (used(world), len(world.runs), world.messages(Stop)) == (7, 1, [])
    assert [verb for verb, *_ in world.api.writes].count("delete") == 2, "each goes once"
    world.restart()
    world.advance(30.0)
    assert ([number(one) for one in all_slices(world)], used(world), len(world.runs)) == ([3, 4, 5], 7, 1)


def test_hd_647_no_recovery_waits_for_the_epoch_of_a_slice_that_is_past() -> None:
    """One that was not finished in the backup is finished, never raised, and placed nowhere: all dispatch waited."""
    world = grown(1)
    core, past = world.machine.core, ref_of(all_slices(world)[0]).key
    core.caution.recovery.begin_raising({past})
    core.mark_workload(past)
    world.advance(1.0)
    assert not core.caution.recovery.to_raise


def test_sl_16_ten_are_kept_where_nobody_says_how_many() -> None:
    world = grown(13)
    assert [number(one) for one in all_slices(world)] == [*range(4, 14), 14]


@pytest.mark.parametrize("limit", [0, 1])
def test_sl_16_current_and_what_waits_are_never_among_those_that_go(limit: int) -> None:
    """SL-16: with none kept as well; what was withdrawn counts as those that were replaced."""
    world = a_running_chain(cpu=6, retention=RetentionSettings(slice_history=limit))
    resize(world, 5)
    world.advance(5.0)
    resize(world, 9)
    world.advance(5.0)
    assert seen(world)[-2:] == [(2, 5, 5, ""), (3, 9, None, "")]
    resize(world, 5)
    world.advance(5.0)
    assert seen(world) == ([(2, 5, 5, ""), (3, 9, None, "OutOfSync")] if limit else [(2, 5, 5, "")])
    world.advance(60.0)
    assert (used(world), len(world.runs)) == (5, 1)


def test_sl_16_a_limit_that_is_lowered_holds_after_the_next_start() -> None:
    world = grown(6)
    world.settings["retention"] = RetentionSettings(slice_history=1)
    world.restart()
    world.advance(30.0)
    assert [number(one) for one in all_slices(world)] == [6, 7]
    assert (used(world), len(world.runs)) == (9, 1)


def test_sl_16_one_that_somebody_holds_keeps_the_others_from_nothing() -> None:
    """SL-16: a finalizer of others on the oldest one: those after it go as they become too many."""
    world = grown(1, limit=1)
    first = ref_of(all_slices(world)[0])
    world.api.edit(first, lambda one: one["metadata"].update(finalizers=[*one["metadata"]["finalizers"], "team.io/x"]))
    for size in (6, 7, 8):
        resize(world, size)
        world.advance(5.0)
    assert [number(one) for one in all_slices(world)] == [1, 4, 5]


def test_sl_16_those_that_are_kept_long_enough_go_within_the_limit_too() -> None:
    world = grown(2, limit=10)
    world.settings["retention"] = RetentionSettings(slice_history=10, after_finished=60.0)
    world.restart()
    world.advance(90.0)
    assert seen(world) == [(3, 5, 5, "")]


def test_sl_17_the_end_of_the_job_takes_also_those_that_are_kept() -> None:
    world = grown(5, limit=3)
    assert [finished(world, one) for one in all_slices(world)] == [*["WorkloadSliceReplaced"] * 3, ""]
    world.api.delete(THE_JOB)
    world.advance(30.0)
    assert (all_slices(world), used(world), list(world.running)) == ([], 0, [])


@pytest.mark.parametrize(("text", "kept"), [("", 10), ("gatelift: {admission: {sliceHistoryLimit: 0}}", 0)])
def test_sl_16_how_many_are_kept_is_a_setting(tmp_path: Path, text: str, kept: int) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n" + text + "\n")
    loaded = config.load(path)
    assert loaded.without_effect() == ()
    assert new_machine(loaded, "origin", "one").core.settings.retention.slice_history == kept


# --- a long history ------------------------------------------------------------------------------------------------


def test_sl_16_a_change_is_read_of_what_is_not_past_however_long_the_history() -> None:
    """SL-16: decision 118's open line: all slices of a chain were sorted anew with each change of one."""
    found = SliceIndex()
    for past in range(1, 3000):
        found.put(a_slice(f"p{past}", past, said="p1", past=True), b"")
    found.put(a_slice("a", 3000, said="p1", reserved=True), b"{}")
    found.put(a_slice("t", 3001, "a", said="p1"), b"{}")
    chain = found.chosen(OWNER)
    assert chain is not None
    assert [one.uid for one in chain.slices] == ["a", "t"]
    assert chain.roles == {"a": Role.CURRENT, "t": Role.TARGET}
    assert (chain.highest, len(chain.past), chain.past[0].uid) == (3001, 2999, "p1")
    assert (chain.role_of("p7"), chain.has_had(7), chain.has_had(4000)) == (Role.PAST, True, False)
    assert (found.of("p7"), found.holder("p1"), found.chain_uid("p7")) == (chain, "a", "p1")


def test_sl_16_in_whatever_order_they_come_and_go_history_is_by_number() -> None:
    found = SliceIndex()
    for past in (5, 2, 4, 1, 3):
        found.put(a_slice(f"p{past}", past, said="p1", past=True), b"")
    found.put(a_slice("p4", 4, said="p1", past=True), b"")
    found.drop("p2")
    assert [one.uid for one in found.called("p1").past] == ["p1", "p3", "p4", "p5"]
    found.put(a_slice("x", 9, said="p1", past=True, owner=ANOTHER), b"")
    assert [one.uid for one in found.called("p1").past] == ["p1", "p3", "p4", "p5"], "another object's is not believed"
    assert not found.is_believed("x")
    for uid in ("p1", "p3", "p4", "p5", "x"):
        found.drop(uid)
    assert (found.called("p1").past, found.chosen(OWNER), found.began("p1")) == ((), None, "")


def test_hd_590_a_number_is_not_used_again_though_its_slice_is_gone() -> None:
    """HD-590: a growth that was withdrawn and is not kept had a number that the next one got."""
    world = a_running_chain(cpu=4, retention=RetentionSettings(slice_history=0))
    for _ in range(3):
        resize(world, 6)
        world.advance(5.0)
        resize(world, 3)
        world.advance(5.0)
    assert seen(world) == [(1, 3, 3, "")]
    resize(world, 6)
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, ""), (5, 6, None, "")]


def test_sl_16_what_the_present_wish_came_to_is_kept_until_there_is_another_one() -> None:
    """SL-16: a growth that was given up is known by its slice alone; without it the same one would be made again."""
    world = a_running_chain(cpu=4, retention=RetentionSettings(slice_history=0))
    resize(world, 6)
    world.advance(5.0)
    target = all_slices(world)[1]
    over = {"type": "Finished", "status": "True", "reason": "OutOfSync", "message": "given up"}
    over["lastTransitionTime"] = "2026-11-21T00:20:00Z"
    world.api.edit(ref_of(target), lambda one: one["status"]["conditions"].append(over))
    world.advance(30.0)
    assert ref_of(target) in world.api.objects
    resize(world, 3)
    world.advance(5.0)
    resize(world, 7)
    world.advance(5.0)
    resize(world, 3)
    world.advance(30.0)
    assert seen(world) == [(1, 3, 3, "")]
