"""A Workload without an owner: admitted like any other, nothing of it is made anywhere. Pure.

Kueue's own load generator uses them, and whoever wants quota for work of his own making. It ends when somebody sets
its condition Finished or deletes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.patches import without_finalizer
from gatelift_kinds.shared.values import (
    ALL_GRANTED,
    Charged,
    KindError,
    ObjectEnd,
    Part,
    PatchStep,
    Placing,
    Priority,
    PriorityNames,
    Step,
)
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.values.resources import WORKLOAD, Resource
from gatelift_wire.values.keys import PlacementKey

_NO_OBJECTS = "a Workload without an owner has no objects: use a queue without a MultiKueue check"


class BareKind(Kind[Workload]):
    """See `gatelift_kinds.kind.Kind`. The user's object is the Workload itself; the CRD's rules are all there are."""

    name: str = "Workload"
    resource: Resource = WORKLOAD
    struct: type[Any] = Workload
    travels: bool = False

    def managed(self, obj: Workload) -> bool:
        """Return whether nobody owns it."""
        return not obj.metadata.owner_references

    def queue_name(self, obj: Workload) -> str:
        """Return the queue that it names."""
        return obj.spec.queue_name

    def priority_names(self, obj: Workload) -> PriorityNames:
        """Return its own priority class and value: they are not resolved again."""
        ref = obj.spec.priority_class_ref
        return PriorityNames(
            workload_class=ref.name if ref is not None and ref.kind == "WorkloadPriorityClass" else "",
            pod_class=ref.name if ref is not None and ref.kind == "PriorityClass" else "",
            pod_priority=obj.spec.priority,
        )

    def workload_name(self, obj: Workload) -> str:
        """Return its own name."""
        return obj.metadata.name

    def workload_document(self, obj: Workload, raw: bytes, priority: Priority) -> bytes:
        """Return the object itself: it is there already."""
        return raw

    def equivalent(self, workload: Workload, obj: Workload) -> bool:
        """Return whether they are the same object."""
        return workload.metadata.uid == obj.metadata.uid

    def pod_sets(self, obj: Workload) -> tuple[PodSet, ...]:
        """Return its own pod sets."""
        return obj.spec.pod_sets

    def suspended(self, obj: Workload) -> bool:
        """Return True: nothing of it runs here."""
        return True

    def outcome(self, obj: Workload) -> ObjectEnd | None:
        """Return what its condition Finished says."""
        for condition in obj.status.conditions:
            if condition.type == "Finished" and condition.status == "True":
                return ObjectEnd(succeeded=condition.reason != "Failed", message=condition.message)
        return None

    def pods_ready(self, obj: Workload) -> bool:
        """Return what its owner says in its status."""
        return any(one.type == "PodsReady" and one.status == "True" for one in obj.status.conditions)

    def parts(self, obj: Workload, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        """Return nothing."""
        return ()

    def release_step(self, obj: Workload) -> PatchStep | None:
        """Return the patch that drops Kueue's finalizer, if somebody put it there."""
        body = without_finalizer(obj.metadata, markers.RESOURCE_IN_USE)
        return PatchStep(body=body, kind=PatchKind.JSON) if body else None

    def document(self, part: Part, placing: Placing) -> bytes:
        """Raise KindError: there is nothing to create."""
        raise KindError(_NO_OBJECTS)

    def lifted(self, obj: Workload) -> bool:
        """Return True: there is nothing to hold back."""
        return True

    def let_go_here(self, obj: Workload) -> bool:
        """Return True: there is nothing to hold back."""
        return True

    def liftable(self, obj: Workload, key: PlacementKey) -> bool:
        """Return False."""
        return False

    def lift_patch(self, obj: Workload) -> bytes:
        """Raise KindError: there is nothing to lift."""
        raise KindError(_NO_OBJECTS)

    def local_lift_patch(self, obj: Workload, raw: bytes, placing: Placing) -> bytes:
        """Raise KindError: there is nothing to lift."""
        raise KindError(_NO_OBJECTS)

    def stop_step(self, obj: Workload, key: PlacementKey) -> Step | None:
        """Return nothing."""
        return None

    def local_stop_step(self, obj: Workload, raw: bytes, key: PlacementKey) -> Step | None:
        """Return nothing."""
        return None

    def at_rest(self, obj: Workload, raw: bytes) -> bool:
        """Return True: nothing of it runs."""
        return True

    def stopped(self, obj: Workload, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return True."""
        return True

    def charged(self, obj: Workload, raw: bytes) -> Charged:
        """Return nothing."""
        return {}
