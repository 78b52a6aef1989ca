"""The requests of one growth and of one shrink of an elastic Job at a worker, by the audit logs. See `resize`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench import audit, resize_jobs
from bench.audit import Request
from bench.fleet import NAMESPACE, Fleet
from bench.group_writes import AUDIT_FLUSH_SECONDS, Logs
from bench.resize_jobs import Chains, following
from bench.resize_rates import quiet

BEFORE = 3
JOB = "audited"
TOLD = ("jobs/status", "events", "localqueues/status")
"""What people are told: the worker's counts at the user's Job, numbers of queues, events. Beside what it needs."""


def expected(way: str, pods: int) -> dict[tuple[str, str], int]:
    """Return the writes that a growth by so many pods needs, or a shrink."""
    if way == "grow":
        return {("mgmt", "workloads"): 3, ("workers", "jobs"): 1, ("workers", "pods"): pods}
    return {("mgmt", "workloads"): 2, ("workers", "jobs"): 1, ("workers", "pods"): 0}


async def measure(made: Fleet, sizes: Sequence[int]) -> dict[str, Any]:
    """Return what a growth by each number of pods takes, and the shrink back."""
    found: dict[str, Any] = {}
    async with following(made) as watcher:
        await made.start()
        await resize_jobs.create(made.clients["mgmt"], [resize_jobs.manifest(JOB, BEFORE, scheduled=True)])
        await watcher.all_of([JOB], BEFORE)
        await _to(made, watcher, BEFORE + 1)  # to warm up
        await _to(made, watcher, BEFORE)
        for pods in sizes:
            for way, size in (("grow", BEFORE + pods), ("shrink", BEFORE)):
                own = await _to(made, watcher, size)
                found[f"{way} by {pods}"] = figures(own, expected(way, pods))
        await made.stop()
    exact = all(each["found"] == each["wanted"] for row in found.values() for each in row["writes"].values())
    return {"resizes": found, "exact": exact and not any(row["besides"] for row in found.values())}


async def _to(made: Fleet, watcher: Chains, size: int) -> Mapping[str, Counter[Request]]:
    """Give the Job a size; return what was asked of each side until nothing more is."""
    await quiet(watcher)
    await asyncio.sleep(AUDIT_FLUSH_SECONDS)
    logs = Logs(made)
    await resize_jobs.resize(made.clients["mgmt"], [JOB], size)
    await watcher.all_of([JOB], size)
    await quiet(watcher)
    await asyncio.sleep(AUDIT_FLUSH_SECONDS)
    return {side: audit.count(lines, NAMESPACE, own=True) for side, lines in logs.lines().items()}


def figures(own: Mapping[str, Counter[Request]], wanted: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    """Return writes beside what is wanted, all that people are told, and what was asked besides."""
    ours = {
        side: Counter({request: number for request, number in requests.items() if request.process in audit.OURS})
        for side, requests in own.items()
    }
    known = {
        side: {f"{request.process} {request.verb} {request.resource}": number for request, number in requests.items()}
        for side, requests in ours.items()
    }
    needed = {
        (side, request) for side, requests in ours.items() for request in requests if _is_needed(side, request, wanted)
    }
    told = {(side, request) for side, requests in ours.items() for request in requests if request.resource in TOLD}
    return {
        "writes": audit.against(_without_told(own), wanted, 1),
        "told": _shown(ours, told),
        "besides": _shown(ours, {(s, r) for s, requests in ours.items() for r in requests} - needed - told),
        "all": known,
    }


def _is_needed(side: str, request: Request, wanted: Mapping[tuple[str, str], int]) -> bool:
    resource = request.resource.split("/")[0]
    return request.verb in audit.WRITES and request.resource not in TOLD and bool(wanted.get((side, resource)))


def _without_told(own: Mapping[str, Counter[Request]]) -> dict[str, Counter[Request]]:
    return {
        side: Counter({request: number for request, number in requests.items() if request.resource not in TOLD})
        for side, requests in own.items()
    }


def _shown(own: Mapping[str, Counter[Request]], chosen: set[tuple[str, Request]]) -> dict[str, int]:
    return {
        f"{side} {request.process} {request.verb} {request.resource}": own[side][request]
        for side, request in sorted(chosen)
    }
