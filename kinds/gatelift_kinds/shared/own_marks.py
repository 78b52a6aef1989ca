"""Whether an object of the management cluster bears a mark of ours: only such a one is ever written to (IS-54). Pure.

The policies `gatelift-manager-pods` and `gatelift-manager-jobs` refuse the manager, and its agent of `local`, any other
write to a Pod or Job. So on what bears none no write of ours lands, and none is to be waited for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift_kinds.shared import markers

_PREFIXES = ("gatelift.dev/", "kueue.x-k8s.io/")
_PLACED = "placed-as.gatelift.dev/"
_ELSEWHERE = "kueue.x-k8s.io/multikueue"

Json = Mapping[str, Any]


def bears_a_mark(raw: bytes) -> bool:
    """Return whether a Pod or Job has a label, annotation, finalizer, gate or toleration of ours, or runs elsewhere."""
    document: Json = msgspec.json.decode(raw)
    spec: Json = document.get("spec") or {}
    template: Json = spec.get("template") or {}
    return (
        _is_named(document)
        or _is_named(template)
        or spec.get("managedBy") == _ELSEWHERE
        or any(gate.get("name") == markers.ADMISSION_GATE for gate in spec.get("schedulingGates") or ())
        or any(_is_tolerant(each) for each in (spec, template.get("spec") or {}))
    )


def _is_named(document: Json) -> bool:
    meta: Json = document.get("metadata") or {}
    return any(
        name.startswith(_PREFIXES) for part in ("labels", "annotations", "finalizers") for name in meta.get(part) or ()
    )


def _is_tolerant(spec: Json) -> bool:
    return any(_PLACED in (each.get("key") or "") for each in spec.get("tolerations") or ())
