"""How many pods above its size are still in the way of an answer, by the release rule that came with the placement.

Until then the manager charges them (Size 2, Size 6). What was never let go is in nobody's way. By *OnTerminating* what
stops is not either, and counts as a ghost there; by each other rule it is until it has stopped, and so it is at a
worker that insists on that. An end of all goes by `all_leaving`.
Neighbour: `seeing.let_go` counts.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.seeing import let_go
from gatelift_agent.core.state.world import World
from gatelift_wire.values.release import ReleaseRule


def in_the_way(world: World, placement: Placement, now: float) -> dict[str, int] | None:
    """Return how many pods of each pod set are above its count and not out of the way; None: nobody knows that now."""
    sizing = placement.sizing
    if sizing is None:
        return {}
    found = let_go.count(world, placement, now)
    if found.unknown:
        return None
    counted = found.holding if _waits_for_the_stop(world, placement) else found.going_on
    return {name: max(0, counted[name] - count) for name, count in sizing.counts.items()}


def _waits_for_the_stop(world: World, placement: Placement) -> bool:
    rule = placement.release
    return world.settings.holds_quota or rule != ReleaseRule.ON_TERMINATING.value
