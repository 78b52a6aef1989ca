"""Time limits for many short waits: what `asyncio.timeout_at` promises, with one timer for all of them.

A request makes and cancels a timer that hardly ever rings; here the one that is set stays until it does. Used by
`transport`; belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimits:
    """Cancels what takes longer than it may. `until(deadline)` is a context like `asyncio.timeout_at`."""

    __slots__ = ("_alarm", "_alarm_at", "_open", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._open: dict[TimeLimit, None] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0

    def until(self, deadline: float) -> TimeLimit:
        """Limit a block of the current task; TimeoutError where it has not ended at `deadline` (`loop.time`)."""
        return TimeLimit(self, deadline)

    def begin(self, limit: TimeLimit) -> None:
        """Watch over a limit."""
        self._open[limit] = None
        if self._alarm is None or limit.deadline < self._alarm_at:
            self._set(limit.deadline)

    def end(self, limit: TimeLimit) -> None:
        """Watch no longer. The timer stays: one that rings for nothing costs less than one for each limit."""
        self._open.pop(limit, None)

    def close(self) -> None:
        """Take the timer away, when nothing is open any more."""
        if self._alarm is not None and not self._open:
            self._alarm.cancel()
            self._alarm = None

    def _set(self, at: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_at = self.loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._alarm = None
        now = self.loop.time()
        for limit in [each for each in self._open if each.deadline <= now]:
            del self._open[limit]
            limit.pass_()
        if self._open:
            self._set(min(each.deadline for each in self._open))


class TimeLimit:
    """One limit, for one block."""

    __slots__ = ("_cancelling", "_limits", "_passed", "_task", "deadline")

    def __init__(self, limits: TimeLimits, deadline: float) -> None:
        self.deadline = deadline
        self._limits = limits
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._passed = False

    def __enter__(self) -> None:
        """Begin; RuntimeError outside of a task."""
        task = asyncio.current_task(self._limits.loop)
        if task is None:
            raise RuntimeError("a time limit is for a task")
        self._task, self._cancelling = task, task.cancelling()
        self._limits.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End. TimeoutError where the time has passed and nobody else has cancelled the task."""
        self._limits.end(self)
        if not self._passed or self._task is None:
            return
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def pass_(self) -> None:
        """Interrupt the block: its time has passed."""
        self._passed = True
        if self._task is not None:
            self._task.cancel()
