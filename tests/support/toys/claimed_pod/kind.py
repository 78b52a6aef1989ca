"""The kind: a single pod in all but its name, that of its Workload and that of its pod set."""

from __future__ import annotations

from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.patches import decode, encode
from gatelift_kinds.shared.values import PodSpecAt, Priority
from gatelift_kube.objects.core import Pod, PodTemplate
from gatelift_kube.objects.kueue import PodSet

LABEL = "toys.example.com/claimed"
POD_SET = "claimed"


class ClaimedPodKind(PodKind):
    """See `gatelift_kinds.kind.Kind`."""

    name: str = "ClaimedPod"
    pod_specs: tuple[PodSpecAt, ...] = (PodSpecAt(POD_SET),)

    def selects(self, obj: Pod) -> bool:
        return LABEL in obj.metadata.labels

    def workload_name(self, obj: Pod) -> str:
        return workload_name(self.name, "toys.example.com", obj.metadata.name, obj.metadata.uid)

    def workload_document(self, obj: Pod, raw: bytes, priority: Priority) -> bytes:
        document = decode(super().workload_document(obj, raw, priority))
        document["spec"]["podSets"][0]["name"] = POD_SET
        return encode(document)

    def pod_sets(self, obj: Pod) -> tuple[PodSet, ...]:
        return (PodSet(name=POD_SET, count=1, template=PodTemplate(spec=obj.spec)),)
