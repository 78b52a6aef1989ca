"""Takes what watches and answers say of objects into the placements. Decides nothing: it names placements to look at.

Told apart here: objects of a placement (by origin, workload UID and own UID), children of a Job, strays that carry our
labels without a placement, and objects that vanish (P10: whose containers may run on).
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import (
    ENDING,
    LIVE,
    SUPERSEDED,
    EndingKind,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.placement.pods_of_jobs import Hidden
from gatelift_agent.core.seeing import foreign, newcomers
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.untaken import Subject, may_name
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held, ref_of
from gatelift_agent.core.watched.ownership import Ownership
from gatelift_kinds.shared import pods
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import POD, Resource
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.limits import GRACE_SECONDS


def seen(world: World, resource: Resource, obj: KubeObject, raw: bytes, now: float) -> None:
    """Take a version of a Pod or Job."""
    meta = obj.metadata
    foreign.note(world, obj)
    if world.was_cleared(meta.uid):
        return
    is_news = world.objects.seen(resource, obj, raw)
    if not is_news and not (world.untaken.kept and world.untaken.holds(resource, meta)):
        return
    held = world.objects.get(ref_of(resource, meta))
    # What was just kept as an object of its own is nobody's child.
    maker = world.objects.maker(obj) if held is None or held.object is not obj else None
    if maker is not None:
        world.nodes.forget(meta.uid)
        if isinstance(obj, Pod) and not (world.local or world.was_cleared(maker.uid)):
            world.failures.seen(maker.uid, obj, raw)
        for placement in world.placements_of(maker, meta.namespace):
            placement.hidden.pop(meta.uid, None)
            world.look(placement.key)
        return
    if held is None:
        return
    newcomers.seen(world, held, now)
    placements = world.placements_at(held.ref)
    for placement in placements:
        take(world, placement, placement.objects[meta.name], held, now)
    if not placements:
        stray(world, held)


def take(world: World, placement: Placement, tracked: Tracked, held: Held, now: float) -> None:
    """Take the object at a tracked place, if it is the placement's; another object there means that ours is gone."""
    meta = held.object.metadata
    world.look_at(placement, tracked.name)
    if _is_mine(world, placement, tracked, held.object):
        tracked.object, tracked.raw, tracked.uid = held.object, held.raw, meta.uid
        tracked.missing = tracked.vanished = False
        tracked.doubt_until = tracked.blocked_since = None
        world.nodes.forget(meta.uid)
    elif tracked.object is not None:
        vanish(world, tracked, tracked.object, now)


def _is_mine(world: World, placement: Placement, tracked: Tracked, obj: KubeObject) -> bool:
    """Say whether it is the placement's: by its UID once that is known, whatever its labels say by then."""
    meta = obj.metadata
    if tracked.uid:
        return tracked.uid == meta.uid
    if any(each.objects[meta.name].uid == meta.uid for each in world.placements_at(tracked.ref)):
        return False
    if world.local:
        return True
    ours = ownership.owner(world.kinds, obj, placement.key, world.standing.origin) is Ownership.OURS
    return ours and ownership.stands_for(meta, tracked.user_uid)


def gone(world: World, resource: Resource, obj: KubeObject, now: float) -> None:
    """Take the word of a watch that an object is no longer there, or no longer labelled as ours."""
    meta = obj.metadata
    foreign.note(world, obj)
    maker = world.objects.maker(obj)
    if isinstance(obj, Pod) and maker is not None:
        placements = world.placements_of(maker, meta.namespace)
        if not placements or not pods.holds_resources(obj):
            child_gone(world, obj, now)
        for placement in placements:
            if pods.holds_resources(obj):
                known = next((pod for pod in world.objects.children(maker.uid) if pod.metadata.uid == meta.uid), obj)
                placement.hidden.setdefault(meta.uid, Hidden(pod=known))
            world.look(placement.key)
        return
    held = world.objects.get(ref_of(resource, meta))
    if held is None or held.object.metadata.uid != meta.uid:
        return
    for placement in world.placements_at(held.ref):
        world.look_at(placement, meta.name)
        _gone_from(world, placement.objects[meta.name], obj, now)
    newcomers.gone(world, held.ref, meta.uid)
    world.objects.gone(resource, obj)  # behind all that may raise an exception: taken again, it is news again


def child_gone(world: World, pod: Pod, now: float) -> None:
    """Take that a pod of a Job is not there; its containers may run on all the same (P10)."""
    maker, uid = world.objects.maker(pod), pod.metadata.uid
    if maker is None:
        world.objects.gone(POD, pod)
        return
    placements = world.placements_of(maker, pod.metadata.namespace)
    is_news = world.objects.knows_child(uid) and bool(placements)
    if is_news:
        _doubt(world, pod, now)
    is_lost, is_over = is_news and world.nodes.may_run(uid, now), pods.over(pod)
    is_counted = ownership.controlled_by(pod.metadata, maker.uid)  # else its Job has not counted it
    # What may raise an exception is behind us: taken again, all of it is news again, and nothing is counted twice.
    world.objects.gone(POD, pod)
    for placement in placements:
        # Also of one that is known to be gone: a late word of the watch may have made it hidden since (HD-204).
        placement.hidden.pop(uid, None)
        if is_lost:
            placement.lost_children[uid] = pod
        if is_news and is_counted:
            placement.children_gone += is_over or is_lost
        world.look(placement.key)


def _gone_from(world: World, tracked: Tracked, obj: KubeObject, now: float) -> None:
    meta = obj.metadata
    if tracked.uid != meta.uid:
        tracked.blocked_since = None  # what stood in the way is gone
        return
    if not tracked.removed:
        tracked.object, tracked.last_object, tracked.missing = None, obj, True
        return
    vanish(world, tracked, obj, now)


def namespace_left(world: World, name: str, now: float) -> None:
    """Believe nothing of the objects in a namespace that is gone, or was made anew, before each was asked for.

    Their last events may never come: the watches of Namespaces and of Pods have no order, and the rights to watch Pods
    went with the namespace. Local objects are watched in all namespaces at once, and the manager sees them as well.
    """
    if world.local:
        return
    for placement in tuple(world.placements.values()):
        if placement.namespace != name:
            continue
        if placement.state is PlacementState.KEPT:  # of it nothing is left to be said, and nothing to be asked for
            world.remove(placement)
            continue
        if placement.state in LIVE | ENDING:
            for tracked in placement.objects.values():
                if tracked.object is not None or tracked.missing or tracked.asked:  # else it is proved gone already
                    tracked.unproven, tracked.unproven_since = True, now
            world.look(placement.key)
        elif placement.namespace == name:
            for tracked in placement.objects.values():
                tracked.retry_at = 0.0  # what could not be removed may be gone with it
            world.look(placement.key)


def namespace_read(
    world: World, placement: Placement, namespace: Namespace | None, asked_at: float, now: float
) -> None:
    """Take the API server's word, asked for at `asked_at`, on the namespace of a placement whose objects say nothing.

    One that is not there holds nothing, and one that was made after an object is not the one which that was in.
    Containers may run on all the same (P10).
    """
    for tracked in placement.objects.values():
        known = tracked.last_object if tracked.missing else tracked.object
        if tracked.asked:
            continue  # what is on its way may land in a namespace of that name that is made meanwhile
        if known is not None and _is_outlived(known.metadata, namespace):
            gone_for_sure(world, tracked, known, now)
        elif known is None and namespace is None and (tracked.doubt_until is None or tracked.doubt_until <= asked_at):
            tracked.doubt_until = tracked.blocked_since = None
            tracked.unproven = False
    for pod in world.children(placement):
        if _is_outlived(pod.metadata, namespace):
            child_gone(world, pod, now)
    placement.pods_clear = placement.pods_clear or namespace is None
    world.look(placement.key)


def _is_outlived(meta: ObjectMeta, namespace: Namespace | None) -> bool:
    if namespace is None:
        return True
    made, known = namespace.metadata.creation_timestamp or "", meta.creation_timestamp or ""
    return bool(known) and known < made  # both are RFC 3339 in UTC, to the second; within one nothing is proved


def gone_for_sure(world: World, tracked: Tracked, obj: KubeObject, now: float) -> None:
    """Take an answer of the API server that the object is not there."""
    vanish(world, tracked, obj, now)
    world.objects.gone(tracked.ref.resource, obj)
    world.untaken.drop(Subject(tracked.ref, obj.metadata.uid))


def vanish(world: World, tracked: Tracked, obj: KubeObject, now: float) -> None:
    """Its object is gone; unless we removed it, its containers may still run."""
    if not tracked.removed:
        kind = world.kinds.of(tracked.ref.resource, obj)
        if isinstance(obj, Pod) and (tracked.lift_asked or kind is None or kind.lifted(obj)):
            _doubt(world, obj, now)  # first: without its doubt it would count as stopped
        tracked.vanished = True
    tracked.succeeded = tracked.succeeded or (isinstance(obj, Pod) and obj.status.phase == pods.SUCCEEDED)
    tracked.object, tracked.missing, tracked.unproven = None, False, False


def strays_of(world: World, key: PlacementKey, now: float, *, ending: PlacementEnding | None = None) -> None:
    """Stop what is here of a placement that the manager ends and this agent does not know (HD-215).

    The create of a process before this one may have landed after this one has listed. With `ending` it is told as any
    end; without, it is forgotten already.
    """
    for held in world.objects.own():
        try:
            found = ownership.placed_as(world.kinds, held.object)
            if found is not None and found[1] == key:
                stray(world, held, ending=ending)
        except Exception as error:  # noqa: BLE001 (containment: one object keeps no other from being stopped)
            if may_name(held.object, key):
                containment.not_rebuilt(world, held.ref, error, now)


def stray(world: World, held: Held, *, ending: PlacementEnding | None = None) -> None:
    """Remove an object of ours that lands after its placement was declared over: the late create of an answer UNKNOWN.

    Only an epoch that this process has used up proves that; what else carries our labels is left alone. Asked when an
    object is seen of which no placement knows, and of what stands where one had its object when it is known no more.
    """
    meta = held.object.metadata
    found = ownership.placed_as(world.kinds, held.object)
    kind = world.kinds.of(held.ref.resource, held.object)
    if world.local or not world.ready or found is None or kind is None:
        return
    origin, key = found
    if key in world.placements or origin != world.standing.origin or not world.epochs.is_used(key):
        return
    if ending is None and held.ref in world.unread:
        return  # its epoch was used up by a rebuild that could not read it: it is no stray, and is read again
    tracked = Tracked(ref=held.ref, pod_set=ownership.pod_set(meta), uid=meta.uid, object=held.object, raw=held.raw)
    placement = Placement(
        key=key,
        kind=kind.name,
        namespace=meta.namespace,
        name=meta.name,
        state=PlacementState.DRAINING,
        ending=ending or PlacementEnding(kind=EndingKind.STOPPED, reason=SUPERSEDED),
        forget=ending is None,
        objects={tracked.name: tracked},
    )
    world.add(placement)


def _doubt(world: World, pod: Pod, now: float) -> None:
    """Doubt a vanished pod's end unless it is certain: a terminal phase, or deleted before it had a node.

    Nothing is bound that is being deleted. Else that no node was seen proves nothing: the watch may have been behind.
    """
    if not pods.holds_resources(pod):
        return
    asked = pod.metadata.deletion_grace_period_seconds or pod.spec.termination_grace_period_seconds
    grace = float(asked) if asked is not None else GRACE_SECONDS
    world.nodes.vanished(pod.metadata.uid, pod.spec.node_name, grace, now)
