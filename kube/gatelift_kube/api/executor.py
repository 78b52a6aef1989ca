"""Carries out the writes that a core asked for and answers each with exactly one `WriteDone` or `WriteFailed`.

Writes to one object are sent one after the other, in the order in which they were asked for; different objects are
written at the same time, within the budget. The time limit of a write runs from `submit`, so that how late it may
land counts from the decision (protocol rule R1), however long it would have waited for its turn.
Namespaces take turns: who makes thousands of objects in one has his own writes wait behind each other. One whose writes
hang (`hanging`) goes aside: it has half as many places, of its own, and what hangs already gives its place to others.
No task, timer or lock per object: a fixed number of workers takes from queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec
import structlog

from gatelift_kube.api.client import Client
from gatelift_kube.deciding import making_room
from gatelift_kube.deciding.budget import Budget, TokenBucket, Traffic, budget, rest
from gatelift_kube.deciding.errors import KubeError, TooLargeError, write_error
from gatelift_kube.deciding.fair_line import Share
from gatelift_kube.deciding.fair_room import FairRoom
from gatelift_kube.deciding.hanging import Hanging
from gatelift_kube.deciding.retry import Intent, RetryPolicy, delay
from gatelift_kube.deciding.writes import (
    WRITE_SECONDS_MAX,
    ApiEvent,
    ApiWrite,
    Create,
    Delete,
    EmitEvent,
    Patch,
    PatchKind,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.process.fair_queue import FairQueue
from gatelift_kube.process.tasks import STOP_SECONDS, spawn
from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE, ObjectRef
from gatelift_kube.values.unreadable import UNREADABLE

CAPACITY = 4096
"""Writes that may wait: about what the default budget carries out within `WRITE_SECONDS_MAX`."""
OWN_MIN = 64
"""Writes of one namespace that are taken also where as many wait as may: as many as are under way at a time."""
DEADLINE_SLACK = 0.05
"""A try that ended this close to the write's own time limit was ended by it: it waited in vain for a connection, and
nothing says that the API server is in trouble or that the object should be left alone for a while."""
SEND_SECONDS_MIN = 4.0
"""A first try for which less is left is not made: were it too late for a connection, that would look like trouble with
the API server, and the object would be left alone for longer each time, though it was only we who were busy. And where
we are busy an API server is: an answer that comes just too late leaves an unknown outcome, which costs a read."""

LOOK_SECONDS = 0.5
"""From a look at which writes hang to the next, while any is under way."""


class WritesFullError(Exception):
    """As many writes wait as may; look at `Executor.room` before asking for more."""


@dataclass(slots=True, eq=False)
class _Pending:
    command: ApiWrite
    deadline: float
    traffic: Traffic
    maybe_done: bool = False
    """It was sent, and no answer yet has said that it was not carried out."""
    sent_at: float | None = None
    """When it was tried first."""
    makes_room: bool = False
    """Its object is too full for it as it is."""
    place: _Line | None = None
    """Where it holds a place."""

    def give_place(self) -> None:
        """Give its place to others; nothing the second time."""
        if self.place is not None:
            self.place.places.release()
            self.place = None


@dataclass(slots=True, eq=False)
class _Lane:
    """The writes to one object, oldest first."""

    ref: ObjectRef
    waiting: deque[_Pending] = field(default_factory=deque)
    busy: bool = False
    queued: Traffic | None = None

    @property
    def share(self) -> Share:
        """In whose share the first write waits: its namespace's, and in it that of what something is kept for."""
        first = self.waiting[0].command
        return self.ref.key.namespace, "holds" if isinstance(first, Patch) and first.holds else ""


class _Line:
    """Lanes whose turn is to come, and places for so many writes at a time. `aside`: for namespaces that go aside."""

    def __init__(self, traffic: Traffic, places: int, *, aside: bool = False) -> None:
        self.traffic, self.aside = traffic, aside
        self.places = asyncio.Semaphore(places)
        self.ready: FairQueue[_Lane] = FairQueue(attrgetter("share"))
        self.next = asyncio.Lock()
        """One at a time waits for its turn."""


class Executor:
    """Takes commands (`submit`) and carries them out while `run` runs. Belongs to one event loop.

    `record` takes `EmitEvent` commands (see `events.EventRecorder.record`); without it they are dropped.
    """

    def __init__(
        self,
        client: Client,
        emit: Callable[[ApiEvent], None],
        *,
        limits: Budget | None = None,
        record: Callable[[EmitEvent], None] | None = None,
        capacity: int = CAPACITY,
        write_seconds: float = WRITE_SECONDS_MAX,
        policy: RetryPolicy | None = None,
        rng: random.Random | None = None,
        clock: Clock = monotonic,
    ) -> None:
        self._client = client
        self._emit = emit
        self._record = record
        self._room = FairRoom(capacity, OWN_MIN)
        self._write_seconds = min(write_seconds, WRITE_SECONDS_MAX)
        self._policy = policy or RetryPolicy()
        self._rng = rng or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._clock = clock
        shares = (limits or budget()).shares
        self._shares = {traffic: shares[traffic] for traffic in (Traffic.TRANSITION, Traffic.STATUS)}
        self._buckets = {traffic: TokenBucket(share, clock()) for traffic, share in self._shares.items()}
        self._lines = {traffic: _Line(traffic, share.in_flight) for traffic, share in self._shares.items()}
        self._aside = {
            traffic: _Line(traffic, max(1, share.in_flight // 2), aside=True) for traffic, share in self._shares.items()
        }
        self._hanging: Hanging[_Pending] = Hanging()
        self._looks: asyncio.TimerHandle | None = None
        self._lanes: dict[ObjectRef, _Lane] = {}
        self._log = structlog.get_logger("gatelift.kube.executor")

    @property
    def room(self) -> int:
        """How many more writes `submit` takes now, of whichever namespace; below 0 where some took more than that."""
        return self._room.left

    @property
    def held(self) -> int:
        """How many writes wait or are under way."""
        return self._room.held

    def submit(self, command: ApiWrite | EmitEvent, traffic: Traffic | None = None) -> None:
        """Take a command. Its outcome comes through `emit`, never from inside this call.

        `traffic` None means `traffic_of(command)`. Raises WritesFullError where there is no `room`, and
        its namespace has `OWN_MIN` there already; the command is then not taken and has no outcome.
        """
        if isinstance(command, EmitEvent):
            if self._record is not None:
                self._record(command)
            return
        if not self._room.take(command.ref.key.namespace):
            raise WritesFullError(f"{self._room.capacity} writes wait already; {command.ref} was not taken")
        kind = traffic or traffic_of(command)
        lane = self._lanes.get(command.ref)
        if lane is None:
            lane = self._lanes[command.ref] = _Lane(command.ref)
        lane.waiting.append(_Pending(command, self._clock() + self._write_seconds, kind))
        if not lane.busy:
            self._queue(lane)

    async def run(self) -> None:
        """Carry out writes until cancelled; then answer all that were not sent."""
        # Twice as many as there are places: what hangs gives its place away, and keeps its worker.
        workers = [
            spawn(f"write {traffic.value} {number}", self._work(line))
            for lines, times in ((self._lines, 2), (self._aside, 1))
            for traffic, line in lines.items()
            for number in range(times * self._shares[traffic].in_flight)
        ]
        try:
            await asyncio.gather(*workers)
        finally:
            if self._looks is not None:
                self._looks.cancel()
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers, timeout=STOP_SECONDS)
            for lane in list(self._lanes.values()):
                while lane.waiting:
                    self._answer(lane.ref, _not_sent(lane.waiting.popleft().command, "the process is stopping"))
            self._lanes.clear()

    def _queue(self, lane: _Lane) -> None:
        """Make a lane ready; a transition that waits behind a status text takes it along (no priority inversion)."""
        waiting = lane.waiting
        urgent = waiting[0].traffic is Traffic.TRANSITION or (
            len(waiting) > 1 and any(pending.traffic is Traffic.TRANSITION for pending in waiting)
        )
        traffic = Traffic.TRANSITION if urgent else Traffic.STATUS
        if lane.queued is not traffic:
            lane.queued = traffic
            self._line(lane, traffic).ready.put_nowait(lane)

    def _line(self, lane: _Lane, traffic: Traffic) -> _Line:
        lines = self._aside if self._hanging.is_aside(lane.ref.key.namespace) else self._lines
        return lines[traffic]

    async def _work(self, line: _Line) -> None:
        while True:
            await line.places.acquire()
            await line.next.acquire()
            lane, pending = await self._taken(line)
            pending.place = line
            try:
                outcome = await self._has_turn(pending, line) or await self._watched(pending)
            except asyncio.CancelledError:
                self._answer(lane.ref, _stopped(pending))
                raise
            except Exception as error:  # noqa: BLE001 (containment: one write ends no process)
                # A defect of ours in one write, which may have been sent: who asked looks, and all others go on.
                self._log.exception("a write was given up, others go on", write=str(pending.command.ref))
                text = f"{pending.command.ref}: {type(error).__name__}: {error}"
                outcome = WriteFailed(write_id=pending.command.write_id, error=WriteError.UNKNOWN, message=text)
            lane.busy = False
            if lane.waiting:
                self._queue(lane)
            else:
                self._lanes.pop(lane.ref, None)
            self._answer(lane.ref, outcome)
            if line.traffic is Traffic.STATUS and pending.sent_at is not None:
                await asyncio.sleep(rest(self._clock() - pending.sent_at))
            pending.give_place()

    async def _watched(self, pending: _Pending) -> WriteDone | WriteFailed:
        """Carry a write out; where it hangs others are given its place."""
        self._hanging.began(pending, pending.command.ref.key.namespace, self._clock())
        self._look_later()
        try:
            return await self._carry_out(pending)
        finally:
            self._hanging.ended(pending, self._clock())

    def _look_later(self) -> None:
        if self._looks is None:
            self._looks = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks = None
        for pending in self._hanging.found(self._clock()):
            if pending.place is not None and not pending.place.aside:
                pending.give_place()
        if not self._hanging.idle:
            self._look_later()

    def _answer(self, ref: ObjectRef, outcome: WriteDone | WriteFailed) -> None:
        self._room.give_back(ref.key.namespace)
        self._emit(outcome)

    async def _taken(self, line: _Line) -> tuple[_Lane, _Pending]:
        """Take the next write of the lane whose turn is next."""
        while True:
            lane = await line.ready.get()
            if not lane.busy and lane.waiting and lane.queued is line.traffic:  # else taken by another worker since
                elsewhere = self._line(lane, line.traffic)
                if elsewhere.aside and not line.aside:
                    elsewhere.ready.put_nowait(lane)
                    continue
                lane.busy, lane.queued = True, None
                return lane, lane.waiting.popleft()

    async def _has_turn(self, pending: _Pending, line: _Line) -> WriteFailed | None:
        """Wait for a write's token, and let the next one wait for its own; return what is answered where none came."""
        bucket, now = self._buckets[line.traffic], self._clock()
        try:
            wait = bucket.take(now)
            latest = pending.deadline - min(SEND_SECONDS_MIN, self._write_seconds / 2)
            if now + wait < latest and wait > 0:
                await asyncio.sleep(wait)
        finally:
            line.next.release()
        if self._clock() < latest and now + wait < latest:
            return None
        bucket.give_back()
        return _not_sent(
            pending.command,
            f"no turn within {self._write_seconds:g} s; the API budget is used up, or this process was busy",
        )

    async def _carry_out(self, pending: _Pending) -> WriteDone | WriteFailed:
        command, tried = pending.command, 0
        pending.sent_at = self._clock()
        while True:
            before, pending.maybe_done = pending.maybe_done, True
            try:
                served = await self._send(command, pending.deadline, makes_room=pending.makes_room)
            except KubeError as error:
                tried += 1
                pending.maybe_done = before or error.maybe_done
                if isinstance(error, TooLargeError) and not pending.makes_room and has_room_to_make(command):
                    pending.makes_room = True
                    continue
                pause = delay(
                    error,
                    tried=tried,
                    intent=intent_of(command),
                    policy=self._policy,
                    fraction=self._rng.random(),
                )
                if tried == 1 and not pending.maybe_done and self._clock() >= pending.deadline - DEADLINE_SLACK:
                    return _not_sent(command, f"no connection came free within {self._write_seconds:g} s")
                if pause is None or self._clock() + pause >= pending.deadline:
                    return _failed(command, error, tried=tried, maybe_done=pending.maybe_done)
            else:
                return WriteDone(
                    write_id=command.write_id,
                    object=served.object if served else None,
                    raw=served.raw if served else b"",
                )
            await asyncio.sleep(pause)

    async def _send(self, command: ApiWrite, deadline: float, *, makes_room: bool) -> Served | None:
        if makes_room and isinstance(command, Patch):
            command = making_room.with_room(command)
        elif makes_room and isinstance(command, Delete):
            await self._client.apply(making_room.before(command), seconds=deadline - self._clock())
        seconds = deadline - self._clock()
        match command:
            case Patch():
                return await self._client.apply(command, seconds=seconds)
            case Create():
                ref, dry_run = command.ref, command.dry_run
                return await self._client.create(
                    ref.resource, ref.key.namespace, command.body, dry_run=dry_run, seconds=seconds
                )
            case Delete():
                return await self._delete(command, deadline)

    async def _delete(self, command: Delete, deadline: float) -> Served | None:
        served = await self._client.delete(
            command.ref,
            uid=command.uid,
            resource_version=command.resource_version,
            grace_seconds=command.grace_seconds,
            propagation=command.propagation,
            seconds=deadline - self._clock(),
        )
        if served is not None and len(served.raw) >= making_room.FULL_BYTES:
            with contextlib.suppress(KubeError):  # it is deleted; who is to write its end may lack room for that
                await self._client.apply(making_room.before(command), seconds=deadline - self._clock())
        return served


def traffic_of(command: ApiWrite) -> Traffic:
    """Return the class of a write: the status of queues only informs people, all else moves something."""
    if isinstance(command, Patch):
        queue_status = command.subresource == "status" and command.ref.resource in (CLUSTER_QUEUE, LOCAL_QUEUE)
        if queue_status or command.informs:
            return Traffic.STATUS
    return Traffic.TRANSITION


def has_room_to_make(command: ApiWrite) -> bool:
    """Say whether a write that is too large for its object is worth it that who wrote there before is forgotten.

    Not for what only informs, and a deletion by its version would find another one.
    """
    if isinstance(command, Patch):
        return not command.informs
    return isinstance(command, Delete) and command.resource_version is None


def intent_of(command: ApiWrite) -> Intent:
    """Return what a second try of a write would mean when the first one may have happened."""
    if isinstance(command, Delete):
        return Intent.CONDITIONAL if command.uid else Intent.ONCE
    if isinstance(command, Patch) and _carries_version(command):
        return Intent.CONDITIONAL
    return Intent.ONCE


def _carries_version(patch: Patch) -> bool:
    try:
        body: Any = msgspec.json.decode(patch.body)
    except UNREADABLE:
        return False  # the server will say what is wrong with it
    if patch.kind is not PatchKind.JSON:
        metadata = body.get("metadata") if isinstance(body, dict) else None
        return isinstance(metadata, dict) and bool(metadata.get("resourceVersion"))
    return isinstance(body, list) and any(
        isinstance(step, dict) and step.get("op") == "test" and step.get("path") == "/metadata/resourceVersion"
        for step in body
    )


def _failed(command: ApiWrite, error: KubeError, *, tried: int, maybe_done: bool) -> WriteFailed:
    kind = WriteError.UNKNOWN if maybe_done else write_error(error)
    tries = f" (after {tried} tries)" if tried > 1 else ""
    return WriteFailed(write_id=command.write_id, error=kind, message=f"{command.ref}: {error}{tries}")


def _not_sent(command: ApiWrite, why: str) -> WriteFailed:
    """Answer for a write that certainly did not happen."""
    return WriteFailed(write_id=command.write_id, error=WriteError.NOT_SENT, message=f"{command.ref}: not sent: {why}")


def _stopped(pending: _Pending) -> WriteFailed:
    """Answer for a write that the end of the process interrupted, perhaps before it was sent."""
    command = pending.command
    if not pending.maybe_done:
        return _not_sent(command, "the process is stopping")
    message = f"{command.ref}: the process stopped during the write"
    return WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message=message)
