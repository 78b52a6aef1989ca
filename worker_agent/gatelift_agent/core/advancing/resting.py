"""When an object of a live placement is at rest: it runs or is over as it should, and that is told.

While all are made, or let go, one is at rest as well that has come as far as the placement, or whose write is under
way; and one waits for its turn for which no more than that step is due, while no more may be asked for in one call.
Asked at the end of each look. In doubt it is not: then it is looked at again with the next one. What else could make
something due for it either changes what is known of it, or has all objects looked at (`placement.calm`). Nothing that
time alone makes due may be at rest: whoever asks to be looked at again at a time has those looked at that are not.
Neighbours: `progress` asks; `room` counts the slots of what is at rest.
"""

from __future__ import annotations

import enum

from gatelift_agent.core.advancing import room
from gatelift_agent.core.changes import edits, relabelling
from gatelift_agent.core.placement.placements import HELD_BACK, LIVE, STARTING, Placement, Tracked
from gatelift_agent.core.state.world import AT_ONCE, World
from gatelift_kinds.shared import markers
from gatelift_kube.objects.core import Pod


class Place(enum.Enum):
    """Where an object is that need not be looked at."""

    RESTS = "nothing is due for it"
    UNDER_WAY = "nothing is due for it before what was asked of it is answered"
    WAITS = "no more than the step that all of its placement take is due for it"


def begin(world: World, placement: Placement) -> None:
    """Have the objects of a placement that was just committed wait for their turn, as far as they may."""
    if not world.kind(placement).gathers:
        return
    calm = placement.calms()
    for tracked in placement.objects.values():
        if is_held_back(world, placement, tracked):
            calm.waits(tracked.name)


def settle(world: World, placement: Placement, now: float) -> None:
    """Let those rest that may, of the objects that were looked at."""
    if placement.state not in LIVE or not world.kind(placement).gathers:
        return
    looked_at = placement.to_look_at
    calm = placement.calms()
    for tracked in looked_at:
        place = place_of(world, placement, tracked)
        if place is None:
            continue
        has_slot = room.has_slot(world, placement, tracked, now)
        if place is not Place.WAITS:
            slot = tracked.pod_set if has_slot else None
            calm.rests(tracked.name, slot, under_way=place is Place.UNDER_WAY)
        elif not (has_slot or world.has_room(placement)):  # where there is none, it is looked at again
            calm.waits(tracked.name)
    if calm.waiting and world.has_room(placement):
        world.wakes.ask(placement.key, AT_ONCE)


def place_of(world: World, placement: Placement, tracked: Tracked) -> Place | None:
    """Return where an object is by what is known of it; None: it is to be looked at."""
    if is_at_rest(world, placement, tracked):
        return Place.RESTS
    if not is_held_back(world, placement, tracked):
        return None
    if tracked.asked:
        return Place.UNDER_WAY
    is_made = placement.state not in HELD_BACK and tracked.object is not None
    return Place.RESTS if is_made else Place.WAITS


def is_at_rest(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether nothing is due for an object, as far as is known of it."""
    kind, obj = world.kind(placement), tracked.object
    if not isinstance(obj, Pod) or tracked.told_of is not obj or obj.metadata.deletion_timestamp is not None:
        return False
    if obj.spec.scheduling_gates or kind.counts(obj, ()) or kind.reclaimable(obj):
        return False
    if placement.state in STARTING and edits.let_go_by_others(world, placement, tracked):
        return False  # it may run for as long as the others may be let go (R1)
    return not (tracked.asked or _is_in_doubt(tracked)) and _is_as_made(world, placement, tracked)


def is_held_back(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether no more is due for an object than that it is made or let go with all, or what was asked answered."""
    if placement.state not in STARTING or tracked.joined or tracked.refused or _is_in_doubt(tracked):
        return False
    kind, obj = world.kind(placement), tracked.object
    if obj is None:  # at home time tells that it is not there
        return not (world.local or tracked.uid or tracked.is_gone or tracked.blocked_since is not None)
    if not isinstance(obj, Pod) or kind.lifted(obj) or obj.metadata.deletion_timestamp is not None:
        return False
    if any(gate.name not in markers.GATES_OF_ADMISSION for gate in obj.spec.scheduling_gates):
        return False  # people are told of others
    if kind.outcome(obj) is not None or kind.counts(obj, ()) or kind.reclaimable(obj):
        return False
    made = world.local or (tracked.made is not None and not edits.edited(world, placement, tracked))
    return made and not relabelling.relabelled(world, placement, tracked)


def _is_in_doubt(tracked: Tracked) -> bool:
    writes = tracked.retry_at or tracked.delete_asked or tracked.uncharged_told is not None
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
