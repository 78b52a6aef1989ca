"""Takes up which objects of a placement had succeeded and were gone before a start.

What stands in the cluster says nothing of them: without their end they would be made again, or be told of as gone.

A placement all of which was over and gone is made of these records alone: it is listed, so its absence proves nothing.
Neighbours: `rebuilding` calls, `keeper` has the records.
"""

from __future__ import annotations

from gatelift_agent.core.memory import member_ends
from gatelift_agent.core.memory.member_ends import MemberEnd
from gatelift_agent.core.placement.placements import Placement, PlacementState
from gatelift_agent.core.state.world import World


def take(world: World, now: float) -> None:
    """Know all that are recorded."""
    for found in world.keeper.members():
        placement = world.placements.get(found.key) or _placement(world, found, now)
        if placement is None or found.name in placement.objects:
            continue  # its object is still there, and says more
        world.track(placement, member_ends.tracked(world.kind(placement).resource, found))


def _placement(world: World, found: MemberEnd, now: float) -> Placement | None:
    kind = world.kinds.named(found.kind)
    if kind is None or not kind.gathers:
        return None
    world.epochs.use(found.key)
    placement = Placement(
        key=found.key,
        kind=found.kind,
        namespace=found.namespace,
        name=found.group,
        state=PlacementState.APPLYING,
        committed_at=now,
        objects_wanted=max(1, found.objects),
        found=True,
        unsure=True,
    )
    world.add(placement)
    return placement
