"""The shape of a pod in eight hex digits, as Kueue computes it. Pure.

Pods of one group with the same shape are one role. The hash is taken after the API server's defaulting and stored in
an annotation, since the spec changes when the pod is lifted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

HASH_DIGITS = 8
_KEPT = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priority",
    "topologySpreadConstraints",
    "overhead",
    "resourceClaims",
)


def shape(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what counts of a pod spec (its JSON as a mapping); absent lists and objects are None."""
    kept: dict[str, Any] = {key: spec.get(key) or None for key in _KEPT if key != "priority"}
    kept["priority"] = spec.get("priority")
    kept["containers"] = _containers(spec.get("containers"))
    kept["initContainers"] = _containers(spec.get("initContainers"))
    resources = spec.get("resources")
    if resources is not None:  # absent stays absent, so that hashes of before pod-level resources hold
        kept["resources"] = {"requests": resources.get("requests") or {}}
    return {"spec": kept}


def role_hash(spec: Mapping[str, Any]) -> str:
    """Return the first 8 hex digits of SHA-256 over the compact JSON, keys sorted, of the shape.

    Kueue's vectors: one container requesting cpu 1 gives `dc85db45`, no request `a9f06f3a`.
    """
    text = msgspec.json.encode(shape(spec), order="sorted")
    return hashlib.sha256(text).hexdigest()[:HASH_DIGITS]


def _containers(containers: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if not containers:
        return None
    return [
        {
            "resources": {"requests": (one.get("resources") or {}).get("requests") or {}},
            "ports": one.get("ports") or None,
        }
        for one in containers
    ]
