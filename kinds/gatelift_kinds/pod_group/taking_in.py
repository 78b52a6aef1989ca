"""Pods that a driver makes at a worker by itself: compared with what it declared, and taken into its placement. Pure.

There such a pod waits at our gate, which the agent's webhook has put on. What home's own members get as they are made
it gets by one patch: labels, marks, our finalizer, and what flavor and checks add. The gate goes later, as theirs.
"""

from __future__ import annotations

from gatelift_kinds.pod_group.shapes import mismatch
from gatelift_kinds.shared import markers, placed_mark
from gatelift_kinds.shared.patches import (
    Operation,
    add_to_map,
    decode,
    encode,
    guards,
    merged_selector,
    merged_tolerations,
)
from gatelift_kinds.shared.values import Part, Placing
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.keys import FINALIZER_REPORT


def unlike(raw: bytes, declared: bytes, default_class: str) -> str:
    """Return in what a pod at its gate differs from the spec (JSON) that was declared for its set; "" where it fits."""
    text = mismatch(decode(declared), decode(raw)["spec"], default_class)
    return f"spec.{text}" if text else ""


def patch(obj: Pod, raw: bytes, part: Part, placing: Placing) -> bytes:
    """Return the JSON patch that makes it a pod of the placement, for this very version; it stays at its gate.

    MergeConflictError: what is to be added contradicts the pod.
    """
    meta, spec, start = obj.metadata, decode(raw)["spec"], placing.start(part.pod_set)
    merged_selector(obj.spec.node_selector, start.node_selector, "spec.nodeSelector")
    present = spec.get("tolerations") or []
    own = placed_mark.of_pod(placing, meta.name, meta.uid)
    tolerations = merged_tolerations(present, (*start.tolerations, *own))
    labels = {**start.labels, markers.POD_SET: part.pod_set, **placing.owner_labels}
    notes = {**start.annotations, **decode(part.metadata).get("annotations", {})}
    operations: list[Operation] = [
        *guards(meta),
        *add_to_map(("metadata", "labels"), meta.labels, labels),
        *add_to_map(("metadata", "annotations"), meta.annotations, notes),
        *add_to_map(("spec", "nodeSelector"), obj.spec.node_selector, start.node_selector),
    ]
    if tolerations != present:
        operations.append({"op": "add", "path": "/spec/tolerations", "value": tolerations})
    if FINALIZER_REPORT not in meta.finalizers:
        finalizers = [*meta.finalizers, FINALIZER_REPORT]
        operations.append({"op": "add", "path": "/metadata/finalizers", "value": finalizers})
    return encode(operations)
