"""The kind: held back at our gate in both pod templates, run by nobody at home. It ends as its status says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.patches import Json, decode, encode, guards, status_of, status_patch, stop_marked
from gatelift_kinds.shared.pods import count_pods, holds_resources
from gatelift_kinds.shared.values import (
    ALL_GRANTED,
    Charged,
    DeleteStep,
    KindError,
    ObjectEnd,
    Part,
    Placing,
    PodSpecAt,
    Priority,
    PriorityNames,
    Step,
)
from gatelift_kinds.shared.workload_document import describes, pod_set_document, workload_document
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.values.resources import Resource
from gatelift_wire.values.keys import FINALIZER_REPORT, PlacementKey
from gatelift_wire.values.messages import PodSetCounts
from support.toys.training.objects import TRAINING, Group, Training

GROUPS = ("leader", "workers")
REPLACES = "toys.example.com/replaces"
"""Names, on a second Workload, the one whose place it is to take."""
_NOT_HERE = "nobody runs it here: use a queue with a MultiKueue check"


class TrainingKind(Kind[Training]):
    """See `gatelift_kinds.kind.Kind`."""

    name: str = "Training"
    resource: Resource = TRAINING
    struct: type[Any] = Training
    pods_are_children: bool = True
    pod_specs: tuple[PodSpecAt, ...] = tuple(PodSpecAt(each, (each, "template")) for each in GROUPS)

    # --- what it asks for

    def managed(self, obj: Training) -> bool:
        return bool(self.queue_name(obj))

    def queue_name(self, obj: Training) -> str:
        return obj.metadata.labels.get(markers.QUEUE_NAME, "")

    def priority_names(self, obj: Training) -> PriorityNames:
        return PriorityNames(workload_class=obj.metadata.labels.get(markers.PRIORITY_CLASS, ""))

    def workload_name(self, obj: Training) -> str:
        return workload_name(TRAINING.kind, TRAINING.group, obj.metadata.name, obj.metadata.uid)

    def replaces(self, workload: Workload, current: Workload) -> bool:
        return workload.metadata.annotations.get(REPLACES) == current.metadata.name

    def workload_document(self, obj: Training, raw: bytes, priority: Priority) -> bytes:
        spec = decode(raw)["spec"]
        return workload_document(
            name=self.workload_name(obj),
            owner=TRAINING,
            meta=obj.metadata,
            queue=self.queue_name(obj),
            priority=priority,
            pod_sets=[
                pod_set_document(name, group.replicas, {}, spec[name]["template"]["spec"])
                for name, group in _groups(obj).items()
            ],
        )

    def pod_sets(self, obj: Training) -> tuple[PodSet, ...]:
        return tuple(
            PodSet(name=name, count=group.replicas, template=group.template) for name, group in _groups(obj).items()
        )

    def equivalent(self, workload: Workload, obj: Training) -> bool:
        return describes(workload, obj.metadata, self.pod_sets(obj), started=False)

    def suspended(self, obj: Training) -> bool:
        return True

    def away_only(self, obj: Training) -> str:
        return _NOT_HERE

    def outcome(self, obj: Training) -> ObjectEnd | None:
        over = obj.status.phase in {"Succeeded", "Failed"}
        return ObjectEnd(succeeded=obj.status.phase == "Succeeded") if over else None

    def pods_ready(self, obj: Training) -> bool:
        return obj.status.phase in {"Running", "Succeeded"}

    def mirror_patch(self, obj: Training, raw: bytes, reported: bytes) -> bytes | None:
        return status_patch(obj.metadata, status_of(raw), decode(reported))

    # --- what travels

    def parts(self, obj: Training, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        spec = encode(decode(raw)["spec"])
        return (Part(name=obj.metadata.name, pod_set=GROUPS[0], metadata=encode({}), spec=spec),)

    def document(self, part: Part, placing: Placing) -> bytes:
        marks, spec = decode(part.metadata), decode(part.spec)
        for name in GROUPS:
            _hold(spec[name]["template"], name, placing)
        metadata = {
            "name": part.name,
            "namespace": placing.namespace,
            "labels": {**marks.get("labels", {}), **placing.owner_labels},
            "annotations": marks.get("annotations", {}),
            "finalizers": [FINALIZER_REPORT],
        }
        return encode({"apiVersion": TRAINING.api_version, "kind": TRAINING.kind, "metadata": metadata, "spec": spec})

    def lifted(self, obj: Training) -> bool:
        return not any(spec.scheduling_gates for spec in self.specs(obj))

    def liftable(self, obj: Training, key: PlacementKey) -> bool:
        return obj.metadata.deletion_timestamp is None and not stop_marked(obj.metadata, key)

    def lift_patch(self, obj: Training) -> bytes:
        gates = [f"/spec/{name}/template/spec/schedulingGates" for name in GROUPS]
        return encode([*guards(obj.metadata), *({"op": "remove", "path": each} for each in gates)])

    def stop_step(self, obj: Training, key: PlacementKey) -> Step | None:
        return DeleteStep() if obj.metadata.deletion_timestamp is None else None

    def stopped(self, obj: Training, pods: Sequence[Pod], key: PlacementKey) -> bool:
        ends = self.outcome(obj) is not None or obj.metadata.deletion_timestamp is not None
        return ends and not any(map(holds_resources, pods))

    def at_rest(self, obj: Training, raw: bytes) -> bool:
        return self.outcome(obj) is not None

    def counts(self, obj: Training, pods: Sequence[Pod]) -> tuple[PodSetCounts, ...]:
        return tuple(
            count_pods(name, [pod for pod in pods if pod.metadata.labels.get(markers.POD_SET) == name])
            for name in GROUPS
        )

    def missing(self, obj: Training, seen: PodSetCounts) -> tuple[int, int]:
        due = _groups(obj)[seen.name].replicas
        return max(0, due - seen.remaining), due

    def charged(self, obj: Training, raw: bytes) -> Charged:
        return {name: group.replicas for name, group in _groups(obj).items()}

    def pods_of_it(self, obj: Training, raw: bytes) -> Mapping[str, bytes]:
        spec = decode(raw)["spec"]
        return {name: _pod(obj, spec[name]["template"], name) for name in GROUPS}

    # --- what is held at home: nothing is let go there

    def let_go_here(self, obj: Training) -> bool:
        return False

    def local_lift_patch(self, obj: Training, raw: bytes, placing: Placing) -> bytes:
        raise KindError(_NOT_HERE)

    def local_stop_step(self, obj: Training, raw: bytes, key: PlacementKey) -> Step | None:
        return None


def _groups(obj: Training) -> dict[str, Group]:
    return {"leader": obj.spec.leader, "workers": obj.spec.workers}


def _hold(template: Json, pod_set: str, placing: Placing) -> None:
    metadata = template.setdefault("metadata", {})
    start = placing.start(pod_set)
    labels = {**start.labels, markers.POD_SET: pod_set, **placing.owner_labels}
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    spec = template["spec"]
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **start.node_selector}
    spec["schedulingGates"] = [{"name": markers.ADMISSION_GATE}]


def _pod(obj: Training, template: Json, pod_set: str) -> bytes:
    metadata = {**template.get("metadata", {}), "name": f"{obj.metadata.name}-{pod_set}"}
    metadata["namespace"] = obj.metadata.namespace
    return encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]})
