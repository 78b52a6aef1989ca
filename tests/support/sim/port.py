"""A process's way to an API server: writes that may be slow, lost or land late, watches that lag, break and relist.

Keeps the promises of `gatelift_kube.deciding.writes` and of the reflector, and no more: one outcome per write within
`WRITE_SECONDS_MAX`, writes to one object one after the other; of a watch only that nothing is told twice and that the
last state of each object comes in the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gatelift_kube.deciding.cache import Cache, key_of
from gatelift_kube.deciding.errors import from_status, write_error
from gatelift_kube.deciding.history import History
from gatelift_kube.deciding.writes import (
    WRITE_SECONDS_MAX,
    ApiWrite,
    ObjectGone,
    ObjectSeen,
    Synced,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, ObjectRef, Resource
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.selection import ListSelection
from gatelift_sandbox.embedded.watches import ChangeType, Watch
from gatelift_wire.values.limits import LANDED_SECONDS
from support.sim.clock import ProcessClock
from support.sim.cluster import SimCluster

Post = Callable[[Any], None]
AFTER_SECONDS_MAX = LANDED_SECONDS - WRITE_SECONDS_MAX
"""How long after its time limit a write may still land that nobody waits for: as long as the protocol allows for."""
REASONS = {403: "Forbidden", 409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError"}
REFUSALS = tuple(REASONS)


class ApiPort:
    """What one process has of one cluster."""

    def __init__(self, cluster: SimCluster, post: Post, who: str, clock: ProcessClock) -> None:
        self.cluster = cluster
        self.who = who
        self._clock = clock
        self.over = False
        self.dies_after: Callable[[ApiWrite], bool] = lambda _command: False
        """Asked of each write that has landed: whether the process dies now and never hears of it."""
        self.leads: Callable[[], bool] = lambda: True
        """Whether its process is the one that may write now, where only one is."""
        self.down = False
        self._timeline = cluster.timeline
        self._post = post
        self._lanes: dict[ObjectRef, deque[tuple[ApiWrite, float]]] = {}

    def end(self) -> None:
        """End with the process: nobody hears answers; what is on its way may still land."""
        self.over = True
        self._lanes.clear()

    # --- writes -------------------------------------------------------------------------------------------------

    def write(self, command: ApiWrite) -> None:
        """Take a write."""
        if command.ref.resource in (POD, JOB, WORKLOAD):
            self._timeline.moment("write")
        deadline = self._timeline.now + self._clock.lasts(WRITE_SECONDS_MAX)
        lane = self._lanes.setdefault(command.ref, deque())
        lane.append((command, deadline))
        if len(lane) == 1:
            self._send(command, deadline)

    def _send(self, command: ApiWrite, deadline: float) -> None:
        time, faults, restores = self._timeline, self.cluster.faults, self.cluster.restores
        left = deadline - time.now

        def land(*, answered: bool) -> None:
            if self.cluster.restores == restores:
                self._land(command, answered=answered)
            elif answered:
                self._unsure(command)

        if left <= 0 or self.down or faults.strikes("write_lost", time):
            time.after(left if self.down else time.between(0.0, max(0.0, left)), lambda: self._unsure(command))
            return
        if faults.strikes("answer_refused", time):
            time.after(min(left, time.between(0.001, 0.02)), lambda: self._refuse(command))
            return
        if faults.strikes("write_after", time):
            time.after(left, lambda: self._unsure(command))
            time.after(left + time.between(0.0, AFTER_SECONDS_MAX), lambda: land(answered=False))
            return
        if faults.strikes("write_late", time):
            first = time.between(0.0, left)
            time.after(first, lambda: self._unsure(command))
            time.after(time.between(first, left), lambda: land(answered=False))
            return
        way = time.between(0.0, left) if faults.strikes("write_slow", time) else min(left, time.between(0.001, 0.02))
        if faults.strikes("answer_lost", time):
            time.after(way, lambda: land(answered=False))
            time.after(time.between(way, left), lambda: self._unsure(command))
            return
        time.after(way, lambda: land(answered=True))

    def _land(self, command: ApiWrite, *, answered: bool) -> None:
        if self.cluster.ended:
            return
        self.cluster.late = self.over or not self.leads()
        outcome = self.cluster.carry_out(command)
        self.cluster.late = False
        said = outcome.error.value if isinstance(outcome, WriteFailed) else "done"
        verb = type(command).__name__
        self._timeline.say(
            self.who, f"{verb} {command.ref.resource.kind} {command.ref.key} {said}{'' if answered else ' (unheard)'}"
        )
        if not self.over and isinstance(outcome, WriteDone) and self.dies_after(command):
            return
        if answered:
            self._timeline.after(self._timeline.between(0.0005, 0.01), lambda: self._answer(command, outcome))

    def _refuse(self, command: ApiWrite) -> None:
        """Answer with an error that is none of the command's fault; behind a 500 it may have been done."""
        code = self._timeline.rng.choice(REFUSALS)
        if code == 500 and self._timeline.chance(0.5):
            self._land(command, answered=False)
        self._timeline.say(self.who, f"{type(command).__name__} {command.ref} answered {code}")
        self.cluster.faults.counts[f"answer_{code}"] += 1
        status = {"kind": "Status", "code": code, "reason": REASONS[code], "message": "as a fault of the simulation"}
        failed = write_error(from_status(code, msgspec.json.encode(status)))
        text = f"{command.ref}: answered {code}"
        self._answer(command, WriteFailed(write_id=command.write_id, error=failed, message=text))

    def _unsure(self, command: ApiWrite) -> None:
        self._timeline.say(self.who, f"{type(command).__name__} {command.ref} unknown")
        self.cluster.unheard[str(command.ref)] += 1
        text = f"{command.ref}: nobody can tell"
        self._answer(command, WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message=text))

    def _answer(self, command: ApiWrite, outcome: WriteDone | WriteFailed) -> None:
        if self.over:
            return
        lane = self._lanes[command.ref]
        lane.popleft()
        if lane:
            self._send(*lane[0])
        else:
            del self._lanes[command.ref]
        self._post(outcome)

    # --- reads --------------------------------------------------------------------------------------------------

    def later(self, answer: Callable[[], Any], failed: Callable[[], Any]) -> None:
        """Answer a read a little later, with what there is in between, or not at all."""
        time = self._timeline

        def look() -> None:
            fails = self.down or self.cluster.faults.strikes("write_lost", time)
            found = failed() if fails else answer()
            time.after(time.between(0.0005, 0.05), lambda: None if self.over else self._post(found))

        time.after(time.between(0.0005, 0.05), look)


def die_after(ports: Sequence[ApiPort], kill: Callable[[], None], number: int, kind: Resource | None = None) -> None:
    """Let a process with these ports die when so many of its writes (of one kind, or of any) have landed."""
    left = number

    def landed(command: ApiWrite) -> bool:
        nonlocal left
        if kind is not None and command.ref.resource != kind:
            return False
        left -= 1
        if left == 0:
            ports[0].cluster.timeline.after(0.0, kill)
        return left == 0

    for port in ports:
        port.dies_after = landed


class SimReflector:
    """A list and a watch of one kind, as `gatelift_kube.api.reflector` does it, with the same cache."""

    def __init__(
        self,
        port: ApiPort,
        resource: Resource,
        selection: ListSelection | None = None,
        *,
        emit: Post,
        went_back: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._port = port
        self._time = port.cluster.timeline
        self.resource = resource
        self._kind = port.cluster.store.kinds.of(resource)
        self._selection = selection or ListSelection()
        self._emit = emit
        self._cache = Cache()
        self._history, self._went_back = History(), went_back
        self._version = -1
        self._watch: Watch | None = None
        self._reading = False
        self._asked, self._answered = 1, 0
        self._stalled_until = 0.0
        self._ended = False
        self._time.after(self._time.between(0.001, 0.05), self._begin)

    def end(self) -> None:
        """Stop."""
        self._ended = True
        self._drop()

    def stall(self, seconds: float) -> None:
        """Let the watch stand still: half-dead, or of a replica of the API server that is behind. A list is not."""
        self._stalled_until = self._time.now + seconds

    @property
    def is_stalled(self) -> bool:
        """Say whether it stands still now."""
        return self._time.now < self._stalled_until

    def list_anew(self) -> None:
        """List again, by a quorum read that begins after this; `Synced` when all of it is told."""
        self._asked += 1
        self._drop()
        self._version, self._stalled_until = -1, 0.0
        lag = self._port.cluster.faults.strikes("watch_lag", self._time)
        self._time.after(self._time.between(0.001, 5.0 if lag else 0.05), self._begin)

    @property
    def _over(self) -> bool:
        return self._ended or self._port.over

    def _drop(self) -> None:
        if self._watch is not None:
            self._port.cluster.store.unwatch(self._kind, self._watch)
            self._watch = None

    def _begin(self) -> None:
        if self._over:
            return
        if self._port.down:
            self._time.after(self._time.between(0.2, 2.0), self._begin)
            return
        self._drop()
        if self._version < 0:
            self._list()
        store = self._port.cluster.store
        try:
            self._watch = store.watch(self._kind, self._selection, self._version, self._woken)
        except RequestRefusedError:  # 410: the history is shorter than our absence
            self._version = -1
            self._time.after(0.1, self._begin)
            return
        self._woken()

    def _list(self) -> None:
        store, cluster = self._port.cluster.store, self._port.cluster
        missing = set(self._cache.keys())
        listed = [
            (cluster.typed(self.resource, each), each.raw) for each in store.list(self._kind, self._selection).items
        ]
        wrong = self._history.contradiction(self._cache, str(store.version), [found for found, _ in listed])
        if wrong:
            self._went_back(wrong)
        for found, raw in listed:
            missing.discard(key_of(found))
            self._seen(found, raw)
        for key in sorted(missing):
            gone = self._cache.drop(key)
            if gone is not None:
                self._emit(ObjectGone(self.resource, gone))
        self._version = store.version
        self._history.reached(str(store.version))
        if self._asked > self._answered:
            self._answered = self._asked
            self._emit(Synced(self.resource))

    def _woken(self) -> None:
        if self._reading or self._over:
            return
        self._reading = True
        lag = self._port.cluster.faults.strikes("watch_lag", self._time)
        stalls = max(0.0, self._stalled_until - self._time.now)
        self._time.after(stalls + self._time.between(0.0005, 5.0 if lag else 0.02), self._read)

    def _read(self) -> None:
        self._reading = False
        if self._over or self._watch is None:
            return
        if self._time.now < self._stalled_until:
            self._woken()
            return
        faults = self._port.cluster.faults
        gone = faults.strikes("watch_gone", self._time)
        gone = gone or self._watch.closed  # the server has lost its history
        if gone or self._port.down or faults.strikes("watch_break", self._time):
            self._drop()
            self._version = -1 if gone else self._version
            self._time.after(self._time.between(0.1, 3.0), self._begin)
            return
        for event in self._watch.take():
            found = self._port.cluster.typed(self.resource, event.stored)
            if event.happened is ChangeType.DELETED:
                self._cache.drop(key_of(found))
                self._emit(ObjectGone(self.resource, found))
            else:
                self._seen(found, event.stored.raw)
            self._version = max(self._version, event.stored.version)
            self._history.reached(str(self._version))

    def _seen(self, found: Any, raw: bytes) -> None:
        change = self._cache.put(found)
        if change.gone is not None:
            self._emit(ObjectGone(self.resource, change.gone))
        if change.fresh:
            self._emit(ObjectSeen(self.resource, found, raw))
