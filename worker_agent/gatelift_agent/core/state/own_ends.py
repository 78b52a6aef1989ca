"""Whose end is this agent's own doing: no end that a member came to. Pure."""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared.patches import stop_marked


def ended_here(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether a member was ended with its placement, by this agent or the one before it: it did not fail (MC-11).

    What home shows of such an end nobody would take back, and a group would wait for replacements.
    """
    kind, obj = world.kind(placement), tracked.object
    if world.local or not kind.gathers or tracked.delete_asked or tracked.succeeded:
        return False
    if obj is None:
        return tracked.deleted_by_us
    outcome = kind.outcome(obj)
    ended = tracked.deleted_by_us or stop_marked(obj.metadata, placement.key)
    return ended and not (outcome is not None and outcome.succeeded)
