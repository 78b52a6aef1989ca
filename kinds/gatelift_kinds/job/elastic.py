"""An elastic Job (KEP-77): how many pods its user wants, and what it is set to where it runs. Pure.

It is made suspended, and unsuspending is its lift, as of any Job. Its pods come gated besides, and are let go by count.
At a worker it has as many pods as it was set to. At `local` it has as many as its user wants, and those that he was not
granted wait at the gate.

Completions of an Indexed Job that are as many as its pods at once go up and down with them, as the API server lets
nobody change them otherwise. Whether that is so stays as it was when the Job was let go: the webhook holds its user to
it, and at a worker the mark says it, since a parallelism that has come to the number of completions tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.shared import markers, sized_pods, slices, workload_document
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.patches import Json, Operation, add_to_map, encode, guards
from gatelift_kinds.shared.sized_pods import Surplus
from gatelift_kinds.shared.sizes import Counts, Size, SizeError, SizeMark, mark_of, written
from gatelift_kinds.shared.values import Charged, MergeConflictError, Placing
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.values.resources import JOB
from gatelift_wire.values.keys import ANNOTATION_SIZE

NO_GATE = (
    f"spec.template.spec.schedulingGates: {markers.ELASTIC_JOB} is missing, at which the pods of an elastic Job wait "
    "until they are granted: make the Job anew"
)


def is_gated(obj: Job) -> bool:
    """Return whether its pods wait at the gate of elastic work for us to let them go.

    A gate alone says nothing: users give their pods what gates they like. At home the Job asks for it; at a worker, to
    which Kueue's marks do not travel, it was set to a size.
    """
    notes = obj.metadata.annotations
    named = any(gate.name == markers.ELASTIC_JOB for gate in obj.spec.template.spec.scheduling_gates)
    return named and (slices.asks(notes) or ANNOTATION_SIZE in notes)


def wanted(obj: Job) -> Counts:
    """Return as many pods as may run at once, as its Workload counts them."""
    return {markers.DEFAULT_POD_SET: job_partial.pods_at_once(job_partial.asked(obj))}


def are_ready(obj: Job, counts: Counts) -> bool:
    """Return whether as many pods are ready, or have succeeded."""
    return obj.status.succeeded + (obj.status.ready or 0) >= counts.get(markers.DEFAULT_POD_SET, 0)


def slice_name(obj: Job, again: str) -> str:
    """Return `job-<name>-<5 hex>` with the Job's generation in the digits."""
    meta = obj.metadata
    extra = f"{meta.generation}-{again}" if again else str(meta.generation)
    return workload_name(JOB.kind, JOB.group, meta.name, meta.uid, extra)


def same_shape(workload: Workload, obj: Job, shape: PodSet, *, started: bool) -> bool:
    """Return whether the Workload has this pod set, whatever its count, and the Job's execution limit."""
    if len(workload.spec.pod_sets) != 1:
        return False
    counted = (PodSet(name=shape.name, count=workload.spec.pod_sets[0].count, template=shape.template),)
    return workload_document.describes(workload, obj.metadata, counted, started=started)


def is_tied(mode: str | None, size: job_partial.Before) -> bool:
    """Return whether completions are as many as the pods at once, and are changed with them."""
    return mode == "Indexed" and size.completions == size.parallelism


def fields(count: int, *, tied: bool) -> dict[str, int]:
    """Return what the spec of a Job says at a size."""
    return {"parallelism": count, "completions": count} if tied else {"parallelism": count}


def granted_spec(obj: Job, spec: Json, granted: int | None) -> Json:
    """Return the spec that travels, for as many pods as are granted where that is fewer than its user wants."""
    if granted is None or granted >= wanted(obj)[markers.DEFAULT_POD_SET]:
        return spec
    return {**spec, **fields(granted, tied=is_tied(obj.spec.completion_mode, job_partial.now(obj)))}


def marked(document: Json, placing: Placing) -> Json:
    """Return a worker's Job with the mark of the size at which it is made. MergeConflictError: its pods are not gated.

    SizeError: nobody says how many pods were granted.
    """
    if placing.size is None:
        return document
    spec, metadata = document["spec"], document["metadata"]
    gates = (spec["template"].get("spec") or {}).get("schedulingGates") or ()
    if not any(gate.get("name") == markers.ELASTIC_JOB for gate in gates):
        raise MergeConflictError(NO_GATE)
    tied = is_tied(spec.get("completionMode"), job_partial.of_spec(spec))
    annotations = {**metadata.get("annotations", {}), ANNOTATION_SIZE: first_mark(placing, tied=tied)}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def first_mark(placing: Placing, *, tied: bool) -> str:
    """Return the mark of a Job that is made, or let go at `local`, at the size of its placement."""
    granted = placing.start(markers.DEFAULT_POD_SET).count
    if placing.size is None or granted is None:
        raise SizeError("the size of an elastic Job is not known, and without it no pod of it is let go")
    return written(SizeMark(number=placing.size, counts={markers.DEFAULT_POD_SET: granted}, tied=tied))


def size_patch(obj: Job, size: Size, *, here: bool) -> bytes | None:
    """Return the patch to a size: of the spec and the mark, `here` of the mark alone; None where it is set to it."""
    before = mark_of(obj.metadata.annotations)
    now = job_partial.now(obj)
    tied = is_tied(obj.spec.completion_mode, now) if before is None else before.tied
    mark = SizeMark(number=size.number, counts={markers.DEFAULT_POD_SET: _count(size)}, tied=tied)
    changes = {} if here else {key: value for key, value in _fields(mark).items() if getattr(now, key) != value}
    if before == mark and not changes:
        return None
    notes = add_to_map(("metadata", "annotations"), obj.metadata.annotations, {ANNOTATION_SIZE: written(mark)})
    edits: list[Operation] = [{"op": "add", "path": f"/spec/{key}", "value": changes[key]} for key in sorted(changes)]
    return encode([*guards(obj.metadata), *notes, *edits])


def charged_at(charged: Charged, mark: SizeMark) -> Charged:
    """Return what the charge of a Job follows from at the size that it was set to."""
    return {**charged, **_fields(mark)}


def gated_pods(obj: Job, pods: Sequence[Pod]) -> Mapping[str, tuple[Pod, ...]]:
    """Return the Job's own pods that wait, by pod set: it has one, and one of another is let go never."""
    own = sized_pods.of(obj.metadata.uid, pods)
    name = markers.DEFAULT_POD_SET
    return {name: sized_pods.in_lift_order(pod for pod in own if sized_pods.pod_set_of(pod) == name)}


def surplus(pods: Sequence[Pod], counts: Counts) -> tuple[Surplus, ...]:
    """Return how many pods are let go above these counts, whoever controls them: they were made for this Job."""
    name = markers.DEFAULT_POD_SET
    return (sized_pods.surplus(name, counts.get(name, 0), pods),)


def _fields(mark: SizeMark) -> dict[str, int]:
    return fields(mark.counts.get(markers.DEFAULT_POD_SET, 0), tied=mark.tied)


def _count(size: Size) -> int:
    count = size.counts.get(markers.DEFAULT_POD_SET)
    if count is None:
        raise SizeError(f"the size of a Job has the pod set {markers.DEFAULT_POD_SET}, and this one has it not")
    return count
