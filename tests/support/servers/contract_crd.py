"""A CustomResourceDefinition that has one field for each rule of the contract suite."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from support.servers.contract_api import Api, condition, until_said

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
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
    try:
        await served(api, custom.name, f"/apis/{group}/v1/widgets")
        await discovered(api, group)
        yield custom
    finally:
        await api.delete(f"{DEFINITIONS}/{custom.name}")


async def served(api: Api, name: str, path: str) -> None:
    """Wait until objects of a definition that was just made can be read and written.

    The definition says Established only when the server that answers has heard of it, and of the end of another one of
    that name, whose path may be served a moment longer.
    """
    await api.until(f"{DEFINITIONS}/{name}", lambda found: condition(found, "Established").get("status") == "True")
    await api.until(path, lambda _: True)


async def discovered(api: Api, group: str) -> None:
    """Wait until both versions of Widgets are in each list of what there is; each is put together by itself."""
    for version in ("v1", "v1alpha1"):
        await api.until(
            f"/apis/{group}/{version}", lambda found: {each["name"] for each in found["resources"]} >= {"widgets"}
        )
    await api.until("/apis", lambda found: _versions(found["groups"], group) == 2)
    await until_said(
        lambda: api.call("GET", "/apis", accept=AGGREGATED),
        lambda said: said.code == 200 and _in_aggregated(said.body, group),
        f"{group} is in the aggregated discovery",
    )


def _versions(groups: list[dict[str, Any]], name: str) -> int:
    return sum(len(each["versions"]) for each in groups if each["name"] == name)


def _in_aggregated(body: Any, name: str) -> bool:
    items = (body if isinstance(body, dict) else json.loads(body))["items"]
    return any(
        each["metadata"].get("name") == name
        and len(each["versions"]) == 2
        and all(v["resources"] for v in each["versions"])
        for each in items
    )
