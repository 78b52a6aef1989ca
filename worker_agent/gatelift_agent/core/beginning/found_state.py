"""In which state a live placement is by what a start found of it, and by what its commit names since. Pure."""

from __future__ import annotations

from typing import Any

from gatelift_agent.core.placement.placements import Placement, PlacementState, Tracked
from gatelift_agent.core.state.world import World
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers
from gatelift_wire.values.messages import Commit


def set_state(world: World, placement: Placement) -> None:
    """Set the state of a live placement by what is there of it: one that is let go only in part waits for the rest."""
    kind = world.kind(placement)
    every = [one for one in placement.objects.values() if not (one.made_here or (kind.gathers and one.delete_asked))]
    found = [tracked.object for tracked in every if tracked.object is not None]  # who is to leave is none (HD-391)
    if len(found) < placement.objects_wanted or any(_is_to_come(kind, tracked) for tracked in every):
        placement.state = PlacementState.APPLYING
    else:
        placement.state = (
            PlacementState.RUNNING if all(world.runs_as_placed(kind, obj) for obj in found) else PlacementState.GATED
        )


def _is_to_come(kind: Kind[Any], tracked: Tracked) -> bool:
    """Say whether one of several is named and not seen yet: others, which are over, do not stand for it (HD-474)."""
    unknown = tracked.missing or tracked.unproven or tracked.joined
    return kind.gathers and tracked.object is None and not (unknown or tracked.is_gone)


def keep_slots(placement: Placement, kind: Kind[Any]) -> None:
    """Keep which objects at home a start has found in a slot of theirs: they run, or are over and not replaced.

    Who failed bears our finalizer until another one has its slot.
    """
    for tracked in placement.objects.values():
        obj = tracked.object
        if obj is not None and (kind.outcome(obj) is None or markers.MANAGED in obj.metadata.finalizers):
            placement.came_and_went.finds(tracked.uid, tracked.pod_set)


def count_slots(placement: Placement, commit: Commit) -> None:
    """Count of which slots of a placement at home nobody knows who has them (HD-520).

    Whoever was there before there was quota, and waits, has its own. Of all others somebody was let go, who is gone,
    and perhaps since nobody watched: he may run on.
    """
    known = placement.came_and_went
    theirs = {one.template: one.pod_set for one in commit.objects if one.template in known.in_slots or not one.joined}
    known.knows_of(theirs, {one.name: one.count for one in commit.pod_sets})
