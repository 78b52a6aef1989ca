"""The kind: its pods come gated in both pod sets, and are let go by count. It has sizes when its spec says elastic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatelift_kinds.shared import markers, sized_pods, slices
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.patches import add_to_map, decode, encode, guards
from gatelift_kinds.shared.sized_pods import Surplus
from gatelift_kinds.shared.sizes import Counts, Size, SizeMark, mark_of, written
from gatelift_kinds.shared.values import ALL_GRANTED, Charged, Part, Placing, Priority
from gatelift_kinds.shared.workload_document import same_needs
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.keys import ANNOTATION_SIZE
from support.toys.training.kind import GROUPS, TrainingKind
from support.toys.training.objects import TRAINING, Training

_GATE = {"name": markers.ELASTIC_JOB}


class ElasticTrainingKind(TrainingKind):
    """See `gatelift_kinds.shared.resizes.Resizes`."""

    sliced: bool = True

    def gated(self, obj: Training) -> bool:
        notes = obj.metadata.annotations
        return slices.asks(notes) or ANNOTATION_SIZE in notes

    def resizes(self, obj: Training) -> bool:
        return slices.asks(obj.metadata.annotations)

    def wanted(self, obj: Training) -> Counts:
        return {"leader": obj.spec.leader.replicas, "workers": obj.spec.workers.replicas}

    def are_ready(self, obj: Training, counts: Counts) -> bool:
        return self.pods_ready(obj)

    def slice_name(self, obj: Training, again: str = "") -> str:
        meta = obj.metadata
        return workload_name(TRAINING.kind, TRAINING.group, meta.name, meta.uid, f"{meta.generation}{again}")

    def workload_name(self, obj: Training) -> str:
        return self.slice_name(obj) if self.resizes(obj) else super().workload_name(obj)

    def workload_document(self, obj: Training, raw: bytes, priority: Priority) -> bytes:
        made = super().workload_document(obj, raw, priority)
        return slices.first(made) if self.resizes(obj) else made

    def replaces(self, workload: Workload, current: Workload) -> bool:
        return slices.replaces(workload, current)

    def same_shape(self, workload: Workload, obj: Training) -> bool:
        mine, theirs = self.pod_sets(obj), workload.spec.pod_sets
        return len(mine) == len(theirs) and all(
            a.name == b.name and same_needs(a, b, started=False) for a, b in zip(mine, theirs, strict=True)
        )

    def parts(self, obj: Training, raw: bytes, granted: Mapping[str, int] = ALL_GRANTED) -> tuple[Part, ...]:
        spec = decode(raw)["spec"]
        for name in GROUPS if self.gated(obj) else ():
            spec[name]["replicas"] = granted.get(name, spec[name]["replicas"])
        return super().parts(obj, encode({"spec": spec}), granted)

    def document(self, part: Part, placing: Placing) -> bytes:
        made = decode(super().document(part, placing))
        if placing.size is not None:
            for name in GROUPS:
                made["spec"][name]["template"]["spec"]["schedulingGates"].append(_GATE)
            counts = {one.pod_set: one.count or 0 for one in placing.starts}
            made["metadata"]["annotations"][ANNOTATION_SIZE] = written(SizeMark(number=placing.size, counts=counts))
        return encode(made)

    def lifted(self, obj: Training) -> bool:
        gates = [gate.name for spec in self.specs(obj) for gate in spec.scheduling_gates]
        return markers.ADMISSION_GATE not in gates

    def lift_patch(self, obj: Training) -> bytes:
        left = [_GATE] if self.gated(obj) else []
        paths = [f"/spec/{name}/template/spec/schedulingGates" for name in GROUPS]
        return encode([*guards(obj.metadata), *({"op": "replace", "path": each, "value": left} for each in paths)])

    def mark(self, obj: Training) -> SizeMark | None:
        return mark_of(obj.metadata.annotations)

    def size_patch(self, obj: Training, size: Size) -> bytes | None:
        mark = SizeMark(number=size.number, counts=dict(size.counts))
        if self.mark(obj) == mark and self.wanted(obj) == size.counts:
            return None
        noted = add_to_map(("metadata", "annotations"), obj.metadata.annotations, {ANNOTATION_SIZE: written(mark)})
        fields = [{"op": "add", "path": f"/spec/{name}/replicas", "value": size.counts[name]} for name in GROUPS]
        return encode([*guards(obj.metadata), *noted, *fields])

    def charged_at(self, obj: Training, raw: bytes, mark: SizeMark) -> Charged:
        return dict(mark.counts)

    def gated_pods(self, obj: Training, pods: Sequence[Pod]) -> Mapping[str, tuple[Pod, ...]]:
        own = sized_pods.of(obj.metadata.uid, pods)
        return {
            name: sized_pods.in_lift_order(pod for pod in own if sized_pods.pod_set_of(pod) == name) for name in GROUPS
        }

    def surplus(self, obj: Training, pods: Sequence[Pod], counts: Counts) -> tuple[Surplus, ...]:
        return tuple(sized_pods.surplus(name, counts[name], pods) for name in GROUPS)
