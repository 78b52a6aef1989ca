"""Which events to write: equal ones become one with a count, many similar ones are combined. Pure.

After the rules of the event correlators of Kubernetes: an event that repeats within six minutes raises the count of the
first; the eleventh text about one object for one reason is told as *combined*. Times are monotonic seconds (`now`) for
deciding and seconds since 1970 (`wall`) for people. Namespaces take turns, and the one that has most waiting loses some
when there are too many: thousands of one namespace keep nobody else's one from being told.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gatelift_kube.deciding.fair_line import FairLine
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.values import timestamps
from gatelift_kube.values.resources import EVENT, ObjectKey, ObjectRef

WINDOW_SECONDS = 360.0
"""An event that was not repeated for so long is over; the next one is a new one (Kubernetes: 6 minutes)."""
REPEAT_SECONDS = 10.0
"""The count of an event is written at most this often."""
SIMILAR_MAX = 10
"""Different texts about one object for one reason before they are combined (Kubernetes: 10)."""
WAITING_MAX = 1000
"""Events that wait to be written; beyond, the oldest of the namespace that has most is dropped."""
SERIES_MAX = 4096
"""Events remembered for counting, 1 KB each; beyond, the least recently seen is forgotten."""
NOTE_BYTES_MAX = 1024
REASON_CHARS_MAX = 128
NAME_CHARS_MAX = 200
"""events.k8s.io/v1 limits of note, reason and action; the object's name is cut so that ours fits into 253."""

_COMBINED = "(combined from similar events): "

_Group = tuple[ObjectRef, str, bool, str, str]
_Key = tuple[_Group, str]


@dataclass(slots=True, eq=False)
class _Series:
    key: _Key
    note: str
    name: str
    count: int
    first_wall: float
    last_wall: float
    last_seen: float
    told: int = 0
    """The count as it was last sent."""
    written: bool = False
    written_at: float = 0.0
    due: bool = False


@dataclass(slots=True, eq=False)
class _Similar:
    since: float
    notes: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWrite:
    """One write to make: a create where `create` is true, else a merge patch of the event's series."""

    key: object
    create: bool
    ref: ObjectRef
    body: bytes


class EventSeries:
    """Turns events as they happen into few writes. `dropped` counts those that nobody will read."""

    def __init__(self, controller: str, instance: str, *, waiting_max: int = WAITING_MAX) -> None:
        self._controller = controller
        self._instance = instance[:REASON_CHARS_MAX]
        self._waiting_max = waiting_max
        self._series: OrderedDict[_Key, _Series] = OrderedDict()
        self._similar: OrderedDict[_Group, _Similar] = OrderedDict()
        self._line: FairLine[_Key] = FairLine()  # new ones, and counts that are due
        self._repeats: list[tuple[float, int, _Key]] = []
        self._sequence = 0
        self.dropped = 0

    def add(self, event: EmitEvent, now: float, wall: float) -> None:
        """Take an event that happens now."""
        group = (event.ref, event.uid, event.warning, event.reason[:REASON_CHARS_MAX], event.action)
        note = _cut(event.message)
        key = (group, note)
        if key not in self._series and self._is_one_too_many(group, note, now):
            key, note = (group, _COMBINED), _cut(_COMBINED + event.message)
        series = self._series.get(key)
        if series is not None and now - series.last_seen < WINDOW_SECONDS:
            self._repeat(series, now, wall)
            return
        self._sequence += 1
        name = f"{event.ref.key.name[:NAME_CHARS_MAX]}.{math.trunc(wall * 1e6):x}{self._sequence % 0x10000:04x}"
        self._series[key] = _Series(key, note, name, 1, wall, wall, now)
        self._series.move_to_end(key)
        self._stand(key)
        while len(self._series) > SERIES_MAX:
            self._forget(next(iter(self._series)))

    def take(self, now: float) -> EventWrite | None:
        """Return the next write that is due, oldest of its namespace first; `written` or `failed` must follow."""
        while self._repeats and self._repeats[0][0] <= now:
            _, _, due = heapq.heappop(self._repeats)
            if due in self._series and self._series[due].due:
                self._stand(due)
        if not self._line:
            return None
        series = self._series[self._line.take()]
        create = not series.written
        if not create:
            series.due = False
            series.written_at = now
        return self._write(series, create=create)

    def next_deadline(self, now: float) -> float | None:
        """Return when `take` has something; None where nothing waits."""
        if self._line:
            return now
        return self._repeats[0][0] if self._repeats else None

    def written(self, write: EventWrite, now: float) -> None:
        """Say that a write succeeded."""
        series = self._series.get(write.key)  # type: ignore[call-overload] # the key is ours, opaque to callers
        if series is None:
            return
        series.written = True
        series.written_at = now
        if series.count > series.told and not series.due:
            self._schedule(series)

    def failed(self, write: EventWrite) -> None:
        """Say that a write failed for good: the event is forgotten, and a repetition starts a new one."""
        self.dropped += 1
        self._series.pop(write.key, None)  # type: ignore[call-overload] # as above
        self._line.leave(write.key)  # type: ignore[arg-type] # as above; one that began anew meanwhile

    def _is_one_too_many(self, group: _Group, note: str, now: float) -> bool:
        similar = self._similar.get(group)
        if similar is None or now - similar.since >= WINDOW_SECONDS:
            similar = self._similar[group] = _Similar(now)
        self._similar.move_to_end(group)
        while len(self._similar) > SERIES_MAX:
            self._similar.popitem(last=False)
        if note in similar.notes:
            return False
        if len(similar.notes) >= SIMILAR_MAX:
            return True
        similar.notes.add(note)
        return False

    def _repeat(self, series: _Series, now: float, wall: float) -> None:
        series.count += 1
        series.last_wall = wall
        series.last_seen = now
        self._series.move_to_end(series.key)
        if series.written and not series.due:
            self._schedule(series)

    def _schedule(self, series: _Series) -> None:
        series.due = True
        self._sequence += 1
        heapq.heappush(self._repeats, (series.written_at + REPEAT_SECONDS, self._sequence, series.key))

    def _stand(self, key: _Key) -> None:
        self._line.stand(key, (key[0][0].key.namespace,))
        while len(self._line) > self._waiting_max:
            self._forget(self._line.take_of_most())
            self.dropped += 1

    def _forget(self, key: _Key) -> None:
        del self._series[key]
        if key in self._line:
            self._line.leave(key)
            self.dropped += 1

    def _write(self, series: _Series, *, create: bool) -> EventWrite:
        (ref, uid, warning, reason, action), _ = series.key
        series.told = series.count
        namespace = ref.key.namespace or "default"
        body: dict[str, Any] = {}
        if series.count > 1:
            body["series"] = {"count": series.count, "lastObservedTime": timestamps.to_micro_text(series.last_wall)}
        if create:
            body |= {
                "apiVersion": EVENT.api_version,
                "kind": EVENT.kind,
                "metadata": {"name": series.name, "namespace": namespace},
                "eventTime": timestamps.to_micro_text(series.first_wall),
                "reportingController": self._controller,
                "reportingInstance": self._instance,
                "type": "Warning" if warning else "Normal",
                "reason": reason,
                "action": (action or reason)[:REASON_CHARS_MAX],
                "note": series.note,
                "regarding": {
                    "apiVersion": ref.resource.api_version,
                    "kind": ref.resource.kind,
                    "name": ref.key.name,
                    "namespace": ref.key.namespace,
                    "uid": uid,
                },
            }
        target = ObjectRef(EVENT, ObjectKey(namespace, series.name))
        return EventWrite(key=series.key, create=create, ref=target, body=msgspec.json.encode(body))


def _cut(note: str) -> str:
    """Cut to what the API server takes, which counts bytes."""
    encoded = note.encode()
    if len(encoded) <= NOTE_BYTES_MAX:
        return note
    return encoded[: NOTE_BYTES_MAX - 4].decode("utf-8", "ignore") + " ..."
