"""The rules on Kueue's kinds as data (webhooks/validation_cases.yaml), and the objects that they are about."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gatelift_kube.values.resources import CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR, WORKLOAD, Resource

Json = dict[str, Any]
FILE = Path(__file__).parents[2] / "webhooks" / "validation_cases.yaml"
KINDS = {one.kind: one for one in (CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR, WORKLOAD)}
NAMESPACE = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One rule. `around`: what was before came in around the rule. `says` "" where only the schema knows it."""

    rule: str
    resource: Resource
    before: Json | None
    accepted: Json
    refused: Json
    says: str
    server: str
    around: bool


def cases() -> list[Case]:
    """Return all cases."""
    return [
        Case(
            rule=one["rule"],
            resource=KINDS[one["kind"]],
            before=one.get("before"),
            accepted=one["accepted"],
            refused=one["refused"],
            says=one["says"],
            server=one.get("server", one["says"]),
            around=one.get("around", False),
        )
        for one in yaml.safe_load(FILE.read_text())
    ]


def smallest(resource: Resource) -> Json:
    """Return the smallest object of a kind."""
    made: Json = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": "it"},
        "spec": {},
    }
    if resource == WORKLOAD:
        made["metadata"]["namespace"] = NAMESPACE
        made["spec"] = {"podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": []}}}]}
    return made


def old_and_new(case: Case, change: Json) -> tuple[Json | None, Json]:
    """Return the object before the change, None where it is new, and the one after it."""
    base = smallest(case.resource)
    if case.before is None:
        return None, merged(base, change)
    old = merged(base, case.before)
    return old, merged(old, change)


def merged(into: Json, change: Json) -> Json:
    """Return a copy with a JSON merge patch applied."""
    made = copy.deepcopy(into)
    for name, value in change.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict) and isinstance(made.get(name), dict):
            made[name] = merged(made[name], value)
        else:
            made[name] = copy.deepcopy(value)
    return made
