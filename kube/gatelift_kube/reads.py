"""Reads on request, a few at a time: who asks is answered by an event, or told at once that too many wait.

Neighbours: the adapters of manager and agent say what is read and how it is answered; `executor` does the same for
writes, which have an order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from gatelift_kube.tasks import Supervisor

READS_MAX = 1024
"""Reads that wait. The manager asks after a write of unknown outcome or a missing placement, the agent for the pods of
a Job; an API server that answers a burst of writes late makes hundreds at once."""

READS_AT_ONCE = 8
"""Of these so many are under way: a thousand are read in seconds, and the API server sees no more of it than of one
more client."""

C = TypeVar("C")


class Reads(Generic[C]):
    """Carries out commands of type `C` in the order in which they came, `READS_AT_ONCE` at a time."""

    def __init__(self, read: Callable[[C], Awaitable[None]], refused: Callable[[C, str], None]) -> None:
        """`read` asks and answers, and raises for a defect only; `refused` answers what was not taken, and says why."""
        self._read = read
        self._refused = refused
        self._waiting: asyncio.Queue[C] = asyncio.Queue(maxsize=READS_MAX)

    def start(self, supervisor: Supervisor) -> None:
        """Read until the supervisor stops."""
        for number in range(READS_AT_ONCE):
            supervisor.spawn(f"reads {number}", self._work())

    def ask(self, command: C) -> None:
        """Take a command; returns at once."""
        try:
            self._waiting.put_nowait(command)
        except asyncio.QueueFull:
            self._refused(command, f"{READS_MAX} reads wait already")

    async def _work(self) -> None:
        while True:
            await self._read(await self._waiting.get())
