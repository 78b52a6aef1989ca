"""Which objects a live placement has, where they come and go: by a `Change`, and by the commit that is said again.

Who is a member is recorded at once and always; `joining` makes and lets go what joined, as R1 allows and as there is
room (`room`), `parting` ends what leaves. From what a commit does not name nothing is concluded but that it does not
start: what was let go goes on, and keeps its slot, until it is told to leave or has stopped. What a start did not find,
where others were let go, was there once: it is never made again, doubted, and told of as gone. Neighbours: `orders`
brings changes, `commits` the rest, `naming` does the same where objects do not come and go.
"""

from __future__ import annotations

from dataclasses import replace

from gatelift_agent.core.advancing import giving_up
from gatelift_agent.core.beginning import found_state
from gatelift_agent.core.leaving import parting
from gatelift_agent.core.placement.placements import LIVE, STARTING, Placement, Tracked
from gatelift_agent.core.refusing import podspecs
from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.session import naming, objects
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_kube.objects.core import Pod, raw_status
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.limits import GRACE_SECONDS
from gatelift_wire.values.messages import Change, Commit, ObjectReport, ObjectTemplate, PodSetRequest
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.single import Leaver


def number_anew(world: World) -> None:
    """Take that a session began that is no resumed one: what is said in it is numbered from the beginning."""
    for placement in world.placements.values():
        placement.change_number = 0


def change(world: World, order: Change) -> None:
    """Take who joins and who leaves; a number that is not above the last one is late, and changes nothing (MC-9)."""
    late = world.late.commits.get(order.key)
    placement = world.placements.get(order.key)
    if placement is None and late is not None:
        world.late.commits[order.key] = replace(late, commit=_with(late.commit, order), left=late.left + order.leave)
        return
    if placement is None or placement.state not in LIVE or not world.kind(placement).gathers:
        return  # all of it ends, or is not known: its commit, said again, names who is of it then
    if order.number <= placement.change_number:
        return
    placement.change_number = order.number
    placement.pod_sets = tuple(_lowered(each, order.pod_sets) for each in placement.pod_sets)
    leave(world, placement.key, order.leave)
    for one in order.join:
        _join(world, placement, one)
        world.look_at(placement, one.name)
    world.look_on(placement.key)


def leave(world: World, key: PlacementKey, leavers: tuple[Leaver, ...]) -> None:
    """Take that these are to go: of who is only not named any more nothing is ended that may run."""
    placement = world.placements.get(key)
    if placement is None or placement.state not in LIVE or not world.kind(placement).gathers:
        return
    for leaver in leavers:
        _leave(world, placement, leaver)
        world.look_at(placement, leaver.name)


def keep(world: World, placement: Placement, commit: Commit) -> bool:
    """Keep what a commit names, and all that may run; False if nothing is left of it then, which proves its absence."""
    if not world.kind(placement).gathers:  # somebody took off what says so
        placement.found, placement.unsure = True, True
    if placement.found and world.local:
        found_state.count_slots(placement, commit)
    named = {one.name: one for one in commit.objects}
    for tracked in tuple(placement.objects.values()):
        one = named.get(tracked.name)
        if tracked.made_here:
            continue  # of it home says nothing: it stays, whatever is said
        if one is None or not _is_of(world, tracked, one):
            _is_not_named(world, placement, tracked)
    kind = world.kinds.named(commit.kind)
    for one in commit.objects if kind is not None else ():
        if one.name not in placement.objects:
            found = naming.named(world, placement, commit, one)
            if found is not None:
                had_joined = ownership.has_joined(naming.meta_of(found))
                found.joined = _waits_for_slot(placement, one) if world.local else had_joined
                world.track(placement, found)
    placement.kind, placement.namespace, placement.name = commit.kind, commit.namespace, commit.name
    return bool(placement.objects)


def name(world: World, placement: Placement, commit: Commit) -> None:
    """Know each object that a commit names, with what a restart has lost of it."""
    placement.pod_sets = _shaped(placement.pod_sets, commit.pod_sets) or commit.pod_sets
    world.newcomers.opens((commit.namespace, commit.name), commit.key)
    placement.objects_wanted = len(commit.objects)
    begun = any(each.lift_asked or each.is_gone for each in placement.objects.values())
    for one in commit.objects:
        tracked = placement.objects.get(one.name)
        if tracked is not None and _is_of(world, tracked, one):
            tracked.user_uid = tracked.user_uid or one.uid
            tracked.template, tracked.pod_set = one.template, _set_of(world, placement, tracked, one)
            tracked.metadata = objects.metadata(world, one) or tracked.metadata
            _take_gates(world, tracked)
        elif placement.found and not world.local:
            _is_not_found(world, placement, one, begun=begun)
        elif tracked is None and (placement.found or (world.local and placement.state in STARTING)):
            _add(world, placement, one, joined=_waits_for_slot(placement, one))
        else:
            _join(world, placement, one)
    if placement.found:
        placement.found = False
        found_state.set_state(world, placement)
        doubts.are_named(world, placement)


def _waits_for_slot(placement: Placement, one: ObjectTemplate) -> bool:
    """Say whether an object at home may be in the place of one of which a start found nothing."""
    return placement.found and one.joined and one.pod_set in placement.came_and_went.unknown


def _set_of(world: World, placement: Placement, tracked: Tracked, one: ObjectTemplate) -> str:
    """Return of which pod set an object is: of the one that it was let go as, whatever its user's says since (HD-436).

    Else another one would take the slot beside it. At home that is known by the mark of its lift.
    """
    keeps = not world.local and any(each.name == tracked.pod_set for each in placement.pod_sets)
    return tracked.pod_set if keeps and _is_kept(world, placement, tracked) else one.pod_set


def _take_gates(world: World, tracked: Tracked) -> None:
    """Take which gates of his own the user has left on a member that waits: nobody may have said that they are off."""
    obj, template = tracked.object, world.templates.get(tracked.template)
    said = obj.metadata.annotations.get(ownership.ANNOTATION_USER_GATES, "") if obj is not None else ""
    if isinstance(obj, Pod) and said and template is not None:
        off = {*said.split(",")} - {*podspecs.user_gates(template)}
        tracked.user_gates = tuple(each.name for each in obj.spec.scheduling_gates if each.name not in off)


def _with(commit: Commit, order: Change) -> Commit:
    """Return a commit that waits as if it had been said after a change."""
    gone = {leaver.uid for leaver in order.leave}
    joins = {one.name for one in order.join}
    kept = tuple(one for one in commit.objects if one.uid not in gone and one.name not in joins)
    return replace(commit, objects=kept + order.join)


def _lowered(known: PodSetRequest, said: tuple[PodSetRequest, ...]) -> PodSetRequest:
    """Return a pod set as a change has it, where that is not more: no change raises a grant."""
    return next((one for one in said if one.name == known.name and one.count < known.count), known)


def _shaped(known: tuple[PodSetRequest, ...], said: tuple[PodSetRequest, ...]) -> tuple[PodSetRequest, ...]:
    """Return pod sets as they were granted, with what is said of pods that a driver makes here."""
    shapes = {one.name: one.shape for one in said}
    return tuple(replace(one, shape=shapes.get(one.name, "")) for one in known)


def _is_of(world: World, tracked: Tracked, one: ObjectTemplate) -> bool:
    """Say whether an object stands for the user's object that is meant, or at `local` is it."""
    if tracked.made_here:
        return False  # home's own has another UID, whatever this one is called
    return tracked.uid == one.template if world.local else tracked.user_uid in {"", one.uid}


def _is_not_named(world: World, placement: Placement, tracked: Tracked) -> None:
    """Take that a commit does not name an object: what may run is kept as it is, what is at its gate goes."""
    if _is_kept(world, placement, tracked):
        return
    made = tracked.object is not None or tracked.asked or tracked.doubt_until is not None
    if made and not world.local:
        tracked.delete_asked = True
    else:
        world.untrack(placement, tracked)


def _is_kept(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether something of an object may run, or it is over: it is let go of by nobody's silence."""
    if tracked.is_gone or tracked.missing or tracked.unproven or tracked.lift_asked:
        return True
    kind, obj = world.kind(placement), tracked.object
    return obj is not None and (kind.outcome(obj) is not None or world.runs_as_placed(kind, obj))


def _join(world: World, placement: Placement, one: ObjectTemplate) -> None:
    """Take one object in; of what has left, or cannot be placed here, it is said at once that nothing is here."""
    whose = one.template if world.local else one.uid
    known = placement.objects.get(one.name)
    if known is not None and _is_of(world, known, one):
        return
    if whose in placement.came_and_went.left:
        _say_gone(world, placement, one.name, whose)
        return
    refused = _why_not(world, placement, one)
    if refused is not None:
        _say_gone(world, placement, one.name, whose, refused)
    elif known is None:
        _add(world, placement, one, joined=True)
    else:
        known.delete_asked = True  # at home, where no two have one name, it is gone, and may still run (HD-388)
        placement.came_and_went.heirs[one.name] = _tracked(world, placement, one, joined=True)


def _why_not(world: World, placement: Placement, one: ObjectTemplate) -> tuple[Refusal, str] | None:
    if len(placement.objects) + len(placement.came_and_went.heirs) >= 2 * objects.OBJECTS_MAX:
        return Refusal.TOO_LARGE, f"objects: {2 * objects.OBJECTS_MAX} are known of this placement; no more join"
    return None if world.local else objects.why_none_of(world, world.kind(placement), (one,))


def _add(world: World, placement: Placement, one: ObjectTemplate, *, joined: bool) -> None:
    world.track(placement, _tracked(world, placement, one, joined=joined))


def _tracked(world: World, placement: Placement, one: ObjectTemplate, *, joined: bool) -> Tracked:
    ref = ObjectRef(world.kind(placement).resource, ObjectKey(placement.namespace, one.name))
    tracked = Tracked(ref=ref, pod_set=one.pod_set, template=one.template, user_uid=one.uid, joined=joined)
    tracked.metadata = objects.metadata(world, one) or b"{}"
    if world.local:
        tracked.uid = one.template  # another object may have its name by now, and is not admitted
    return tracked


def _is_not_found(world: World, placement: Placement, one: ObjectTemplate, *, begun: bool) -> None:
    """Know an object that a start did not find: it may have been there, and may run on any node.

    Where others were let go it was, and is gone; where none was, it is made once nothing of it can run.
    """
    if one.name in placement.objects:
        _join(world, placement, one)  # the name is another's, which has to go first
        return
    tracked = _tracked(world, placement, one, joined=begun)
    tracked.vanished, tracked.doubt = begun, world.nodes.before(_grace(world, one))
    world.track(placement, tracked)


def _grace(world: World, one: ObjectTemplate) -> float:
    """Return how long a pod of a template has for its end."""
    said = podspecs.grace_seconds(world.templates.get(one.template) or b"")
    return GRACE_SECONDS if said is None else said


def _leave(world: World, placement: Placement, leaver: Leaver) -> None:
    """Take that an object is to go; of one that is not here it is said at once, unless it may have been let go."""
    known, heir = placement.objects.get(leaver.name), placement.came_and_went.heirs.get(leaver.name)
    if known is not None and parting.whose(world, known) == leaver.uid:
        known.delete_asked, known.grace_seconds = True, leaver.grace_seconds
    elif heir is not None and parting.whose(world, heir) == leaver.uid:
        del placement.came_and_went.heirs[leaver.name]
        placement.came_and_went.left[leaver.uid] = None
        _say_gone(world, placement, leaver.name, leaver.uid)
    elif leaver.uid not in placement.came_and_went.left and known is None and placement.unsure and world.unheard:
        one = ObjectTemplate(name=leaver.name, pod_set="", template="", uid=leaver.uid)
        _is_not_found(world, placement, one, begun=True)
        if (tracked := placement.objects[leaver.name]).user_uid == leaver.uid:
            # Nothing here says what its pod was given, but its manager, and those that were found (HD-665).
            tracked.doubt = world.nodes.before(max(leaver.grace_seconds or 0.0, doubts.longest_grace(placement)))
        tracked.delete_asked = True
    else:
        placement.came_and_went.left[leaver.uid] = None
        _say_gone(world, placement, leaver.name, leaver.uid)


def _say_gone(
    world: World, placement: Placement, called: str, whose: str, refused: tuple[Refusal, str] | None = None
) -> None:
    """Say that nothing of an object is here, and why it cannot be."""
    if world.local:
        return
    status = raw_status(giving_up.refused_status(*refused)) if refused is not None else b"{}"
    world.say(
        ObjectReport(
            key=placement.key, kind=placement.kind, name=called, uid="", status=status, gone=True, owner_uid=whose
        )
    )
