"""Drives a deciding machine: events in order through its one door, commands out to whoever performs them, timers.

Manager and agent run the same loop; it has no policy. `post` is called in the event loop (by reflectors, executors,
streams); `run` feeds the machine and sleeps until the next event or the machine's own deadline.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from gatelift_kube.process.clock import Clock, monotonic

EventT = TypeVar("EventT")
EventT_contra = TypeVar("EventT_contra", contravariant=True)
CommandT = TypeVar("CommandT")
CommandT_co = TypeVar("CommandT_co", covariant=True)

QUEUE_MAX = 4096
"""Events waiting. Whoever posts one more pays for it: the queue is drained inside that `post`, so that a producer that
never waits (a long list, a burst of a watch) cannot fill the memory."""

TURN_SECONDS = 0.01
"""How long the machine is fed before sockets are served again: half of what one `handle` may take at the most."""

IDLE_SECONDS_MAX = 60.0
"""The loop looks at the machine's deadline at least this often."""


class DecidingMachine(Protocol[EventT_contra, CommandT_co]):
    """The one door of a deciding core."""

    def handle(self, event: EventT_contra, now: float) -> Sequence[CommandT_co]:
        """Take one event; return what is wanted."""
        ...

    def next_deadline(self) -> float | None:
        """Return the moment at which the tick event has something to do."""
        ...


class MachineLoop(Generic[EventT, CommandT]):
    """One machine, one queue. `perform` must not wait and must not call `post` before it returns."""

    def __init__(
        self,
        machine: DecidingMachine[EventT, CommandT],
        perform: Callable[[CommandT], None],
        *,
        tick: EventT,
        clock: Clock = monotonic,
        observe: Callable[[EventT, float], None] | None = None,
    ) -> None:
        self._machine = machine
        self._perform = perform
        self._tick = tick
        self._clock = clock
        self._observe = observe
        self._queue: deque[EventT] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._handling = False

    @property
    def waiting(self) -> int:
        """Events that are not handled yet."""
        return len(self._queue)

    def post(self, event: EventT) -> None:
        """Queue an event; drains the queue at once when it is full."""
        self._queue.append(event)
        if len(self._queue) >= QUEUE_MAX and not self._handling:
            while self._queue:
                self._step(self._queue.popleft())
        if self._waiter is not None:
            self._wake(self._waiter)

    async def run(self) -> None:
        """Feed the machine until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                deadline = self._turn()
                if self._queue:
                    await asyncio.sleep(0)
                else:
                    await self._sleep(deadline, loop)
        finally:
            self._set_alarm(None)

    def _turn(self) -> float | None:
        """Feed the machine for a while; return its next deadline, of no meaning while events still wait."""
        end = self._clock() + TURN_SECONDS
        while self._queue:
            self._step(self._queue.popleft())
            if self._queue and self._clock() >= end:
                return None
        deadline = self._machine.next_deadline()
        if deadline is not None and deadline <= self._clock():
            self._step(self._tick)
            deadline = self._machine.next_deadline()
        return deadline

    def _step(self, event: EventT) -> None:
        self._handling = True
        try:
            began = self._clock()
            commands = self._machine.handle(event, began)
            if self._observe is not None:
                self._observe(event, self._clock() - began)
            for command in commands:
                self._perform(command)
        finally:
            self._handling = False

    async def _sleep(self, deadline: float | None, loop: asyncio.AbstractEventLoop) -> None:
        seconds = IDLE_SECONDS_MAX if deadline is None else min(deadline - self._clock(), IDLE_SECONDS_MAX)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        at = loop.time() + seconds
        # An alarm that rings too early costs one look at the deadline, a new one for each event costs more than that.
        if self._alarm is None or at < self._alarm_at:
            self._set_alarm(at)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _set_alarm(self, at: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if at is not None:
            self._alarm = asyncio.get_running_loop().call_at(at, self._ring)
            self._alarm_at = at

    def _ring(self) -> None:
        self._alarm = None
        if self._waiter is not None:
            self._wake(self._waiter)

    @staticmethod
    def _wake(waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_result(None)
