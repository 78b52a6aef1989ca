"""Runs the stand-in kubelet against an API server: watches feed the machine, its commands are written, one timer.

`run` is used by the process (`__main__`) and by whoever wants nodes inside a process (the embedded provider).
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.executor import Executor
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.budget import budget
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen
from gatelift_kube.process.clock import monotonic, wall
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import NODE, POD
from gatelift_sandbox import records
from gatelift_sandbox.kubelet.documents import NodeSettings
from gatelift_sandbox.kubelet.machine import AppendRecord, Command, Event, KubeletMachine, TimePassed

WRITES_PER_SECOND = 2000.0
"""More than an API server on two cores takes: a stand-in for many nodes must not be what bounds a benchmark."""
WRITES_IN_FLIGHT = 64
BOUND = Selection(fields="spec.nodeName!=")


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """One kubelet process. `record` None: what runs is not written down."""

    cluster: str
    nodes: Sequence[NodeSettings]
    record: Path | None = None
    say: Callable[[str], None] = lambda _: None


async def run(client: Client, settings: KubeletSettings) -> None:
    """Play the nodes until cancelled. The client stays the caller's to close."""
    earlier = records.read(settings.record) if settings.record is not None else []
    now = monotonic()
    machine = KubeletMachine(
        settings.cluster, settings.nodes, now=now, wall_offset=wall() - now, earlier=records.runs(earlier)
    )
    loop = _Loop(client, machine, settings)
    await loop.run()


def cut_off(nodes: Iterable[str]) -> str:
    """Return what a kubelet process says when other nodes than before are cut off from their API server."""
    return f"cut off: {', '.join(sorted(nodes)) or 'no node'}"


class _Loop:
    def __init__(self, client: Client, machine: KubeletMachine, settings: KubeletSettings) -> None:
        self._machine = machine
        self._settings = settings
        self._events: asyncio.Queue[ApiEvent] = asyncio.Queue()  # bounded by what the API server holds of pods
        limits = budget(per_second=WRITES_PER_SECOND, in_flight=WRITES_IN_FLIGHT)
        self._executor = Executor(client, self._events.put_nowait, limits=limits)
        self._waiting: deque[Command] = deque()  # at most one write per pod, which the machine sees to
        self._reflectors = (
            Reflector(client, NODE, self._events.put_nowait, with_raw=False, on_problem=settings.say),
            Reflector(client, POD, self._events.put_nowait, selection=BOUND, on_problem=settings.say),
        )
        self._file = -1
        self._lost: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Take events one by one; whatever part fails ends all."""
        if self._settings.record is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
            self._file = os.open(self._settings.record, flags, 0o600)
        parts = [
            spawn("kubelet writes", self._executor.run()),
            spawn("kubelet decisions", self._decide()),
            *(spawn(f"kubelet watches {r.resource.plural}", r.run()) for r in self._reflectors),
        ]
        try:
            done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
            for part in done:
                part.result()
        finally:
            for part in parts:
                part.cancel()
            await asyncio.gather(*parts, return_exceptions=True)
            if self._file >= 0:
                os.close(self._file)

    async def _decide(self) -> None:
        self._step(TimePassed())
        while True:
            self._step(await self._next_event())

    async def _next_event(self) -> Event:
        deadline = self._machine.next_deadline()
        if not self._events.empty():
            return self._events.get_nowait() if deadline > monotonic() else TimePassed()
        try:
            async with asyncio.timeout(None if deadline == inf else max(0.0, deadline - monotonic())):
                return await self._events.get()
        except TimeoutError:
            return TimePassed()

    def _step(self, event: Event) -> None:
        self._waiting.extend(self._machine.handle(event, monotonic()))
        if isinstance(event, ObjectSeen) and event.resource == NODE and self._machine.lost != self._lost:
            self._lost = self._machine.lost
            self._settings.say(cut_off(self._lost))
        while self._waiting:
            command = self._waiting[0]
            if isinstance(command, AppendRecord):
                self._note(command.record)
            elif self._executor.room:
                self._executor.submit(command)
            else:
                return  # an answer to an earlier write will bring us back
            self._waiting.popleft()

    def _note(self, record: records.RunRecord) -> None:
        if self._file >= 0:  # one write call a line: whole lines even when several processes append
            os.write(self._file, records.encode(record))
