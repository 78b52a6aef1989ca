"""How long a manager takes to decide again after a start with many workloads waiting.

All workloads wait before a first manager starts, which admits as many as the quota holds. Then it is stopped, one
workload of each queue ends, and another manager starts: what is measured goes from its start to having the lead, and
from there to the first admission that the watch shows. Used by `admission_load --restart N`.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator

from bench.admission_site import Site, last_words, site
from bench.generator import Arrival, Kind, Load, cluster_queues, workload_document
from bench.processes import cpu_seconds, rss_peak_bytes
from gatelift.core import texts
from gatelift.core.records import status_writes
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectSeen, PatchKind
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text
from gatelift_sandbox import children

IN_FLIGHT = 32
WRITE_SECONDS = 60.0
LIST_SECONDS_MAX = 300.0
DECIDE_SECONDS_MAX = 300.0
SETTLE_SECONDS = 5.0
"""Nothing was admitted for so long: the first manager has filled the queues."""
POLL_SECONDS = 0.2
WHOLE = Kind("whole", 0, 20, 100, 0.0, 0.0)
"""Takes the quota of one queue."""


class Admissions:
    """Which workloads are admitted, and when the latest one was."""

    def __init__(self) -> None:
        self.now: dict[str, Workload] = {}
        self.latest = 0.0
        self.changed = asyncio.Event()

    def seen(self, event: ApiEvent) -> None:
        """Take a watch event."""
        if not isinstance(event, ObjectSeen) or not isinstance(event.object, Workload):
            return
        name, conditions = event.object.metadata.name, event.object.status.conditions
        if is_true(conditions, texts.FINISHED):
            self.now.pop(name, None)
        elif is_true(conditions, texts.ADMITTED):
            if name not in self.now:
                self.latest = time.monotonic()
                self.changed.set()
            self.now[name] = event.object


async def restart(load: Load, count: int, qps: float) -> dict[str, float]:
    """Return the times, CPU and memory of a start with `count` workloads waiting."""
    async with site(load, qps) as here:
        began = time.monotonic()
        await _create(here, load, count)
        print(f"{count} workloads created in {time.monotonic() - began:.1f} s", flush=True)
        admissions = Admissions()
        problems: list[str] = []
        supervisor = Supervisor(lambda task, error: problems.append(f"{task}: {error}"))
        reflector = Reflector(here.client, WORKLOAD, admissions.seen, with_raw=False)
        supervisor.spawn("watch", reflector.run())
        try:
            async with asyncio.timeout(LIST_SECONDS_MAX):
                await reflector.synced.wait()
            first = await _start(here, admissions, "first start")
            await _settled(admissions)
            await here.installation.stop()
            await _end_one_each(here, load, admissions)
            again = await _start(here, admissions, "restart")
        except (TimeoutError, RuntimeError) as error:
            raise RuntimeError(f"{error!r} {problems}\n{last_words(here.installation)}") from error
        finally:
            await supervisor.stop()
        return {f"first_{name}": value for name, value in first.items()} | again


async def _start(here: Site, admissions: Admissions, name: str) -> dict[str, float]:
    """Start a manager; return seconds to its lead and from there to its first admission, its CPU and memory by then."""
    began = time.monotonic()
    admissions.changed.clear()
    process: children.Child = await here.manager()
    led = time.monotonic()
    async with asyncio.timeout(DECIDE_SECONDS_MAX):
        await admissions.changed.wait()
    found = {
        "lead_s": round(led - began, 2),
        "decide_s": round(max(0.0, time.monotonic() - led), 2),
        "cpu_s": round(cpu_seconds(process.pid), 1),
        "rss_mb": round(rss_peak_bytes(process.pid) / 2**20, 1),
    }
    print(name, *(f"{key}={value}" for key, value in found.items()), flush=True)
    return found


async def _settled(admissions: Admissions) -> None:
    async with asyncio.timeout(DECIDE_SECONDS_MAX):
        while time.monotonic() - admissions.latest < SETTLE_SECONDS:  # noqa: ASYNC110  # silence is what is waited for
            await asyncio.sleep(POLL_SECONDS)


async def _end_one_each(here: Site, load: Load, admissions: Admissions) -> None:
    """Write Finished to one admitted workload of each queue: room for whoever is next."""
    for queue in cluster_queues(load):
        name = queue.metadata.name
        workload = next((each for each in admissions.now.values() if each.metadata.namespace == name), None)
        if workload is None:
            continue
        body = status_writes.finished_write(workload, "Succeeded", "Job finished successfully", to_text(wall()))
        ref = ObjectRef(WORKLOAD, ObjectKey(name, workload.metadata.name))
        await here.client.patch(ref, body, PatchKind.REPLACE, subresource="status", seconds=WRITE_SECONDS)


async def _create(here: Site, load: Load, count: int) -> None:
    names = [queue.metadata.name for queue in cluster_queues(load)]
    turns = zip(itertools.cycle(names), range(count), strict=False)
    left = (Arrival(0.0, queue, WHOLE, number) for queue, number in turns)

    async def worker(left: Iterator[Arrival]) -> None:
        for arrival in left:
            body = workload_document(arrival, arrival.queue)
            await here.client.create(WORKLOAD, arrival.queue, body, seconds=WRITE_SECONDS)

    await asyncio.gather(*(spawn(f"creates {number}", worker(left)) for number in range(IN_FLIGHT)))
