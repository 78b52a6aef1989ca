"""How soon the quota of a group is another one's, with nothing else to do (PF-7). See `group_runs`.

Times are arrivals of watch events, as in `latency`; quota shows that it is free only by what it is used for, so both
steps hold the next one's offer, bid and status write. The same is done by the two scripts of `group_pair`, which decide
nothing: what API servers, kubelet and watches take of it on this machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import yaml

from bench import group_load
from bench.fleet import POD_CPU, Fleet, queue
from bench.group_pair import both
from bench.latency import summary
from bench.loader import Watcher, create, watching
from gatelift_kube.api.client import Client
from gatelift_sandbox import applying

MEMBERS = 4
ROOM = "room"
"""A queue with room for one group."""
CPU_OF_ROOM = f"{MEMBERS * int(POD_CPU.removesuffix('m'))}m"
PAUSE_SECONDS = 0.3
"""Between the sight of who waits and what gives it room, so that nothing else is under way."""
RUN_SECONDS = 2.0
"""Of the member that ends, from the moment on at which it runs: time to make who waits for its quota."""
STEP_SECONDS_MAX = 60.0
GOALS = {"deleted_to_next_reserved": (100.0, 250.0), "succeeded_to_next_reserved": (150.0, None)}
"""p50 and p99 wanted, in ms."""


class Line:
    """Groups in a queue with room for one. `gated`: pods are made as the webhook leaves them."""

    def __init__(self, watcher: Watcher, client: Client, *, gated: bool) -> None:
        self._watcher, self._client, self._gated = watcher, client, gated

    async def has(self, group: str, *sights: str) -> None:
        """Wait until all pods of a group were seen so."""
        wanted = sights
        await self._watcher.until(lambda: group_load.have(self._watcher, group, MEMBERS, *wanted), STEP_SECONDS_MAX)

    async def waits(self, name: str) -> None:
        """Wait until there is a Workload of a pod or group, and some time more."""
        ways = self._watcher.ways
        await self._watcher.until(lambda: name in ways and "workload" in ways[name].seen, STEP_SECONDS_MAX)
        await asyncio.sleep(PAUSE_SECONDS)

    async def make(self, group: str, *, first_ends: bool = False) -> None:
        """Make a group whose pods run until they are stopped, but perhaps the first."""
        documents = group_load.members(group, MEMBERS, queue=ROOM, run_seconds=None)
        if first_ends:
            documents[0] = group_load.members(group, MEMBERS, queue=ROOM, run_seconds=RUN_SECONDS)[0]
        await self._create(documents)

    async def _create(self, documents: list[dict[str, Any]]) -> None:
        await create(self._client, group_load.gated(documents) if self._gated else documents)

    async def delete(self, group: str) -> None:
        """Delete all pods of a group at once."""
        names = [group_load.member_name(group, number) for number in range(MEMBERS)]
        await group_load.delete(self._client, names)

    async def handovers(self, samples: int, called: str = "after") -> list[float]:
        """Return ms from the last deletion of a group's pods to the reservation of the next group."""
        ways, found = self._watcher.ways, []
        names = [f"{called}{number:04}" for number in range(samples + 1)]
        await self.make(names[0])
        await self.has(names[0], "running")
        for before, after in pairwise(names):
            await self.make(after)
            await self.waits(after)
            await self.delete(before)
            await self.has(after, "running")
            last = max(ways[group_load.member_name(before, each)].seen["deleted"] for each in range(MEMBERS))
            found.append(1000 * (ways[after].seen["reserved"] - last))
        await self.delete(names[-1])
        await self.has(names[-1], "gone")
        return found

    async def successions(self, samples: int) -> list[float]:
        """Return ms from the end of one member of a group to the reservation of a group of one that waits for that.

        None of one that came too late to wait for it.
        """
        ways, found = self._watcher.ways, []
        for number in range(samples):
            group, heir = f"heirs{number:04}", f"heir{number:04}"
            await self.make(group, first_ends=True)
            await self.has(group, "lifted")
            await self._create(group_load.members(heir, 1, queue=ROOM, run_seconds=0.1))
            await self._watcher.until(lambda heir=heir: group_load.is_done(self._watcher, heir, 1), STEP_SECONDS_MAX)  # type: ignore[misc]  # default binds
            over = ways[group_load.member_name(group, 0)].seen["over"]
            if ways[heir].seen["workload"] + PAUSE_SECONDS < over:
                found.append(1000 * (ways[heir].seen["reserved"] - over))
            await self.delete(group)
            await self.has(group, "gone")
        return found


async def measure(made: Fleet, samples: int) -> dict[str, Any]:
    """Return the summary of both steps, by the scripts and by Gatelift."""
    await applying.apply(made.clients["mgmt"], yaml.safe_load_all(queue(ROOM, CPU_OF_ROOM)))
    async with watching(made.clients) as watcher:
        async with both(made, watcher, str(MEMBERS)):
            floor = await _steps(Line(watcher, made.clients["mgmt"], gated=True), watcher, samples)
        await made.clean()
        watcher.forget()
        await made.start()
        ours = await _steps(Line(watcher, made.clients["mgmt"], gated=False), watcher, samples)
        await made.stop()
        await made.clean()
    return {name: beside_floor(ours[name], floor[name]) for name in ours}


async def _steps(line: Line, watcher: Watcher, samples: int) -> dict[str, Sequence[float]]:
    await line.handovers(2, "warm")
    watcher.forget()
    return {
        "deleted_to_next_reserved": await line.handovers(samples),
        "succeeded_to_next_reserved": await line.successions(samples),
    }


def beside_floor(ours: Sequence[float], floor: Sequence[float]) -> dict[str, float]:
    """Return the summary of a step, the scripts' median, and the ratio of both medians."""
    found, scripts = _summary(ours), _summary(floor)
    if "p50" in found and scripts.get("p50"):
        found |= {"floor_p50": scripts["p50"], "to_floor": round(found["p50"] / scripts["p50"], 2)}
    return found


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {**summary([max(0.0, value) for value in values]), "samples": len(values)} if values else {"samples": 0}
