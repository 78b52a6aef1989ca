"""Merge patches of an object's metadata: the epoch of a Workload, and the finalizer that keeps an object. Pure.

Each carries UID and resourceVersion of the version that it was decided on. What is no metadata is written by
`status_writes`. Neighbour: `epochs` (reads the epoch).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift.core.records import epochs
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_wire.values.keys import ANNOTATION_EPOCH


def epoch_patch(workload: Workload, epoch: int, *, recovered: int = 0) -> bytes:
    """Raise the epoch: a metadata patch, before the workload may be queued again; `recovered`: by a recovery."""
    annotations = {ANNOTATION_EPOCH: str(epoch)}
    if recovered:
        annotations[epochs.ANNOTATION_RECOVERED_EPOCH] = str(recovered)
    return msgspec.json.encode(
        {
            "metadata": {
                "uid": workload.metadata.uid,
                "resourceVersion": workload.metadata.resource_version,
                "annotations": annotations,
            }
        }
    )


def finalizers_patch(meta: ObjectMeta, without: str) -> bytes | None:
    """Drop one finalizer, keep those of others; None when it is not there."""
    kept = [name for name in meta.finalizers if name != without]
    return _metadata(meta, {"finalizers": kept}) if len(kept) != len(meta.finalizers) else None


def kept_in_use(meta: ObjectMeta, finalizer: str, annotations: Mapping[str, str]) -> bytes | None:
    """Put one finalizer to those of others, and annotations on ("": off); None when all of it is so."""
    changed = {name: value or None for name, value in annotations.items() if meta.annotations.get(name, "") != value}
    if finalizer in meta.finalizers:
        return _metadata(meta, {"annotations": changed}) if changed else None
    return _metadata(meta, {"annotations": changed, "finalizers": [*meta.finalizers, finalizer]})


def noted(meta: ObjectMeta, name: str, text: str | None) -> bytes:
    """Put one annotation on; None: take it off."""
    return _metadata(meta, {"annotations": {name: text}})


def _metadata(meta: ObjectMeta, change: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, **change}})
