"""Reads on request, within their budget: who asks is answered by an event, or told at once that too many wait.

Namespaces take turns. Neighbours: the adapters of manager and agent say what is read and how it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from gatelift_kube.deciding.budget import READS_AT_ONCE, Share, TokenBucket, Traffic, budget
from gatelift_kube.deciding.fair_room import FairRoom
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.process.fair_queue import FairQueue
from gatelift_kube.process.tasks import Supervisor

READS_MAX = 1024
"""Reads that wait. The manager asks after a write of unknown outcome or a missing placement, the agent for the pods of
a Job; an API server that answers a burst of writes late makes hundreds at once."""

OWN_MIN = READS_AT_ONCE
"""Of one namespace so many may wait also where all places are taken by others."""

COMMAND_CHARS_MAX = 512
"""Of a command that raised so much is logged: others' names and labels are in it."""

C = TypeVar("C")


class Reads(Generic[C]):
    """Carries out commands of type `C`, in the order in which they came in a namespace, within a budget."""

    def __init__(
        self,
        read: Callable[[C], Awaitable[None]],
        refused: Callable[[C, str], None],
        namespace: Callable[[C], str],
        share: Share | None = None,
        clock: Clock = monotonic,
    ) -> None:
        """`read` asks and answers, and raises for a defect only, which is logged and ends that one read.

        `refused` answers what was not taken, or not answered, and says why. `namespace`: for whose sake it is read, ""
        for nobody's. `share` None: that of the default budget.
        """
        self._read = read
        self._namespace = namespace
        self._refused = refused
        self._log = structlog.get_logger("gatelift.kube.reads")
        self._waiting: FairQueue[C] = FairQueue(lambda command: (namespace(command),))
        self._room = FairRoom(READS_MAX, OWN_MIN)
        self._share = share or budget().shares[Traffic.READ]
        self._clock = clock
        self._bucket = TokenBucket(self._share, clock())
        self._next = asyncio.Lock()  # one at a time waits for its turn, so that all others have theirs behind it

    def start(self, supervisor: Supervisor) -> None:
        """Read until the supervisor stops."""
        for number in range(self._share.in_flight):
            supervisor.spawn(f"reads {number}", self._work())

    def ask(self, command: C) -> None:
        """Take a command; returns at once."""
        if self._room.take(self._namespace(command)):
            self._waiting.put_nowait(command)
        else:
            self._refused(command, f"{READS_MAX} reads wait already")

    async def _work(self) -> None:
        while True:
            command = await self._taken()
            try:
                await self._read(command)
            except Exception as error:  # noqa: BLE001 (containment: one read ends no process)
                self._log.exception("a read was given up, others go on", command=repr(command)[:COMMAND_CHARS_MAX])
                self._refused(command, f"{type(error).__name__}: {error}"[:COMMAND_CHARS_MAX])

    async def _taken(self) -> C:
        """Take the read whose turn is next, once there is a token for it."""
        async with self._next:
            command = await self._waiting.get()
            self._room.give_back(self._namespace(command))
            wait = self._bucket.take(self._clock())
            if wait > 0:
                await asyncio.sleep(wait)
            return command
