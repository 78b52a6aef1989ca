"""A Workload without an owner: admitted like any other, nothing of it is made anywhere. Pure.

Kueue's own load generator uses them, and whoever wants quota for work of his own making. It ends when somebody sets
its condition Finished or deletes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.patches import without_finalizer
from gatelift_kinds.shared.review import NO_CORRECTION, Change, Correction, Verdict, WebhookFacts
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
    UserChange,
)
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import WORKLOAD, Resource
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import PodSetCounts

_NO_OBJECTS = "a Workload without an owner has no objects: use a queue without a MultiKueue check"


class BareKind:
    """See `gatelift_kinds.kind.Kind`. The user's object is the Workload itself."""

    name: str = "Workload"
    resource: Resource = WORKLOAD
    pods_are_children: bool = False
    travels: bool = False

    def managed(self, obj: Workload) -> bool:
        """Return whether nobody owns it."""
        return not obj.metadata.owner_references

    def marked_step(self, obj: Workload) -> PatchStep | None:
        """Return nothing: it is watched without a label."""
        return None

    def out_of_sight(self, obj: Workload) -> bool:
        """Return False: all Workloads are watched."""
        return False

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

    def suspended(self, obj: Workload) -> bool:
        """Return True: nothing of it runs here."""
        return True

    def home_only(self, obj: Workload) -> str:
        """Return nothing: nothing of it runs anywhere."""
        return ""

    def away_only(self, obj: Workload) -> str:
        """Return nothing: nothing of it runs anywhere."""
        return ""

    def nowhere(self, obj: Workload) -> str:
        """Return nothing: nothing of it runs anywhere."""
        return ""

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

    def shown(self, obj: Workload, reported: bytes) -> bytes:
        """Return nothing: nobody reports on it."""
        return b""

    def mirror_patch(self, obj: Workload, raw: bytes, reported: bytes) -> bytes | None:
        """Return nothing: nobody reports on it."""
        return None

    def end_patch(self, obj: Workload, raw: bytes, outcome: ObjectEnd, wall: str) -> bytes | None:
        """Return nothing: its end is its own condition."""
        return None

    def placed_step(
        self, obj: Workload, key: PlacementKey, granted: Mapping[str, int] = ALL_GRANTED
    ) -> PatchStep | None:
        """Return nothing."""
        return None

    def user_change(
        self, obj: Workload, workload: Workload, key: PlacementKey, granted: Mapping[str, int]
    ) -> UserChange | None:
        """Return nothing."""
        return None

    def unreachable_patch(self, obj: Workload, raw: bytes, message: str, wall: str) -> bytes | None:
        """Return nothing: the Workload says it itself."""
        return None

    def trouble_patch(self, obj: Workload, raw: bytes, said: Condition | None) -> bytes | None:
        """Return nothing: nothing of it runs."""
        return None

    def lets_itself_go(self, obj: Workload) -> bool:
        """Return False."""
        return False

    def unplaced_steps(self, obj: Workload, raw: bytes, wall: str) -> tuple[PatchStep, ...]:
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

    def local_hold_step(self, obj: Workload) -> PatchStep | None:
        """Return nothing."""
        return None

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

    def local_note(self, obj: Workload) -> str:
        """Return nothing."""
        return ""

    def local_note_patch(self, obj: Workload, raw: bytes, said: str) -> bytes | None:
        """Return nothing: there is nothing to put back."""
        return None

    def stopped(self, obj: Workload, pods: Sequence[Pod], key: PlacementKey) -> bool:
        """Return True."""
        return True

    def counts(self, obj: Workload, pods: Sequence[Pod]) -> tuple[PodSetCounts, ...]:
        """Return nothing."""
        return ()

    def reclaimable(self, obj: Workload) -> tuple[tuple[str, int], ...]:
        """Return nothing: whoever runs it says so in its status."""
        return ()

    def pods_ended(self, obj: Workload) -> int:
        """Return 0: nothing is made of it."""
        return 0

    def user_gates_patch(self, obj: Workload, remaining: Sequence[str]) -> bytes | None:
        """Return nothing."""
        return None

    def charged(self, obj: Workload, raw: bytes) -> Charged:
        """Return nothing."""
        return {}

    def uncharged(self, raw: bytes) -> Mapping[str, str]:
        """Return nothing: it has none."""
        return {}

    def pod_of_it(self, obj: Workload, raw: bytes) -> bytes | None:
        """Return None: it makes none."""
        return None

    def put_back(self, obj: Workload, raw: bytes, wanted: Charged) -> bytes | None:
        """Return None."""
        return None

    def may_put_back(self, obj: Workload, wanted: Charged, pods: Sequence[Pod]) -> bool:
        """Return True: nothing of it is put back."""
        return True

    def put_back_starts(self, obj: Workload, wanted: Charged) -> bool:
        """Return False: nothing of it is put back."""
        return False

    def defaults(self, obj: Mapping[str, Any], facts: WebhookFacts) -> tuple[dict[str, Any], ...]:
        """Return nothing: the CRD's defaults are enough."""
        return ()

    def corrected(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Correction:
        """Return nothing."""
        return NO_CORRECTION

    def validate_create(self, obj: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Allow: the CRD's rules are all there are."""
        return Verdict()

    def held_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Change, ...]:
        """Return nothing: nobody runs it."""
        return ()

    def validate_update(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Allow: the CRD's rules are all there are."""
        return Verdict()
