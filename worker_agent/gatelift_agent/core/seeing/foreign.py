"""What another management cluster left here and may run. It is left alone, counted, and told to the manager.

A management cluster that was built anew has another origin, and its users apply the same manifests again: who knows of
these runs does not start them a second time. At `local` the objects are the user's own, so there is nothing to tell.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_kinds import registry
from gatelift_kinds.shared import pods
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.values.resources import JOB
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
    return not world.local and _origin(obj) not in {"", world.standing.origin}


def _origin(obj: KubeObject) -> str:
    """Return the origin that an object was placed for, "" for none; a label that somebody changed is not asked."""
    mark = next(iter(ownership.marks(obj)), None)
    if mark is not None:
        return mark.origin
    found = ownership.placed_as(obj)
    return found[0] if found is not None else obj.metadata.labels.get(LABEL_ORIGIN, "")


def note(world: World, obj: KubeObject) -> None:
    """See that the manager is told anew of what another management cluster left here."""
    if is_foreign(world, obj):
        world.foreign_changed = world.capacity_changed = True


def known(world: World) -> tuple[ForeignRun, ...]:
    """Return what there is, looked for again only when something of it has changed."""
    if world.foreign_changed:
        world.foreign, world.foreign_changed = runs(world), False
    return world.foreign


def runs(world: World) -> tuple[ForeignRun, ...]:
    """Return all that may run, sorted; what is above the limit of the wire is one entry without a name."""
    counts: Counter[_Run] = Counter()
    for held in world.objects.own():
        kind = registry.kind_of(held.ref.resource)
        if kind is None or not is_foreign(world, held.object) or kind.outcome(held.object) is not None:
            continue
        mark = next(iter(ownership.marks(held.object)), None)  # of a pod that was taken off its Job
        counts[_run(held.object, _JOB if mark else kind.name, mark.job if mark else held.ref.key.name)] += 1
    for pod in world.objects.all_children():
        maker = ownership.job_of(pod.metadata)
        if maker is not None and is_foreign(world, pod) and pods.holds_resources(pod):
            counts[_run(pod, _JOB, maker.name)] += 1
    found = [ForeignRun(**run._asdict(), count=count) for run, count in sorted(counts.items())]
    if len(found) <= limits.FOREIGN_MAX:
        return tuple(found)
    named, rest = found[: limits.FOREIGN_MAX - 1], found[limits.FOREIGN_MAX - 1 :]
    return (*named, ForeignRun(origin=rest[0].origin, kind="", namespace="", name="", count=len(rest)))


def _run(obj: KubeObject, kind: str, name: str) -> _Run:
    return _Run(_origin(obj), kind, obj.metadata.namespace, name)


_JOB = next(kind.name for kind in registry.TRAVELLING if kind.resource == JOB)
