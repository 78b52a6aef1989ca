"""Letting go what was made: by what `starting.why_not` says (R1, R8), with the room that the backend grants.

Between creating and this stands the remote admission, which may take its time. Neighbours: `progress` asks for it,
`allowances` holds what is let go to what was granted, `giving_up` ends what may not be.
"""

from __future__ import annotations

from gatelift_agent.core.admission.backend import RoomAnswer
from gatelift_agent.core.advancing import adopting, giving_up, room
from gatelift_agent.core.changes import allowances, edits, relabelling
from gatelift_agent.core.placement import calm
from gatelift_agent.core.placement.placements import (
    HELD_BACK,
    Move,
    Placement,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.placing import placing
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedPatch, WritePurpose
from gatelift_kinds.shared import own_marks
from gatelift_kinds.shared.values import MergeConflictError
from gatelift_wire.values.messages import GatesLifted
from gatelift_wire.values.refusals import Refusal


def lift(world: World, placement: Placement, now: float) -> None:
    """Let go what is held back, as soon as it may be; once all of it is, say so."""
    kind = world.kind(placement)
    waiting = [
        tracked
        for tracked in placement.to_look_at
        if not (tracked.delete_asked or (kind.gathers and (tracked.joined or tracked.is_gone)))
        and (tracked.object is None or not world.runs_as_placed(kind, tracked.object))
    ]
    if not (waiting or calm.goes_on(placement.calm)):
        placement.move(Move.LIFTED, stays_calm=True)  # who is at rest runs, or is over
        world.say(GatesLifted(key=placement.key))
        world.note("info", "let go", placement, name=f"{placement.namespace}/{placement.name}")
        return
    # What is gone is none: a probe finds out, or (`local`) the manager sees it too and says stop.
    ready = [tracked for tracked in waiting if tracked.object is not None and not tracked.asked]
    admitted = bool(ready) and _is_admitted(world, placement, now)
    if placement.state not in HELD_BACK:
        return
    if not kind.gathers:
        for tracked in ready:
            _go_on(world, placement, tracked, now, admitted=admitted)
    else:
        _within_room(world, placement, ready, now, admitted=admitted)


def lift_joined(world: World, placement: Placement, joined: list[Tracked], now: float) -> None:
    """Let go what joined a placement that runs, as far as there are slots; the backend has granted all of these."""
    kind = world.kind(placement)
    ready = [
        tracked
        for tracked in joined
        if not (tracked.delete_asked or tracked.asked or tracked.object is None)
        and not world.runs_as_placed(kind, tracked.object)
        and adopting.is_ready(world, placement, tracked)
    ]
    if ready and not starting.why_not(world, placement, now):
        _within_room(world, placement, ready, now, admitted=True)


def _within_room(world: World, placement: Placement, ready: list[Tracked], now: float, *, admitted: bool) -> None:
    """Go on with objects one by one while there are slots: one whose lift was asked for has its own."""
    joined = placement.state is PlacementState.RUNNING
    free = (room.for_joining if joined else room.free)(world, placement, now)
    for tracked in ready:
        if placement.state not in HELD_BACK and placement.state is not PlacementState.RUNNING:
            return
        has_slot = tracked.lift_asked
        tracked.slotless = not has_slot and free.get(tracked.pod_set, 0) <= 0
        if not tracked.slotless:
            _go_on(world, placement, tracked, now, admitted=admitted)
            free[tracked.pod_set] = free.get(tracked.pod_set, 0) - (tracked.lift_asked and not has_slot)


def _go_on(world: World, placement: Placement, tracked: Tracked, now: float, *, admitted: bool) -> None:
    """Ask for the next write to an object that is to be let go."""
    kind = world.kind(placement)
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
    elif world.local and (step := kind.local_hold_step(tracked.object)) is not None:
        if world.leadership.acts(now) and world.has_room(placement):
            wanted = WantedPatch(purpose=WritePurpose.HOLD, body=step.body, kind=step.kind)
            asking.patch(world, placement, tracked, wanted, now)
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
        giving_up.refuse(world, placement, verdict.refusal, verdict.text)
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
            wanted = WantedPatch(purpose=WritePurpose.GATES, body=body, what=",".join(tracked.user_gates))
            asking.patch(world, placement, tracked, wanted, now)
            return
    if not world.local and not _within_grant(world, placement, tracked, now):
        return
    if not kind.liftable(tracked.object, placement.key):
        return  # a gate of the user's own is left; SetUserGates or a change of the object looks again
    try:
        body = (
            kind.local_lift_patch(tracked.object, tracked.raw, placing(world, placement))
            if world.local
            else edits.with_mark(kind.lift_patch(tracked.object), tracked)
        )
    except MergeConflictError as error:
        tracked.attempts += 1
        tracked.retry_at = now + giving_up.pause(tracked.attempts)
        world.wakes.ask(placement.key, tracked.retry_at)
        giving_up.refuse_object(world, placement, tracked, (Refusal.INVALID, str(error)))
        return
    tracked.lift_asked = True
    asking.patch(world, placement, tracked, WantedPatch(purpose=WritePurpose.LIFT, body=body), now)


def _within_grant(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether its pods are known to ask for no more than was granted; ask for it, or refuse, where they are not."""
    asked = allowances.asks(world, placement, tracked, now)
    if asked is None:
        return False  # its answer looks again
    refused = allowances.refusal(world.kind(placement), tracked, asked)
    if refused is not None:
        giving_up.refuse_object(world, placement, tracked, refused)
    return refused is None
