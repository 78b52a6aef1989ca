"""A pod of a group: what is asked of one pod goes by `any_pod`, of all of them together by `gathering`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatelift_kinds.any_pod.kind import AnyPodKind
from gatelift_kinds.pod_group import marks, roles, taking_in
from gatelift_kinds.pod_group.declaration import declared
from gatelift_kinds.pod_group.document import work_id
from gatelift_kinds.pod_group.gathering import GatheredPods
from gatelift_kinds.pod_group.reviewed import ReviewedMember
from gatelift_kinds.pod_group.shapes import quota_digest
from gatelift_kinds.shared import markers, pods
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kinds.shared.patches import decode
from gatelift_kinds.shared.values import (
    ALL_GRANTED,
    KindError,
    MergeConflictError,
    Part,
    PatchStep,
    Placing,
    Priority,
)
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSet, Workload

OF_ALL = "is asked of all pods of a group together"


class PodGroupKind(ReviewedMember, AnyPodKind):
    """See `gatelift_kinds.kind.Kind`. What of one member would be taken for all is refused by an error."""

    name: str = "PodGroup"
    gathers: bool = True
    reclaims: bool = True

    def selects(self, obj: Pod) -> bool:
        """Return whether it names a group; the webhook lets nobody change that."""
        return bool(_group(obj))

    def work_of(self, obj: Pod) -> str:
        """Return the id of its group's work."""
        return work_id(obj.metadata.namespace, _group(obj))

    def gathering(self, obj: Pod, copied: Sequence[str] = (), name: str = "") -> Gathered:
        """Return the count of its group, or of the one of that name, of no pods yet."""
        return GatheredPods(obj.metadata.namespace, name or _group(obj), self.managed, copied)

    def workload_name(self, obj: Pod) -> str:
        """Return the group's name."""
        return _group(obj)

    def workload_document(self, obj: Pod, raw: bytes, priority: Priority) -> bytes:
        """Refuse: the Workload of one pod would start a group by it."""
        raise KindError(f"workload: {OF_ALL}")

    def equivalent(self, workload: Workload, obj: Pod) -> bool:
        """Return False: no Workload of a group is what one pod asks for."""
        return False

    def pod_sets(self, obj: Pod) -> tuple[PodSet, ...]:
        """Return none: they are the group's."""
        return ()

    def parts(self, obj: Pod, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        """Refuse: nothing of a group travels by one pod."""
        raise KindError(f"placement: {OF_ALL}")

    def unlike(self, obj: Pod, raw: bytes, declared: bytes, default_class: str) -> str:
        """Return in what it differs from what its driver declared."""
        return taking_in.unlike(raw, declared, default_class)

    def taken_in_patch(self, obj: Pod, raw: bytes, part: Part, placing: Placing) -> bytes:
        """Return the patch of labels, marks, finalizer and what flavor and checks add."""
        return taking_in.patch(obj, raw, part, placing)

    def local_lift_patch(self, obj: Pod, raw: bytes, placing: Placing) -> bytes:
        """Return the patch of any pod, for one that needs what its group was admitted for."""
        admitted = placing.start(self.pod_set_of(obj, raw)).needs
        if admitted and quota_digest(obj.spec) != admitted:
            text = "asks for something else than the group was admitted for: make it like the others of its role"
            raise MergeConflictError(f"pod {obj.metadata.name}: {text}")
        return super().local_lift_patch(obj, raw, placing)

    def unplaced_steps(self, obj: Pod, raw: bytes, wall: str) -> tuple[PatchStep, ...]:
        """Return nothing for a pod that is over: so it is in each later epoch (HD-387)."""
        return () if pods.over(obj) else super().unplaced_steps(obj, raw, wall)

    def pod_set_of(self, obj: Pod, raw: bytes) -> str:
        """Return its role: the declared set that it names, where it names one, or is the driver's own (HD-386)."""
        said = marks.read(obj.metadata.labels, obj.metadata.annotations)
        if said.declared:
            found = declared(said.sets).declaration if said.sets else None
            return found.own(said.role) if found is not None else said.role
        return roles.fit(said, decode(raw)["spec"]).role


def _group(obj: Pod) -> str:
    return markers.group_name(obj.metadata.labels, obj.metadata.annotations)
