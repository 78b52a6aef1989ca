"""A single Pod: its Workload has one pod set `main` with one pod, itself. Pure.

Pods of a group are another kind. What is done with pods whoever they are of is in `any_pod`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatelift_kinds.any_pod.kind import AnyPodKind
from gatelift_kinds.pod import rules as pod_rules
from gatelift_kinds.shared import markers, pod_review
from gatelift_kinds.shared.generated_labels import own_labels
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.patches import decode, encode
from gatelift_kinds.shared.review import HeldChange, Verdict, WebhookFacts
from gatelift_kinds.shared.values import ALL_GRANTED, Part, Priority
from gatelift_kinds.shared.workload_document import describes, pod_set_document, workload_document
from gatelift_kube.objects.core import Pod, PodTemplate
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.values.resources import POD


class PodKind(AnyPodKind):
    """See `gatelift_kinds.kind.Kind`."""

    name: str = "Pod"
    ends_with_workload: bool = True

    def managed(self, obj: Pod) -> bool:
        """Return whether the webhook took the pod over and it stands alone."""
        return not _of_group(obj) and super().managed(obj)

    def was_alone(self, obj: Pod) -> bool:
        """Return whether the webhook took it over and it names a group: it may have been queued by itself before."""
        return _of_group(obj) and super().managed(obj)

    def out_of_sight(self, obj: Pod) -> bool:
        """Return whether it has neither label by which pods are watched; one of a group is nobody's."""
        return not _of_group(obj) and super().out_of_sight(obj)

    def workload_name(self, obj: Pod) -> str:
        """Return `pod-<name>-<5 hex>`."""
        return workload_name(POD.kind, POD.group, obj.metadata.name, obj.metadata.uid)

    def workload_document(self, obj: Pod, raw: bytes, priority: Priority) -> bytes:
        """Return a Workload of one pod set `main` with one pod: the pod itself."""
        document = decode(raw)
        return workload_document(
            name=self.workload_name(obj),
            owner=POD,
            meta=obj.metadata,
            queue=self.queue_name(obj),
            priority=priority,
            pod_sets=[pod_set_document(markers.DEFAULT_POD_SET, 1, document["metadata"], document["spec"])],
        )

    def equivalent(self, workload: Workload, obj: Pod) -> bool:
        """Return whether the Workload asks for what the pod does."""
        return describes(workload, obj.metadata, self.pod_sets(obj), started=self.lifted(obj))

    def pod_sets(self, obj: Pod) -> tuple[PodSet, ...]:
        """Return one pod set of one pod: the pod itself."""
        return (PodSet(name=markers.DEFAULT_POD_SET, count=1, template=PodTemplate(spec=obj.spec)),)

    def parts(self, obj: Pod, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        """Return the pod: its spec with the user's gates but none of ours."""
        spec = decode(raw)["spec"]
        gates = [gate for gate in spec.pop("schedulingGates", []) if gate.get("name") not in markers.GATES_OF_ADMISSION]
        if gates:
            spec["schedulingGates"] = gates
        marks = {
            "labels": own_labels(markers.travelling(obj.metadata.labels)),
            "annotations": markers.travelling(obj.metadata.annotations),
        }
        part = Part(
            name=obj.metadata.name,
            pod_set=markers.DEFAULT_POD_SET,
            metadata=encode(marks),
            spec=encode(spec),
        )
        return (part,)

    # --- the webhook -------------------------------------------------------------------------------------------

    def defaults(self, obj: Mapping[str, Any], facts: WebhookFacts) -> tuple[dict[str, Any], ...]:
        """Return label, finalizer, gate, role hash, default queue and priority class."""
        return pod_review.defaults(obj, facts)

    def validate_create(self, obj: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a new pod."""
        return pod_rules.validate_create(obj, facts)

    def held_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[HeldChange, ...]:
        """Return what a run elsewhere takes no notice of, while the gate is there."""
        return pod_review.held_changes(old, new)

    def depends_on_quota(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return whether something is changed that its Workload follows only while it waits."""
        return pod_rules.depends_on_quota(old, new)

    def validate_update(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a change of a pod."""
        return pod_rules.validate_update(old, new, facts)


def _of_group(obj: Pod) -> bool:
    return bool(markers.group_name(obj.metadata.labels, obj.metadata.annotations))
