"""Resident memory of the manager per chain of an elastic Job with ten past slices. See `resize`.

Measured as in `memory`: objects are made, the manager is started and left until its memory stands still. A chain is the
user's Job, ten Workloads that others have replaced, and one that waits in a queue that is stopped.
"""

from __future__ import annotations

import json
import statistics
from typing import Any

from bench import memory
from bench.fleet import NAMESPACE
from bench.generator import workload_of
from bench.hands import by_hands
from bench.resize_jobs import KIND, manifest, mutated
from gatelift.core.records import status_writes
from gatelift.core.records.chain import REPLACED
from gatelift.core.works.past_slices import replaced
from gatelift_kinds.shared import markers, slices
from gatelift_kinds.shared.sizes import Size
from gatelift_kinds.shared.slices import NextSlice
from gatelift_kinds.shared.values import Priority
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.batch import Job
from gatelift_kube.values.resources import JOB, WORKLOAD, ObjectKey, ObjectRef

PAST = 10
PODS = 3
WALL = "2026-01-01T00:00:00Z"


async def chains(client: Client, count: int) -> None:
    """Make so many chains, some at a time."""
    await by_hands(range(count), lambda number: chain(client, f"j{number:05}"), memory.IN_FLIGHT)


async def chain(client: Client, name: str) -> None:
    """Make one chain: each slice in the place of the one before, as they come about."""
    body = json.dumps(mutated(manifest(name, PODS))).encode()
    served = await client.create(JOB, NAMESPACE, body, seconds=memory.CREATE_SECONDS_MAX)
    job = served.object
    if not isinstance(job, Job):
        raise TypeError(f"the answer is no Job: {job!r}")
    body = KIND.workload_document(job, served.raw, Priority())
    for number in range(1, PAST + 2):
        made = await client.create(WORKLOAD, NAMESPACE, body, seconds=memory.CREATE_SECONDS_MAX)
        if number > PAST:
            return
        body = next_slice(job, made, number + 1)
        workload = workload_of(made)
        text = replaced(workload.metadata.uid, job.metadata.uid)
        finished = status_writes.finished_write(workload, REPLACED, text, WALL)
        where = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, workload.metadata.name))
        await client.patch(where, finished, PatchKind.REPLACE, subresource="status")


def next_slice(job: Job, before: Served, number: int) -> bytes:
    """Return the slice that takes the place of another one."""
    size = Size(number=number, counts={markers.DEFAULT_POD_SET: PODS})
    new = NextSlice(name=KIND.slice_name(job, str(number)), size=size, epoch=1)
    return slices.following(workload_of(before), before.raw, new)


async def measure(count: int, rounds: int) -> dict[str, Any]:
    """Return MB per 10,000 chains, and KB per slice of them with its share of the Job."""
    runs = [await memory.growth(chains, count, agent=False, elastic=True) for _ in range(rounds)]
    found = statistics.median(runs)
    print(f"manager, chains with {PAST} past slices: {found:.1f} MB per {memory.PER:,}", flush=True)
    return {"chains_mb_per_10000": round(found, 1), "slice_kb": round(found * 1000 / memory.PER / (PAST + 1), 2)}
