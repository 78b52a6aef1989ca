"""What a stand-in controller is: keys to look at, timers, and actions wanted. Pure."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from gatelift_kube.values import timestamps
from gatelift_kube.values.resources import Resource
from gatelift_sandbox.embedded.builtin import CORE_EVENT
from gatelift_sandbox.embedded.documents import Document, meta
from gatelift_sandbox.embedded.kinds import StorageKey
from gatelift_sandbox.embedded.store import Store
from gatelift_sandbox.embedded.watches import StoreChange

RETRY_SECONDS = 1.0
"""After a refusal that is not a mere conflict (a webhook that does not answer, ...): time for it to come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedKey:
    """An object to look at."""

    storage: StorageKey
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateObject:
    """Create this object. Best effort where it is an event."""

    resource: Resource
    namespace: str
    document: Document


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchObject:
    """Merge-patch an object if it still has this UID (and, where given, this version)."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    patch: Document
    subresource: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteIfSame:
    """Delete an object if it still has this UID."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    propagation: str = "Background"
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BindPod:
    """Bind a pod to a node if it still has this UID."""

    namespace: str
    name: str
    uid: str
    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizeNamespace:
    """Let a namespace go: nothing is left in it."""

    name: str


Action = CreateObject | PatchObject | DeleteIfSame | BindPod | FinalizeNamespace


class Controller(ABC):
    """Base of all: remembers which keys to look at, now or later."""

    user: ClassVar[str]
    """The user in whose name its actions are done, as the real controller's."""

    def __init__(self) -> None:
        self._marked: dict[WatchedKey, None] = {}
        self._timers: list[tuple[float, int, WatchedKey]] = []
        self._timer_count = 0

    @abstractmethod
    def notice(self, storage: StorageKey, change: StoreChange) -> None:
        """Be told of a write; mark what to look at again."""

    @abstractmethod
    def decide(self, store: Store, key: WatchedKey, now: float) -> list[Action]:
        """Return what to do about a key, given the store as it is."""

    def mark(self, key: WatchedKey) -> None:
        """Look at a key soon."""
        self._marked[key] = None

    def later(self, key: WatchedKey, when: float) -> None:
        """Look at a key again at `when`, seconds since 1970."""
        self._timer_count += 1
        heapq.heappush(self._timers, (when, self._timer_count, key))

    def due(self, now: float) -> list[WatchedKey]:
        """Return and forget the keys to look at."""
        while self._timers and self._timers[0][0] <= now:
            self._marked[heapq.heappop(self._timers)[2]] = None
        found = self.ordered(list(self._marked))
        self._marked = {}
        return found

    def ordered(self, keys: list[WatchedKey]) -> list[WatchedKey]:
        """Return keys in the order in which they shall be looked at."""
        return keys

    def next_deadline(self) -> float | None:
        """Return when to ask `due` again if no write comes before, None for never; in the past if keys are marked."""
        if self._marked:
            return 0.0
        return self._timers[0][0] if self._timers else None


def event(
    store: Store,
    about: Resource,
    document: Document,
    now: float,
    *,
    reason: str,
    message: str,
    source: str,
    warning: bool = False,
) -> CreateObject:
    """Return the creation of an Event about an object."""
    described, moment = meta(document), timestamps.to_text(now)
    namespace = described.get("namespace") or "default"
    involved = {
        "kind": about.kind,
        "apiVersion": about.api_version,
        "namespace": described.get("namespace", ""),
        "name": described["name"],
        "uid": described["uid"],
        "resourceVersion": described["resourceVersion"],
    }
    return CreateObject(
        resource=CORE_EVENT,
        namespace=namespace,
        document={
            "metadata": {"name": f"{described['name']}.{store.uid().replace('-', '')[:16]}"},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": source},
            "reportingComponent": source,
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        },
    )


def owner_uid(document: Document) -> str:
    """Return the UID of the controlling owner, "" where there is none."""
    owners = meta(document).get("ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def is_true(conditions: list[Document], kind: str) -> bool:
    """Return whether a condition is there and True."""
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)
