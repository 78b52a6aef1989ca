"""The pod template of a Job: what is added at the start, and taken back at `local` when it stops. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift_kinds import job_partial, markers, placed_mark
from gatelift_kinds.kind import MergeConflictError, Part, Placing
from gatelift_kinds.patches import (
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
from gatelift_kinds.workload_document import needs_digest
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Toleration
from gatelift_kube.resources import JOB, POD
from gatelift_kube.unreadable import UNREADABLE
from gatelift_wire.keys import ANNOTATION_STOPPING, FINALIZER_REPORT

ANNOTATION_BEFORE = "gatelift.dev/template-before"
"""On a Job that runs at `local`: JSON of the template's parts as they were before a flavor was merged in."""

CHANGED_NEEDS = "their resources were changed since the Job was admitted; it is queued anew as it is now"
_GENERATED_LABELS = frozenset(
    {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
)
_GENERATED_ANNOTATIONS = frozenset({"batch.kubernetes.io/job-tracking"})
OURS = "gatelift.dev/"
_RESTORED = (("metadata", "labels"), ("metadata", "annotations"), ("spec", "nodeSelector"), ("spec", "tolerations"))


class _Marks(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Places(msgspec.Struct, rename="camel"):
    node_selector: dict[str, str] | None = None
    tolerations: list[dict[str, str | int | None]] | None = None


class _Kept(msgspec.Struct):
    """What the annotation keeps."""

    metadata: _Marks = msgspec.field(default_factory=_Marks)
    spec: _Places = msgspec.field(default_factory=_Places)


def own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels without those that the API server generates for one particular Job."""
    return {key: value for key, value in labels.items() if key not in _GENERATED_LABELS}


def own_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the annotations without those of the Job controller."""
    return {key: value for key, value in annotations.items() if key not in _GENERATED_ANNOTATIONS}


def changed(obj: Job) -> bool:
    """Return whether the template of this user's Job holds additions of ours."""
    return ANNOTATION_BEFORE in obj.metadata.annotations


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


def local_lift_patch(obj: Job, raw: bytes, placing: Placing) -> bytes:
    """Return the JSON patch that merges the additions into the user's own Job and unsuspends it.

    MergeConflictError: the flavor contradicts the template, or its pods are more, or need else, than was admitted.
    """
    before: Json = decode(raw)["spec"]["template"]
    mark = placed_mark.toleration(placing, obj.metadata.name, obj.metadata.uid)
    after = _started(before, markers.DEFAULT_POD_SET, placing, mark)
    kept: dict[str, Json] = {section: {} for section, _ in _RESTORED}
    for section, key in _RESTORED:
        kept[section][key] = (before.get(section) or {}).get(key)
    start = placing.start(markers.DEFAULT_POD_SET)
    granted = start.count
    job_partial.check_size(obj, granted)
    _check_needs(obj, start.needs)
    stopping = ANNOTATION_STOPPING in obj.metadata.annotations
    operations: list[Operation] = [
        *guards(obj.metadata),
        *add_to_map(("metadata", "labels"), obj.metadata.labels, placing.owner_labels),
        *([{"op": "remove", "path": pointer("metadata", "annotations", ANNOTATION_STOPPING)}] if stopping else []),
        *add_to_map(
            ("metadata", "annotations"),
            obj.metadata.annotations,
            {
                ANNOTATION_BEFORE: msgspec.json.encode(kept, order="sorted").decode(),
                **job_partial.local_marks(obj, granted),
            },
        ),
        *_set_parts(before, after),
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


def restore_patch(obj: Job, raw: bytes) -> bytes:
    """Return the JSON patch that puts the template back as it was before `local_lift_patch`."""
    present: Json = decode(raw)["spec"]["template"]
    before = _before(obj.metadata.annotations.get(ANNOTATION_BEFORE, ""), present)
    removed = [{"op": "remove", "path": pointer("metadata", "annotations", ANNOTATION_BEFORE)}]
    return encode([*guards(obj.metadata), *_set_parts(present, before), *removed, *job_partial.local_restore(obj)])


def _before(said: str, present: Json) -> Json:
    """Return the template's parts that the annotation keeps; where it cannot be read, those of now without our marks.

    Whoever may edit the Job can write the annotation: a key that policies leave to Gatelift is never put back.
    """
    try:
        kept: Json = msgspec.to_builtins(msgspec.json.decode(said.encode(), type=_Kept))
    except UNREADABLE:
        kept = {section: {key: (present.get(section) or {}).get(key) for key in _parts(section)} for section in present}
    metadata, spec = kept.get("metadata") or {}, kept.get("spec") or {}
    marks = {key: _without_ours(metadata.get(key)) for key in _parts("metadata")}
    tolerations = placed_mark.without(spec.get("tolerations") or ())
    places = {"nodeSelector": spec.get("nodeSelector"), "tolerations": tolerations or None}
    return {"metadata": marks, "spec": places}


def _parts(section: str) -> tuple[str, ...]:
    return tuple(key for part, key in _RESTORED if part == section)


def _without_ours(marks: dict[str, str] | None) -> dict[str, str] | None:
    left = {key: value for key, value in (marks or {}).items() if not key.startswith(OURS) and key != markers.POD_SET}
    return left or None


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


def _set_parts(present: Json, wanted: Json) -> list[Operation]:
    operations: list[Operation] = []
    for section, key in _RESTORED:
        old = (present.get(section) or {}).get(key)
        new = (wanted.get(section) or {}).get(key)
        if old == new:
            continue
        path = pointer("spec", "template", section, key)
        operations.append({"op": "remove", "path": path} if new is None else {"op": "add", "path": path, "value": new})
    return operations
