"""What Kueue's own runner does besides the manager: makes the workloads of a load, ends their runs, takes the times.

Each class of each queue is made by one hand that waits its interval, creates, and waits for the answer, as there: so an
API server that is slow slows small workloads, of which there are many, and not the large ones behind them.

A workload that is admitted runs for its class's time from when the watch shows it, then its Finished is written. One
that is evicted meanwhile starts anew with its next admission. Times are arrivals of watch events in this process, on
its monotonic clock. Used alike for the manager and for the floor.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.generator import Arrival, Kind, Load, sets_of, workload_document
from gatelift.core import texts
from gatelift.core.records import status_writes
from gatelift_kube.api.client import Client
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.errors import ConflictError
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen, PatchKind
from gatelift_kube.objects.conditions import find, is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text

ENDS_IN_FLIGHT = 32
"""Ends that are written at a time. Kueue's runner has five hands, and its ends wait for them."""
PROGRESS_SECONDS = 15.0
"""How often a run says how far it is."""
WRITE_SECONDS = 60.0
"""A write may wait for its turn at a busy API server."""
AGAIN_SECONDS = 0.02
"""After a conflict: the watch brings the newer version within this, or is asked again."""


@dataclass(slots=True)
class Life:
    """What was seen of one workload."""

    kind: Kind
    latest: Workload
    created: float
    admitted: float = 0.0
    """The latest admission, as Kueue's recorder takes it."""
    runs: int = 0
    since: float = 0.0
    """When its present run began; 0 while none is under way."""
    held: float = 0.0
    finished: float = 0.0


@dataclass(slots=True)
class Story:
    """What came of a load."""

    lives: dict[str, Life] = field(default_factory=dict)
    began: float = 0.0
    ended: float = 0.0
    finished: int = 0
    preemptions: int = 0
    evictions: int = 0
    """For other reasons."""
    conflicts: int = 0
    """Ends that had to be written again, since the object had changed."""

    @property
    def wall(self) -> float:
        """Seconds from the first create to the last end."""
        return self.ended - self.began

    def figures(self, load: Load) -> dict[str, float]:
        """Return wall, waits by class, preemptions and use of the quota."""
        lives = self.lives.values()
        cpus = load.cpus * self.wall
        out = {
            "wall_s": self.wall,
            "admissions_per_s": sum(life.runs for life in lives) / self.wall,
            "preemptions": self.preemptions,
            "other_evictions": self.evictions,
            "usage_percent": 100 * sum(life.held * life.kind.cpu for life in lives) / cpus,
            "work_percent": 100 * sum(life.kind.runs * life.kind.cpu for life in lives) / cpus,
        }
        for kind in load.kinds:
            waits = [life.admitted - life.created for life in lives if life.kind == kind]
            out[f"wait_{kind.name}_s"] = sum(waits) / len(waits)
        return {name: round(value, 2) for name, value in out.items()}


class Runner:
    """Plays one load against an API server."""

    def __init__(self, client: Client, load: Load, ends: Client) -> None:
        """Play `load`; `ends` writes the ends of runs, on connections of its own."""
        self.story = Story()
        self._client = client
        self._ends = ends
        self._load = load
        self._sets = list(sets_of(load))
        self._kinds = {arrival.name: arrival.kind for one in self._sets for arrival in one}
        self._due: asyncio.Queue[tuple[Life, int]] = asyncio.Queue()  # at most one entry for each workload's run
        self._over = asyncio.Event()
        self._failure: BaseException | None = None
        self._supervisor = Supervisor(self.fail)
        self._reflector = Reflector(client, WORKLOAD, self._seen, with_raw=False)

    async def play(self, seconds: float, lives: Callable[[], bool] = lambda: True) -> Story:
        """Make, run and end all workloads. TimeoutError says how far it came after `seconds`.

        `lives` says whether the process that admits is there; without it RuntimeError ends the play.
        """
        try:
            self._supervisor.spawn("watch", self._reflector.run())
            await self._reflector.synced.wait()
            self.story.began = time.monotonic()
            self._supervisor.spawn("progress", self._say(lives))
            for number, one in enumerate(self._sets):
                self._supervisor.spawn(f"creates {number}", self._create(one))
            for number in range(ENDS_IN_FLIGHT):
                self._supervisor.spawn(f"ends {number}", self._finish())
            try:
                async with asyncio.timeout(seconds):
                    await self._over.wait()
            except TimeoutError:
                raise TimeoutError(f"not within {seconds:g} s: {self.so_far()}") from None
            if self._failure is not None:
                raise self._failure
            return self.story
        finally:
            await self._supervisor.stop()

    def so_far(self) -> str:
        """Return how many workloads have come how far."""
        lives = self.story.lives.values()
        running = sum(life.since > 0 for life in lives)
        return (
            f"{len(lives)} of {self._load.workloads} created, {running} running, {self.story.finished} finished, "
            f"{self.story.preemptions} preemptions"
        )

    def fail(self, task: str, error: BaseException) -> None:
        """End the play: a task failed, or the process that it needs has ended."""
        self._failure = RuntimeError(f"{task}: {type(error).__name__}: {error}; {self.so_far()}")
        self._over.set()

    async def _say(self, lives: Callable[[], bool]) -> None:
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            if not lives():
                raise RuntimeError("nobody admits any more")
            print(f"{time.monotonic() - self.story.began:.0f} s: {self.so_far()}", file=sys.stderr, flush=True)

    async def _create(self, one: list[Arrival]) -> None:
        for arrival in one:
            await asyncio.sleep(arrival.kind.every)
            body = workload_document(arrival, arrival.queue)
            await self._client.create(WORKLOAD, arrival.queue, body, seconds=WRITE_SECONDS)

    def _seen(self, event: ApiEvent) -> None:
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Workload):
            return
        workload, now, story = event.object, time.monotonic(), self.story
        name = workload.metadata.name
        life = story.lives.get(name)
        if life is None:
            if name not in self._kinds:
                return
            life = story.lives[name] = Life(self._kinds[name], workload, now)
        life.latest = workload
        conditions = workload.status.conditions
        if is_true(conditions, texts.FINISHED):
            self._finished(life, now)
        elif is_true(conditions, texts.ADMITTED):
            if not life.since:
                self._admitted(life, now)
        elif life.since:
            self._evicted(life, now)

    def _admitted(self, life: Life, now: float) -> None:
        life.since = life.admitted = now
        life.runs += 1
        asyncio.get_running_loop().call_later(life.kind.runs, self._due.put_nowait, (life, life.runs))

    def _evicted(self, life: Life, now: float) -> None:
        life.held += now - life.since
        life.since = 0.0
        said = find(life.latest.status.conditions, texts.EVICTED)
        if said is not None and said.reason == texts.PREEMPTED:
            self.story.preemptions += 1
        else:
            self.story.evictions += 1

    def _finished(self, life: Life, now: float) -> None:
        if life.finished:
            return
        if life.since:
            life.held += now - life.since
        life.since, life.finished = 0.0, now
        self.story.finished += 1
        if self.story.finished == self._load.workloads:
            self.story.ended = now
            self._over.set()

    async def _finish(self) -> None:
        while True:
            life, run = await self._due.get()
            if life.finished or not life.since or life.runs != run:
                continue  # evicted meanwhile: its next run has an end of its own
            workload = life.latest
            ref = ObjectRef(WORKLOAD, ObjectKey(workload.metadata.namespace, workload.metadata.name))
            body = status_writes.finished_write(workload, "Succeeded", "Job finished successfully", to_text(wall()))
            try:
                await self._ends.patch(ref, body, PatchKind.REPLACE, subresource="status", seconds=WRITE_SECONDS)
            except ConflictError:
                self.story.conflicts += 1
                asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._due.put_nowait, (life, run))
