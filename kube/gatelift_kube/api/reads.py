"""Reads on request, a few at a time: who asks is answered by an event, or told at once that too many wait.

Neighbours: the adapters of manager and agent say what is read and how it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from gatelift_kube.process.tasks import Supervisor

READS_MAX = 1024
"""Reads that wait. The manager asks after a write of unknown outcome or a missing placement, the agent for the pods of
a Job; an API server that answers a burst of writes late makes hundreds at once."""

READS_AT_ONCE = 8
"""Of these so many are under way: a thousand are read in seconds, and the API server sees no more of it than of one
more client."""

COMMAND_CHARS_MAX = 512
"""Of a command that raised so much is logged: others' names and labels are in it."""

C = TypeVar("C")


class Reads(Generic[C]):
    """Carries out commands of type `C` in the order in which they came, `READS_AT_ONCE` at a time."""

    def __init__(self, read: Callable[[C], Awaitable[None]], refused: Callable[[C, str], None]) -> None:
        """`read` asks and answers, and raises for a defect only, which is logged and ends that one read.

        `refused` answers what was not taken, or not answered, and says why.
        """
        self._read = read
        self._refused = refused
        self._log = structlog.get_logger("gatelift.kube.reads")
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
            command = await self._waiting.get()
            try:
                await self._read(command)
            except Exception as error:  # noqa: BLE001 (containment: one read ends no process)
                self._log.exception("a read was given up, others go on", command=repr(command)[:COMMAND_CHARS_MAX])
                self._refused(command, f"{type(error).__name__}: {error}"[:COMMAND_CHARS_MAX])
