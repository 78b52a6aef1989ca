"""When an object of a placement that runs is at rest: it runs or is over as it should, and that is told.

Asked at the end of each look. In doubt it is not: then it is looked at again with the next one. What else could make
something due for it either changes what is known of it, or has all objects looked at (`placement.calm`). Nothing that
time alone makes due may be at rest: whoever asks to be looked at again at a time has those looked at that are not.
Neighbours: `progress` asks; `room` counts the slots of what is at rest.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import room
from gatelift_agent.core.changes import edits, relabelling
from gatelift_agent.core.placement.placements import Placement, PlacementState, Tracked
from gatelift_agent.core.state.world import World
from gatelift_kube.objects.core import Pod


def settle(world: World, placement: Placement, now: float) -> None:
    """Let those rest that may, of the objects that were looked at."""
    if placement.state is not PlacementState.RUNNING or not world.kind(placement).gathers:
        return
    looked_at = placement.to_look_at
    calm = placement.calms()
    for tracked in looked_at:
        if is_at_rest(world, placement, tracked):
            has_slot = room.has_slot(world, placement, tracked, now)
            calm.rests(tracked.name, tracked.pod_set if has_slot else None)


def is_at_rest(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether nothing is due for an object, as far as is known of it."""
    kind, obj = world.kind(placement), tracked.object
    if not isinstance(obj, Pod) or tracked.told_of is not obj or obj.metadata.deletion_timestamp is not None:
        return False
    if obj.spec.scheduling_gates or kind.counts(obj, ()) or kind.reclaimable(obj):
        return False
    return not _is_in_doubt(tracked) and _is_as_made(world, placement, tracked)


def _is_in_doubt(tracked: Tracked) -> bool:
    writes = tracked.asked or tracked.retry_at or tracked.delete_asked or tracked.uncharged_told is not None
    unknown = tracked.missing or tracked.unproven or tracked.doubt or tracked.doubt_until is not None
    return bool(writes or unknown or tracked.made_here or tracked.removed)


def _is_as_made(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether nobody has changed an object in a way that is put back, or ends its run."""
    kind, obj = world.kind(placement), tracked.object
    if relabelling.relabelled(world, placement, tracked):
        return False
    if kind.outcome(obj) is not None:
        return True
    if world.local:
        said = kind.local_note(obj)
        return (said and said == tracked.noted) or kind.local_note_patch(obj, tracked.raw, tracked.noted) is None
    return tracked.made is not None and not edits.edited(world, placement, tracked)
