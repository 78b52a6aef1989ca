"""Room in an object that somebody has filled up, taken from its record of who wrote there. Pure.

Each field manager of an object adds to `metadata.managedFields`, whatever it changes, and nothing bounds that of
server-side apply: whoever may patch a pod fills it, without changing it, until no write of anybody's fits (HD-262).
Nothing here reads that record; `[{}]` empties it (Kubernetes, "Server-Side Apply", clearing managedFields), on any
subresource, so that the object is smaller afterwards by more than a write of ours adds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from gatelift_kube.deciding.writes import Delete, Patch, PatchKind
from gatelift_kube.values.unreadable import UNREADABLE

FULL_BYTES = 1 << 20
"""JSON of an object that terminates and may lack room for its end: etcd takes 1.5 MiB, a kubelet writes kilobytes."""

_EMPTY: list[dict[str, Any]] = [{}]


def with_room(patch: Patch) -> Patch:
    """Return a patch that makes room in its object as well; one whose body cannot be read stays as it is."""
    try:
        body: Any = msgspec.json.decode(patch.body)
    except UNREADABLE:
        return patch
    if patch.kind is PatchKind.JSON and isinstance(body, list):
        step = {"op": "add", "path": "/metadata/managedFields", "value": _EMPTY}
        return replace(patch, body=msgspec.json.encode([*body, step]))
    if patch.kind is PatchKind.JSON or not isinstance(body, dict):
        return patch
    metadata = {**(body.get("metadata") or {}), "managedFields": _EMPTY}
    return replace(patch, body=msgspec.json.encode({**body, "metadata": metadata}))


def before(deletion: Delete) -> Patch:
    """Return the patch that makes room for a deletion, of the same object by the same preconditions.

    Not by its version: that patch makes another one.
    """
    metadata = {"uid": deletion.uid} if deletion.uid else {}
    body = msgspec.json.encode({"metadata": metadata})
    return with_room(Patch(write_id=deletion.write_id, ref=deletion.ref, body=body))
