"""Namespaces, nodes, priority classes, service accounts and events. Pure."""

# ruff: noqa: ARG002 (rules are offered more than each of them needs)
from __future__ import annotations

import base64

from gatelift_sandbox.embedded import names
from gatelift_sandbox.embedded.documents import Document, at, items, meta
from gatelift_sandbox.embedded.failures import BrokenRule, forbidden_field, wrong
from gatelift_sandbox.embedded.rules.plain import Rules, WithStatus

NAMESPACE_FINALIZER = "kubernetes"
USER_PRIORITY_MAX = 1_000_000_000
SYSTEM_PREFIX = "system-"


class NamespaceRules(WithStatus):
    """core/v1 Namespace: held by a finalizer of its spec until all that is in it is gone."""

    returns_deleted = True

    def name_problem(self, name: str) -> str:
        """Want a DNS label."""
        return names.label_name(name)

    def prepare_create(self, new: Document, now: float) -> None:
        """Set finalizer, phase, and the label that selectors use."""
        new["spec"] = {"finalizers": [NAMESPACE_FINALIZER]}
        new["status"] = {"phase": "Active"}
        labels = meta(new).get("labels") or {}
        meta(new)["labels"] = {**labels, "kubernetes.io/metadata.name": meta(new)["name"]}

    def prepare_update(self, new: Document, old: Document, subresource: str) -> None:
        """Only `finalize` changes the finalizers of the spec."""
        if subresource != "finalize":
            new["spec"] = old.get("spec", {})
        if subresource != "status":
            new["status"] = old.get("status", {})
        labels = meta(new).get("labels") or {}
        meta(new)["labels"] = {**labels, "kubernetes.io/metadata.name": meta(new)["name"]}

    def finalizers(self, document: Document) -> list[str]:
        """Both those of the spec and those of the metadata hold it."""
        return [*(at(document, "spec", "finalizers") or ()), *super().finalizers(document)]

    def mark_deleted(self, document: Document) -> None:
        """Say so in the phase."""
        document["status"] = {**(document.get("status") or {}), "phase": "Terminating"}

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: the phase."""
        return {"status.phase": at(document, "status", "phase") or ""}


class NodeRules(WithStatus):
    """core/v1 Node."""

    def prepare_create(self, new: Document, now: float) -> None:
        """Keep the status that a kubelet brings along."""
        new.setdefault("spec", {})
        new.setdefault("status", {})

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: whether it takes new pods."""
        return {"spec.unschedulable": "true" if at(document, "spec", "unschedulable") else "false"}


class PriorityClassRules(Rules):
    """scheduling.k8s.io/v1 PriorityClass."""

    generation = True

    def default(self, new: Document) -> list[str]:
        """Preempt, as classes do unless they say otherwise."""
        new.setdefault("preemptionPolicy", "PreemptLowerPriority")
        new.setdefault("value", 0)
        return []

    def validate_create(self, new: Document) -> list[BrokenRule]:
        """Keep the highest values and the prefix for the system's own."""
        name, value = meta(new).get("name", ""), new.get("value", 0)
        found = []
        if name.startswith(SYSTEM_PREFIX) and name not in SYSTEM_CLASSES:
            detail = "priority class names with 'system-' prefix are reserved for system use only"
            found.append(forbidden_field("metadata.name", detail))
        if value > USER_PRIORITY_MAX and name not in SYSTEM_CLASSES:
            detail = f"maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}"
            found.append(forbidden_field("value", detail))
        return found

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Keep the value that pods were given."""
        return [
            wrong(field, new.get(field), "field is immutable")
            for field in ("value", "preemptionPolicy")
            if new.get(field) != old.get(field)
        ]


SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
"""The two classes that every cluster has."""


class ServiceAccountRules(Rules):
    """core/v1 ServiceAccount."""

    returns_deleted = True


class SecretRules(Rules):
    """core/v1 Secret: `stringData` is folded into `data`; type and immutable secrets stay as they are."""

    def default(self, new: Document) -> list[str]:
        """Opaque unless said otherwise."""
        new["type"] = new.get("type") or "Opaque"
        for key, text in (new.pop("stringData", None) or {}).items():
            new.setdefault("data", {})
            new["data"][key] = base64.b64encode(str(text).encode()).decode()
        return []

    def validate_update(self, new: Document, old: Document, subresource: str) -> list[BrokenRule]:
        """Keep the type."""
        same = new.get("type") == old.get("type")
        return [] if same else [wrong("type", new.get("type"), "field is immutable")]

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: the type."""
        return {"type": document.get("type") or ""}


class EventRules(Rules):
    """Events of both groups, stored in core's words."""

    create_on_update = True

    def default(self, new: Document) -> list[str]:
        """Fill in what is always said, null or empty: `kubectl get events --sort-by=.lastTimestamp` looks for it."""
        for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
            new.setdefault(field, None)
        new.setdefault("source", {})
        for field in ("reportingComponent", "reportingInstance"):
            new.setdefault(field, "")
        return []

    def fields(self, document: Document) -> dict[str, str]:
        """Return what can be selected: what it is about, and its reason and type."""
        about = document.get("involvedObject") or {}
        found = {f"involvedObject.{key}": str(about.get(key) or "") for key in _INVOLVED}
        found["reason"] = document.get("reason") or ""
        found["type"] = document.get("type") or ""
        found["source"] = at(document, "source", "component") or document.get("reportingComponent") or ""
        found["reportingComponent"] = document.get("reportingComponent") or ""
        return found


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "source": "deprecatedSource",
}


def event_to_core(document: Document) -> Document:
    """Return an events.k8s.io Event in core's words."""
    core = {new: old for old, new in _NAMES.items()}
    return {core.get(key, key): value for key, value in document.items()}


def event_from_core(document: Document) -> Document:
    """Return a core Event in the words of events.k8s.io."""
    return {_NAMES.get(key, key): value for key, value in document.items()}


def node_is_ready(node: Document) -> bool:
    """Return whether a node's kubelet says that it is Ready."""
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in items(node, "status", "conditions"))
