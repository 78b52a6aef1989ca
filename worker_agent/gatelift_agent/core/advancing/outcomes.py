"""What the answers to our own writes mean. A table of failures by purpose; every answer leads to another look.

UNKNOWN is the answer that promises nothing: a lift or a stop may simply be tried again, since its preconditions make a
second effect impossible; a create leaves a doubt that only time and a probe remove (R7).
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_agent.core.advancing import gates, giving_up
from gatelift_agent.core.changes import allowances, edits
from gatelift_agent.core.leaving import leftovers
from gatelift_agent.core.placement.placements import ENDING, Placement, Tracked
from gatelift_agent.core.reporting import missing_pods, sizes
from gatelift_agent.core.seeing import hidden, observing, taking
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import Asked, WritePurpose
from gatelift_agent.core.watched.objects import Held, ref_of
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, EmitEvent, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.versions import is_last
from gatelift_kube.values.resources import POD
from gatelift_wire.values.refusals import Refusal

_REFUSALS = {
    WriteError.NAMESPACE_MISSING: Refusal.NAMESPACE_MISSING,
    WriteError.INVALID: Refusal.INVALID,
    WriteError.FORBIDDEN: Refusal.NAMESPACE_NOT_ALLOWED,
    WriteError.DENIED: Refusal.DENIED,
    WriteError.QUOTA: Refusal.QUOTA_BUSY,
    WriteError.TOO_LARGE: Refusal.TOO_LARGE,
    WriteError.NOT_FOUND: Refusal.KIND_NOT_SERVED,
}
"""Failures of a create that the manager is told; all others are tried again here."""

GONE = frozenset({WriteError.NOT_FOUND, WriteError.PRECONDITION})
"""The only answers by which an object that was asked for by its UID, or by a test of whose it is, is not there.

All else is no answer: rights that were taken away, a webhook's or policy's no, a conflict, an overload (P10)."""

CONFLICT_SECONDS = 0.02
"""Twice that, and twice as long each time, waits a size that another write was faster than."""
PASSING = frozenset({WriteError.UNKNOWN, WriteError.NOT_DONE, WriteError.NOT_SENT, WriteError.CONFLICT})
"""Failures that go by themselves: nobody is told of each."""

NOT_RESTORED = "TemplateNotRestored"
_NEVER = frozenset({WriteError.INVALID, WriteError.DENIED, WriteError.TOO_LARGE})
"""Failures of the very same write for ever, as far as it is ours to say."""

_CREATED = {WritePurpose.CREATE, WritePurpose.PROBE}
_STOPS = {WritePurpose.STOP, WritePurpose.RESTORE}
_HINTS = {
    WriteError.FORBIDDEN: " (bind the agent's role in that namespace)",
    WriteError.QUOTA: " (wait, or raise the namespace's ResourceQuota)",
}


@dataclass(frozen=True, slots=True)
class FailedWrite:
    """A write of ours, and how it failed."""

    asked: Asked
    event: WriteFailed


def done(world: World, asked: Asked, event: WriteDone, now: float) -> None:
    """Take the success of a write to an object of a placement."""
    placement, tracked = find(world, asked)
    _of_child(world, placement, asked, event, now)
    if placement is None or tracked is None:
        return
    tracked.attempts = 0
    tracked.retry_at = 0.0
    _carried_out(tracked, asked, now)
    if asked.purpose is WritePurpose.SAMPLE:  # nothing was made
        allowances.sampled(tracked, asked.form, event.object, now)
        world.look(placement.key)
        return
    tracked.refused = "" if asked.purpose is WritePurpose.LIFT else tracked.refused
    tracked.put_back = tracked.put_back or asked.purpose is WritePurpose.PUT_BACK
    if asked.purpose in {WritePurpose.CREATE, WritePurpose.LIFT} and event.object is not None:
        tracked.uid = tracked.uid or event.object.metadata.uid  # ours, whatever a webhook made of its labels
        lifted = asked.purpose is WritePurpose.LIFT
        edits.answered(world, placement, tracked, Held(tracked.ref, event.object, event.raw), lifted=lifted)
    world.look_at(placement, tracked.name)
    if asked.purpose in _STOPS:
        tracked.stop_written = True
        tracked.restore_tried = tracked.restore_tried or asked.purpose is WritePurpose.RESTORE
    if asked.purpose in {WritePurpose.REMOVE, WritePurpose.REMOVE_STRAY}:
        _removed(world, tracked, asked, event)
        return
    if event.object is not None and is_last(event.object.metadata):
        tracked.removed = tracked.removed or asked.purpose is WritePurpose.UNFINALIZE
        observing.gone_for_sure(world, tracked, event.object, now)
    elif event.object is not None:
        if asked.purpose is WritePurpose.PROBE and asked.at >= tracked.unproven_since:
            tracked.unproven = False
        resource = tracked.ref.resource
        taking.answer(world, resource, event.object, event.raw, now)
        if asked.purpose in _CREATED and tracked.object is None:
            held = world.objects.get(ref_of(resource, event.object.metadata))
            if held is not None:  # the watch was faster than the answer
                observing.take(world, placement, tracked, held, now)
    elif tracked.object is not None:
        tracked.removed = True
        observing.gone(world, tracked.ref.resource, tracked.object, now)


def failed(world: World, asked: Asked, event: WriteFailed, now: float) -> None:
    """Take the failure of a write to an object of a placement."""
    placement, tracked = find(world, asked)
    _of_child(world, placement, asked, event, now)
    if placement is None or tracked is None:
        return
    tracked.attempts += 1
    tracked.retry_at = now + _pause(world, placement, tracked, FailedWrite(asked, event))
    world.wakes.ask(placement.key, tracked.retry_at)
    world.look_at(placement, tracked.name)
    match asked.purpose:
        case WritePurpose.CREATE:
            _create_failed(world, placement, tracked, FailedWrite(asked, event), now)
        case WritePurpose.SAMPLE:
            _refused(world, placement, tracked, event)
        case WritePurpose.PROBE:
            _probe_failed(world, placement, tracked, event, now)
        case WritePurpose.PUT_BACK:
            if event.error in {WriteError.INVALID, WriteError.DENIED, WriteError.FORBIDDEN}:
                giving_up.end(world, placement, edits.edit_ending(world, placement, tracked))
        case WritePurpose.LABELS | WritePurpose.NOTE | WritePurpose.HOLD | WritePurpose.TOLD | WritePurpose.TAKE_IN:
            if event.error in {WriteError.FORBIDDEN, WriteError.DENIED}:
                world.note("warning", f"cannot {asked.purpose.value}: {event.message}; it is tried again", placement)
        case WritePurpose.LIFT | WritePurpose.GATES | WritePurpose.SIZE:
            _lift_failed(world, placement, tracked, FailedWrite(asked, event))
        case (
            WritePurpose.STOP
            | WritePurpose.RESTORE
            | WritePurpose.UNFINALIZE
            | WritePurpose.REMOVE
            | WritePurpose.REMOVE_STRAY
        ):
            _ending_failed(world, placement, tracked, FailedWrite(asked, event), now)
        case (
            WritePurpose.RECORD
            | WritePurpose.STATE
            | WritePurpose.ROOM
            | WritePurpose.PODS
            | WritePurpose.NAMESPACE
            | WritePurpose.CHILD
            | WritePurpose.CHILD_LABELS
            | WritePurpose.WHY
            | WritePurpose.SAY_END
            | WritePurpose.TURN_AWAY
            | WritePurpose.UNGATE
        ):
            pass  # the keeper's and the backend's own, and what has an answer of its own


def _pause(world: World, placement: Placement, tracked: Tracked, failed: FailedWrite) -> float:
    """Return how long the next write to an object waits: a deletion does not, for a word about it that failed."""
    if failed.asked.purpose is WritePurpose.SAY_END:
        return 0.0
    return leftovers.pause(world, placement, failed.event) or giving_up.pause(tracked.attempts)


def find(world: World, asked: Asked) -> tuple[Placement | None, Tracked | None]:
    """Return what a write was asked for, each None where it is known no more."""
    placement = world.placements.get(asked.key) if asked.key is not None else None
    return placement, placement.objects.get(asked.name) if placement is not None else None


def _carried_out(tracked: Tracked, asked: Asked, now: float) -> None:
    """Remember the write: a webhook may undo it, or a probe teach nothing, and it must not go round without a pause."""
    write = (asked.purpose, asked.form)
    again = tracked.carried_out == write and now < tracked.again_at + giving_up.RETRY_MAX_SECONDS
    tracked.repeated = tracked.repeated + 1 if again else 0
    tracked.carried_out, tracked.again_at = write, now + giving_up.pause(tracked.repeated)


def _removed(world: World, tracked: Tracked, asked: Asked, event: WriteDone) -> None:
    if asked.purpose is WritePurpose.REMOVE_STRAY:
        held = world.held(tracked)
        if event.object is None and held is not None:
            world.objects.gone(tracked.ref.resource, held.object)
            world.mark_cleared(held.object.metadata.uid)
            tracked.blocked_since = None
        elif event.object is not None:
            world.objects.seen(tracked.ref.resource, event.object, event.raw)
        return
    world.mark_cleared(tracked.uid)
    if tracked.object is not None:
        world.objects.gone(tracked.ref.resource, tracked.object)
    tracked.object = None


def _create_failed(world: World, placement: Placement, tracked: Tracked, failed: FailedWrite, now: float) -> None:
    asked, event = failed.asked, failed.event
    if event.error is WriteError.UNKNOWN:
        tracked.doubt_until = asked.at + WRITE_SECONDS_MAX
        world.wakes.ask(placement.key, tracked.doubt_until)
        return
    if event.error is WriteError.ALREADY_EXISTS:
        held = world.held(tracked)
        if held is not None:
            observing.take(world, placement, tracked, held, now)
        if tracked.object is None:
            # Perhaps our own create of a moment ago, whose answer was lost: the probe tells by the labels.
            tracked.doubt_until = now
            tracked.blocked_since = now if tracked.blocked_since is None else tracked.blocked_since
            tracked.retry_at = 0.0
        return
    if tracked.object is None and not tracked.missing:
        tracked.unproven = False  # it did not land, and there was none before
    _refused(world, placement, tracked, event)


def _refused(world: World, placement: Placement, tracked: Tracked, event: WriteFailed) -> None:
    """End what the API server does not let be made, or a pod of it."""
    if event.error in _REFUSALS and placement.state not in ENDING:
        text = event.message + _HINTS.get(event.error, "")
        giving_up.refuse_object(world, placement, tracked, (_REFUSALS[event.error], text))


def _probe_failed(world: World, placement: Placement, tracked: Tracked, event: WriteFailed, now: float) -> None:
    if event.error not in GONE:
        _no_answer(world, placement, "whether it is still there is not known", event, now)
        return  # asked again after the pause; until then it counts as there
    tracked.doubt_until, tracked.unproven = None, False
    if event.error is WriteError.NOT_FOUND:
        tracked.blocked_since = None
    known = tracked.last_object if tracked.missing else tracked.object
    if known is not None:
        observing.gone_for_sure(world, tracked, known, now)
    elif world.local:  # named by a commit and never seen here
        tracked.missing, tracked.vanished = False, True
    world.look(placement.key)


def _lift_failed(world: World, placement: Placement, tracked: Tracked, failed: FailedWrite) -> None:
    event = failed.event
    if failed.asked.purpose is WritePurpose.SIZE:
        _size_failed(world, placement, tracked, failed)
        return
    if event.error in {WriteError.INVALID, WriteError.DENIED, WriteError.FORBIDDEN} and placement.state not in ENDING:
        giving_up.refuse_object(world, placement, tracked, (_REFUSALS[event.error], event.message))
    elif event.error in {WriteError.CONFLICT, WriteError.PRECONDITION} and tracked.attempts == 1:
        tracked.retry_at = 0.0 if tracked.object is None else tracked.retry_at


def _size_failed(world: World, placement: Placement, tracked: Tracked, failed: FailedWrite) -> None:
    """Tell of a size that the API server does not take; it is tried again, since only a later one takes it back.

    A Job's own controller writes it whenever its pods change, as they do after each size: where that was faster, the
    version that it wrote is here in a moment (HD-686).
    """
    event = failed.event
    if event.error in {WriteError.CONFLICT, WriteError.PRECONDITION}:
        tracked.retry_at = min(tracked.retry_at, failed.asked.at + CONFLICT_SECONDS * 2.0 ** min(tracked.attempts, 16))
        world.wakes.ask(placement.key, tracked.retry_at)
    if event.error in {WriteError.INVALID, WriteError.DENIED, WriteError.FORBIDDEN} and placement.sizing is not None:
        sizes.cannot(world, placement, placement.sizing, (_REFUSALS[event.error], event.message))


def _ending_failed(world: World, placement: Placement, tracked: Tracked, failed: FailedWrite, now: float) -> None:
    asked, event = failed.asked, failed.event
    if event.error is WriteError.NOT_FOUND or (event.error is WriteError.PRECONDITION and asked.deletes):
        if asked.purpose is WritePurpose.REMOVE_STRAY:
            held = world.held(tracked)
            if held is not None:
                world.objects.gone(tracked.ref.resource, held.object)
            tracked.blocked_since, tracked.retry_at = None, 0.0  # another write of ours was faster: the name is free
            return
        tracked.retry_at = 0.0
        known = tracked.object
        tracked.removed = tracked.removed or asked.purpose not in _STOPS
        if known is not None:
            observing.gone_for_sure(world, tracked, known, now)
        return
    if asked.purpose is WritePurpose.RESTORE and event.error in _NEVER:
        _not_restored(world, placement, tracked, event)
        return
    if asked.purpose in _STOPS and event.error is WriteError.PRECONDITION:
        return  # it was changed since, perhaps let go by a late lift: what is next follows from how it is by now
    if asked.purpose is WritePurpose.REMOVE:
        tracked.removed = False  # it may still be there, and nobody else removes it
    _no_answer(world, placement, f"cannot {asked.purpose.value}", event, now)


def _not_restored(world: World, placement: Placement, tracked: Tracked, event: WriteFailed) -> None:
    """Let an object stop without what the user had before: it is held back, and its quota does not wait for that."""
    tracked.restore_tried = True
    text = f"it stops with what was added for its run: {event.message}; look at what it asks for before it runs again"
    world.note("warning", text, placement, object=str(tracked.ref))
    world.commands.append(EmitEvent(ref=tracked.ref, uid=tracked.uid, warning=True, reason=NOT_RESTORED, message=text))


def _of_child(
    world: World, placement: Placement | None, asked: Asked, event: WriteDone | WriteFailed, now: float
) -> None:
    """Take the answer to a write to a pod of a Job, or about one; nothing to do for all others."""
    if placement is None:
        return
    if asked.purpose is WritePurpose.WHY:
        missing_pods.answered(placement, asked.form, event)
        world.look(placement.key)
    if asked.purpose is WritePurpose.UNGATE:
        gates.answered(world, placement, asked, event, now)
    elif asked.purpose is WritePurpose.CHILD_LABELS:
        _child_asked(world, placement, asked, event, now)
    elif asked.purpose is not WritePurpose.CHILD:
        return
    elif isinstance(event, WriteFailed):
        _child_failed(world, placement, asked, event, now)
    elif event.object is None:
        _child_gone(world, placement, asked, now)


def _child_asked(world: World, placement: Placement, asked: Asked, event: WriteDone | WriteFailed, now: float) -> None:
    """Take the answer to whether a pod of a Job is there: it shows the pod, or proves that it is gone, or nothing."""
    pod = hidden.found(placement, asked.name)
    if pod is None:
        return
    if isinstance(event, WriteDone) and event.object is not None:
        placement.hidden.pop(pod.metadata.uid, None)
        taking.answer(world, POD, event.object, event.raw, now)
    elif isinstance(event, WriteFailed) and event.error in GONE:
        observing.child_gone(world, pod, now)
    else:
        hidden.unanswered(placement, pod, now)
        if isinstance(event, WriteFailed):
            _no_answer(world, placement, "whether a pod of a Job is still there is not known", event, now)
    world.look(placement.key)


def _child_failed(world: World, placement: Placement, asked: Asked, event: WriteFailed, now: float) -> None:
    if event.error in GONE:
        _child_gone(world, placement, asked, now)
    else:
        _no_answer(world, placement, "cannot delete a pod whose Job is gone", event, now)


def _child_gone(world: World, placement: Placement, asked: Asked, now: float) -> None:
    for pod in world.children(placement):
        if pod.metadata.name == asked.name:
            observing.child_gone(world, pod, now)


def _no_answer(world: World, placement: Placement, text: str, event: WriteFailed, now: float) -> None:
    """Say aloud what somebody has to put right, and ask the namespace where it may be what is gone."""
    if event.error not in PASSING:
        what = leftovers.why_refused(world, placement, event) or "it stays charged and is tried again"
        world.note("warning", f"{text}: {event.message}; {what}", placement)
    if event.error in {WriteError.FORBIDDEN, WriteError.NAMESPACE_MISSING} and not world.local:
        asking.namespace(world, placement, now)
