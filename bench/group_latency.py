"""How soon the quota of a group is another one's, with nothing else to do (PF-7). See `group_runs`.

Times are arrivals of watch events, as in `latency`; quota shows that it is free only by what it is used for, so both
steps hold the next one's offer, bid and status write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import yaml

from bench import group_load
from bench.fleet import POD_CPU, Fleet, queue
from bench.latency import summary
from bench.loader import Watcher, create, manifest, watching
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
    """Groups in a queue with room for one."""

    def __init__(self, watcher: Watcher, client: Client) -> None:
        self._watcher, self._client = watcher, client

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
        await create(self._client, documents)

    async def delete(self, group: str) -> None:
        """Delete all pods of a group at once."""
        names = [group_load.member_name(group, number) for number in range(MEMBERS)]
        await group_load.delete(self._client, names)

    async def handovers(self, samples: int) -> list[float]:
        """Return ms from the last deletion of a group's pods to the reservation of the next group."""
        ways, found = self._watcher.ways, []
        await self.make("after0000")
        await self.has("after0000", "running")
        for number in range(samples):
            before, after = f"after{number:04}", f"after{number + 1:04}"
            await self.make(after)
            await self.waits(after)
            await self.delete(before)
            await self.has(after, "running")
            last = max(ways[group_load.member_name(before, each)].seen["deleted"] for each in range(MEMBERS))
            found.append(1000 * (ways[after].seen["reserved"] - last))
        await self.delete(f"after{samples:04}")
        await self.has(f"after{samples:04}", "gone")
        return found

    async def successions(self, samples: int) -> list[float]:
        """Return ms from the end of one member of a group to the reservation of a pod that waits for its share.

        None of one that came too late to wait for it.
        """
        ways, found = self._watcher.ways, []
        for number in range(samples):
            group, heir = f"heirs{number:04}", f"heir{number:04}"
            await self.make(group, first_ends=True)
            await self.has(group, "lifted")
            await create(self._client, [manifest(heir, queue=ROOM, run_seconds=0.1)], in_flight=1)
            await self._watcher.until(lambda heir=heir: heir in ways and ways[heir].done, STEP_SECONDS_MAX)  # type: ignore[misc]  # default binds
            over = ways[group_load.member_name(group, 0)].seen["over"]
            if ways[heir].seen["workload"] + PAUSE_SECONDS < over:
                found.append(1000 * (ways[heir].seen["reserved"] - over))
            await self.delete(group)
            await self.has(group, "gone")
        return found


async def measure(made: Fleet, samples: int) -> dict[str, Any]:
    """Return the summary of both steps."""
    client = made.clients["mgmt"]
    await applying.apply(client, yaml.safe_load_all(queue(ROOM, CPU_OF_ROOM)))
    async with watching(made.clients) as watcher:
        await made.start()
        line = Line(watcher, client)
        await line.handovers(2)  # to warm up
        watcher.forget()
        found = {
            "deleted_to_next_reserved": _summary(await line.handovers(samples)),
            "succeeded_to_next_reserved": _summary(await line.successions(samples)),
        }
        await made.stop()
        await made.clean()
    return found


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {**summary([max(0.0, value) for value in values]), "samples": len(values)} if values else {"samples": 0}
