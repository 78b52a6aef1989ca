"""What checks, or hands, say of a growth at the wrong moment costs nothing that runs, and no writes without end."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_wire.values.messages import Stop
from manager.test_growth_checks import HOME, an_asking_chain, say, states
from support.manager.builders import Doc
from support.manager.checked_chain_walks import CheckedChainWalk
from support.manager.slice_world import all_slices, ref_of, resize, seen, used
from support.manager.world import World

SEEDS = (100, 108, 168, 46, 57, 131)
"""By these the walks have found what stands below."""


def forge(world: World, type_: str) -> int:
    """Let somebody write a condition of the last slice; return how many writes have followed."""
    one = {"type": type_, "status": "True", "reason": "Forged", "message": "by hand"}
    one["lastTransitionTime"] = "2026-11-18T11:00:00Z"

    def write(workload: Doc) -> None:
        there = workload.setdefault("status", {}).setdefault("conditions", [])
        there[:] = [*(each for each in there if each["type"] != type_), one]

    before = len(world.api.writes)
    world.api.edit(ref_of(all_slices(world)[-1]), write)
    world.advance(20.0)
    return len(world.api.writes) - before


def one_that_waits_again(clusters: tuple[str, ...]) -> World:
    """Return a growth that was asked about, and waits for another size, for which there is no quota."""
    world = an_asking_chain(clusters=clusters)
    resize(world, 12)
    world.advance(5.0)
    assert seen(world)[1][1:3] == (12, None)
    return world


@HOME
@pytest.mark.parametrize("state", ["Rejected", "Retry", "Ready"])
def test_hd_700_what_a_check_says_too_late_is_asked_again(clusters: Any, state: str) -> None:
    """It was about another size: it ended the run, was taken back and announced again, one write after the other."""
    world = one_that_waits_again(clusters)
    before = len(world.api.writes)
    say(world, state)
    world.advance(20.0)
    assert states(all_slices(world)[-1])["budget"] == "Pending"
    assert all_slices(world)[0]["spec"].get("active", True)
    assert (world.messages(Stop), used(world)) == ([], 3)
    assert len(world.api.writes) - before < 6
    resize(world, 6)
    world.advance(60.0)
    assert seen(world)[-1][1:3] == (6, 6), "it is asked about what is wanted by now"
    say(world, "Ready")
    world.advance(5.0)
    assert used(world) == 6


@HOME
def test_hd_700_a_slice_that_waits_is_not_announced_to_be_deactivated(clusters: Any) -> None:
    world = one_that_waits_again(clusters)
    assert forge(world, "DeactivationTarget") < 4
    assert all(one["spec"].get("active", True) for one in all_slices(world))
    assert world.messages(Stop) == []


@HOME
@pytest.mark.parametrize("led", ["by one", "by the next"])
def test_hd_701_a_growth_is_admitted_by_nobody_else(clusters: Any, led: str) -> None:
    """What ran was finished as replaced, by a record that names no cluster: the next leader has it run at home."""
    world = an_asking_chain(clusters=clusters)
    runs = list(world.runs)
    if led == "by the next":
        world.restart()
    assert forge(world, "Admitted") < 8
    assert seen(world) == [(1, 3, 3, ""), (2, 5, 5, "")]
    assert world.condition(all_slices(world)[1], "Admitted") == {}
    assert (world.runs, world.messages(Stop), used(world)) == (runs, [], 5)
    say(world, "Ready")
    world.advance(5.0)
    assert seen(world) == [(1, 3, 3, "WorkloadSliceReplaced"), (2, 5, 5, "")]
    assert world.runs == runs


@pytest.mark.parametrize("seed", SEEDS)
def test_sl_33_walks_with_a_check_come_to_rest(seed: int) -> None:
    """HD-700 and HD-701: leaders, rivals, forged conditions and edits as others are asked about a growth."""
    assert CheckedChainWalk(seed).live().checks > 10
