"""The pod template of a Job: what is added at the start. Pure. What is taken back at `local`: `template_before`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import selector as job_selector
from gatelift_kinds.job import template_before
from gatelift_kinds.shared import markers, placed_mark, placed_on
from gatelift_kinds.shared.patches import (
    Json,
    Operation,
    add_to_map,
    decode,
    encode,
    guards,
    merged_selector,
    merged_tolerations,
    pointer,
)
from gatelift_kinds.shared.values import MergeConflictError, Part, Placing
from gatelift_kinds.shared.workload_document import needs_digest
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Toleration
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values.keys import FINALIZER_REPORT, LABEL_STOPPING

CHANGED_NEEDS = "their resources were changed since the Job was admitted; it is queued anew as it is now"
OWN_GATE = (
    f"{markers.ADMISSION_GATE} is the gate of queued pods, and the Job is queued, not its pods: nobody would take it "
    "off them. Leave it out of the template"
)
_GENERATED_ANNOTATIONS = frozenset({"batch.kubernetes.io/job-tracking"})


def why_not(obj: Job) -> str:
    """Return why a Job's pods would never run because of its template, with field and way out; "" if they would."""
    gates = [gate.name for gate in obj.spec.template.spec.scheduling_gates]
    return f"spec.template.spec.schedulingGates: {OWN_GATE}" if markers.ADMISSION_GATE in gates else ""


def own_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations without those of the Job controller."""
    return {key: value for key, value in annotations.items() if key not in _GENERATED_ANNOTATIONS}


def document(part: Part, placing: Placing) -> bytes:
    """Return the Job to create at a worker.

    MergeConflictError: the flavor contradicts the template, or more pods at once would run than were granted.
    """
    marks, spec = decode(part.metadata), decode(part.spec)
    job_partial.check_starts(job_partial.of_spec(spec), placing.start(part.pod_set).count)
    template = _started(spec["template"], part.pod_set, placing, placed_mark.toleration(placing, part.name))
    spec["template"] = template
    spec["suspend"] = True
    spec["podReplacementPolicy"] = markers.REPLACED_WHEN_ENDED
    metadata = {
        "name": part.name,
        "namespace": placing.namespace,
        "labels": {**marks.get("labels", {}), **placing.owner_labels},
        "annotations": marks.get("annotations", {}),
        "finalizers": [FINALIZER_REPORT],
    }
    return encode({"apiVersion": JOB.api_version, "kind": JOB.kind, "metadata": metadata, "spec": spec})


def pod_document(obj: Job, raw: bytes) -> bytes:
    """Return the pod that the Job's controller would make of its template, without a name and what an index adds."""
    template: Json = decode(raw)["spec"]["template"]
    marks = template.get("metadata") or {}
    meta = obj.metadata
    owner = {"apiVersion": JOB.api_version, "kind": JOB.kind, "name": meta.name, "uid": meta.uid, "controller": True}
    metadata = {
        "generateName": f"{meta.name}-",
        "namespace": meta.namespace,
        "labels": marks.get("labels") or {},
        "annotations": marks.get("annotations") or {},
        "ownerReferences": [owner],
    }
    return encode({"apiVersion": POD.api_version, "kind": POD.kind, "metadata": metadata, "spec": template["spec"]})


def local_lift_patch(obj: Job, raw: bytes, placing: Placing, *, by_count: bool = False) -> bytes:
    """Return the JSON patch that merges the additions into the user's own Job and unsuspends it.

    `by_count`: its pods wait at a gate besides, and may be more than were granted. MergeConflictError: the flavor
    contradicts the template, its pods are more, or need else, than was admitted, or they are known by labels of its
    user's.
    """
    forbidden = job_selector.why_not(obj)
    if forbidden:
        raise MergeConflictError(forbidden)
    before: Json = decode(raw)["spec"]["template"]
    note = template_before.note(before, _started(before, markers.DEFAULT_POD_SET, placing, ()))
    mark = placed_mark.toleration(placing, obj.metadata.name, obj.metadata.uid, note)
    after = _started(before, markers.DEFAULT_POD_SET, placing, mark)
    start = placing.start(markers.DEFAULT_POD_SET)
    granted = start.count
    if not by_count:
        job_partial.check_size(obj, granted)
    _check_needs(obj, start.needs)
    stopping = LABEL_STOPPING in obj.metadata.labels
    marks = {template_before.ANNOTATION_BEFORE: note, **job_partial.local_marks(obj, granted)}
    operations: list[Operation] = [
        *guards(obj.metadata),
        *add_to_map(("metadata", "labels"), obj.metadata.labels, placing.owner_labels),
        *([{"op": "remove", "path": pointer("metadata", "labels", LABEL_STOPPING)}] if stopping else []),
        *add_to_map(
            ("metadata", "annotations"),
            obj.metadata.annotations,
            {**marks, **placed_on.added(placed_on.HOME, obj.metadata.annotations, marks)},
        ),
        *template_before.set_parts(before, after),
        *job_partial.local_operations(obj, granted),
        {"op": "add", "path": "/spec/podReplacementPolicy", "value": markers.REPLACED_WHEN_ENDED},
        {"op": "replace", "path": "/spec/suspend", "value": False},
    ]
    return encode(operations)


def _check_needs(obj: Job, admitted: str) -> None:
    """Raise MergeConflictError where its pods would need something else than was admitted.

    The requests of a suspended Job can be edited: it is queued anew with those that it has.
    """
    if admitted and needs_digest(obj.spec.template.spec) != admitted:
        raise MergeConflictError(f"spec.template.spec.containers: {CHANGED_NEEDS}")


def _started(template: Json, pod_set: str, placing: Placing, mark: tuple[Toleration, ...]) -> Json:
    start = placing.start(pod_set)
    metadata: dict[str, Any] = dict(template.get("metadata") or {})
    spec: dict[str, Any] = dict(template["spec"])
    metadata["labels"] = {
        **(metadata.get("labels") or {}),
        **start.labels,
        markers.POD_SET: pod_set,
        **placing.owner_labels,
    }
    if start.annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **start.annotations}
    selector = merged_selector(spec.get("nodeSelector") or {}, start.node_selector, "spec.template.spec.nodeSelector")
    if selector:
        spec["nodeSelector"] = selector
    own = placed_mark.without(spec.get("tolerations") or [])
    tolerations = merged_tolerations(own, (*start.tolerations, *mark))
    spec.pop("tolerations", None)
    if tolerations:
        spec["tolerations"] = tolerations
    return {**template, "metadata": metadata, "spec": spec}
