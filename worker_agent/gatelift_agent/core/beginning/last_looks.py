"""Looks into namespaces that are being deleted, where placements wait for what is seen there (`condemned`).

First the Namespace itself is read: a watch may be behind. Then, late enough, all its pods: what is not among them is
gone, and what no watch shows is seen. Rights to list pods are given in all namespaces at once, so they outlive those
that go with the namespace.
"""

from __future__ import annotations

from typing import Any

from gatelift_agent.core.beginning import rebuilding
from gatelift_agent.core.placement.placements import ENDING, LIVE, Placement
from gatelift_agent.core.seeing import doubts, observing, unlisted
from gatelift_agent.core.state import asking, containment
from gatelift_agent.core.state.condemned import SETTLE_SECONDS, Condemned
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import events
from gatelift_agent.core.values.asked import Asked
from gatelift_agent.core.watched import ownership
from gatelift_kinds.kind import Kind
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_kube.values.resources import NAMESPACE, POD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import LABEL_ORIGIN

AGAIN_SECONDS = 10.0
"""Between two looks: a graceful deletion takes longer, and a list is of the whole namespace."""


def ask(world: World, now: float) -> None:
    """Ask for what is due."""
    if not world.ready:
        return
    for name, entry in world.condemned.items():
        if entry.asked or entry.ask_at > now:
            continue
        entry.ask_at = now + AGAIN_SECONDS
        if not (world.leadership.acts(now) and world.can_ask and _is_waited_for(world, name)):
            continue
        entry.asked = True
        if entry.sure_at is None:
            asking.whether_deleted(world, name, now)
        else:
            asking.all_pods(world, name, now)


def next_deadline(world: World) -> float | None:
    """Return when `ask` has something to do."""
    if not world.condemned:  # as nearly always
        return None
    return min((each.ask_at for each in world.condemned.values() if not each.asked), default=None)


def answered(world: World, asked: Asked, event: events.ReadAnswer, now: float) -> None:
    """Take an answer about a namespace that is being deleted; one that raises says nothing, and it is asked again."""
    entry = world.condemned.get(asked.name)
    if entry is None:
        return
    entry.asked = False
    try:
        _answered(world, asked, event, now)
    except Exception as error:  # noqa: BLE001 (containment: what cannot be read may run, and this look does not count)
        containment.object_failed(world, ObjectRef(NAMESPACE, ObjectKey("", asked.name)), error, now)


def _answered(world: World, asked: Asked, event: events.ReadAnswer, now: float) -> None:
    match event:
        case events.PodsRead():
            pods_read(world, asked, event, now)
        case events.NamespaceRead(namespace=namespace):
            namespace_read(world, asked.name, namespace, now)
        case events.PodsNotRead() | events.NamespaceNotRead():
            pass


def namespace_read(world: World, name: str, found: Namespace | None, now: float) -> None:
    """Take the API server's word on a namespace that a watch calls deleted; None: it is not there.

    Where it says something else a watch is behind, and tells the rest.
    """
    entry = world.condemned.get(name)
    if entry is None or found is None or found.metadata.uid != entry.uid or found.metadata.deletion_timestamp is None:
        return
    entry.sure_at, entry.ask_at = now, now + SETTLE_SECONDS
    for placement in _there(world, name):
        world.look(placement.key)


def pods_read(world: World, asked: Asked, found: events.PodsRead, now: float) -> None:
    """Take all pods of a namespace that is being deleted."""
    name = asked.name
    entry = world.condemned.get(name)
    if entry is None or entry.sure_at is None or asked.at < entry.sure_at + SETTLE_SECONDS:
        return
    _take(world, name, entry, list(zip(found.pods, found.raws, strict=True)), now)
    entry.shown_at = asked.at
    if name not in world.listed:  # of its Jobs nobody can be asked any more, and nothing of them runs unless it is here
        world.listed.add(name)
        unlisted.listed(world, name)
        rebuilding.take_namespace(world, name, now)
        doubts.listed(world, now)


def _take(world: World, name: str, entry: Condemned, found: list[tuple[Pod, bytes]], now: float) -> None:
    """Take all pods that are there, as a watch would show them, and what is not among them."""
    for pod, raw in found:
        if LABEL_ORIGIN in pod.metadata.labels or ownership.may_hide(world.kinds, pod):
            observing.seen(world, POD, pod, raw, now)
    there = {pod.metadata.uid for pod, _ in found}
    for placement in _there(world, name):
        _miss(world, placement, there, now)
        _doubt_unseen(world, placement, entry, now)
        world.look(placement.key)


def _is_waited_for(world: World, name: str) -> bool:
    unlisted = name not in world.listed and (name in world.unlisted or name in world.keeper.state.namespaces)
    return unlisted or any(placement.state in LIVE | ENDING for placement in _there(world, name))


def _there(world: World, name: str) -> list[Placement]:
    return [placement for placement in world.placements.values() if placement.namespace == name]


def _miss(world: World, placement: Placement, there: set[str], now: float) -> None:
    """Take as gone what was known and is not among all pods; its containers may run on (P10)."""
    hidden = [each.pod for each in placement.hidden.values()]
    for pod in (*world.children(placement), *hidden):
        if pod.metadata.uid not in there:
            observing.child_gone(world, pod, now)
    for tracked in placement.objects.values():
        known = tracked.last_object if tracked.missing else tracked.object
        if tracked.asked or tracked.ref.resource != POD:
            continue
        if known is not None and known.metadata.uid not in there:
            observing.gone_for_sure(world, tracked, known, now)
        elif known is None:
            tracked.doubt_until = tracked.blocked_since = None


def _doubt_unseen(world: World, placement: Placement, entry: Condemned, now: float) -> None:
    """Doubt pods of a Job that may have come and gone unseen, since the watches may have ended with our rights.

    None has where the last word of the Job is from its deletion, has no pod left, and each that is counted was seen:
    its controller counts each before that is let go.
    """
    kind = world.kind(placement)
    if not kind.pods_are_children or entry.shown_at is not None or placement.state not in LIVE | ENDING:
        return
    counted = doubts.counted_here(world, placement)
    known = counted is not None and counted <= doubts.ended_known(world, placement)
    for tracked in placement.objects.values():
        job = tracked.object
        if job is not None and kind.stopped(job, world.children(placement), placement.key):
            continue
        let_go = tracked.lift_asked or (job is not None and kind.lifted(job))
        if let_go and not (known and job is not None and _is_told(kind, job, tracked.raw)):
            doubts.unwatched(world, placement, tracked, now)


def _is_told(kind: Kind[Any], obj: KubeObject, raw: bytes) -> bool:
    return obj.metadata.deletion_timestamp is not None and kind.at_rest(obj, raw)
