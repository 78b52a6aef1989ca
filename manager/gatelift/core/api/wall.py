"""Wall-clock texts from monotonic time, without asking a clock. For what people read; nothing is decided by it.

One exception to "nothing": `requeueAt` of a Workload is a wall time, because it has to outlive a restart.
"""

from __future__ import annotations

from gatelift_kube.values.timestamps import to_seconds, to_text


class Wall:
    """Maps `now` (monotonic seconds) to RFC 3339 texts by the last reading of the wall clock."""

    __slots__ = ("_offset",)

    def __init__(self) -> None:
        self._offset = 0.0

    def read(self, unix_seconds: float, now: float) -> None:
        """Take a reading: the wall clock showed `unix_seconds` at `now`."""
        self._offset = unix_seconds - now

    def unix(self, now: float) -> float:
        """Return seconds since 1970 at `now`."""
        return now + self._offset

    def text(self, now: float) -> str:
        """Return the RFC 3339 text of `now`, to the second."""
        return to_text(now + self._offset)

    def moment(self, unix_seconds: float) -> float:
        """Return the monotonic moment of a Unix time."""
        return unix_seconds - self._offset

    def at(self, text: str | None, default: float) -> float:
        """Return the monotonic moment of an RFC 3339 text; `default` where there is none or it cannot be read."""
        if not text:
            return default
        try:
            return to_seconds(text) - self._offset
        except ValueError:
            return default
