"""What another management cluster left here and may run. It is left alone, counted, and told to the manager.

A management cluster that was built anew has another origin, and its users apply the same manifests again: who knows of
these runs does not start them a second time. At `local` the objects are the user's own, so there is nothing to tell.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held, ref_of
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import Registry
from gatelift_kinds.shared import pods
from gatelift_kinds.shared.values import Maker
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import ForeignRun
from gatelift_wire.values.keys import LABEL_ORIGIN


class _Run(NamedTuple):
    origin: str
    kind: str
    namespace: str
    name: str


def is_foreign(world: World, obj: KubeObject) -> bool:
    """Say whether an object was placed here by another management cluster than the one that is served."""
    return not world.local and _origin(world.kinds, obj) not in {"", world.standing.origin}


def _origin(kinds: Registry, obj: KubeObject) -> str:
    """Return the origin that an object was placed for, "" for none; a label that somebody changed is not asked."""
    mark = next(iter(ownership.marks(kinds, obj)), None)
    if mark is not None:
        return mark.origin
    found = ownership.placed_as(kinds, obj)
    return found[0] if found is not None else obj.metadata.labels.get(LABEL_ORIGIN, "")


def note(world: World, obj: KubeObject) -> None:
    """See that the manager is told anew of what another management cluster left here."""
    if is_foreign(world, obj):
        world.foreign_changed = world.capacity_changed = True


def known(world: World, now: float) -> tuple[ForeignRun, ...]:
    """Return what there is, looked for again only when something of it has changed."""
    if world.foreign_changed:
        world.foreign, world.foreign_changed = runs(world, now), False
    return world.foreign


def runs(world: World, now: float) -> tuple[ForeignRun, ...]:
    """Return all that may run, sorted; what is above the limit of the wire is one entry without a name."""
    counts: Counter[_Run] = Counter()
    own = [Held(ref_of(POD, pod.metadata), pod, b"") for pod in world.objects.all_children()]
    for held in (*world.objects.own(), *own):
        try:
            run = _run_of(world, held)
        except Exception as error:  # noqa: BLE001 (containment: one object keeps no capacity from being told)
            containment.object_failed(world, held.ref, error, now)
            run = _labelled(world, held)
        if run is not None:
            counts[run] += 1
    found = [ForeignRun(**run._asdict(), count=count) for run, count in sorted(counts.items())]
    if len(found) <= limits.FOREIGN_MAX:
        return tuple(found)
    named, rest = found[: limits.FOREIGN_MAX - 1], found[limits.FOREIGN_MAX - 1 :]
    return (*named, ForeignRun(origin=rest[0].origin, kind="", namespace="", name="", count=len(rest)))


def _labelled(world: World, held: Held) -> _Run | None:
    """Return what an object that cannot be read is of by its labels; it may run."""
    origin = held.object.metadata.labels.get(LABEL_ORIGIN, "")
    foreign = not world.local and origin not in {"", world.standing.origin}
    return _Run(origin, held.ref.resource.kind, held.ref.key.namespace, held.ref.key.name) if foreign else None


def _run_of(world: World, held: Held) -> _Run | None:
    obj = held.object
    maker = world.objects.maker(obj)
    if isinstance(obj, Pod) and maker is not None:
        return _run_of_child(world, obj)
    kind = world.kinds.of(held.ref.resource, held.object)
    if kind is None or not is_foreign(world, held.object) or kind.outcome(held.object) is not None:
        return None
    mark = next(iter(ownership.marks(world.kinds, held.object)), None)  # of a pod that was taken off its Job
    if mark is not None and not kind.pods_are_children:
        kind = _maker(world.kinds, world.kinds.maker_of(held.object.metadata))
    return _run(world.kinds, held.object, kind.name, mark.job if mark else held.ref.key.name)


def _run_of_child(world: World, pod: Pod) -> _Run | None:
    maker = world.kinds.maker_of(pod.metadata)
    if maker is None or not is_foreign(world, pod) or not pods.holds_resources(pod):
        return None
    return _run(world.kinds, pod, _maker(world.kinds, maker).name, maker.name)


def _maker(kinds: Registry, maker: Maker | None) -> Kind[Any]:
    """Return of which kind the maker of a pod is: as the pod names one, else the first there is."""
    found = kinds.any_of(maker.resource if maker is not None else kinds.makers[0])
    if found is None:
        raise LookupError(f"nothing is known of {maker}")
    return found


def _run(kinds: Registry, obj: KubeObject, kind: str, name: str) -> _Run:
    return _Run(_origin(kinds, obj), kind, obj.metadata.namespace, name)
