"""What a status write of a Workload costs an API server: replaced whole, as the manager does, and as a merge patch.

`python -m bench.status_writes [--rounds 15] [--batch 200]`. One real API server and etcd with two watches of Workloads,
as under a manager. In each round one batch of new Workloads is admitted and ended by replacements and another by merge
patches of the same fields, 32 at a time, in turn; the figures are medians over the rounds, the ratio that of pairs.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import platform
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from statistics import median

import uvloop

from bench.admission_floor import admission_body
from bench.admission_site import Site, site
from bench.generator import BASELINE, arrivals, scaled, workload_document, workload_of
from gatelift.core.records import status_writes
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.clock import wall
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_kube.values.timestamps import to_text

IN_FLIGHT = 32
WRITE_SECONDS = 60.0
_FIELDS = {"admission": ("conditions", "admission"), "end": ("conditions",)}
"""What each write is about: all that a merge patch has to name."""


def patch_of(replacement: bytes, what: str) -> bytes:
    """Return the merge patch that says the same as a replacement."""
    body = json.loads(replacement)
    guards = {name: body["metadata"][name] for name in ("uid", "resourceVersion")}
    changed = {name: value for name, value in body["status"].items() if name in _FIELDS[what]}
    return json.dumps({"metadata": guards, "status": changed}).encode()


def _end_body(workload: Workload) -> bytes:
    return status_writes.finished_write(workload, "Succeeded", "Job finished successfully", to_text(wall()))


_BODIES: dict[str, Callable[[Workload], bytes]] = {"admission": admission_body, "end": _end_body}


async def _each(items: list[Workload], write: Callable[[Workload], Awaitable[Workload]]) -> list[Workload]:
    left, done = iter(items), list[Workload]()

    async def worker() -> None:
        for item in left:
            done.append(await write(item))

    await asyncio.gather(*(spawn(f"writes {number}", worker()) for number in range(IN_FLIGHT)))
    return done


async def _batch(here: Site, made: Iterator[tuple[str, bytes]], size: int, kind: PatchKind) -> dict[str, float]:
    """Make, admit and end a batch; return the API server's CPU per write in ms, by what was written."""
    workloads = []
    for queue, body in itertools.islice(made, size):
        workloads.append(workload_of(await here.client.create(WORKLOAD, queue, body, seconds=WRITE_SECONDS)))
    spent = {}
    for what, body_of in _BODIES.items():

        async def write(workload: Workload, what: str = what, make: Callable[..., bytes] = body_of) -> Workload:
            body = make(workload) if kind is PatchKind.REPLACE else patch_of(make(workload), what)
            ref = ObjectRef(WORKLOAD, ObjectKey(workload.metadata.namespace, workload.metadata.name))
            return workload_of(await here.client.patch(ref, body, kind, subresource="status", seconds=WRITE_SECONDS))

        before = here.usage()
        workloads = await _each(workloads, write)
        spent[what] = 1000 * here.usage().since(before).of("kube-apiserver") / size
    return spent


async def measure(rounds: int, size: int) -> dict[str, float]:
    """Return CPU per write by kind and by what is written, and their ratios."""
    load = scaled(BASELINE, min(1.0, 1.1 * 2 * rounds * size / BASELINE.workloads))
    found: dict[tuple[PatchKind, str], list[float]] = {}
    async with AsyncExitStack() as stack:
        here = await stack.enter_async_context(site(load))
        supervisor = Supervisor(lambda task, error: sys.exit(f"{task}: {error}"))
        stack.push_async_callback(supervisor.stop)
        for client in (here.client, here.ends):
            reflector = Reflector(client, WORKLOAD, lambda _: None, with_raw=False)
            supervisor.spawn("watch", reflector.run())
            await reflector.synced.wait()
        made = ((arrival.queue, workload_document(arrival, arrival.queue)) for arrival in arrivals(load))
        kinds = [PatchKind.REPLACE, PatchKind.MERGE]
        for number in range(rounds):
            for kind in kinds if number % 2 else reversed(kinds):
                for what, milliseconds in (await _batch(here, made, size, kind)).items():
                    found.setdefault((kind, what), []).append(milliseconds)
    out = {}
    for what in _BODIES:
        replaced, patched = found[PatchKind.REPLACE, what], found[PatchKind.MERGE, what]
        out[f"{what}_replaced_ms"] = round(median(replaced), 2)
        out[f"{what}_patched_ms"] = round(median(patched), 2)
        out[f"{what}_ratio"] = round(median(a / b for a, b in zip(replaced, patched, strict=True)), 2)
    return out


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch", type=int, default=200)
    args = parser.parse_args()
    said = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "api": "real kube-apiserver and etcd alone, no fsync",
        "rounds": args.rounds,
        "batch": args.batch,
    }
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()), flush=True)
    found = uvloop.run(measure(args.rounds, args.batch))
    print(json.dumps({"bench": "status_writes", "conditions": said, "figures": found}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
