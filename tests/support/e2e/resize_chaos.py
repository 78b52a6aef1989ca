"""SL-85: elastic Jobs are resized while daemons are killed and networks cut, on real control planes.

`python -m support.e2e.resize_chaos [--seconds 300] [--seed N]` makes clusters of its own, lets it go on for so long,
and ends with 1 where the outside record finds anything. Users wish at random, and daemons die at random; then all is
left alone until each Job is of the size that was wished last. The record is that of the stand-in kubelets, of each
start and stop:

- no pod was started twice;
- at no moment had more of a Job's pods been stopped than its user had taken back until then;
- no two placements of one Job ran at the same time;
- the books of what is charged (SL-08) were never short.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from gatelift_sandbox import records
from gatelift_sandbox.installation import MANAGER
from gatelift_sandbox.records import RunRecord
from support.e2e.books import Books
from support.e2e.elastic import HOME, ElasticJob, sliced_world
from support.e2e.world import NAMESPACE, WORKERS, World

SECONDS = 300.0
JOBS = (("chaos", "multi"), ("chaos", "multi"), ("chaos", "at-home"))
"""Names and queues: two of them at workers, one at home."""
CPU = "100m"
FIRST, MOST = 3, 10
"""Pods of a Job as it begins, and at most."""
PAUSE_SECONDS = (0.2, 2.5)
"""Between two wishes of users."""
TROUBLE_SECONDS = (3.0, 12.0)
"""Between two troubles."""
CUT_SECONDS = (0.5, 20.0)
"""A short one is resumed, a long one is not."""
CALM_SECONDS = 600.0


@dataclass(slots=True)
class Wishes:
    """What users wished of one Job: pods, and when they began to say so. `began`: that it ran as it was made."""

    sizes: list[tuple[float, int]] = field(default_factory=list)

    def wish(self, pods: int, now: float) -> None:
        """Note a wish before it is said."""
        self.sizes.append((now, pods))

    @property
    def last(self) -> int:
        """Return what is wanted in the end."""
        return self.sizes[-1][1]

    def taken_back(self, until: float) -> int:
        """Return how many pods had been taken back until a moment."""
        known = self.sizes[: bisect_right(self.sizes, until, key=lambda each: each[0])]
        return sum(max(0, before[1] - after[1]) for before, after in pairwise(known))


def wrong(lines: Iterable[RunRecord], wishes: Mapping[str, Wishes]) -> list[str]:
    """Return what the record of starts and stops says that should not be; `wishes` by name of the Job."""
    known = list(lines)
    found = [str(each) for each in records.overlaps(known)]
    starts: dict[tuple[str, str], set[float]] = defaultdict(set)
    for each in known:
        starts[each.cluster, each.pod_uid].add(each.started)
    names = {(each.cluster, each.pod_uid): each.name for each in known}
    found += [
        f"{cluster}/{names[cluster, uid]} was started {len(times)} times"
        for (cluster, uid), times in starts.items()
        if len(times) > 1
    ]
    for job, wished in wishes.items():
        ours = [run for run in records.runs(known) if run.name.startswith(f"{job}-") and run.stopped is not None]
        stops = sorted(run.stopped for run in ours if run.stopped is not None)
        for number, when in enumerate(stops, start=1):
            if number > (allowed := wished.taken_back(when)):
                found.append(f"{job}: {number} pods had been stopped when its user had taken back {allowed}")
                break
    return found


class Chaos:
    """One run of it in a world."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._draws = random.Random(seed)  # noqa: S311 - to be drawn again
        self.jobs = [ElasticJob(world, base, queue, CPU) for base, queue in JOBS]
        self.wishes = {job.name: Wishes() for job in self.jobs}
        self.done: list[str] = []
        """What was done, in order."""

    async def lives(self, seconds: float) -> None:
        """Make the Jobs, let users and troubles go on for so long, and wait until all is as was wished."""
        await asyncio.gather(*(self._begins(job) for job in self.jobs))
        end = time.monotonic() + seconds
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._users(end))
            tasks.create_task(self._troubles(end))
        await self._world.installation.wait_connected(*WORKERS)
        await asyncio.gather(*(self._rests(job) for job in self.jobs))

    async def _begins(self, job: ElasticJob) -> None:
        self.wishes[job.name].wish(FIRST, time.monotonic())
        await job.create(FIRST, completions=100_000)
        await self._rests(job)

    async def _rests(self, job: ElasticJob) -> None:
        """Wait until a Job is of the size that was wished last, in every respect."""
        pods = self.wishes[job.name].last
        await job.settled(pods, seconds=CALM_SECONDS)
        where = await job.where()
        await job.runs(where, pods, seconds=CALM_SECONDS)

    async def _users(self, end: float) -> None:
        while time.monotonic() < end:
            job, pods = self._draws.choice(self.jobs), self._draws.randint(0, MOST)
            self._say(f"{job.name} to {pods}")
            self.wishes[job.name].wish(pods, time.monotonic())
            await job.resize(pods)
            await asyncio.sleep(self._draws.uniform(*PAUSE_SECONDS))

    async def _troubles(self, end: float) -> None:
        troubles: Sequence[Callable[[], Coroutine[Any, Any, None]]] = (self._kill_manager, self._kill_agent, self._cut)
        while time.monotonic() < end:
            await self._draws.choice(troubles)()
            await asyncio.sleep(self._draws.uniform(*TROUBLE_SECONDS))

    async def _kill_manager(self) -> None:
        await self._kill(MANAGER)

    async def _kill_agent(self) -> None:
        await self._kill(f"agent-{self._draws.choice(WORKERS)}")

    async def _kill(self, name: str) -> None:
        self._say(f"kill -9 {name}")
        installation = self._world.installation
        installation.kill(installation.daemons[name])
        await installation.restart(installation.daemons[name])

    async def _cut(self) -> None:
        worker, seconds = self._draws.choice(WORKERS), self._draws.uniform(*CUT_SECONDS)
        self._say(f"cut {worker} for {seconds:.1f} s")
        proxy = self._world.installation.proxies[worker]
        proxy.cut()
        try:
            await asyncio.sleep(seconds)
        finally:
            proxy.mend()

    def _say(self, text: str) -> None:
        self.done.append(f"{time.monotonic():.1f} {text}")

    def wrong(self) -> list[str]:
        """Return what the kubelets' records say that should not be."""
        clusters = self._world.clusters.values()
        paths = [cluster.record for cluster in clusters if cluster.record is not None]
        return wrong(records.read(*paths), self.wishes)


async def run(seconds: float, seed: int) -> tuple[list[str], list[str]]:
    """Run it in clusters of its own; return what was done and what was wrong."""
    with tempfile.TemporaryDirectory(prefix="gatelift-chaos-") as folder:
        async with sliced_world(Path(folder)) as world, Books(world.clients, NAMESPACE, HOME).kept() as books:
            chaos = Chaos(world, seed)
            await chaos.lives(seconds)
            assert books.account.checks, "they were kept"
            return chaos.done, [*chaos.wrong(), *books.wrong]


def main() -> int:
    """Run, say what was found, and end with 1 where that is anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    done, problems = asyncio.run(run(given.seconds, given.seed))
    killed, cut = sum("kill -9" in each for each in done), sum(" cut " in each for each in done)
    said = [f"{len(done) - killed - cut} wishes, {killed} kills, {cut} cuts in {given.seconds:g} s, seed {given.seed}"]
    said += [*done, *problems] if problems else ["nothing was wrong"]
    sys.stdout.write("\n".join(said) + "\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
