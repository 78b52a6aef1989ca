"""Pods that a driver makes at this worker by itself: taken into its placement within the room rule, or turned away.

They wait at our gate, which only the agent's webhook puts on with its mark (`ownership.waits_here`). One that fits its
declared set gets all that a member of home's bears, in one write, and counts from then on as what joined: `joining`
lets it go as there is a slot (`room`). Home's own members come first, whether they are made already or not. What is
beyond the count is ended unused and counted; what has another shape stays at its gate, is told, and ends with its
group; so does what names a group that is not placed here, after a while. Neighbour: `reporting.made_here` counts them.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import applying, giving_up, room
from gatelift_agent.core.changes import allowances
from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.refusing import policy, starting
from gatelift_agent.core.refusing.podspecs import SpecError
from gatelift_agent.core.seeing.newcomers import WAIT_SECONDS
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.newcomers import Newcomer
from gatelift_agent.core.state.placing import placing
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import Asked, WantedPatch, WritePurpose
from gatelift_agent.core.values.shapes import ShapeError
from gatelift_agent.core.watched import ownership
from gatelift_kinds.shared.values import MergeConflictError, Part
from gatelift_kube.deciding.writes import Delete, EmitEvent, WriteDone, WriteFailed
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import PodSetRequest
from gatelift_wire.values.refusals import Refusal

MISMATCH, BEYOND = "GroupShapeMismatch", "ExcessPodDeleted"
"""Reasons of events, as the manager has them of members at home."""
TEXT_CHARS_MAX = 1000
BEYOND_SECONDS = 5.0
"""How long one waits that has no place: it is seen by another watch than who leaves, and these have no order."""
AGAIN_SECONDS = 5.0
"""Between two tries to end one while nothing may be written."""
OBJECTS_MAX = 8192
"""Of one placement, with those that are over: more are turned away."""


def advance(world: World, placement: Placement, now: float) -> None:
    """Take in who waits for a placement that runs, and forget who is gone."""
    if not world.settings.adopts:
        return
    for tracked in placement.to_look_at:
        if tracked.made_here and _is_over(world, placement, tracked, now):
            world.untrack(placement, tracked)
    waiting = world.newcomers.of((placement.namespace, placement.name))
    if not waiting or placement.found or starting.why_not(world, placement, now):
        return
    there = world.namespaces.get(placement.namespace)
    if policy.namespace_refusal(placement.namespace, there, world.settings.policy) is None:
        _give_places(world, placement, waiting, now)


def _give_places(world: World, placement: Placement, waiting: list[Newcomer], now: float) -> None:
    declared = {one.name: one for one in placement.pod_sets if one.shape}
    left = {name: one.count - _kept(placement, name, sure=False) for name, one in declared.items()}
    unsure = {name: _kept(placement, name, sure=False) - _kept(placement, name, sure=True) for name in declared}
    begun = _begun(placement)
    for one in waiting:
        if begun and one.made_at < begun:
            _turn_away(world, one, "its driver's run is over", now)
        elif not one.asked and _fits(world, placement, one, declared.get(one.role)):
            if left[one.role] > 0 and _is_free(placement, one):
                left[one.role] -= _take(world, placement, one, now)
            elif unsure[one.role] > 0:
                unsure[one.role] -= 1  # whether a place is free is being asked for
            elif now < (due := one.is_beyond(now) + BEYOND_SECONDS):
                world.wakes.ask(placement.key, due)
            elif _turn_away(world, one, f"beyond the {declared[one.role].count} of set {one.role}", now):
                placement.came_and_went.turns_away(one.role)
                world.look(placement.key)


def take_in(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the write that makes a pod one of a placement's: until it has landed it is not let go."""
    obj = tracked.object
    if tracked.asked or not isinstance(obj, Pod) or starting.why_not(world, placement, now):
        return
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return
    if not world.has_room(placement):
        return
    try:
        granted = allowances.granted(
            placement, tracked.pod_set, world.kind(placement), _spec(world, placement, tracked)
        )
        metadata = applying.notes(world, placement, tracked, granted)
        part = Part(name=tracked.name, pod_set=tracked.pod_set, metadata=metadata, spec=b"")
        body = world.kind(placement).taken_in_patch(obj, tracked.raw, part, placing(world, placement))
    except (SpecError, ShapeError, MergeConflictError) as error:
        giving_up.refuse_object(world, placement, tracked, (Refusal.INVALID, str(error)))
        return
    tracked.granted = granted
    asking.patch(world, placement, tracked, WantedPatch(purpose=WritePurpose.TAKE_IN, body=body), now)


def is_ready(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether an object bears what a start knows it by: home's members do from their creation on."""
    if not tracked.made_here or tracked.object is None:
        return True
    return ownership.is_taken_in(tracked.object, placement.key, world.standing.origin)


def turn_away_all(world: World, placement: Placement, now: float) -> None:
    """End who waits for a placement that ends: the next epoch starts from its driver alone."""
    if world.settings.adopts:
        for one in world.newcomers.of((placement.namespace, placement.name)):
            _turn_away(world, one, "its group is being ended", now)


def tend(world: World, now: float) -> None:
    """Look at those whose time has come: of their placement, or turned away where there is none for long."""
    if not world.ready:
        return
    for ref in world.newcomers.alarms.due(now):
        one = world.newcomers.at(ref)
        if one is None:
            continue
        key = world.newcomers.placement(one.group)
        again_at = max(one.retry_at, one.since + WAIT_SECONDS)
        if key is not None and key in world.placements:
            world.look(key)
        elif now >= again_at and world.standing.open:
            _turn_away(world, one, "its group is not placed here", now)
        world.newcomers.alarms.ask(ref, again_at if again_at > now else now + WAIT_SECONDS)


def answered(world: World, asked: Asked, event: WriteDone | WriteFailed, now: float) -> None:
    """Take the answer to the end of one that was turned away; that it is gone a watch tells."""
    namespace, _, name = asked.name.partition("/")
    one = world.newcomers.at(ObjectRef(POD, ObjectKey(namespace, name)))
    if one is not None and one.asked == event.write_id and isinstance(event, WriteFailed):
        one.is_not_ended(now + giving_up.pause(one.attempts))
        world.newcomers.alarms.ask(one.ref, one.retry_at)


def _is_over(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether nothing of one is there, nor can run, and it has no place: what succeeded keeps its own."""
    unknown = tracked.asked or tracked.missing or tracked.unproven
    return tracked.is_gone and not unknown and not room.has_slot(world, placement, tracked, now)


def _kept(placement: Placement, pod_set: str, *, sure: bool) -> int:
    """Return how many have a place of a pod set, or are to get one; a leaving one's place is its heir's.

    `sure`: without those of which it is being asked whether they are there.
    """
    found = [each for each in placement.objects.values() if each.pod_set == pod_set and _keeps_place(each)]
    unsure = sum(each.missing or each.unproven for each in found) if sure else 0
    return len(found) - unsure + sum(each.pod_set == pod_set for each in placement.came_and_went.heirs.values())


def _keeps_place(tracked: Tracked) -> bool:
    if tracked.succeeded:
        return True
    obj = tracked.object
    if obj is None or tracked.delete_asked:
        return not (tracked.is_gone or tracked.delete_asked)
    over = isinstance(obj, Pod) and obj.status.phase == "Failed"
    return not over and obj.metadata.deletion_timestamp is None


def _begun(placement: Placement) -> str:
    """Return when the first of home's own was made here, "" where none is known any more."""
    mine = (each.object or each.last_object for each in placement.objects.values() if not each.made_here)
    return min((each.metadata.creation_timestamp or "" for each in mine if each is not None), default="")


def _is_free(placement: Placement, one: Newcomer) -> bool:
    """Say whether no object of the placement has the name, or waits for it."""
    name = one.ref.key.name
    return (
        len(placement.objects) < OBJECTS_MAX
        and name not in placement.objects
        and name not in placement.came_and_went.heirs
    )


def _fits(world: World, placement: Placement, one: Newcomer, declared: PodSetRequest | None) -> bool:
    """Say whether one is as its driver declared; what is not stays at its gate, and is told why."""
    held = world.objects.get(one.ref)
    if held is None or held.object.metadata.uid != one.uid:
        return False
    shape = declared.shape if declared is not None else ""
    if one.unlike and one.unlike == shape:
        return False
    spec = world.templates.get(shape) if shape else None
    if declared is not None and spec is None:
        return False  # the commit, said again, brings it
    if declared is None or spec is None:
        text = f"role {one.role or '(none)'}: the driver declares no set of that name whose pods it makes"
    else:
        text = world.kind(placement).unlike(held.object, held.raw, spec, _class(placement))
    if not text:
        return True
    text = plain(f"{text}: make the pod as the driver declares it; it is not let go", TEXT_CHARS_MAX)
    if one.is_unlike(shape, text):
        world.note("warning", text, placement, object=str(one.ref))
        world.commands.append(EmitEvent(ref=one.ref, uid=one.uid, warning=True, reason=MISMATCH, message=text))
    return False


def _class(placement: Placement) -> str:
    """Return the priority class of the placement's driver here, which may be one that every pod gets."""
    mine = (each.object for each in placement.objects.values() if not each.made_here)
    return next((each.spec.priority_class_name for each in mine if isinstance(each, Pod)), "")


def _take(world: World, placement: Placement, one: Newcomer, now: float) -> bool:
    held = world.objects.get(one.ref)
    if held is None:
        return False
    tracked = Tracked(
        ref=held.ref,
        pod_set=one.role,
        uid=one.uid,
        joined=True,
        made_here=True,
        object=held.object,
        raw=held.raw,
    )
    world.track(placement, tracked)
    world.newcomers.drop(one.ref)
    take_in(world, placement, tracked, now)
    return True


def _spec(world: World, placement: Placement, tracked: Tracked) -> bytes:
    """Return the spec that was declared for one. SpecError: it is not known any more."""
    shape = next((each.shape for each in placement.pod_sets if each.name == tracked.pod_set), "")
    spec = world.templates.get(shape) if shape else None
    if spec is None:
        raise SpecError(f"{tracked.ref}: what was declared for set {tracked.pod_set} is not known here")
    return spec


def _turn_away(world: World, one: Newcomer, why: str, now: float) -> bool:
    """Ask for the end of one that waits at its gate; True where it counts as turned away from now on."""
    if one.asked or not world.leadership.acts(now) or not world.can_ask:
        world.newcomers.alarms.ask(one.ref, now + AGAIN_SECONDS)
        return False
    if one.retry_at > now:
        world.newcomers.alarms.ask(one.ref, one.retry_at)
        return False
    name = f"{one.ref.key.namespace}/{one.ref.key.name}"
    one.asks(world.writes.ask(Asked(purpose=WritePurpose.TURN_AWAY, key=None, name=name, at=now, deletes=True)))
    world.commands.append(Delete(write_id=one.asked, ref=one.ref, uid=one.uid))
    if not one.counts():
        return False
    text = f"{name} is ended: {why}"
    world.note("info", text)
    world.commands.append(EmitEvent(ref=one.ref, uid=one.uid, warning=True, reason=BEYOND, message=text))
    return True
