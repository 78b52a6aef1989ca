"""What a WorkerCluster's status may hold, by type and field: its CRD is generated from this, and what is written too.

Bounds are JSON schema (`maxLength`, `pattern`, `minimum`, `format`, `maxItems`), so that there is one table and no
translation of it. Pure. Neighbours: `scripts/crd_facts.py` (the CRD), the manager's `core/api/informing.py` (what a
worker says is held against this before it is written).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from gatelift_kube.objects import gatelift as ours

Bounds = dict[str, Any]

SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
NAME: Bounds = {"maxLength": 253, "pattern": SUBDOMAIN}
COUNT: Bounds = {"format": "int32", "minimum": 0}
NUMBER: Bounds = {"format": "int64", "minimum": 0}
AMOUNT: Bounds = {"minimum": 0}

CAPACITY_MAX = 4096
"""Flavors times resources of one worker, as on the wire."""

FOREIGN_MAX = 256
"""Runs of other management clusters that are named, as on the wire."""

PREDECESSORS_MAX = 501
"""Placements that are remembered by a name of their own, and one that stands for all others."""

BOUNDS: dict[type, dict[str, Bounds]] = {
    ours.FlavorCapacity: {
        "flavor": NAME,
        "resource": {"maxLength": 317},
        "nominal": AMOUNT,
        "used": AMOUNT,
        "largestFit": AMOUNT,
    },
    ours.ForeignRunStatus: {
        "origin": {"maxLength": 64},
        "kind": {"maxLength": 63},
        "namespace": {"maxLength": 63},
        "name": {"maxLength": 253},
        "count": COUNT,
    },
    ours.Predecessor: {
        "kind": {"maxLength": 63},
        "namespace": {"maxLength": 63},
        "name": {"maxLength": 253},
        "workloadUID": {"maxLength": 64},
        "epoch": {"format": "int64", "minimum": 1},
        "session": NUMBER,
        "clusterQueue": {"maxLength": 253},
    },
    ours.WorkerClusterStatus: {
        "term": NUMBER,
        "session": NUMBER,
        "openedSession": NUMBER,
        "restoredSession": NUMBER,
        "replacedSession": NUMBER,
        "takenOverSession": NUMBER,
        "settledSession": NUMBER,
        "fencedThroughSession": NUMBER,
        "fencedAfterThrough": NUMBER,
        "fencedAfter": {"maxLength": 64},
        "clusterUid": {"maxLength": 128},
        "agentLease": {"maxLength": 317},
        "mark": NUMBER,
        "unexplained": COUNT,
        "leaseSeconds": COUNT,
        "fencedBy": {"maxLength": 253},
        "agentVersion": {"maxLength": 64},
        "agentInstance": {"maxLength": 128},
        "keyDigest": {"maxLength": 128},
        "foreign": {"maxItems": FOREIGN_MAX},
    },
}


def longest(kind: type, field: str) -> int:
    """Return how many characters a text may have."""
    most: int = BOUNDS[kind][field]["maxLength"]
    return most


def misfit(value: object, bounds: Bounds) -> str:
    """Return the rule that a text or number breaks, "" when the API server takes it."""
    if isinstance(value, str):
        if "maxLength" in bounds and len(value) > bounds["maxLength"]:
            return f"must have at most {bounds['maxLength']} characters, has {len(value)}"
        if "pattern" in bounds and not _compiled(bounds["pattern"]).search(value):
            return f"must match {bounds['pattern']}"
    elif isinstance(value, int):
        bits = {"int32": 31}.get(bounds.get("format", ""), 63)
        if not bounds.get("minimum", -(2**bits)) <= value < 2**bits:
            return f"must be from {bounds.get('minimum', -(2**bits))} to {2**bits - 1}"
    return ""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern as the API server reads it: there `$` is the end of the text, not the end of a line."""
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)
