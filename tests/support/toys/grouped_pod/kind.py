"""The kind: the pods of one group are one work. Of how a group is composed, placed and ended it says nothing."""

from __future__ import annotations

from gatelift_kinds.pod.kind import PodKind
from gatelift_kube.objects.core import Pod

GROUP = "toys.example.com/group"


def work_id(namespace: str, group: str) -> str:
    """Return the id of a group's work; no object's UID has a slash."""
    return f"group/{namespace}/{group}"


class GroupedPodKind(PodKind):
    """See `gatelift_kinds.kind.Kind`."""

    name: str = "GroupedPod"

    def selects(self, obj: Pod) -> bool:
        return GROUP in obj.metadata.labels

    def work_of(self, obj: Pod) -> str:
        return work_id(obj.metadata.namespace, obj.metadata.labels[GROUP])

    def workload_name(self, obj: Pod) -> str:
        return obj.metadata.labels[GROUP]
