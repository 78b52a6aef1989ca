"""A process of a simulation: one machine, one inbox, as `machine_loop` has; it can pause and die."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from support.sim.clock import ProcessClock, Timeline

TICKS_AT_ONCE_MAX = 2000
"""A machine that asks for so many ticks at one moment never moves on."""

ROUNDING_SECONDS = 1e-6
"""A wake-up is never a rounding error too early by the process's own clock."""


class SimProcess:
    """Feeds a machine. `perform` carries out its commands and must not call `post` before it returns."""

    def __init__(
        self,
        timeline: Timeline,
        name: str,
        machine: Any,
        perform: Callable[[Any], None],
        tick: Any,
        clock: ProcessClock,
    ) -> None:
        self.timeline = timeline
        self.clock = clock
        self.name = name
        self.machine = machine
        self.handled = 0
        """Events so far."""
        self.dead = False
        self.paused = False
        self._perform = perform
        self._tick = tick
        self._inbox: deque[Any] = deque()
        self._running = False
        self._due = float("inf")

    @property
    def now(self) -> float:
        """Return what the process's own clock shows."""
        return self.clock.at(self.timeline.now)

    @property
    def is_idle(self) -> bool:
        """Say whether all that came is handled and nothing is due at this moment."""
        if self.dead or self.paused or self._inbox:
            return False
        deadline = self.machine.next_deadline()
        return deadline is None or deadline > self.now

    def post(self, event: Any) -> None:
        """Put an event into the inbox and drain it, unless the process stands still."""
        if self.dead:
            return
        self._inbox.append(event)
        self.run()

    def run(self) -> None:
        """Handle all that waits, and what is due."""
        if self._running or self.paused or self.dead:
            return
        self._running = True
        deadline: float | None = None
        try:
            for _ in range(TICKS_AT_ONCE_MAX):
                while self._inbox and not self.dead:
                    self._handle(self._inbox.popleft())
                deadline = self.machine.next_deadline()
                if self.dead or deadline is None or deadline > self.now:
                    break
                self._handle(self._tick)
            else:
                raise AssertionError(f"{self.name}: a deadline that never moves on: {self.machine.next_deadline()}")
        finally:
            self._running = False
        if not self.dead:
            self._wake(deadline)

    def _handle(self, event: Any) -> None:
        self.handled += 1
        for command in self.machine.handle(event, self.now):
            if self.dead:
                return
            self._perform(command)

    def _wake(self, deadline: float | None) -> None:
        now = self.now
        if deadline is None or (deadline >= self._due > now):
            return
        self._due = deadline
        self.timeline.after(self.clock.lasts(deadline - now) + ROUNDING_SECONDS, self._woken)

    def _woken(self) -> None:
        if self.now >= self._due:
            self._due = float("inf")
        self.run()

    def pause(self) -> None:
        """Stand still, as under SIGSTOP: what comes waits."""
        self.paused = True

    def wake(self) -> None:
        """Go on, with all that came meanwhile first."""
        self.paused = False
        self.run()

    def kill(self) -> None:
        """End at once."""
        self.dead = True
        self._inbox.clear()
