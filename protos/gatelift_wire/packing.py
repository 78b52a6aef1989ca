"""Frames that wait for their stream: which of them travel as one, and when. Pure.

A write on the stream costs both ends far more than what is in it (measured: 0.2 ms of CPU to write, as much to read,
0.01 ms for a message), so frames that wait are joined, and what nobody waits for may wait a little for company. Order
never changes, numbers say after as before what they said, and the session does not notice: to it this is a wire that
takes up to `HOLD_SECONDS` longer. Neighbours: `frame_writer` (drives this), `codec.join_from_agent` (the bytes).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from gatelift_wire import limits
from gatelift_wire.messages import Applied, Capacity, CountsReport, Forget, Frame, ObjectReport, Withdraw

Join = Callable[[Sequence[bytes], int], bytes]
"""Makes one frame of encoded ones that follow each other, and of the number of the first message in them."""

PATIENT = frozenset({Applied, Capacity, CountsReport, Forget, ObjectReport, Withdraw})
"""Messages that start nothing and stop nothing: states to be shown, and tidying up. Acknowledgements are as patient."""


def is_patient(frame: Frame) -> bool:
    """Say whether nobody waits for anything in this frame. Controls are the session's own and are never held."""
    return not frame.control and all(type(message) in PATIENT for message in frame.messages)


class _Bundle:
    """Frames that travel as one."""

    __slots__ = ("after", "count", "first", "joinable", "messages", "parts", "session", "size", "term")

    def __init__(self, frame: Frame, data: bytes) -> None:
        self.session, self.term = frame.session, frame.term
        self.first = frame.sequence
        self.after = frame.sequence + len(frame.messages)
        self.messages = len(frame.messages)
        self.parts = [data]
        self.count = 1
        self.size = len(data)
        self.joinable = not frame.control

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

    __slots__ = ("_bundles", "_due", "_join", "_taken_at", "frames", "size")

    def __init__(self, join: Join) -> None:
        self._join = join
        self._bundles: deque[_Bundle] = deque()
        self._due = 0.0
        self._taken_at = float("-inf")
        self.frames = 0
        self.size = 0

    def put(self, frame: Frame, data: bytes, now: float) -> None:
        """Add a frame; `data` is what it is as bytes."""
        due = now + limits.HOLD_SECONDS if is_patient(frame) else max(now, self._taken_at + limits.WRITE_GAP_SECONDS)
        last = self._bundles[-1] if self._bundles else None
        if last is None:
            self._bundles.append(_Bundle(frame, data))
            self._due = due
        elif last.takes(frame, len(data)):
            last.add(frame, data)
            self._due = min(self._due, due)
        else:  # nothing more joins what is before it
            self._bundles.append(_Bundle(frame, data))
            self._due = now
        self.frames += 1
        self.size += len(data)

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
        self.frames -= bundle.count
        self.size -= bundle.size
        if self._bundles:
            self._due = now
        return bundle.parts[0] if bundle.count == 1 else self._join(bundle.parts, bundle.first)
