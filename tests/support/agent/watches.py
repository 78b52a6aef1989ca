"""What the agent's stage shows of its cluster: lists and watches, by the labels that the adapter asks for."""

from __future__ import annotations

from collections import deque

from gatelift_agent.core.values import events
from gatelift_agent.core.values.settings import AgentMode
from gatelift_agent.core.watched import ownership
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, Synced
from gatelift_kube.values.resources import CONFIG_MAP, JOB, NAMESPACE, NODE, POD, RESOURCE_FLAVOR, Resource
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange, Stored
from gatelift_wire.values.keys import LABEL_MADE_HERE, LABEL_ORIGIN
from support.agent.values import MANAGED, decode

_AROUND = (NAMESPACE, NODE, RESOURCE_FLAVOR, CONFIG_MAP)


class Watches:
    """The part of a stage that lists and watches; events go to `events` in the order of the writes."""

    store: Store
    mode: AgentMode
    events: deque[events.Event]

    def __init__(self, kinds: Registry = SERVED, *, adopts: bool = False) -> None:
        self.kinds, self.adopts = kinds, adopts
        self.placed = tuple(dict.fromkeys((POD, *kinds.travelling)))
        self._shown = {(each.group, each.plural): each for each in (*self.placed, *_AROUND)}
        self.watched: set[str] = set()
        self.watching = False
        self.listing = True
        """Whether namespaces are listed when they are asked for; what was asked for before waits for `list_late`."""
        self._asked: tuple[str, ...] = ()
        self.refused: set[str] = set()
        """Namespaces that nobody lets the agent list."""

    def list_late(self) -> None:
        """List the namespaces that were asked for while nothing was listed."""
        self.listing = True
        self._list_namespaces(self._asked)

    def let_list(self, namespace: str) -> None:
        """Let the agent list a namespace; its watches ask again by themselves."""
        self.refused.discard(namespace)
        self._list_namespaces(self._asked)

    def _changed(self, storage: tuple[str, str], change: StoreChange) -> None:
        resource = self._shown.get(storage)
        if resource is None or not self.watching:
            return
        namespaced = resource in self.placed
        if namespaced and not ({"", change.after.namespace} & self.watched):
            return
        if resource == CONFIG_MAP and change.after.namespace != "gatelift-system":
            return
        now = not change.removed and self._selects(resource, change.after)
        before = change.before is not None and self._selects(resource, change.before)
        found = decode(resource, change.after)
        if now:
            self.events.append(ObjectSeen(resource, found, change.after.raw))
        elif before:
            self.events.append(ObjectGone(resource, found))

    def _selects(self, resource: Resource, stored: Stored) -> bool:
        if resource not in self.placed:
            return True
        if self.adopts and resource == POD and LABEL_MADE_HERE in stored.labels:
            return True
        if self.mode is AgentMode.LOCAL:
            return LABEL_ORIGIN in stored.labels or MANAGED in stored.labels or resource == JOB
        return LABEL_ORIGIN in stored.labels

    def _list_cluster(self) -> None:
        self.watching = True
        for resource in (NAMESPACE, NODE, RESOURCE_FLAVOR, CONFIG_MAP):
            for stored in self.store.all((resource.group, resource.plural)):
                if resource != CONFIG_MAP or stored.namespace == "gatelift-system":
                    self.events.append(ObjectSeen(resource, decode(resource, stored), stored.raw))
            self.events.append(Synced(resource))

    def _list_namespaces(self, namespaces: tuple[str, ...]) -> None:
        self._asked = namespaces
        if not self.listing:
            return
        for namespace in sorted(set(namespaces) & self.refused):
            message = f"403 Forbidden: jobs.batch is forbidden in namespace {namespace}"
            self.events.append(events.NamespaceRefused(namespace=namespace, message=message))
        for namespace in sorted(set(namespaces) - self.watched - self.refused):
            for resource in self.placed:
                for stored in self.store.all((resource.group, resource.plural)):
                    if namespace not in {"", stored.namespace}:
                        continue
                    found = decode(resource, stored)
                    hidden = (self.mode is AgentMode.REMOTE or resource == POD) and ownership.hides(self.kinds, found)
                    if hidden or self._selects(resource, stored):
                        self.events.append(ObjectSeen(resource, found, stored.raw))
            self.events.append(events.NamespaceSynced(namespace=namespace))
        self.watched = set(namespaces) - self.refused
