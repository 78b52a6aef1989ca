"""A generator load played to its end on the admission engine, on simulated time, with writes that take theirs.

Objects are fed as a manager would feed them. `Writes` stands for the API server: writes are carried out one after the
other, each for `seconds`, of which every client has so many under way at a time; 0 makes them free. What is written is
seen by all when its write ends, or `lag` later. As on a real one, then: a create arrives late, a run begins when its
admission is written, its quota is free when its end is, a victim's when its eviction is, and each class of a queue is
made by one hand that waits for each create, on average `create_lag` longer. Neighbours: `generator` says what arrives,
`admission_memory` asks for figures.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from random import Random

from msgspec.structs import replace

from bench.generator import FLAVOR, Arrival, Kind, Load, cluster_queues, sets_of, workload_spec
from gatelift_admission.engine import Engine
from gatelift_admission.values.model import EngineSettings, Preempt, Reserve
from gatelift_kube.objects.kueue import LocalQueue, LocalQueueSpec, ResourceFlavor, Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition, ObjectMeta

EVICTION_S = 0.005
"""From the decision to preempt to the victim's quota being free, where writes are free."""
CYCLE_S = 0.001
"""Events within a millisecond are decided upon together."""
START = 1767225600
MANAGER, ENDS = "manager", "ends"
LAGS_MAX = 4
"""No write is seen later than so many times the average."""
IN_FLIGHT = 32
"""Writes of the manager, and ends of runs, that are under way at a time."""


@dataclass(slots=True)
class Writes:
    """One API server: who asks, what is under way, until when it is busy."""

    seconds: float
    free_at: float = 0.0
    under_way: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, deque[Callable[[], None]]] = field(default_factory=dict)


@dataclass(slots=True)
class Play:
    """One load under way."""

    load: Load
    settings: EngineSettings
    jitter: float = 0.0
    write_seconds: float = 0.0
    lag: float = 0.0
    """Seconds on average, spread as waiting times are: queues do not stay in step with each other."""
    create_lag: float = 0.0
    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - reproducible, not secret
    engine: Engine = field(init=False)
    writes: Writes = field(init=False)
    now: float = 0.0
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    created: dict[str, float] = field(default_factory=dict)
    admitted: dict[str, tuple[float, Kind]] = field(default_factory=dict)
    objects: dict[str, Workload] = field(default_factory=dict)
    kinds: dict[str, Kind] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    """Number of the present run, of those that are admitted or about to be."""
    shown: dict[str, int] = field(default_factory=dict)
    """Number of the run whose admission is written."""
    finished: int = 0
    ticks: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    nominations: int = 0
    preemptions: int = 0
    admissions: int = 0
    intake: float = 0.0
    """CPU seconds of taking objects in."""
    deciding: float = 0.0
    """CPU seconds of cycles; what came in is read there."""
    longest: float = 0.0
    used: float = 0.0
    """CPU seconds of quota that runs which came to their end have used."""

    def play(self) -> float:
        """Play to the end; returns the simulated seconds."""
        self.engine = Engine(self.settings)
        self.engine.wall_clock(float(START), 0.0)
        self.writes = Writes(self.write_seconds)
        self._structure()
        while self.finished < self.load.workloads:
            deadline = self.engine.next_deadline()
            times = ([self.events[0][0]] if self.events else []) + ([deadline] if deadline is not None else [])
            if not times:
                raise RuntimeError(f"nothing happens any more at {self.now:.3f} s, {self.finished} are finished")
            self.now = max(self.now, (int(min(times) / CYCLE_S) + 1) * CYCLE_S)
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            self._decide()
        return self.now

    def _structure(self) -> None:
        engine = self.engine
        engine.namespace_changed("ns", {})
        engine.flavor_changed(ResourceFlavor(ObjectMeta(name=FLAVOR)))
        for queue in cluster_queues(self.load):
            name = queue.metadata.name
            engine.cluster_queue_changed(queue)
            engine.local_queue_changed(LocalQueue(ObjectMeta(name=name, namespace="ns"), LocalQueueSpec(name)))
        for number, one in enumerate(sets_of(self.load)):
            self._next_of(f"set {number}", iter(one), 0.0)

    def _later(self, at: float, what: Callable[[], None]) -> None:
        heapq.heappush(self.events, (at, next(self.ticks), what))

    # -- writes ------------------------------------------------------------------------------------------------------

    def _write(self, client: str, effect: Callable[[], None], *, hands: int = IN_FLIGHT) -> None:
        """Let `effect` happen when a write of `client` ends."""
        writes = self.writes
        if writes.seconds <= 0:
            effect()
        elif writes.under_way.get(client, 0) >= hands:
            writes.waiting.setdefault(client, deque()).append(effect)
        else:
            writes.under_way[client] = writes.under_way.get(client, 0) + 1
            writes.free_at = max(writes.free_at, self.now) + writes.seconds
            self._later(writes.free_at + self._late(client), partial(self._written, client, effect))

    def _late(self, client: str) -> float:
        """Return how long after its end a write is seen."""
        late = min(LAGS_MAX * self.lag, self.random.expovariate(1 / self.lag)) if self.lag else 0.0
        creates = self.create_lag and client not in (MANAGER, ENDS)
        return late + self.create_lag * self.random.uniform(0.3, 1.7) if creates else late

    def _written(self, client: str, effect: Callable[[], None]) -> None:
        self.writes.under_way[client] -= 1
        waiting = self.writes.waiting.get(client)
        if waiting:
            self._write(client, waiting.popleft())
        effect()

    # -- what happens ------------------------------------------------------------------------------------------------

    def _next_of(self, name: str, left: Iterator[Arrival], since: float) -> None:
        """Make the next workload of a class of a queue, its interval after the one before was made."""
        arrival = next(left, None)
        if arrival is not None:
            at = arrival.at if self.writes.seconds <= 0 else since + arrival.kind.every
            self._later(at, lambda: self._write(name, partial(self._created, name, arrival, left), hands=1))

    def _created(self, name: str, arrival: Arrival, left: Iterator[Arrival]) -> None:
        workload = _workload(arrival, self.now)
        uid = workload.metadata.uid
        self.created[uid], self.kinds[uid] = self.now, arrival.kind
        self._feed(workload)
        self._next_of(name, left, self.now)

    def _feed(self, workload: Workload) -> None:
        self.objects[workload.metadata.uid] = workload
        before = time.process_time()
        self.engine.workload_changed(workload, self.now)
        self.intake += time.process_time() - before

    def _decide(self) -> None:
        more = True
        while more:
            before = time.process_time()
            result = self.engine.cycle(self.now)
            spent = time.process_time() - before
            self.deciding += spent
            self.longest = max(self.longest, spent)
            more = result.more
            self.nominations += result.nominations
            for one in result.decisions:
                if isinstance(one, Reserve):
                    self.admissions += 1
                    self.runs[one.uid] = next(self.ticks)
                    self._write(MANAGER, partial(self._admitted, one))
                elif isinstance(one, Preempt):
                    self.preemptions += 1
                    later = partial(self._write, MANAGER, partial(self._evicted, one.uid, self.runs[one.uid]))
                    self._later(self.now + EVICTION_S, later) if self.writes.seconds <= 0 else later()

    def _admitted(self, one: Reserve) -> None:
        self.shown[one.uid] = self.runs[one.uid]
        told = tuple(Condition(name, "True", name, "", _text(self.now)) for name in ("QuotaReserved", "Admitted"))
        self._feed(self._changed(one.uid, WorkloadStatus(conditions=told, admission=one.admission)))
        kind = self.kinds[one.uid]
        self.admitted[one.uid] = self.now, kind
        over = partial(self._ends, one.uid, self.runs[one.uid])
        self._later(self.now + kind.runs + self.random.random() * self.jitter, over)

    def _ends(self, uid: str, run: int) -> None:
        if self.runs.get(uid) == run:
            self._write(ENDS, partial(self._finished, uid, run))

    def _finished(self, uid: str, run: int) -> None:
        if self.runs.get(uid) != run:
            return  # it was evicted meanwhile
        del self.runs[uid]
        self.finished += 1
        kind, status = self.kinds[uid], self.objects[uid].status
        self.used += kind.runs * kind.cpu
        conditions = (*status.conditions, Condition("Finished", "True"))
        self._feed(self._changed(uid, replace(status, conditions=conditions)))

    def _evicted(self, uid: str, run: int) -> None:
        if self.runs.get(uid) != run:
            return  # it was finished meanwhile
        if self.shown.get(uid) != run:  # one write after the other of each object
            self._later(self.now + EVICTION_S, partial(self._evicted, uid, run))
            return
        del self.runs[uid]
        gone = (Condition("QuotaReserved", "False", "Pending", "Preempted"), Condition("Evicted", "True", "Preempted"))
        if self.writes.seconds > 0:  # its epoch is raised by one more write before it queues again
            self.engine.block(uid)
            self._write(MANAGER, partial(self.engine.unblock, uid))
        self._feed(self._changed(uid, WorkloadStatus(conditions=gone)))

    def _changed(self, uid: str, status: WorkloadStatus) -> Workload:
        known = self.objects[uid]
        version = str(next(self.ticks))
        return Workload(replace(known.metadata, resource_version=version), known.spec, status)


def _workload(arrival: Arrival, now: float) -> Workload:
    name = arrival.name
    meta = ObjectMeta(name=name, namespace="ns", uid=name, resource_version="1", creation_timestamp=_text(now))
    return Workload(meta, workload_spec(arrival))


def _text(now: float) -> str:
    return datetime.fromtimestamp(START + int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
