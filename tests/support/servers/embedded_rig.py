"""A bare store with what every cluster has, stand-in controllers that act when told, and short ways to say things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gatelift_kube.values import resources as known
from gatelift_kube.values.resources import Resource
from gatelift_sandbox.controllers.controller import Controller
from gatelift_sandbox.controllers.loop import all_controllers, attach, settle
from gatelift_sandbox.embedded.documents import Document
from gatelift_sandbox.embedded.drafts import Deleted, Deletion
from gatelift_sandbox.embedded.patching import MERGE_PATCH
from gatelift_sandbox.embedded.seeding import RandomIdentities, seed
from gatelift_sandbox.embedded.store import Store

START = 1_750_000_000.0


class Rig:
    """One cluster without HTTP, on a clock that the test moves."""

    def __init__(self, controllers: Sequence[Controller] | None = None, *, number: int = 1) -> None:
        self.now = START
        self.store = Store(RandomIdentities(number))
        self.controllers = list(all_controllers("PEM") if controllers is None else controllers)
        attach(self.store, self.controllers)
        seed(self.store, self.now)
        self.settle()

    def settle(self, seconds: float = 0.0) -> int:
        """Let time pass and the controllers act; return how much they did."""
        self.now += seconds
        return settle(self.store, self.controllers, self.now)

    def create(self, resource: Resource, document: Document, namespace: str = "default") -> Document:
        """Create an object."""
        where = namespace if resource.namespaced else ""
        return self.store.create(self.store.kinds.of(resource), where, document, self.now).document()

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Document:
        """Return an object."""
        return self.store.get(self.store.kinds.of(resource), namespace if resource.namespaced else "", name).document()

    def all(self, resource: Resource) -> list[Document]:
        """Return all objects of a kind, by name."""
        return [stored.document() for stored in self.store.list(self.store.kinds.of(resource)).items]

    def patch(self, resource: Resource, name: str, patch: Any, subresource: str = "") -> Document:
        """Merge-patch an object of namespace default, or of the cluster."""
        body = msgspec.json.encode(patch)
        where = "default" if resource.namespaced else ""
        kind = self.store.kinds.of(resource)
        return self.store.patch(kind, where, name, body, MERGE_PATCH, self.now, subresource=subresource).document()

    def delete(self, resource: Resource, name: str, **deletion: Any) -> Deleted:
        """Delete an object of namespace default, or of the cluster."""
        where = "default" if resource.namespaced else ""
        return self.store.delete(self.store.kinds.of(resource), where, name, Deletion(**deletion), self.now)

    def node(self, name: str, *, cpu: str = "4", **spec: Any) -> Document:
        """Make a node that is ready."""
        room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
        status = {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
        return self.create(known.NODE, {"metadata": {"name": name}, "spec": spec, "status": status})

    def phase(self, name: str, phase: str) -> None:
        """Write the phase of a pod, as its kubelet would."""
        self.patch(known.POD, name, {"status": {"phase": phase}}, "status")


def pod(name: str, *, cpu: str = "1", **spec: Any) -> Document:
    """Return a pod that asks for some cpu."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def job(name: str, **spec: Any) -> Document:
    """Return a Job."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def condition(document: Document, kind: str) -> Document:
    """Return a condition of an object's status, empty where it has none."""
    found = (c for c in document.get("status", {}).get("conditions", []) if c["type"] == kind)
    return next(found, {})
