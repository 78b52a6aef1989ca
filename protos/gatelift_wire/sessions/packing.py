"""Frames that wait for their stream: which of them travel as one, and when. Pure.

A write on the stream costs both ends far more than what is in it (measured: 0.2 ms of CPU to write, as much to read,
0.01 ms for a message), so frames that wait are joined, and what nobody waits for may wait a little for company. That is
meant for streams on which much goes on: the first writes after a calm wait for nothing (HD-690). Order never changes
but for one thing: a renewal goes ahead of the chunks of an inventory, which are many and large, while a lease has a
term. Numbers say after as before what they said, and the session does not notice: to it this is a wire that takes a
little longer. Neighbours: `frame_writer` (drives this).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryChunk
from gatelift_wire.values.messages import (
    Applied,
    Capacity,
    CountsReport,
    Forget,
    Frame,
    LeaseRenew,
    ObjectReport,
    Withdraw,
)
from gatelift_wire.values.sizes import Drained

Join = Callable[[Sequence[bytes], int], bytes]
"""Makes one frame of encoded ones that follow each other, and of the number of the first message in them."""

HOLD: dict[type, float] = {
    Applied: limits.TIDY_SECONDS,
    Capacity: limits.HOLD_SECONDS,
    CountsReport: limits.HOLD_SECONDS,
    Drained: limits.HOLD_SECONDS,
    ObjectReport: limits.HOLD_SECONDS,
    Withdraw: limits.HOLD_SECONDS,
    Forget: limits.TIDY_SECONDS,
}
"""How long a message may be held on a busy stream: those that start nothing and stop nothing, and tidying up.

Applied only gives a credit back, and the lift that nearly always follows says the same.
"""


def patience(frame: Frame) -> float:
    """Return for how many seconds a frame may be held. Controls are the session's own and never are."""
    if frame.control:
        return 0.0
    held = limits.TIDY_SECONDS  # an acknowledgement alone
    for message in frame.messages:
        held = min(held, HOLD.get(type(message), 0.0))
    return held


def _is(control: type, frame: Frame) -> bool:
    return bool(frame.control) and not frame.messages and all(isinstance(each, control) for each in frame.control)


class _Bundle:
    """Frames that travel as one."""

    __slots__ = ("after", "count", "first", "joinable", "listing", "messages", "parts", "session", "size", "term")

    def __init__(self, frame: Frame, data: bytes) -> None:
        self.session, self.term = frame.session, frame.term
        self.first = frame.sequence
        self.after = frame.sequence + len(frame.messages)
        self.messages = len(frame.messages)
        self.parts = [data]
        self.count = 1
        self.size = len(data)
        self.joinable = not frame.control
        self.listing = _is(InventoryChunk, frame)

    def takes(self, frame: Frame, size: int) -> bool:
        """Say whether this frame may join: it goes on where these end, and all of them are within the limits."""
        return (
            self.joinable
            and not frame.control
            and frame.sequence == self.after
            and frame.session == self.session
            and frame.term == self.term
            and self.messages + len(frame.messages) <= limits.JOINED_MESSAGES_MAX
            and self.size + size <= limits.FRAME_BYTES_TARGET
            and self.count < limits.JOINED_FRAMES_MAX
        )

    def add(self, frame: Frame, data: bytes) -> None:
        """Append a frame that `takes` let in."""
        self.after += len(frame.messages)
        self.messages += len(frame.messages)
        self.parts.append(data)
        self.count += 1
        self.size += len(data)


class Packer:
    """What waits for one stream, in order. Whoever owns it bounds it by `frames` and `size`."""

    __slots__ = ("_bundles", "_due", "_join", "_paced_until", "_taken_at", "frames", "size")

    def __init__(self, join: Join) -> None:
        self._join = join
        self._bundles: deque[_Bundle] = deque()
        self._due = 0.0
        self._taken_at = self._paced_until = float("-inf")
        self.frames = 0
        self.size = 0

    def put(self, frame: Frame, data: bytes, now: float) -> None:
        """Add a frame; `data` is what it is as bytes."""
        due = self._due_of(frame, now)
        last = self._bundles[-1] if self._bundles else None
        if last is None:
            self._bundles.append(_Bundle(frame, data))
            self._due = due
        elif last.takes(frame, len(data)):
            last.add(frame, data)
            self._due = min(self._due, due)
        else:  # nothing more joins what is before it
            self._bundles.insert(self._place(frame), _Bundle(frame, data))
            self._due = now
        self.frames += 1
        self.size += len(data)

    def _due_of(self, frame: Frame, now: float) -> float:
        """Return when a frame is to be written: after its hold and the gap, or at once where little was written."""
        held = patience(frame)
        is_calm = self._paced_until - (limits.WRITES_AT_ONCE - 1) * limits.WRITE_EVERY_SECONDS <= now
        if is_calm and held <= limits.HOLD_SECONDS:
            return now
        return max(now + held, self._taken_at + limits.WRITE_GAP_SECONDS)

    def _place(self, frame: Frame) -> int:
        """Return where a frame stands: behind all, a renewal ahead of the chunks that it would wait for."""
        place = len(self._bundles)
        if _is(LeaseRenew, frame):
            while place and self._bundles[place - 1].listing and self._bundles[place - 1].session == frame.session:
                place -= 1
        return place

    def hurry(self, now: float) -> None:
        """Hold nothing of what waits."""
        self._due = min(self._due, now)

    @property
    def due(self) -> float | None:
        """When `take` is to be called; None: nothing waits."""
        return self._due if self._bundles else None

    def take(self, now: float) -> bytes:
        """Return what is to be written next: one frame. Raises IndexError when nothing waits."""
        bundle = self._bundles.popleft()
        self._taken_at = now
        self._paced_until = max(self._paced_until, now) + limits.WRITE_EVERY_SECONDS
        self.frames -= bundle.count
        self.size -= bundle.size
        if self._bundles:
            self._due = now
        return bundle.parts[0] if bundle.count == 1 else self._join(bundle.parts, bundle.first)
