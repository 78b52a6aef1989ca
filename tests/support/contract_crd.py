"""A CustomResourceDefinition that has one field for each rule of the contract suite."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.contract_api import Api

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 10},
        "mode": {"type": "string", "enum": ["Fast", "Safe"], "default": "Safe"},
        "label": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "when": {"type": "string", "format": "date-time"},
        "amount": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "nothing": {"type": "string", "nullable": True},
        "tags": {"type": "array", "maxItems": 2, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        "inner": {"type": "object", "default": {}, "properties": {"on": {"type": "boolean", "default": True}}},
    },
}
STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "phase": {"type": "string"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {
                    "type": {"type": "string"},
                    "status": {"type": "string"},
                    "lastTransitionTime": {"type": "string", "format": "date-time"},
                },
            },
        },
    },
}
COLUMNS: list[dict[str, Any]] = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """A served definition: its name, and where its objects are."""

    group: str
    plural: str
    kind: str
    name: str
    definition: dict[str, Any]

    def path(self, space: str, version: str = "v1") -> str:
        """Return the path of the objects in a namespace (as `Api.namespace` returns it)."""
        return f"/apis/{self.group}/{version}{space.removeprefix('/api/v1')}/{self.plural}"

    def object(self, name: str, **spec: Any) -> dict[str, Any]:
        """Return an object."""
        return {"apiVersion": f"{self.group}/v1", "kind": self.kind, "metadata": {"name": name}, "spec": spec}


def definition(group: str) -> dict[str, Any]:
    """Return the definition of Widgets in a group: v1 stored, v1alpha1 served and deprecated."""
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}}
    version = {"served": True, "schema": schema, "subresources": {"status": {}}, "additionalPrinterColumns": COLUMNS}
    old = {"name": "v1alpha1", "storage": False, "deprecated": True, "deprecationWarning": "use v1"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{**version, "name": "v1", "storage": True}, {**version, **old}],
        },
    }


@asynccontextmanager
async def widgets(api: Api) -> AsyncIterator[Custom]:
    """Serve Widgets in a group of their own, and remove them afterwards."""
    group = f"g{secrets.token_hex(4)}.example.com"
    made = definition(group)
    (await api.post(DEFINITIONS, made)).ok()
    custom = Custom(group=group, plural="widgets", kind="Widget", name=f"widgets.{group}", definition=made)
    await api.until(f"/apis/{group}/v1/widgets", lambda _: True)
    try:
        yield custom
    finally:
        await api.delete(f"{DEFINITIONS}/{custom.name}")
