"""Making what is missing of a placement: in the right order, held back, and no more than its policy lets in.

Nothing is created without `starting.why_not` (R1, R8). Neighbours: `progress` asks for it, `giving_up` ends what cannot
be carried out, `policy` and `sanitise` say what may be made.
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.advancing import giving_up
from gatelift_agent.core.changes import allowances
from gatelift_agent.core.leaving import closing, draining, kept
from gatelift_agent.core.placement import calm
from gatelift_agent.core.placement.placements import (
    ENDING,
    LIVE,
    SUPERSEDED,
    EndingKind,
    Move,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.refusing import podspecs, policy, sanitise, starting
from gatelift_agent.core.refusing.podspecs import SpecError
from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.placing import placing
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.shapes import ShapeError
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.ownership import Ownership
from gatelift_kinds.shared.values import MergeConflictError, Part
from gatelift_wire.values.messages import Applied
from gatelift_wire.values.refusals import Refusal

NAME_WAIT_SECONDS = 30.0
"""How long a create waits for something of ours that still has the name: a graceful deletion at its default length."""

FOREIGN_WAIT_SECONDS = 2.0
"""How long a taken name may turn out to be a leftover of ours that the watch has not shown yet."""

LOCAL_WAIT_SECONDS = 10.0
"""How long the user's own object may be missing from the watch before the placement is refused."""


def apply(world: World, placement: Placement, now: float) -> None:
    """Make what is missing; once all of it is there, say so."""
    if _waits_for_older(world, placement):
        return
    if placement.state is PlacementState.COMMITTED:
        placement.move(Move.APPLY, stays_calm=True)
    gathers = world.kind(placement).gathers
    wanted = [
        tracked
        for tracked in placement.to_look_at
        if not (tracked.delete_asked or (gathers and (tracked.joined or tracked.is_gone)))
    ]
    for tracked in wanted:
        if tracked.object is None and not tracked.asked:
            make(world, placement, tracked, now)
        if placement.state is not PlacementState.APPLYING:
            return
    complete = len(placement.objects) >= placement.objects_wanted or (gathers and not placement.found)
    if complete and not calm.goes_on(placement.calm) and all(tracked.object is not None for tracked in wanted):
        placement.move(Move.APPLIED, stays_calm=True)
        if placement.calm is not None:
            placement.calm.starts_anew()
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
                giving_up.end(world, other, PlacementEnding(kind=EndingKind.STOPPED, reason=SUPERSEDED))
            world.look(other.key)
    return bool(older)


def make(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the create of one object, or for what has to come before it."""
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return
    if world.local:
        _await_local(world, placement, tracked, now)
        return
    if tracked.missing or (tracked.doubt and doubts.may_run(world, placement, tracked.doubt, now)):
        return  # news of nodes, or time, look again
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
        giving_up.refuse_object(world, placement, tracked, (Refusal.TEMPLATE_MISSING, text))
        return
    refused = policy.namespace_refusal(
        placement.namespace, world.namespaces.get(placement.namespace), world.settings.policy
    )
    if refused is not None:
        giving_up.refuse_object(world, placement, tracked, refused)
        return
    if not world.keeper.covers(placement.namespace):
        world.keeper.cover(placement.namespace)  # its write looks at the placements that wait for it
        return
    kind = world.kind(placement)
    try:
        refused = _policy_refusal(world, placement, tracked, spec)
        if refused is not None:  # a commit that was repeated may have brought another template than the one accepted
            giving_up.refuse_object(world, placement, tracked, refused)
            return
        clean = sanitise.sanitise(kind, spec, world.settings.policy)
        tracked.granted = allowances.granted(placement, tracked.pod_set, kind, clean)
        metadata = notes(world, placement, tracked, tracked.granted, podspecs.user_gates(spec))
        part = Part(name=tracked.name, pod_set=tracked.pod_set, metadata=metadata, spec=clean)
        body = kind.document(part, placing(world, placement))
    except (SpecError, ShapeError, MergeConflictError) as error:
        giving_up.refuse_object(world, placement, tracked, (Refusal.INVALID, str(error)))
        return
    asking.create(world, placement, tracked, body, now)


def _policy_refusal(world: World, placement: Placement, tracked: Tracked, spec: bytes) -> tuple[Refusal, str] | None:
    allowed = world.settings.policy
    return (
        policy.spec_refusal(world.kind(placement), spec, allowed)
        or policy.marks_refusal(tracked.metadata, allowed)
        or policy.additions_refusal(placement.pod_sets, allowed)
    )


def notes(
    world: World, placement: Placement, tracked: Tracked, granted: dict[str, int], gates: tuple[str, ...] = ()
) -> bytes:
    """Return the labels and annotations that travel, with what a restart needs to know of the placement."""
    marks = shapes.marks(tracked.metadata)
    annotations = dict(marks.annotations or {})
    annotations[ownership.ANNOTATION_POD_SET] = tracked.pod_set
    annotations[ownership.ANNOTATION_PLACED_AS] = ownership.placed_as_text(world.standing.origin, placement.key)
    annotations[allowances.ANNOTATION_GRANTED] = allowances.note(granted)
    if tracked.user_uid:
        annotations[ownership.ANNOTATION_USER_UID] = tracked.user_uid
    if world.kind(placement).gathers:
        annotations[ownership.ANNOTATION_KIND] = placement.kind
        if gates:
            annotations[ownership.ANNOTATION_USER_GATES] = ",".join(gates)
    if tracked.joined:
        annotations[ownership.ANNOTATION_JOINED] = "true"
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
    giving_up.refuse_object(world, placement, tracked, (Refusal.NAME_CONFLICT, text))


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
    giving_up.refuse_object(world, placement, tracked, (Refusal.NAME_CONFLICT, text))
    return True


def _waits_for_predecessor(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether another placement of that name is not over: its Job may be gone already while its pods still stop."""
    return any(
        each is not placement and each.objects[tracked.name].uid and each.state in LIVE | ENDING
        for each in world.placements_at(tracked.ref)
    )
