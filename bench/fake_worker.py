"""A worker cluster in memory for benches: a pure store, watches of it, and pods that run as soon as they are let go.

Takes the place of the agent's Kubernetes adapter (`gatelift_agent.runtime.perform.Api`): writes are carried out at once
and answered as events, in the order in which a real cluster would answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gatelift_agent.core.values import commands, events
from gatelift_kube.deciding.errors import from_status, write_error
from gatelift_kube.deciding.writes import (
    ApiWrite,
    Create,
    Delete,
    EmitEvent,
    KubeObject,
    ObjectGone,
    ObjectSeen,
    Patch,
    Synced,
    WriteDone,
    WriteFailed,
)
from gatelift_kube.decoding import decoding
from gatelift_kube.process.clock import wall
from gatelift_kube.values.resources import (
    CONFIG_MAP,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_FLAVOR,
    SERVICE_ACCOUNT,
    Resource,
)
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.seeding import RandomIdentities
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange, Stored
from gatelift_wire.values.keys import LABEL_ORIGIN

SYSTEM = "gatelift-system"
NODE_NAME = "node-1"
_CLUSTER_WIDE = (NAMESPACE, NODE, RESOURCE_FLAVOR)
_NAMESPACED = (POD, JOB)
_WATCHED = {(each.group, each.plural): each for each in (*_CLUSTER_WIDE, *_NAMESPACED)}


class FakeWorker:
    """One cluster. `post` takes the agent's events; everything happens in the event loop, never inside a command."""

    def __init__(self, post: Callable[[events.Event], None], namespace: str, run_seconds: float) -> None:
        self._post = post
        self._run_seconds = run_seconds
        self._store = Store(RandomIdentities())
        self._watching = False
        self._namespaces: set[str] = set()
        self._running: set[str] = set()
        for name in (namespace, SYSTEM):
            labels = {"gatelift.dev/accept": "true"} if name == namespace else {}
            self._create(NAMESPACE, {"metadata": {"name": name, "labels": labels}})
            self._create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": name}})
        self._store.listen(self._changed)

    # --- what the agent asks for ------------------------------------------------------------------------------------

    def write(self, command: ApiWrite | EmitEvent) -> None:
        """Carry out a write soon."""
        if not isinstance(command, EmitEvent):
            asyncio.get_running_loop().call_soon(self._write, command)

    def watch_cluster(self) -> None:
        """List what belongs to no namespace, and follow it."""
        asyncio.get_running_loop().call_soon(self._list_cluster)

    def watch_namespaces(self, namespaces: Iterable[str]) -> None:
        """List pods and Jobs of these namespaces, and follow them."""
        asyncio.get_running_loop().call_soon(self._list_namespaces, set(namespaces))

    def read(self, command: commands.ReadPods | commands.ReadNamespace) -> None:
        """List pods; a Namespace is never asked for, since none goes."""
        if isinstance(command, commands.ReadPods):
            asyncio.get_running_loop().call_soon(self._read_pods, command)

    def stop_watching(self) -> None:
        """Tell nothing more."""
        self._watching, self._namespaces = False, set()

    # --- writes -------------------------------------------------------------------------------------------------

    def _write(self, command: ApiWrite) -> None:
        try:
            stored = self._carry_out(command)
        except RequestRefusedError as error:
            failure = from_status(error.code, msgspec.json.encode(error.status()))
            text = f"{command.ref}: {error.message}"
            self._post(WriteFailed(write_id=command.write_id, error=write_error(failure), message=text))
            return
        found = _decode(command.ref.resource, stored) if stored is not None else None
        self._post(WriteDone(write_id=command.write_id, object=found, raw=stored.raw if stored is not None else b""))

    def _carry_out(self, command: ApiWrite) -> Stored | None:
        kind = self._store.kinds.of(command.ref.resource)
        namespace, name = command.ref.key.namespace, command.ref.key.name
        match command:
            case Create(body=body, dry_run=dry_run):
                return self._store.create(kind, namespace, msgspec.json.decode(body), wall(), dry_run=dry_run)
            case Patch(body=body, kind=patch, subresource=subresource):
                return self._store.patch(kind, namespace, name, body, patch.value, wall(), subresource=subresource)
            case Delete():
                deletion = Deletion(
                    grace_seconds=command.grace_seconds,
                    uid=command.uid,
                    version=command.resource_version,
                    propagation=command.propagation,
                )
                deleted = self._store.delete(kind, namespace, name, deletion, wall())
                return None if deleted.gone else deleted.stored

    def _create(self, resource: Resource, document: dict[str, Any]) -> None:
        kind = self._store.kinds.of(resource)
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **document}
        self._store.create(kind, document["metadata"].get("namespace", ""), whole, wall())

    # --- watches ------------------------------------------------------------------------------------------------

    def _changed(self, storage: tuple[str, str], change: StoreChange) -> None:
        resource = _WATCHED.get(storage)
        if resource is None:
            return
        after = change.after
        if resource == POD and not change.removed:
            self._let_run(after)
        if not self._told(resource, after):
            return
        found = _decode(resource, after)
        self._post(ObjectGone(resource, found) if change.removed else ObjectSeen(resource, found, after.raw))

    def _told(self, resource: Resource, stored: Stored) -> bool:
        if resource in _NAMESPACED:
            return stored.namespace in self._namespaces and LABEL_ORIGIN in stored.labels
        return self._watching

    def _list_cluster(self) -> None:
        self._watching = True
        for resource in _CLUSTER_WIDE:
            for stored in self._store.all((resource.group, resource.plural)):
                self._post(ObjectSeen(resource, _decode(resource, stored), stored.raw))
            self._post(Synced(resource))
        self._post(Synced(CONFIG_MAP))

    def _list_namespaces(self, namespaces: set[str]) -> None:
        fresh = namespaces - self._namespaces
        self._namespaces = namespaces
        for namespace in sorted(fresh):
            for resource in _NAMESPACED:
                for stored in self._store.all((resource.group, resource.plural)):
                    if stored.namespace == namespace and LABEL_ORIGIN in stored.labels:
                        self._post(ObjectSeen(resource, _decode(resource, stored), stored.raw))
            self._post(events.NamespaceSynced(namespace=namespace))

    def _read_pods(self, command: commands.ReadPods) -> None:
        pods = [each for each in self._store.all(("", "pods")) if each.namespace == command.namespace]
        chosen = [each for each in pods if dict(command.labels).items() <= each.labels.items()]
        found, raws = tuple(_decode(POD, each) for each in chosen), tuple(each.raw for each in chosen)
        self._post(events.PodsRead(read_id=command.read_id, pods=found, raws=raws))

    # --- scheduler and kubelet ----------------------------------------------------------------------------------

    def _let_run(self, stored: Stored) -> None:
        """Bind a pod that was let go, let it run, and end it after its time; each a write of its own."""
        document = msgspec.json.decode(stored.raw)
        key = document["metadata"]["uid"]
        if document["spec"].get("schedulingGates") or document["spec"].get("nodeName") or key in self._running:
            return
        self._running.add(key)
        loop, name = asyncio.get_running_loop(), stored.name
        loop.call_soon(self._bind, stored.namespace, name)
        loop.call_soon(self._status, stored.namespace, name, "Running", True)
        loop.call_later(self._run_seconds, self._status, stored.namespace, name, "Succeeded", False)
        loop.call_later(self._run_seconds, self._running.discard, key)

    def _bind(self, namespace: str, name: str) -> None:
        self._store.bind(self._store.kinds.of(POD), namespace, name, NODE_NAME, wall())

    def _status(self, namespace: str, name: str, phase: str, ready: bool) -> None:
        stored = self._store.find(("", "pods"), namespace, name)
        if stored is None:
            return
        conditions = [
            {"type": "PodScheduled", "status": "True"},
            {"type": "Ready", "status": "True" if ready else "False"},
        ]
        body = msgspec.json.encode({"status": {"phase": phase, "conditions": conditions}})
        kind = self._store.kinds.of(POD)
        self._store.patch(kind, namespace, name, body, "application/merge-patch+json", wall(), subresource="status")


def _decode(resource: Resource, stored: Stored) -> Any:
    found: KubeObject = decoding.read_object(resource, stored.raw)
    return found
