"""What somebody else changed of that from which an object's charge follows: it is put back once, or the run is ended.

Compared with what our own last write was answered, so that defaults and webhooks of the worker are no edit. After a
restart the mark tells, written with the lift: what the create was answered is known by then. The counts of what has a
size are those of its own mark (`size_marks`). `local` objects are the
user's own, and the manager's to judge; but what is held back there and bears our stop nobody would let go any more.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_agent.core.changes import size_marks
from gatelift_agent.core.placement.made import Made
from gatelift_agent.core.placement.placements import (
    STARTING,
    EndingKind,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.state import asking, own_ends
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedPatch, WritePurpose
from gatelift_agent.core.watched.objects import Held
from gatelift_kinds.shared.patches import add_to_map, stop_marked
from gatelift_kinds.shared.values import Charged
from gatelift_kube.deciding.writes import EmitEvent, KubeObject, PatchKind
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.keys import LABEL_STOPPING

ANNOTATION_MADE = "gatelift.dev/made"
"""JSON of what was made, as the worker answered it, and the `metadata.generation` that our lift gave it."""

ANNOTATION_PUT_BACK = "gatelift.dev/put-back"
"""Set together with what is put back, so that it happens once in an object's life."""

MARK_BYTES_MAX = 1024
"""Of a mark that is believed; ours have two hundred."""

EDITED = "WorkerObjectEdited"
SUSPENDED = "WorkerObjectSuspended"
STARTED = "WorkerObjectStarted"
STOPPED = "WorkerObjectStopped"
_MADE = msgspec.json.Decoder(Made)
_CREATED_GENERATION = 1


def answered(world: World, placement: Placement, tracked: Tracked, answer: Held, *, lifted: bool) -> None:
    """Take what our own create or lift was answered as that which is right."""
    if not world.local:
        tracked.made = _now(world, placement, answer.object, answer.raw)
        tracked.lift_known = tracked.lift_known or lifted


def learn(world: World, placement: Placement, tracked: Tracked) -> None:
    """Know what is right of an object whose create this process has not seen answered."""
    obj = tracked.object
    if world.local or obj is None or tracked.made is not None:
        return
    kind = world.kind(placement)
    tracked.made = _marked(obj.metadata)
    tracked.lift_known = tracked.made is not None or kind.lifted(obj)
    if tracked.made is None:
        # Held back, it has the generation of its create, or somebody has changed what nobody knows.
        touched = kind.pods_are_children and not kind.lifted(obj) and obj.metadata.generation > _CREATED_GENERATION
        tracked.made = Made(_CREATED_GENERATION, {}) if touched else _now(world, placement, obj, tracked.raw)


def tell_of_uncharged(world: World, placement: Placement, tracked: Tracked) -> None:
    """Tell people of each change of what no charge follows from, such as a pod's images: its user does not see it.

    So the run goes on. Asked before `edited`, which takes what it sees for what is right.
    """
    obj, made = tracked.object, tracked.made
    if world.local or obj is None or made is None or not made.uncharged:
        return
    generation = obj.metadata.generation
    if generation and generation == made.generation:
        return
    now = dict(world.kind(placement).uncharged(tracked.raw))
    fields = [name for name, digest in now.items() if made.uncharged.get(name, digest) != digest]
    if fields:
        tracked.made = Made(made.generation, made.charged, now)
        tracked.uncharged_told = now
        told = ", ".join(f"spec.{name}" for name in fields)
        _tell(world, placement, tracked, told, "home does not see it, and it runs on")


def keep_told(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the write of what was told into the mark, so that no process after this one tells it again.

    Once for what was told: without the mark, or where the write fails, a restart says it once more and no harm is done.
    """
    obj = tracked.object
    if obj is None or tracked.uncharged_told is None or tracked.asked or not world.leadership.acts(now):
        return
    mark = _marked(obj.metadata)
    if mark is None:
        return  # not let go yet: the lift writes it
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return
    text = _encoded(Made(mark.generation, mark.charged, tracked.uncharged_told))
    body = msgspec.json.encode({"metadata": {"uid": obj.metadata.uid, "annotations": {ANNOTATION_MADE: text}}})
    wanted = WantedPatch(purpose=WritePurpose.TOLD, body=body, kind=PatchKind.MERGE)
    if world.has_room(placement) and asking.patch(world, placement, tracked, wanted, now):
        tracked.uncharged_told = None


def edited(world: World, placement: Placement, tracked: Tracked) -> tuple[str, ...]:
    """Return the fields of `spec` that are not as they were made."""
    obj, made = tracked.object, tracked.made
    if world.local or obj is None or made is None:
        return ()
    generation = obj.metadata.generation
    if generation and generation == made.generation:
        return ()  # nobody has changed its spec; new defaults of an API server change no generation
    now = _now(world, placement, obj, tracked.raw)
    as_lifted = _is_our_lift(world, placement, tracked, obj)
    wanted = size_marks.right(world, placement, tracked, made.charged)
    if as_lifted or now.charged == wanted:  # at the lift's own generation it is as that is answered
        tracked.made = now
        tracked.lift_known = tracked.lift_known or as_lifted
        return ()
    return tuple(sorted(name for name in {*now.charged, *wanted} if _differs(name, now.charged, wanted)))


def put_back(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the write that puts an edit back, where that is still to be done.

    Where pods start by it, it needs what a lift needs (R1): else a run goes on that the manager may have counted out.
    """
    obj = tracked.object
    body = _put_back_body(world, placement, tracked)
    if body is None or obj is None or tracked.made is None or tracked.asked or not world.leadership.acts(now):
        return
    why = starting.why_not(world, placement, now)
    right = size_marks.right(world, placement, tracked, tracked.made.charged)
    if why and world.kind(placement).put_back_starts(obj, right):
        _leave(world, placement, tracked, why, now)
        return
    if not world.kind(placement).may_put_back(obj, right, world.children(placement)):
        return  # what the edit has ended still stops: a version of the Job or of a pod looks again
    wanted = WantedPatch(purpose=WritePurpose.PUT_BACK, body=body)
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
    elif world.has_room(placement) and asking.patch(world, placement, tracked, wanted, now):
        _tell(world, placement, tracked, _fields(world, placement, tracked), "it is put back, once")


def _leave(world: World, placement: Placement, tracked: Tracked, why: str, now: float) -> None:
    """Tell people once of an edit that stays for now; what ends its cause looks at the placement again."""
    starting.ask_word(world, placement, now)
    if not tracked.edit_told:
        tracked.edit_told = True
        text = f"pods would start if it were put back, which has to wait: {why}"
        _tell(world, placement, tracked, _fields(world, placement, tracked), text)


def _tell(world: World, placement: Placement, tracked: Tracked, fields: str, what: str) -> None:
    text = f"{fields} was changed by somebody else; {what}"
    world.note("warning", text, placement, object=str(tracked.ref))
    world.commands.append(EmitEvent(ref=tracked.ref, uid=tracked.uid, warning=True, reason=EDITED, message=text))


def ending(world: World, placement: Placement, tracked: Tracked, now: float) -> PlacementEnding | None:
    """Return the end of a run whose object was stopped, let go, suspended, or edited so that it is not put back.

    None if it goes on.
    """
    obj = tracked.object
    if obj is None or (
        world.kind(placement).outcome(obj) is not None and not own_ends.ended_here(world, placement, tracked)
    ):
        return None
    if world.local:
        return _stopped_at_home(world, placement, tracked)
    if stop_marked(obj.metadata, placement.key):  # by a process before this one, which had decided to end it
        text = f"{tracked.ref} was being stopped when the agent started anew"
        return PlacementEnding(kind=EndingKind.EVICTED, reason=STOPPED, message=text)
    had_to_wait = placement.state is PlacementState.ADMITTING or starting.why_not(world, placement, now)
    if placement.state in STARTING and _let_go(world, placement, tracked) and had_to_wait:
        text = f"{tracked.ref} was let go in the worker cluster by somebody else while it had to wait"
        return PlacementEnding(kind=EndingKind.EVICTED, reason=STARTED, message=text)
    if _suspended(world, placement, tracked, obj):
        text = f"{tracked.ref} was suspended in the worker cluster by somebody else"
        return PlacementEnding(kind=EndingKind.EVICTED, reason=SUSPENDED, message=text)
    if edited(world, placement, tracked) and _put_back_body(world, placement, tracked) is None:
        return edit_ending(world, placement, tracked)
    return None


def _stopped_at_home(world: World, placement: Placement, tracked: Tracked) -> PlacementEnding | None:
    """Return the end of what bears our stop and is held back: by a leader before this one, or by anybody's hand.

    Why it was stopped nobody knows any more, and this attempt never lets it go again. What runs is left running,
    whatever it bears: it is the user's own, and nobody has asked for its end.
    """
    obj = tracked.object
    if obj is None or world.kind(placement).lifted(obj) or not stop_marked(obj.metadata, placement.key):
        return None
    text = f"{tracked.ref} says in {LABEL_STOPPING} that this attempt was stopped; it is queued anew"
    return PlacementEnding(kind=EndingKind.EVICTED, reason=STOPPED, message=text)


def edit_ending(world: World, placement: Placement, tracked: Tracked) -> PlacementEnding:
    """Return the end of a run whose object was edited."""
    text = f"{_fields(world, placement, tracked)} of {tracked.ref} was changed in the worker cluster by somebody else"
    return PlacementEnding(kind=EndingKind.EVICTED, reason=EDITED, message=text)


def with_mark(lift: bytes, tracked: Tracked) -> bytes:
    """Return the patch of a lift that also says what was made."""
    obj, made = tracked.object, tracked.made
    if obj is None or made is None:
        return lift
    return _annotated(lift, obj.metadata, {ANNOTATION_MADE: _encoded(_mark_of(made))})


def _encoded(made: Made) -> str:
    return msgspec.json.encode(made, order="sorted").decode()


def _mark_of(made: Made) -> Made:
    """Return what a lift says was made: one change of the spec after it."""
    return Made(made.generation + 1 if made.generation else 0, made.charged, made.uncharged)


def _is_our_lift(world: World, placement: Placement, tracked: Tracked, obj: KubeObject) -> bool:
    """Say whether an object is as a lift of ours has left it, whose answer is not known here: it bears what we write.

    A lift is made once, so no mark is believed after its answer; one that says anything else was written by others.
    """
    made, mark = tracked.made, _marked(obj.metadata)
    if made is None or mark is None or tracked.lift_known or not world.kind(placement).lifted(obj):
        return False
    ours = _mark_of(made)  # what is not charged is no part of it: a process before this one may not have written it
    same = (mark.generation, mark.charged) == (ours.generation, ours.charged)
    return bool(made.charged) and same and mark.generation == obj.metadata.generation > 0


def let_go_by_others(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether it is let go, and not by us: the permission to start (R1) was not asked."""
    return not world.local and _let_go(world, placement, tracked)


def _let_go(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say the same wherever it is."""
    obj = tracked.object
    ours = tracked.lift_asked or (obj is not None and ANNOTATION_MADE in obj.metadata.annotations)
    return world.kind(placement).lifted(obj) and not ours


def _suspended(world: World, placement: Placement, tracked: Tracked, obj: KubeObject) -> bool:
    """Say whether what was let go is held back again, and not by our own stop."""
    runs = placement.state is PlacementState.RUNNING and not tracked.joined  # who joins waits for a slot
    was_let_go = runs or ANNOTATION_MADE in obj.metadata.annotations
    lifted = world.kind(placement).lifted(obj)
    return was_let_go and not lifted and not stop_marked(obj.metadata, placement.key)


def _put_back_body(world: World, placement: Placement, tracked: Tracked) -> bytes | None:
    obj, made = tracked.object, tracked.made
    if obj is None or made is None or tracked.put_back or ANNOTATION_PUT_BACK in obj.metadata.annotations:
        return None
    if not edited(world, placement, tracked):
        return None
    wanted = size_marks.right(world, placement, tracked, made.charged)
    body = world.kind(placement).put_back(obj, tracked.raw, wanted)
    return _annotated(body, obj.metadata, {ANNOTATION_PUT_BACK: "true"}) if body is not None else None


def _annotated(body: bytes, meta: ObjectMeta, annotations: dict[str, str]) -> bytes:
    operations: list[dict[str, Any]] = msgspec.json.decode(body)
    return msgspec.json.encode([*operations, *add_to_map(("metadata", "annotations"), meta.annotations, annotations)])


def _marked(meta: ObjectMeta) -> Made | None:
    text = meta.annotations.get(ANNOTATION_MADE, "")
    if not text or len(text) > MARK_BYTES_MAX:
        return None
    try:
        return _MADE.decode(text)
    except UNREADABLE:
        return None


def _now(world: World, placement: Placement, obj: KubeObject, raw: bytes) -> Made:
    kind = world.kind(placement)
    return Made(obj.metadata.generation, dict(kind.charged(obj, raw)), dict(kind.uncharged(raw)))


def _differs(name: str, now: Charged, wanted: Charged) -> bool:
    return name not in wanted or name not in now or now[name] != wanted[name]


def _fields(world: World, placement: Placement, tracked: Tracked) -> str:
    return ", ".join(f"spec.{name}" for name in edited(world, placement, tracked)) or "spec"
