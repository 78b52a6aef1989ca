"""The kinds that are served, and what follows from them all together. Pure.

A new kind is one folder and one word here. Both ends and the webhooks take a `Registry`, and what they watch, serve and
are shown follows from it; `SERVED` is the product's. An object is offered to the kinds of its resource in the order in
which they stand, and is that one's which first says that it is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gatelift_kinds.bare.kind import BareKind
from gatelift_kinds.job.elastic_kind import ElasticJobKind
from gatelift_kinds.job.kind import JobKind
from gatelift_kinds.kind import Kind
from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.pod_group.kind import PodGroupKind
from gatelift_kinds.shared.hooks import Hook
from gatelift_kinds.shared.values import Maker, Rights, Sight
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.decoding.decoding import learn
from gatelift_kube.objects.core import PodSpec
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.values.resources import Resource


class Registry:
    """Kinds by name and by resource."""

    __slots__ = ("_by_name", "_by_reference", "_by_resource", "makers", "travelling")

    def __init__(self, *kinds: Kind[Any]) -> None:
        """ValueError: two kinds cannot be told apart, or what is to be one watch would be two."""
        self._by_name = {kind.name: kind for kind in kinds}
        if len(self._by_name) != len(kinds):
            raise ValueError("kinds: two of them have one name, by which the wire tells them apart")
        self._by_resource: dict[Resource, tuple[Kind[Any], ...]] = {}
        for kind in kinds:
            beside = self._by_resource.get(kind.resource, ())
            if any(_together(kind) != _together(other) for other in beside):
                text = "are of one resource and differ in what is seen of it, whether it travels, or who makes the pods"
                raise ValueError(f"kinds: {kind.name} and {beside[0].name} {text}")
            self._by_resource[kind.resource] = (*beside, kind)
            learn(kind.resource, kind.struct)
        self.travelling = tuple(each for each, found in self._by_resource.items() if found[0].travels)
        """Resources of which objects are made at workers."""
        self._by_reference = {(each.api_version, each.kind): each for each in self.travelling}
        self.makers = tuple(each for each in self.travelling if self._by_resource[each][0].pods_are_children)
        """Those of them whose controllers make the pods."""

    def __iter__(self) -> Iterator[Kind[Any]]:
        """Yield the kinds in order."""
        return iter(self._by_name.values())

    @property
    def resources(self) -> tuple[Resource, ...]:
        """Return the resources of all kinds, each once."""
        return tuple(self._by_resource)

    def named(self, name: str) -> Kind[Any] | None:
        """Return the kind of a name that the wire carries, None if it is not served."""
        return self._by_name.get(name)

    def of(self, resource: Resource, obj: KubeObject) -> Kind[Any] | None:
        """Return whose an object is, None if it is no kind's."""
        return next((kind for kind in self._by_resource.get(resource, ()) if kind.selects(obj)), None)

    def alone(self, resource: Resource, obj: KubeObject, workload: str) -> Kind[Any] | None:
        """Return the kind by which a Workload of this name is the object's own, whatever larger work that names."""
        found = (kind for kind in self._by_resource.get(resource, ()) if kind.travels and not kind.gathers)
        return next((kind for kind in found if kind.workload_name(obj) == workload), None)

    def any_of(self, resource: Resource) -> Kind[Any] | None:
        """Return the first kind of a resource, where the object is not there to be asked; None if there is none."""
        return next(iter(self._by_resource.get(resource, ())), None)

    def several(self, resource: Resource) -> bool:
        """Say whether the resource alone does not tell the kind."""
        return len(self._by_resource.get(resource, ())) > 1

    def resource_of(self, reference: OwnerReference) -> Resource | None:
        """Return the resource that an owner reference names, None when nothing of it travels."""
        return self._by_reference.get((reference.api_version, reference.kind))

    def specs(self, obj: KubeObject) -> tuple[PodSpec, ...]:
        """Return the specs of the pods of an object that travels, none for an object of another type."""
        return next((kind.specs(obj) for kind in self if kind.travels and isinstance(obj, kind.struct)), ())

    def sight(self, resource: Resource) -> Sight:
        """Return what the manager sees of a resource."""
        return self._by_resource[resource][0].sight

    @property
    def hooked(self) -> tuple[Resource, ...]:
        """Return the resources that the webhook is shown."""
        return tuple(each for each, found in self._by_resource.items() if found[0].hook is not None)

    def hook(self, resource: Resource) -> Hook:
        """Return how one of these is reviewed. LookupError: it is none."""
        hook = self._by_resource[resource][0].hook
        if hook is None:
            raise LookupError(f"{resource.kind} is not reviewed")
        return hook

    def rights(self, resource: Resource) -> Rights:
        """Return what Gatelift may do with a resource."""
        return self._by_resource[resource][0].rights

    def maker_of(self, meta: ObjectMeta) -> Maker | None:
        """Return the object that a pod names as its maker, None when it names none that is served."""
        for resource in self.makers:
            found = self._by_resource[resource][0].made(meta)
            if found is not None:
                return Maker(*found, resource)
        return None


def _together(kind: Kind[Any]) -> tuple[object, ...]:
    return kind.sight, kind.travels, kind.pods_are_children, kind.rights, kind.hook


POD_KIND = PodKind()
POD_GROUP_KIND = PodGroupKind()
JOB_KIND = JobKind()
BARE_KIND = BareKind()

SERVED = Registry(POD_GROUP_KIND, POD_KIND, JOB_KIND, BARE_KIND)
"""The kinds of the product. A pod is asked first whether it names a group."""

WITH_GROUPS = SERVED
"""What tests asked for before groups were served."""

ELASTIC_JOB_KIND = ElasticJobKind()
WITH_SLICES = Registry(POD_GROUP_KIND, POD_KIND, ELASTIC_JOB_KIND, BARE_KIND)
"""With Jobs that are elastic where they ask for it: not the product's yet, tests ask for it by name (decision 106)."""
