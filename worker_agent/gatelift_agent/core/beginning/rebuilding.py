"""Rebuilds placements after a start, from what stands in the cluster: labels of objects, children of Jobs, records.

Nothing rebuilt may start anything before the manager has confirmed it (R1): `confirmed_session` is 0. A partly lifted
placement counts as running; what is missing of it waits for a commit that brings its templates again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from types import TracebackType
from typing import Any

from gatelift_agent.core.beginning import found_ends, found_sizes, found_state
from gatelift_agent.core.leaving import kept
from gatelift_agent.core.placement.placements import (
    SUPERSEDED,
    EndingKind,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import doubts, early, observing, orphans
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held, ref_of
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared.placed_mark import Mark
from gatelift_kinds.shared.values import Maker
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import CONFIG_MAP, POD, ObjectKey, ObjectRef, Resource
from gatelift_wire.values.keys import LABEL_ORIGIN, PlacementKey

ALL_PODS = ObjectRef(POD, ObjectKey("", ""))
"""Stands for what could not be read at all of which pods there are."""


def rebuild(world: World, now: float) -> None:
    """Make placements of all that is there and not known yet. Called once after the lists are complete."""
    world.nodes.began(now)
    world.unheard = True
    for name, text in world.keeper.recorded():
        with _Apart(world, _record(name), now):
            _from_record(world, text)
    for key, found in _own_by_key(world, now).items():
        with _Apart(world, found[0].ref, now):
            world.epochs.use(key)
            if key not in world.placements:
                _from_held(world, key, sorted(found, key=_most_likely), now)
    with _Apart(world, ALL_PODS, now):
        found_ends.take(world, now)
    with _Apart(world, ALL_PODS, now):
        _from_pods(world, now)
    for placement in world.placements.values():
        with _Apart(world, placement.key, now):
            doubts.miss(world, placement)
            found_sizes.take(world, placement)
    _keep_on(world, now)
    _hear_early(world, now)


def _record(name: str) -> ObjectRef:
    """Return what stands for a record that could not be read."""
    return ObjectRef(CONFIG_MAP, ObjectKey("", name))


def _keep_on(world: World, now: float) -> None:
    """Take up what a process before this one kept after its end, now that all that there is of it is known."""
    for placement in kept.found(world, now):
        with _Apart(world, placement.key, now):
            kept.take_up(world, placement, now)


class _Apart:
    """Where an exception about one object or record ends: `with _Apart(world, ref, now):`."""

    def __init__(self, world: World, what: ObjectRef | PlacementKey, now: float) -> None:
        self._world, self._what, self._now = world, what, now

    def __enter__(self) -> None:
        """Nothing is needed: what is tried stands inside."""

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Take an exception; what is none of ours (`KeyboardInterrupt`, ...) goes on."""
        if not isinstance(error, Exception):
            return False
        containment.not_rebuilt(self._world, self._what, error, self._now)
        return True


def _hear_early(world: World, now: float) -> None:
    """Take what watches called gone while it was not known whose it is, now that placements ask for it."""
    for resource, obj in early.due(world):
        with _Apart(world, ref_of(resource, obj.metadata), now):
            observing.gone(world, resource, obj, now)


def read_again(world: World, now: float) -> None:
    """Read again what could not be rebuilt and has rested, or has changed; what raises again rests for longer."""
    if not world.unread or not world.ready:
        return
    due = {what for what, again_at in world.unread.items() if again_at <= now}
    if not due:
        return
    for what in due:
        del world.unread[what]
    for name, text in world.keeper.recorded():
        if _record(name) in due:
            with _Apart(world, _record(name), now):
                _from_record(world, text)
    with _Apart(world, ALL_PODS, now):
        _take(world, now, again=due)
    for key in [key for key in world.placements if key in due]:
        with _Apart(world, key, now):
            doubts.miss(world, world.placements[key])
            found_sizes.take(world, world.placements[key])
    for what in due - world.unread.keys():
        world.contained.well(containment.rebuilding(what))
    doubts.settle(world, now)


def take_namespace(world: World, namespace: str, now: float) -> None:
    """Make placements of what a namespace has that is listed for the first time after the start, and tell of them.

    Their manager may believe them gone: no earlier inventory could list them. What carries an epoch that this process
    has used is no news (`observing.stray`).
    """
    if world.local:
        return  # at the start all namespaces are taken together
    with _Apart(world, ALL_PODS, now):
        _take(world, now, namespace)


def _take(world: World, now: float, namespace: str = "", again: Container[object] = ()) -> None:
    """Make placements of what a namespace has ("": all have); of what is taken `again`, whatever its epoch."""
    if not world.ready or not world.standing.origin:
        return
    known = set(world.placements)
    for key, found in _own_by_key(world, now, namespace).items():
        is_again = any(held.ref in again for held in found)
        with _Apart(world, found[0].ref, now):
            if key in known and is_again:
                _complete(world, world.placements[key], found)
            elif key not in known and (is_again or not (world.local or world.epochs.is_used(key))):
                world.epochs.use(key)
                _from_held(world, key, sorted(found, key=_most_likely), now)
    _from_pods(world, now, namespace, again)
    for key, placement in tuple(world.placements.items()):
        if key in known:
            continue
        with _Apart(world, key, now):
            doubts.miss(world, placement)
            found_sizes.take(world, placement)
    _keep_on(world, now)
    for key, placement in tuple(world.placements.items()):
        if key not in known and world.standing.open:
            with _Apart(world, key, now):
                reports.everything(world, placement)
    _hear_early(world, now)


def take_late(world: World, now: float) -> None:
    """Make placements of what an inventory would leave out: a create of the process before that landed after our lists.

    Their manager may never name them again. What carries an epoch that this process has used is no news.
    """
    if world.local or not world.ready or not world.standing.origin:
        return
    for key, found in _own_by_key(world, now).items():
        if key not in world.placements and not world.epochs.is_used(key):
            with _Apart(world, found[0].ref, now):
                world.epochs.use(key)
                _from_held(world, key, sorted(found, key=_most_likely), now)
                found_sizes.take(world, world.placements[key])


def _from_pods(world: World, now: float, namespace: str | None = None, again: Container[object] = ()) -> None:
    """Make placements of pods whose Jobs are not known; with a namespace ("": all), of those of unused epochs in it."""

    def is_news(key: PlacementKey, pod: Pod) -> bool:
        if key in world.placements:
            return False
        if namespace is None or ALL_PODS in again or ref_of(POD, pod.metadata) in again:
            return True
        return namespace in {"", pod.metadata.namespace} and not (world.local or world.epochs.is_used(key))

    _gather(world, now)
    for pod in orphans.all_pods(world):
        with _Apart(world, ref_of(POD, pod.metadata), now):
            mark = orphans.mark_of(world, pod)
            if mark is not None and is_news(mark.key, pod):
                _from_marked(world, mark, pod)
                _gather(world, now)
    for pod in world.objects.all_children():
        with _Apart(world, ref_of(POD, pod.metadata), now):
            key, maker = ownership.key_of(pod.metadata), world.kinds.maker_of(pod.metadata)
            if key is not None and maker is not None and is_news(key, pod) and not ownership.marks(world.kinds, pod):
                _from_child(world, key, pod, maker)


def _gather(world: World, now: float) -> None:
    for pod in orphans.all_pods(world):
        with _Apart(world, ref_of(POD, pod.metadata), now):
            orphans.gather_one(world, pod)


def _own_by_key(world: World, now: float, namespace: str = "") -> dict[PlacementKey, list[Held]]:
    """Return the objects of this origin by their placement; "" means those of all namespaces."""
    by_key: dict[PlacementKey, list[Held]] = {}
    for held in world.objects.own():
        with _Apart(world, held.ref, now):
            key = _key_of(world, held)
            if key is not None and namespace in {"", held.ref.key.namespace}:
                by_key.setdefault(key, []).append(held)
    return by_key


def _key_of(world: World, held: Held) -> PlacementKey | None:
    """Return the placement of an object of this origin, None for all others.

    A pod that was made for a Job is none: it is its Job's, which `orphans` finds.
    """
    obj, kind = held.object, world.kinds.of(held.ref.resource, held.object)
    if kind is None or (isinstance(obj, Pod) and ownership.marks(world.kinds, obj)):
        return None
    found = ownership.let_go_as(kind, obj) if world.local else ownership.placed_as(world.kinds, obj)
    return found[1] if found is not None and found[0] == world.standing.origin else None


def change_origin(world: World, origin: str, now: float) -> None:
    """Serve the manager of this origin: what belongs to another one is left as it is, and is not spoken of."""
    if world.standing.origin:
        world.note("warning", f"another manager: origin {origin}, was {world.standing.origin}; its objects are left")
        for placement in tuple(world.placements.values()):
            world.remove(placement)
    world.standing.origin = origin
    world.foreign_changed = True
    rebuild(world, now)


def _from_record(world: World, text: str) -> None:
    placement = world.keeper.read_record(text)
    if placement is None or placement.key in world.placements:
        return
    world.epochs.use(placement.key)
    for tracked in placement.objects.values():
        held = world.held(tracked)
        if held is not None and held.object.metadata.uid == tracked.uid:
            tracked.object, tracked.raw = held.object, held.raw
    world.add(placement)


def _complete(world: World, placement: Placement, found: Iterable[Held]) -> None:
    """Know the objects of a placement that were read later than others of it."""
    for held in found:
        tracked = placement.objects.get(held.ref.key.name)
        if tracked is None and len(placement.objects) < placement.objects_wanted:
            world.track(placement, _tracked(world.kind(placement), held))
            world.look(placement.key)


def _tracked(kind: Kind[Any], held: Held) -> Tracked:
    return Tracked(
        ref=held.ref,
        pod_set=ownership.pod_set(held.object.metadata),
        uid=held.object.metadata.uid,
        user_uid=ownership.user_uid(held.object.metadata),
        joined=ownership.has_joined(held.object.metadata),
        made_here=kind.gathers and bool(ownership.made_here(held.object.metadata)),
        object=held.object,
        raw=held.raw,
        lift_asked=kind.lifted(held.object),
    )


def _from_held(world: World, key: PlacementKey, objects: list[Held], now: float) -> None:
    first = objects[0]
    kind = ownership.kind_of(world.kinds, first.ref.resource, first.object)
    if kind is None or not kind.travels:
        return
    same = [held for held in objects if held.ref.resource == first.ref.resource]
    meta = first.object.metadata
    placement = Placement(
        key=key,
        kind=kind.name,
        namespace=meta.namespace,
        name=(ownership.made_here(meta) if kind.gathers else "") or meta.name,
        state=PlacementState.APPLYING,
        committed_at=now,
        found=kind.gathers,
        unsure=kind.gathers,
    )
    placement.objects_wanted = max(ownership.objects_wanted(meta), len(same))
    for held in same:
        placement.objects[held.ref.key.name] = _tracked(kind, held)
    if kind.gathers and world.local:
        found_state.keep_slots(placement, kind)
    try:
        found_state.set_state(world, placement)
    except Exception as error:  # noqa: BLE001 (containment: what cannot be read may run, and is listed so)
        containment.object_failed(world, first.ref, error, now)
        placement.state = PlacementState.RUNNING
    doubts.begin(world, placement)
    forgotten = not world.local and all(
        kind.outcome(held.object) is not None and not ownership.keeps_report(held.object.metadata) for held in same
    )
    if forgotten:
        # Over and without our finalizer: the manager had its final state before the restart.
        placement.state, placement.forget, placement.over_before = PlacementState.STOPPED, True, True
        placement.ended_at = kept.ended_at(world, same, now)
        placement.ending = PlacementEnding(kind=EndingKind.STOPPED, reason=SUPERSEDED)
    world.add(placement)


def _most_likely(held: Held) -> tuple[bool, str, ObjectKey]:
    """Order objects that carry the labels of one placement: what bears our other marks first, then the oldest.

    Labels alone may be anybody's; which objects are meant the manager says (`naming`).
    """
    meta = held.object.metadata
    unmarked = not ownership.keeps_report(meta) and ownership.ANNOTATION_POD_SET not in meta.annotations
    return unmarked, meta.creation_timestamp or "", held.ref.key


def _from_marked(world: World, mark: Mark, pod: Pod) -> None:
    """Make a placement of a pod that says by its mark what it was made for, and whose Job is not known."""
    named = world.kinds.maker_of(pod.metadata)
    known = named is not None and named.name == mark.job and not mark.job_uid
    unnamed = Maker(mark.job, mark.job_uid or str(mark.key), _resource(world, named))
    maker = named if named is not None and known else unnamed
    if _is_unread(world, pod, maker) or (
        _is_served(world, pod, maker) and ownership.controlled_by(pod.metadata, maker.uid)
    ):
        return
    _end_children(world, mark.key, pod, maker)


def _resource(world: World, named: Maker | None) -> Resource:
    """Return of what the maker of a pod is: as the pod names one, else the first there is (a mark names no kind)."""
    return named.resource if named is not None else world.kinds.makers[0]


def _from_child(world: World, key: PlacementKey, pod: Pod, maker: Maker) -> None:
    """Make a placement of a pod whose Job is gone."""
    if _is_unread(world, pod, maker):
        return
    if not _is_served(world, pod, maker) and pod.metadata.labels.get(LABEL_ORIGIN) == world.standing.origin:
        _end_children(world, key, pod, maker)


def _is_unread(world: World, pod: Pod, maker: Maker) -> bool:
    """Say whether a pod's Job is there and could not be taken or read: once it was, the pod is found to be its."""
    ref = ObjectRef(maker.resource, ObjectKey(pod.metadata.namespace, maker.name))
    return ref in world.unread or world.untaken.has(ref)


def _is_served(world: World, pod: Pod, maker: Maker) -> bool:
    """Say whether a pod's Job is there.

    At `local` the pod is of an older attempt, or the Job's labels were taken off: then `retaking` takes it up again.
    """
    held = world.objects.get(ObjectRef(maker.resource, ObjectKey(pod.metadata.namespace, maker.name)))
    return held is not None and held.object.metadata.uid == maker.uid


def _end_children(world: World, key: PlacementKey, pod: Pod, maker: Maker) -> None:
    """Make a placement of which only pods are left, this one among them: they are waited for, then it was evicted."""
    namespace = pod.metadata.namespace
    pod_set = ownership.pod_set(pod.metadata)
    kind = world.kinds.any_of(maker.resource)
    if kind is None:
        raise LookupError(f"placement {key}: nothing is known of {maker.resource.kind}")
    ref = ObjectRef(maker.resource, ObjectKey(namespace, maker.name))
    job = Tracked(ref=ref, pod_set=pod_set, uid=maker.uid, vanished=True)
    world.epochs.use(key)
    ending = PlacementEnding(
        kind=EndingKind.EVICTED,
        reason="WorkerObjectDeleted",
        message=f"{job.ref} was removed from the worker cluster by somebody else",
    )
    placement = Placement(
        key=key,
        kind=kind.name,
        namespace=namespace,
        name=maker.name,
        state=PlacementState.DRAINING,
        ending=ending,
        objects={job.name: job},
    )
    doubts.begin(world, placement, pod.spec, cut_short=True)
    world.add(placement)
