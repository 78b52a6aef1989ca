"""What the manager is told of a size: its answer, how far it is, why it is not carried out. From version 3 on.

Nothing of it is said in a session of an older version, or in none: who says it goes on as if it had not been said.
Neighbours: `advancing.sizing` knows when, `session.sizes` refuses what comes.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.placement.sizes import Sizing
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.texts import cut
from gatelift_wire.values.keys import VERSION_OF_SIZES, PlacementKey
from gatelift_wire.values.messages import PodSetCounts
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Drained, SizeRefused, SliceFinished


def can_say(world: World) -> bool:
    """Say whether the manager is there and understands sizes."""
    return world.standing.open and world.standing.version >= VERSION_OF_SIZES


def begin(world: World, placement: Placement, sizing: Sizing) -> None:
    """Count from here on which pods end at this size, once what had ended before is known."""
    if sizing.ended_before is None:
        sizing.ended_before = {name: (one.succeeded, one.failed) for name, one in _counts(world, placement).items()}


def finished(world: World, placement: Placement, sizing: Sizing) -> None:
    """Say that no more runs, or can start, than it grants."""
    before = sizing.ended_before or {}
    ended = []
    for name, one in sorted(_counts(world, placement).items()):
        succeeded, failed = before.get(name, (one.succeeded, one.failed))
        ended.append(
            PodSetCounts(name=name, succeeded=max(0, one.succeeded - succeeded), failed=max(0, one.failed - failed))
        )
    world.say(SliceFinished(key=placement.key, number=sizing.number, ended=tuple(ended)))


def drained(world: World, placement: Placement, sizing: Sizing, left: dict[str, int]) -> None:
    """Say how many pods are in the way, when it is another number."""
    remaining = tuple(sorted(left.items()))
    if can_say(world) and remaining != sizing.drained:
        sizing.drained = remaining
        world.say(Drained(key=placement.key, number=sizing.number, remaining=remaining))


def refused(world: World, key: PlacementKey, number: int, why: tuple[Refusal, str]) -> None:
    """Say that a size is not carried out, or not now."""
    if can_say(world):
        world.say(SizeRefused(key=key, number=number, refusal=why[0], text=cut(why[1])))


def cannot(world: World, placement: Placement, sizing: Sizing, why: tuple[Refusal, str]) -> None:
    """Say the same, once for each cause, of a size that was taken: it goes on being tried."""
    if sizing.number and can_say(world) and sizing.refused != why[1]:
        sizing.refused = why[1]
        world.note("warning", f"size {sizing.number} is not carried out: {why[1]}", placement)
        refused(world, placement.key, sizing.number, why)


def _counts(world: World, placement: Placement) -> dict[str, PodSetCounts]:
    children, kind = world.children(placement), world.kind(placement)
    there = [one.object for one in placement.objects.values() if one.object is not None]
    return {each.name: each for obj in there for each in kind.counts(obj, children)}
