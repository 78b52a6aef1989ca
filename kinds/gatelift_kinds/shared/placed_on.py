"""The annotation that tells people on which cluster their object is placed. Pure.

It informs, and nothing ever believes it: the record is the Workload's status. So it costs no write of its own, but goes
along with the one that shows a placement, lets go at home, or takes a run back, and is left out where there is no room.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_kinds.shared.patches import decode, encode
from gatelift_kube.objects.meta import ObjectMeta

PLACED_ON = "gatelift.dev/placed-on"
HOME = "local"
"""What the management cluster is called as a worker."""

ANNOTATIONS_BYTES_MAX = 255 * 1024
"""Of all annotations of an object, above which this one is left out: the API server refuses a write at 256 KiB, and who
has filled them up would keep his object from being shown, let go and taken back."""


def added(cluster: str, *present: Mapping[str, str]) -> dict[str, str]:
    """Return the annotation for an object that has these, nothing where it has no room."""
    size = sum(len(key.encode()) + len(value.encode()) for each in present for key, value in each.items())
    return {PLACED_ON: cluster} if size + len(PLACED_ON) + len(cluster) <= ANNOTATIONS_BYTES_MAX else {}


def noted(body: bytes, meta: ObjectMeta, cluster: str) -> bytes:
    """Return a merge patch of this object that also says where it is placed; `cluster` "" takes that off."""
    if meta.annotations.get(PLACED_ON, "") == cluster:
        return body
    wanted: Mapping[str, str | None] = added(cluster, meta.annotations) if cluster else {PLACED_ON: None}
    if not wanted:
        return body
    patch = decode(body)
    metadata = patch.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **wanted}
    return encode(patch)
