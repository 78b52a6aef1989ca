"""Labels of a placement's object that somebody changed. The same UID is the same object: they are put back.

At `local` so is the note of what the user's own object was before it was let go.

Who may not act puts nothing back: a deposed replica's word is older than the object. What the charge follows from is
judged by `edits`. Neighbour: `progress` (calls).
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedPatch, WritePurpose
from gatelift_agent.core.watched import ownership
from gatelift_kube.deciding.writes import PatchKind

_SAID = {
    WritePurpose.LABELS: "somebody changed its labels; they are put back",
    WritePurpose.NOTE: "somebody changed what it was before it was let go; that is noted again",
}
"""What the log is told of each write."""


def relabelled(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether an object that has to carry the placement's labels carries others.

    At `local` it carries them from the lift on; those of another attempt that is known here are no edit, since one
    object of the user's lives through many.
    """
    obj = tracked.object
    if obj is None or obj.metadata.labels.items() >= world.owner_labels(placement).items():
        return False
    if not world.local:
        return True
    kind = world.kind(placement)
    if not kind.let_go_here(obj):
        return False
    found = ownership.let_go_as(kind, obj)
    return found is None or found[1] not in world.placements.keys() - {placement.key}


def put_labels_back(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the write that puts the labels back, where they were changed."""
    obj = tracked.object
    if tracked.asked or obj is None or not relabelled(world, placement, tracked):
        return
    meta = {"uid": obj.metadata.uid, "resourceVersion": obj.metadata.resource_version}
    body = msgspec.json.encode({"metadata": {**meta, "labels": world.owner_labels(placement)}})
    _write(world, placement, tracked, WantedPatch(purpose=WritePurpose.LABELS, body=body, kind=PatchKind.MERGE), now)


def put_note_back(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the write that notes again how the user's own object was before it was let go at `local`.

    Noted is what it said when it was first seen to run; one that says nothing then says what can be told from itself.
    """
    kind, obj = world.kind(placement), tracked.object
    if not world.local or tracked.asked or obj is None:
        return
    if not kind.let_go_here(obj) or kind.outcome(obj) is not None:
        return
    said = kind.local_note(obj)
    tracked.noted = tracked.noted or said
    if said and said == tracked.noted:
        return
    body = kind.local_note_patch(obj, tracked.raw, tracked.noted)
    if body is not None:
        wanted = WantedPatch(purpose=WritePurpose.NOTE, body=body, kind=PatchKind.MERGE)
        _write(world, placement, tracked, wanted, now)


def _write(world: World, placement: Placement, tracked: Tracked, wanted: WantedPatch, now: float) -> None:
    if not world.leadership.acts(now):
        return
    if world.local and starting.why_not(world, placement, now):
        starting.ask_word(world, placement, now)
        return
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
    elif world.has_room(placement) and asking.patch(world, placement, tracked, wanted, now):
        world.note("warning", _SAID[wanted.purpose], placement, object=str(tracked.ref))
