"""What was sent or waits to be sent and is not acknowledged yet: numbers, window, replay. Pure.

Numbers only grow for the life of the process. Cumulative acknowledgements take from the front. A newer report of the
same thing takes the place of an older one that was never transmitted (a transmitted number never changes its content:
the peer may have handled it although its acknowledgement was lost). Neighbour: `session_core`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

from gatelift_wire.values import limits
from gatelift_wire.values.messages import Capacity, CountsReport, Message, ObjectReport
from gatelift_wire.values.sizes import Drained
from gatelift_wire.values.violations import WireError


class OutboxFull(WireError):  # noqa: N818 - a state of the box, named as its CloseReason
    """One more message would exceed the resume window. The owner clears the box and resyncs."""


@dataclass(slots=True)
class _Item:
    message: Message
    weight: int


def replaces(message: Message) -> Hashable | None:
    """Name what a report is the latest word about, or None when each message counts by itself."""
    match message:
        case ObjectReport(key=key, kind=kind, name=name):
            return (ObjectReport, key, kind, name)
        case CountsReport(key=key):
            return (CountsReport, key)
        case Drained(key=key, number=number):
            return (Drained, key, number)
        case Capacity():
            return (Capacity,)
        case _:
            return None


class Outbox:
    """Messages `first` to `last`; those up to `sent` went out on the present stream, up to `transmitted` on any."""

    __slots__ = ("_bytes", "_items", "_latest", "_sent_bytes", "first", "last", "sent", "transmitted")

    def __init__(self) -> None:
        self._items: deque[_Item] = deque()
        self._latest: dict[Hashable, int] = {}
        self._bytes = 0
        self._sent_bytes = 0
        self.first = 1
        self.last = 0
        self.sent = 0
        self.transmitted = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def weight(self) -> int:
        """Bytes kept, by `rules.measure`."""
        return self._bytes

    @property
    def waiting(self) -> int:
        """How many messages were not sent on the present stream."""
        return self.last - self.sent

    def append(self, message: Message, weight: int) -> int:
        """Queue a message and return its number; in place of an older word about the same thing if that is unsent.

        Raises `OutboxFull`, then nothing was changed.
        """
        about = replaces(message)
        if about is not None:
            earlier = self._latest.get(about, 0)
            if earlier > self.transmitted:
                item = self._items[earlier - self.first]
                if self._bytes - item.weight + weight > limits.OUTBOX_BYTES_MAX:
                    raise OutboxFull(self._full())
                self._bytes += weight - item.weight
                item.message, item.weight = message, weight
                return earlier
        if len(self._items) >= limits.OUTBOX_MESSAGES_MAX or self._bytes + weight > limits.OUTBOX_BYTES_MAX:
            raise OutboxFull(self._full())
        self.last += 1
        self._items.append(_Item(message, weight))
        self._bytes += weight
        if about is not None:
            self._latest[about] = self.last
        return self.last

    def _full(self) -> str:
        return (
            f"outbox: holds {len(self._items)} messages of {self._bytes} bytes, at most "
            f"{limits.OUTBOX_MESSAGES_MAX} of {limits.OUTBOX_BYTES_MAX} are kept for an absent peer"
        )

    def take_unsent(self, free_bytes: int = limits.FRAME_BYTES_TARGET) -> tuple[int, tuple[Message, ...]]:
        """Return the next batch for one frame and its first number, and count it as sent.

        Empty when nothing waits or the window is full. `free_bytes` is what the frame still takes; a message heavier
        than the target comes alone.
        """
        first = self.sent + 1
        batch: list[Message] = []
        weight = 0
        while self.sent < self.last and len(batch) < limits.FRAME_MESSAGES_MAX:
            item = self._items[self.sent + 1 - self.first]
            flying = self.sent + 1 - self.first
            if flying >= limits.WINDOW_MESSAGES_MAX or self._sent_bytes + item.weight > limits.WINDOW_BYTES_MAX:
                break
            if batch and weight + item.weight > free_bytes:
                break
            batch.append(item.message)
            weight += item.weight
            self.sent += 1
            self._sent_bytes += item.weight
        self.transmitted = max(self.transmitted, self.sent)
        return first, tuple(batch)

    def acknowledge(self, number: int) -> bool:
        """Drop everything up to `number`. False when that number was never transmitted (nothing was changed)."""
        if number > self.transmitted:
            return False
        while self.first <= number:
            item = self._items.popleft()
            self._bytes -= item.weight
            if self.first <= self.sent:
                self._sent_bytes -= item.weight
            about = replaces(item.message)
            if about is not None and self._latest.get(about) == self.first:
                del self._latest[about]
            self.first += 1
        self.sent = max(self.sent, number)
        return True

    def can_replay_from(self, number: int) -> bool:
        """Say whether the box holds all from `number` on, so that a peer that handled all before it may resume."""
        return self.first <= number <= self.transmitted + 1

    def replay_from(self, number: int) -> None:
        """Forget that `number` and all after it were sent: the stream they went into is gone.

        Raises `ValueError` unless `can_replay_from(number)`.
        """
        if not self.can_replay_from(number):
            raise ValueError(f"cannot replay from {number}: {self.first} to {self.transmitted} are kept")
        self.acknowledge(number - 1)
        self.sent = number - 1
        self._sent_bytes = 0

    def clear(self) -> None:
        """Empty the box (resync). Numbers go on after the last one used."""
        self._items.clear()
        self._latest.clear()
        self._bytes = self._sent_bytes = 0
        self.first = self.last + 1
        self.sent = self.transmitted = self.last
