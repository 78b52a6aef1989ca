"""What manager and agent write of a group: the bodies, for scripts that write the same and decide nothing. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.fleet import FLAVOR, NAMESPACE
from gatelift_admission.demand.requests import pod_requests
from gatelift_admission.values.amounts import to_text
from gatelift_agent.core.changes import allowances
from gatelift_agent.core.refusing.sanitise import sanitise
from gatelift_agent.core.values.settings import Policy
from gatelift_agent.core.watched import ownership
from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.pod_group import document
from gatelift_kinds.pod_group.composition import GroupPlan, PlannedSet
from gatelift_kinds.pod_group.kind import PodGroupKind
from gatelift_kinds.pod_group.shapes import template_of
from gatelift_kinds.shared.values import Part, Placing, Priority
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSetAssignment
from gatelift_wire.values.keys import PlacementKey

KIND, ALONE = PodGroupKind(), PodKind()


def group_workload(pods: Sequence[tuple[Pod, bytes]]) -> bytes:
    """Return the Workload of a group of equal pods, the oldest first."""
    first, raw = pods[0]
    plan = GroupPlan(pod_sets=(PlannedSet(name=KIND.pod_set_of(first, raw), count=len(pods), like=first.metadata.uid),))
    about = document.GroupWorkload(
        namespace=NAMESPACE,
        group=KIND.workload_name(first),
        queue=KIND.queue_name(first),
        priority=Priority(),
    )
    return document.document(plan, about, [pod.metadata for pod, _ in pods], {first.metadata.uid: raw})


def grant(pod: Pod, raw: bytes, count: int) -> PodSetAssignment:
    """Return what so many equal pods are granted."""
    asked = pod_requests(pod.spec)
    usage: dict[str, str | int | float] = {name: to_text(amount * count, name) for name, amount in asked.items()}
    flavors = dict.fromkeys(usage, FLAVOR)
    return PodSetAssignment(name=KIND.pod_set_of(pod, raw), flavors=flavors, resource_usage=usage, count=count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What the pods of a group at a worker have in common; made once for all of them, as it travels."""

    role: str
    spec: bytes
    labels: dict[str, Any]
    annotations: dict[str, Any]
    placing: Placing

    def body(self, name: str, user_uid: str) -> bytes:
        """Return one of them as an agent makes it."""
        notes = {**self.annotations, ownership.ANNOTATION_USER_UID: user_uid}
        metadata = json.dumps({"labels": self.labels, "annotations": notes}).encode()
        return KIND.document(Part(name=name, pod_set=self.role, metadata=metadata, spec=self.spec), self.placing)


def placed(pod: Pod, raw: bytes, count: int, key: PlacementKey, origin: str) -> Placed:
    """Return what so many pods like this one have in common as one placement of a worker."""
    template, role = template_of(raw), KIND.pod_set_of(pod, raw)
    marks = json.loads(template.metadata)
    notes = {
        ownership.ANNOTATION_POD_SET: role,
        ownership.ANNOTATION_PLACED_AS: ownership.placed_as_text(origin, key),
        ownership.ANNOTATION_KIND: KIND.name,
        ownership.ANNOTATION_OBJECTS: str(count),
        allowances.ANNOTATION_GRANTED: allowances.note(dict(pod_requests(pod.spec))),
    }
    return Placed(
        role=role,
        spec=sanitise(KIND, template.spec, Policy()),
        labels=marks["labels"],
        annotations={**marks["annotations"], **notes},
        placing=Placing(key=key, origin=origin, namespace=NAMESPACE),
    )


def placed_alone(pod: Pod, raw: bytes, key: PlacementKey, origin: str) -> bytes:
    """Return a pod of no group as an agent makes it, with all that it notes on one."""
    (part,) = ALONE.parts(pod, raw)
    marks = json.loads(part.metadata)
    notes = {
        ownership.ANNOTATION_POD_SET: part.pod_set,
        ownership.ANNOTATION_PLACED_AS: ownership.placed_as_text(origin, key),
        ownership.ANNOTATION_USER_UID: f"user-of-{part.name}",
        allowances.ANNOTATION_GRANTED: allowances.note(dict(pod_requests(pod.spec))),
    }
    marks["annotations"] = {**(marks.get("annotations") or {}), **notes}
    spec, metadata = sanitise(ALONE, part.spec, Policy()), json.dumps(marks).encode()
    whole = Part(name=part.name, pod_set=part.pod_set, metadata=metadata, spec=spec)
    return ALONE.document(whole, Placing(key=key, origin=origin, namespace=NAMESPACE))
