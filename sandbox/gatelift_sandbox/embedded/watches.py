"""What a write leaves behind for watchers: events, a bounded history, and the watches that wait for more. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from gatelift_sandbox.embedded.documents import Document, decode, encode
from gatelift_sandbox.embedded.failures import expired
from gatelift_sandbox.embedded.selection import ListSelection

HISTORY_MAX = 20_000
"""Events kept a kind. A client that was away for longer than that has to list again (410), as with a real server,
whose cache holds a like number."""
PENDING_MAX = 50_000
"""Events that one watch may have waiting. A client that is so far behind has stopped reading: its watch ends."""


class Stored:
    """One version of one object: its JSON, and what selectors and preconditions ask for. Never changed."""

    __slots__ = ("_view", "deleting", "fields", "labels", "name", "namespace", "raw", "uid", "version")

    def __init__(self, raw: bytes, version: int, about: Document, fields: dict[str, str]) -> None:
        self.raw = raw
        self.version = version
        self.namespace: str = about.get("namespace") or ""
        self.name: str = about["name"]
        self.uid: str = about["uid"]
        self.deleting = about.get("deletionTimestamp") is not None
        self.labels: dict[str, str] = about.get("labels") or {}
        self.fields = fields
        fields["metadata.name"] = self.name
        fields["metadata.namespace"] = self.namespace
        self._view: Document | None = None

    def document(self) -> Document:
        """Return the object decoded; the caller owns it."""
        found: Document = decode(self.raw)
        return found

    def view(self) -> Document:
        """Return the object decoded, once for all who only read it: nobody may change any of it."""
        if self._view is None:
            self._view = self.document()
        return self._view


class ChangeType(Enum):
    """What a watch says of an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class StoreChange:
    """One write: the object before and after. After a removal `after` is the last state, with a version of its own."""

    before: Stored | None
    after: Stored
    removed: bool

    def left_behind(self) -> Stored:
        """Return what a watch is told that selects it no more: what it was before, in the version of this write."""
        if self.before is None:
            return self.after
        document = self.before.document()
        about = document["metadata"]
        about["resourceVersion"] = str(self.after.version)
        return Stored(encode(document), self.after.version, about, dict(self.before.fields))


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event as a watch with a selection sees it."""

    happened: ChangeType
    stored: Stored


class Watch:
    """One watch: takes up what its selection lets through until it is read or closed. `wake` is called at each."""

    __slots__ = ("_events", "_selection", "closed", "wake")

    def __init__(self, selection: ListSelection, wake: Callable[[], None]) -> None:
        self._selection = selection
        self._events: deque[WatchEvent] = deque()
        self.wake = wake
        self.closed = False

    def seed(self, stored: Stored) -> None:
        """Say of an object that is there when the watch begins that it was added."""
        if self._selects(stored):
            self._events.append(WatchEvent(ChangeType.ADDED, stored))

    def offer(self, change: StoreChange) -> None:
        """Take up a change if the selection lets it through. Too many unread ones close the watch."""
        event = self._seen(change)
        if event is None or self.closed:
            return
        if len(self._events) >= PENDING_MAX:
            self.closed = True
            self._events.clear()
        else:
            self._events.append(event)
        self.wake()

    def close(self) -> None:
        """End the watch; what was taken up may still be read."""
        self.closed = True
        self.wake()

    def take(self) -> list[WatchEvent]:
        """Return and forget what was taken up."""
        taken = list(self._events)
        self._events.clear()
        return taken

    def _selects(self, stored: Stored) -> bool:
        chosen = self._selection
        if chosen.namespace and stored.namespace != chosen.namespace:
            return False
        return chosen.everything or chosen.matches(stored.labels, stored.fields)

    def _seen(self, change: StoreChange) -> WatchEvent | None:
        was = change.before is not None and self._selects(change.before)
        selected = not change.removed and self._selects(change.after)
        if selected:
            return WatchEvent(ChangeType.MODIFIED if was else ChangeType.ADDED, change.after)
        if not was:
            return None
        return WatchEvent(ChangeType.DELETED, change.after if change.removed else change.left_behind())


class ChangeLog:
    """The last changes of one kind, and its watches."""

    __slots__ = ("_changes", "_limit", "_watches", "floor")

    def __init__(self, limit: int = HISTORY_MAX) -> None:
        self._changes: deque[StoreChange] = deque()
        self._limit = limit
        self._watches: list[Watch] = []
        self.floor = 0
        """Changes up to this version are forgotten."""

    def add(self, change: StoreChange) -> None:
        """Remember a change and tell the watches."""
        self._changes.append(change)
        if len(self._changes) > self._limit:
            self.floor = self._changes.popleft().after.version
        for watch in list(self._watches):
            watch.offer(change)

    def watch(self, watch: Watch, since: int) -> None:
        """Give a watch all changes after version `since`, and those to come; ApiError 410 where some are forgotten."""
        if since < self.floor:
            raise expired(f"too old resource version: {since} ({self.floor})")
        missed = []
        for change in reversed(self._changes):
            if change.after.version <= since:
                break
            missed.append(change)
        for change in reversed(missed):
            watch.offer(change)
        self._watches = [each for each in self._watches if not each.closed]
        self._watches.append(watch)

    def forget(self, up_to: int) -> None:
        """Drop changes up to a version, as compaction does."""
        while self._changes and self._changes[0].after.version <= up_to:
            self._changes.popleft()
        self.floor = max(self.floor, up_to)

    def unwatch(self, watch: Watch) -> None:
        """Stop telling a watch."""
        watch.closed = True
        self._watches = [each for each in self._watches if each is not watch]

    def close_all(self) -> int:
        """End all watches; return how many there were."""
        closing, self._watches = [each for each in self._watches if not each.closed], []
        for watch in closing:
            watch.close()
        return len(closing)
