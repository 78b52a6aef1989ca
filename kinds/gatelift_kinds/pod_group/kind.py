"""A pod of a group: what is asked of one pod goes by `any_pod`, of all of them together by `gathering`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatelift_kinds.any_pod.kind import AnyPodKind
from gatelift_kinds.pod_group import marks, roles
from gatelift_kinds.pod_group.declaration import declared
from gatelift_kinds.pod_group.document import work_id
from gatelift_kinds.pod_group.gathering import GatheredPods
from gatelift_kinds.pod_group.reviewed import ReviewedMember
from gatelift_kinds.pod_group.shapes import quota_digest
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kinds.shared.patches import decode
from gatelift_kinds.shared.values import ALL_GRANTED, KindError, MergeConflictError, Part, Placing, Priority
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

    def gathering(self, obj: Pod, copied: Sequence[str] = ()) -> Gathered:
        """Return the count of its group, of no pods yet."""
        return GatheredPods(obj.metadata.namespace, _group(obj), self.managed, copied)

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

    def local_lift_patch(self, obj: Pod, raw: bytes, placing: Placing) -> bytes:
        """Return the patch of any pod, for one that needs what its group was admitted for."""
        admitted = placing.start(self.pod_set_of(obj, raw)).needs
        if admitted and quota_digest(obj.spec) != admitted:
            text = "asks for something else than the group was admitted for: make it like the others of its role"
            raise MergeConflictError(f"pod {obj.metadata.name}: {text}")
        return super().local_lift_patch(obj, raw, placing)

    def pod_set_of(self, obj: Pod, raw: bytes) -> str:
        """Return its role: as it declares, as it says, or by its shape."""
        said = marks.read(obj.metadata.labels, obj.metadata.annotations)
        sets = declared(said.sets).declaration if said.sets else None
        if sets is not None:
            return sets.own(said.role)
        return said.role or roles.fit(said, decode(raw)["spec"]).role


def _group(obj: Pod) -> str:
    return markers.group_name(obj.metadata.labels, obj.metadata.annotations)
