"""Values of the agent's stage: what is placed, what stands for the manager and for writes that do not land."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gatelift_agent.core.values import commands, events
from gatelift_kube.deciding.writes import ApiWrite
from gatelift_kube.decoding import decoding
from gatelift_kube.values.resources import NAMESPACE, POD, Resource
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import Stored
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import messages as m
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.limits import GRACE_SECONDS, KUBELET_MARGIN_SECONDS

ORIGIN = "origin-1"
ORIGIN_WITHOUT_MARKS = "origin.1"
"""One that leaves no room for marks of what is let go, which nobody can take off: labels alone tell then."""
NAMESPACE_NAME = "team-a"
KEY = PlacementKey("w-1", 1)
MANAGED = "kueue.x-k8s.io/managed"
UNSEEN_SECONDS = GRACE_SECONDS + KUBELET_MARGIN_SECONDS
"""So long a start doubts what may have vanished before it, in a cluster without nodes."""
START = 1000.0

POD_SPEC: dict[str, Any] = {"containers": [{"name": "main", "image": "app"}]}
JOB_SPEC: dict[str, Any] = {
    "parallelism": 2,
    "completions": 2,
    "suspend": True,
    "template": {"spec": {**POD_SPEC, "restartPolicy": "Never"}},
}


class Ids:
    """UIDs and name endings, counted."""

    def __init__(self) -> None:
        self.count = 0

    def uid(self) -> str:
        self.count += 1
        return f"uid-{self.count}"

    def suffix(self) -> str:
        self.count += 1
        return f"x{self.count:04d}"


@dataclass
class Held:
    """A write that a test keeps from landing."""

    command: ApiWrite


@dataclass
class Peer:
    """The manager: a real session, and what it heard."""

    session: ManagerSession
    number: int = 0
    request: int = 0
    heard: list[m.Message] = field(default_factory=list)
    inventories: list[tuple[InventoryEntry, ...]] = field(default_factory=list)
    unheard: list[bool] = field(default_factory=list)
    greetings: list[m.Hello] = field(default_factory=list)
    turns_away: list[str] = field(default_factory=list)
    """Tickets with which the next greetings are turned away, "" for none."""
    open: bool = False
    grants: bool = True
    confirm_all: bool = True
    namespaces: tuple[str, ...] = ()
    """Those in which its record has placements, as it says when it asks for an inventory."""

    def of(self, kind: type[Any]) -> list[Any]:
        return [message for message in self.heard if isinstance(message, kind)]


class CrashError(Exception):
    """The agent's process dies here."""


def decode(resource: Resource, stored: Stored) -> Any:
    struct = decoding.STRUCTS[resource.group, resource.kind]
    return msgspec.json.decode(stored.raw, type=struct)


def pods_read(store: Store, command: commands.ReadPods) -> events.PodsRead:
    """Answer a list of pods from what the cluster holds."""
    stored = [each for each in store.all(("", "pods")) if each.namespace == command.namespace]
    chosen = [each for each in stored if dict(command.labels).items() <= each.labels.items()]
    found = tuple(decode(POD, each) for each in chosen)
    return events.PodsRead(read_id=command.read_id, pods=found, raws=tuple(each.raw for each in chosen))


def pods_not_read(command: commands.ReadPods) -> events.PodsNotRead:
    """Answer a list of pods for which there are no rights."""
    return events.PodsNotRead(read_id=command.read_id, message="403 Forbidden")


def namespace_read(store: Store, command: commands.ReadNamespace) -> events.NamespaceRead:
    """Answer a read of a Namespace from what the cluster holds."""
    found = store.find(("", "namespaces"), "", command.name)
    return events.NamespaceRead(
        read_id=command.read_id, namespace=decode(NAMESPACE, found) if found is not None else None
    )


def commit_messages(
    key: PlacementKey = KEY,
    kind: str = "Pod",
    name: str = "p",
    spec: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **fields: Any,
) -> tuple[m.TemplateBlob, m.Commit]:
    """Return the template and the commit of a placement of one object."""
    content = msgspec.json.encode(spec or (POD_SPEC if kind == "Pod" else JOB_SPEC))
    digest = hashlib.sha256(content).hexdigest()
    template = m.ObjectTemplate(
        name=name, pod_set="main", template=digest, metadata=msgspec.json.encode(metadata or {})
    )
    commit = m.Commit(
        key=key, kind=kind, namespace=NAMESPACE_NAME, name=name, queue="queue", objects=(template,), **fields
    )
    return m.TemplateBlob(hash=digest, content=content), commit
