"""Brings one placement forward: create what is missing, admit, let go, notice its end. Level-triggered.

`drive` reads the placement's state and objects, compares them with what should be and asks for the next writes; it may
be called at any time and as often as one likes. Creating and lifting are two decisions, with `starting.why_not` before
each (R1, R8); between them stands the remote admission, which may take its time. Its neighbours end what has to end:
`draining` stops, `closing` reports and cleans up.
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.admission.backend import RoomAnswer
from gatelift_agent.core.advancing import holds
from gatelift_agent.core.changes import allowances, edits, relabelling
from gatelift_agent.core.leaving import closing, draining, kept, leftovers
from gatelift_agent.core.placement import graces
from gatelift_agent.core.placement.placements import (
    ENDED,
    ENDING,
    HELD_BACK,
    LIVE,
    STARTING,
    SUPERSEDED,
    EndingKind,
    Move,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.refusing import policy, sanitise, starting
from gatelift_agent.core.refusing.podspecs import SpecError
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import doubts, hidden, orphans
from gatelift_agent.core.state import condemned
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.asked import WritePurpose
from gatelift_agent.core.values.shapes import ShapeError
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.ownership import Ownership
from gatelift_kinds.shared import own_marks
from gatelift_kinds.shared.values import MergeConflictError, ObjectEnd, Part
from gatelift_wire.values.messages import Applied, GatesLifted
from gatelift_wire.values.refusals import Refusal

NAME_WAIT_SECONDS = 30.0
"""How long a create waits for something of ours that still has the name: a graceful deletion at its default length."""

FOREIGN_WAIT_SECONDS = 2.0
"""How long a taken name may turn out to be a leftover of ours that the watch has not shown yet."""

LOCAL_WAIT_SECONDS = 10.0
"""How long the user's own object may be missing from the watch before the placement is refused."""

RETRY_FIRST_SECONDS = 0.25
RETRY_MAX_SECONDS = 30.0
"""Longest pause between two tries of a write that fails: an API server that comes back is found within this."""


def drive(world: World, placement: Placement, now: float) -> None:
    """Look at a placement and ask for whatever is due."""
    if placement.state is PlacementState.HELD:
        if placement.hold_until <= now:
            holds.let_go(world, placement)
        else:
            world.wakes.ask(placement.key, placement.hold_until)
        return
    if placement.state in STARTING or placement.state is PlacementState.RUNNING:
        _advance(world, placement, now)
    if placement.state in ENDING:
        draining.drain(world, placement, now)
    if placement.state in ENDED:
        closing.close(world, placement, now)
    elif placement.state is PlacementState.KEPT:
        closing.keep_on(world, placement, now)


def end(world: World, placement: Placement, ending: PlacementEnding) -> None:
    """Decide the end of a live placement; the first decision stands, a later one may only shorten the grace."""
    if placement.ending is None:
        placement.move(Move.END)  # first: an end that was only half decided would not be decided again
        placement.ending = ending
    elif placement.state in ENDING and ending.grace_seconds is not None:
        known = placement.ending.grace_seconds
        if known is None or ending.grace_seconds < known:
            graces.replace_grace(placement, ending.grace_seconds)
    world.look(placement.key)


def pause(attempts: int) -> float:
    """Return the seconds before the next try of a write that failed, or had no effect, `attempts` times."""
    return min(RETRY_MAX_SECONDS, RETRY_FIRST_SECONDS * 2.0 ** min(attempts, 16))


def _advance(world: World, placement: Placement, now: float) -> None:
    for tracked in placement.objects.values():
        if tracked.missing or tracked.unproven:
            draining.find_out(world, placement, tracked, now)
        elif tracked.delete_asked:
            draining.delete(world, placement, tracked, now)
        else:
            relabelling.put_labels_back(world, placement, tracked, now)
            relabelling.put_note_back(world, placement, tracked, now)
            edits.learn(world, placement, tracked)
            edits.tell_of_uncharged(world, placement, tracked)
            edits.put_back(world, placement, tracked, now)
            edits.keep_told(world, placement, tracked, now)
    hidden.ask(world, placement, now)
    orphans.taken_off_run(world, placement, now)
    doubts.count(world, placement, now)
    lost = _lost(world, placement, now)
    if lost is not None:
        end(world, placement, lost)
        return
    if placement.state in {PlacementState.COMMITTED, PlacementState.APPLYING}:
        _apply(world, placement, now)
    if placement.state in HELD_BACK:
        _lift(world, placement, now)
    if placement.state in HELD_BACK or placement.state is PlacementState.RUNNING:
        outcome = _outcome(world, placement)
        if outcome is None:
            reports.observe(world, placement, now)
            return
        # A Job may say its end while its pods stop (before Kubernetes 1.31), or of pods that it no longer knows (P10).
        kind = EndingKind.FINISHED
        said = PlacementEnding(kind=kind, reason=outcome.reason, message=outcome.message, succeeded=outcome.succeeded)
        end(world, placement, said)


# --- apply -------------------------------------------------------------------------------------------------------


def _apply(world: World, placement: Placement, now: float) -> None:
    if _waits_for_older(world, placement):
        return
    if placement.state is PlacementState.COMMITTED:
        placement.move(Move.APPLY)
    wanted = [tracked for tracked in placement.objects.values() if not tracked.delete_asked]
    for tracked in wanted:
        if tracked.object is None and not tracked.asked:
            _make(world, placement, tracked, now)
        if placement.state is not PlacementState.APPLYING:
            return
    complete = len(placement.objects) >= placement.objects_wanted
    if complete and all(tracked.object is not None for tracked in wanted):
        placement.move(Move.APPLIED)
        world.say(Applied(key=placement.key))


def _waits_for_older(world: World, placement: Placement) -> bool:
    """End older attempts of the same workload first: its record names this one, so they are over for the manager."""
    older = [
        other
        for other in world.of_workload(placement.key.uid)
        if other.key.epoch < placement.key.epoch and other.state is not PlacementState.HELD
    ]
    for other in older:
        kept.let_go(world, other)
        if not other.forget:
            other.forget = True
            if other.ending is None:
                end(world, other, PlacementEnding(kind=EndingKind.STOPPED, reason=SUPERSEDED))
            world.look(other.key)
    return bool(older)


def _make(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the create of one object, or for what has to come before it."""
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return
    if world.local:
        _await_local(world, placement, tracked, now)
        return
    if tracked.missing:
        return
    if tracked.doubt_until is not None:
        draining.find_out(world, placement, tracked, now)
        return
    if _is_blocked(world, placement, tracked, now) or _waits_for_predecessor(world, placement, tracked):
        return
    if starting.why_not(world, placement, now) or not world.has_room(placement):
        return
    spec = world.templates.get(tracked.template)
    if spec is None:
        text = f"{tracked.ref}: its template is not known after a restart; the next attempt brings it again"
        refuse(world, placement, Refusal.TEMPLATE_MISSING, text)
        return
    refused = policy.namespace_refusal(
        placement.namespace, world.namespaces.get(placement.namespace), world.settings.policy
    )
    if refused is not None:
        refuse(world, placement, *refused)
        return
    if not world.keeper.covers(placement.namespace):
        world.keeper.cover(placement.namespace)  # its write looks at the placements that wait for it
        return
    kind = world.kind(placement)
    try:
        refused = _policy_refusal(world, placement, tracked, spec)
        if refused is not None:  # a commit that was repeated may have brought another template than the one accepted
            refuse(world, placement, *refused)
            return
        clean = sanitise.sanitise(kind, spec, world.settings.policy)
        tracked.granted = allowances.granted(placement, tracked.pod_set, kind, clean)
        metadata = _metadata(world, placement, tracked, tracked.granted)
        part = Part(name=tracked.name, pod_set=tracked.pod_set, metadata=metadata, spec=clean)
        body = kind.document(part, world.placing(placement))
    except (SpecError, ShapeError, MergeConflictError) as error:
        refuse(world, placement, Refusal.INVALID, str(error))
        return
    world.ask_create(placement, tracked, body, now)


def _policy_refusal(world: World, placement: Placement, tracked: Tracked, spec: bytes) -> tuple[Refusal, str] | None:
    allowed = world.settings.policy
    return (
        policy.spec_refusal(world.kind(placement), spec, allowed)
        or policy.marks_refusal(tracked.metadata, allowed)
        or policy.additions_refusal(placement.pod_sets, allowed)
    )


def _metadata(world: World, placement: Placement, tracked: Tracked, granted: dict[str, int]) -> bytes:
    """Return the labels and annotations that travel, with what a restart needs to know of the placement."""
    marks = shapes.marks(tracked.metadata)
    annotations = dict(marks.annotations or {})
    annotations[ownership.ANNOTATION_POD_SET] = tracked.pod_set
    annotations[ownership.ANNOTATION_PLACED_AS] = ownership.placed_as_text(world.standing.origin, placement.key)
    annotations[allowances.ANNOTATION_GRANTED] = allowances.note(granted)
    if placement.objects_wanted > 1:
        annotations[ownership.ANNOTATION_OBJECTS] = str(placement.objects_wanted)
    return msgspec.json.encode({"labels": marks.labels or {}, "annotations": annotations})


def _await_local(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    held = world.held(tracked)
    if held is not None and tracked.uid == held.object.metadata.uid:
        tracked.object, tracked.raw = held.object, held.raw
        world.look(placement.key)  # what it bears may end this attempt
        return
    limit = placement.committed_at + LOCAL_WAIT_SECONDS
    if now < limit:  # our watch may be behind the manager's, which has seen it
        world.wakes.ask(placement.key, limit)
        return
    if not tracked.vanished:  # it may be there all the same: no watch shows a pod that goes from one to the other
        draining.find_out(world, placement, tracked, now)
        return
    text = f"{tracked.ref}: is not the object that was admitted; it was deleted or made anew since"
    refuse(world, placement, Refusal.NAME_CONFLICT, text)


def _is_blocked(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether something else has the name; a leftover of ours is removed first, all else is waited for a while."""
    held = world.held(tracked)
    if held is None and tracked.blocked_since is None:
        return False
    if tracked.blocked_since is None:
        tracked.blocked_since = now
    limit = tracked.blocked_since + (FOREIGN_WAIT_SECONDS if held is None else NAME_WAIT_SECONDS)
    if now < limit:
        world.wakes.ask(placement.key, limit)
        # Without the right to start it may be what another agent has made there since: only a leftover is removed.
        if held is not None and not starting.why_not(world, placement, now):
            kept.make_room(world, held.ref)
            who = ownership.owner(world.kinds, held.object, placement.key, world.standing.origin)
            found = ownership.placed_as(world.kinds, held.object)
            if who is not Ownership.FOREIGN and found is not None and found[1] not in world.placements:
                closing.remove_stray(world, placement, tracked, held, now)
        return True
    text = f"{tracked.ref}: another object has this name in this cluster; rename one of the two or delete the other"
    refuse(world, placement, Refusal.NAME_CONFLICT, text)
    return True


def _waits_for_predecessor(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether another placement of that name is not over: its Job may be gone already while its pods still stop."""
    return any(
        each is not placement and each.objects[tracked.name].uid and each.state in LIVE | ENDING
        for each in world.placements_at(tracked.ref)
    )


def refuse(world: World, placement: Placement, refusal: Refusal, text: str) -> None:
    """End a placement that cannot be carried out; the manager is told once nothing of it exists."""
    end(world, placement, PlacementEnding(kind=EndingKind.REFUSED, reason=refusal.value, message=text, refusal=refusal))


# --- lift --------------------------------------------------------------------------------------------------------


def _lift(world: World, placement: Placement, now: float) -> None:
    kind = world.kind(placement)
    waiting = [
        tracked
        for tracked in placement.objects.values()
        if not tracked.delete_asked and (tracked.object is None or not world.runs_as_placed(kind, tracked.object))
    ]
    if not waiting:
        placement.move(Move.LIFTED)
        world.say(GatesLifted(key=placement.key))
        world.note("info", "let go", placement, name=f"{placement.namespace}/{placement.name}")
        return
    # What is gone is none: a probe finds out, or (`local`) the manager sees it too and says stop.
    ready = [tracked for tracked in waiting if tracked.object is not None and not tracked.asked]
    admitted = bool(ready) and _is_admitted(world, placement, now)
    if placement.state not in HELD_BACK:
        return
    for tracked in ready:
        if tracked.retry_at > now:
            world.wakes.ask(placement.key, tracked.retry_at)
        elif world.local and (step := kind.local_hold_step(tracked.object)) is not None:
            if world.leadership.acts(now) and world.has_room(placement):
                world.ask_patch(WritePurpose.HOLD, placement, tracked, step.body, now, kind=step.kind)
        elif admitted and world.has_room(placement):
            _let_go(world, placement, tracked, now)


def _is_admitted(world: World, placement: Placement, now: float) -> bool:
    """Say whether it may be let go now: by R1 and R8, and by the backend, which is asked while these allow it.

    So nothing is asked for a placement that the manager may have ended, and a grant that comes meanwhile lifts nothing.
    """
    if starting.why_not(world, placement, now) or not world.has_room(placement):
        return False
    world.ask_room(placement, now, placed=True)
    verdict = world.admission.verdict(placement.key, now)
    if verdict.again_at is not None:
        world.wakes.ask(placement.key, verdict.again_at)
    if verdict.answer is RoomAnswer.REFUSED:
        refuse(world, placement, verdict.refusal, verdict.text)
    elif verdict.answer is RoomAnswer.GRANTED and placement.state is PlacementState.ADMITTING:
        placement.move(Move.GRANT)
        placement.waits_for = ""
    elif verdict.answer is RoomAnswer.NOT_YET:
        if placement.state is PlacementState.GATED:
            placement.move(Move.WAIT)
        if placement.waits_for != verdict.text:
            placement.waits_for = verdict.text
            world.note("info", "waits for room", placement, why=verdict.text)
    return verdict.answer is RoomAnswer.GRANTED


def _let_go(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    kind = world.kind(placement)
    if not world.local and relabelling.relabelled(world, placement, tracked):
        return  # no watch would show it, and a restart might not know it: its labels come first
    if world.local and not own_marks.bears_a_mark(tracked.raw):
        return  # no write of ours lands on it: the manager, who sees it too, says stop, or a mark comes back
    if edits.edited(world, placement, tracked):
        return  # it is put back first
    if tracked.user_gates is not None:
        body = kind.user_gates_patch(tracked.object, tracked.user_gates)
        if body is not None:
            left = ",".join(tracked.user_gates)
            world.ask_patch(WritePurpose.GATES, placement, tracked, body, now, what=left)
            return
    if not world.local and not _within_grant(world, placement, tracked, now):
        return
    if not kind.liftable(tracked.object, placement.key):
        return  # a gate of the user's own is left; SetUserGates or a change of the object looks again
    try:
        body = (
            kind.local_lift_patch(tracked.object, tracked.raw, world.placing(placement))
            if world.local
            else edits.with_mark(kind.lift_patch(tracked.object), tracked)
        )
    except MergeConflictError as error:
        refuse(world, placement, Refusal.INVALID, str(error))
        return
    tracked.lift_asked = True
    world.ask_patch(WritePurpose.LIFT, placement, tracked, body, now)


def _within_grant(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether its pods are known to ask for no more than was granted; ask for it, or refuse, where they are not."""
    asked = allowances.asks(world, placement, tracked, now)
    if asked is None:
        return False  # its answer looks again
    refused = allowances.refusal(world.kind(placement), tracked, asked)
    if refused is not None:
        refuse(world, placement, *refused)
    return refused is None


# --- ends that nobody here asked for ------------------------------------------------------------------------------


def _lost(world: World, placement: Placement, now: float) -> PlacementEnding | None:
    """Return the eviction by somebody else: an object vanished or is being deleted. None if all are well."""
    if world.local:
        return _edited(world, placement, now)  # a deletion is the user's own: the manager sees it too and says stop
    kind = world.kind(placement)
    if condemned.is_sure(world, placement) and not _has_ended(world, placement):
        return leftovers.ending(placement)
    for tracked in placement.objects.values():
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
    outcome = _outcome(world, placement)
    return outcome is not None and (outcome.succeeded or world.kind(placement).pods_are_children)


def _edited(world: World, placement: Placement, now: float) -> PlacementEnding | None:
    """Return the eviction by somebody who changed an object in a way that is not put back. None if all are well."""
    live = (tracked for tracked in placement.objects.values() if not tracked.delete_asked)
    found = next(filter(None, (edits.ending(world, placement, tracked, now) for tracked in live)), None)
    return found or allowances.ending(world, placement)


def _outcome(world: World, placement: Placement) -> ObjectEnd | None:
    """Return the end that the work came to by itself: all objects are over; the first failure is the whole's."""
    kind = world.kind(placement)
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
