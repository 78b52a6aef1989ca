"""Ends that nobody here asked for: objects that vanish, are deleted or changed by somebody else, or are over.

Neighbours: `progress` asks; `edits` and `allowances` tell what was changed.
"""

from __future__ import annotations

from gatelift_agent.core.changes import allowances, edits
from gatelift_agent.core.leaving import leftovers
from gatelift_agent.core.placement.placements import (
    EndingKind,
    Placement,
    PlacementEnding,
)
from gatelift_agent.core.state import condemned
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared.values import ObjectEnd


def lost(world: World, placement: Placement, now: float) -> PlacementEnding | None:
    """Return the eviction by somebody else: an object vanished or is being deleted. None if all are well."""
    if world.local:
        return _edited(world, placement, now)  # a deletion is the user's own: the manager sees it too and says stop
    kind = world.kind(placement)
    if condemned.is_sure(world, placement) and not _has_ended(world, placement):
        return leftovers.ending(placement)
    for tracked in placement.objects.values() if not kind.gathers else ():  # else who is gone is told, and replaced
        if tracked.delete_asked:
            continue
        if tracked.vanished:
            return PlacementEnding(
                kind=EndingKind.EVICTED,
                reason="WorkerObjectDeleted",
                message=f"{tracked.ref} was removed from the worker cluster by somebody else",
            )
        obj = tracked.object
        if obj is None or obj.metadata.deletion_timestamp is None:
            continue
        outcome = kind.outcome(obj)
        # A pod that failed may have failed by its deletion; a Job says Failed by its controller alone.
        if outcome is None or not (outcome.succeeded or kind.pods_are_children):
            return PlacementEnding(
                kind=EndingKind.EVICTED,
                reason="WorkerObjectDeleted",
                message=f"{tracked.ref} was deleted in the worker cluster by somebody else",
            )
    return _edited(world, placement, now)


def _has_ended(world: World, placement: Placement) -> bool:
    """Say whether the work is over by itself; a pod that failed may have failed by a deletion."""
    outcome = own_end(world, placement)
    return outcome is not None and (outcome.succeeded or world.kind(placement).pods_are_children)


def _edited(world: World, placement: Placement, now: float) -> PlacementEnding | None:
    """Return the eviction by somebody who changed an object in a way that is not put back. None if all are well."""
    live = (tracked for tracked in placement.to_look_at if not tracked.delete_asked)
    found = next(filter(None, (edits.ending(world, placement, tracked, now) for tracked in live)), None)
    return found or allowances.ending(world, placement)


def own_end(world: World, placement: Placement) -> ObjectEnd | None:
    """Return the end that the work came to by itself: all objects are over; the first failure is the whole's."""
    kind = world.kind(placement)
    if kind.gathers:
        return None  # who is over is replaced, or was the last: the manager sees all of the user's own, and says stop
    last: ObjectEnd | None = None
    for tracked in placement.objects.values():
        if tracked.delete_asked:
            continue
        found = kind.outcome(tracked.object) if tracked.object is not None else None
        if found is None:
            return None
        if last is None or last.succeeded:
            last = found
    return last
