"""The writes that a group needs, counted by the audit logs (PF-6). See `group_runs`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import audit, group_load
from bench.audit import Request
from bench.fleet import NAMESPACE, Fleet
from bench.group_rates import WARM_UP, run_group
from bench.loader import Watcher, create, watching

AUDIT_FLUSH_SECONDS = 1.0
"""The API server writes audit lines at once, but a last request may still be on its way out."""
EXPECTED: dict[tuple[str, str], int] = {("mgmt", "pods"): 3, ("workers", "pods"): 4}
"""Writes of manager and agent per member."""


class Logs:
    """The audit logs of a fleet, from a moment on."""

    def __init__(self, made: Fleet) -> None:
        self._sides = {"mgmt": [made.management], "workers": list(made.workers)}
        self._starts = {path: path.stat().st_size for side in self._sides for path in self._paths(side)}

    def _paths(self, side: str) -> list[Path]:
        return [each.logs / "audit.log" for each in self._sides[side] if each.logs is not None]

    def lines(self) -> dict[str, list[audit.Line]]:
        """Return the lines of each side."""
        return {
            side: [line for path in self._paths(side) for line in audit.parse(path.read_bytes()[self._starts[path] :])]
            for side in self._sides
        }


async def measure(made: Fleet, sizes: Sequence[int]) -> dict[str, Any]:
    """Return the writes of a group of each size, from its first create until nothing is left to happen with it."""
    found = {}
    async with watching(made.clients) as watcher:
        await made.start()
        await run_group(made, watcher, "warm", WARM_UP)
        for size in sizes:
            await asyncio.sleep(AUDIT_FLUSH_SECONDS)
            logs = Logs(made)
            await _see_through(made, watcher, f"g{size}", size)
            await asyncio.sleep(AUDIT_FLUSH_SECONDS)
            own = {side: audit.count(lines, NAMESPACE, own=True) for side, lines in logs.lines().items()}
            found[str(size)] = figures(own, size)
        await made.stop()
    of_workload = {size: each["to_the_workload"] for size, each in found.items()}
    return {"sizes": found, "to_the_workload": of_workload, "independent": len(set(of_workload.values())) == 1}


async def _see_through(made: Fleet, watcher: Watcher, group: str, size: int) -> None:
    watcher.forget()
    await create(made.clients["mgmt"], group_load.members(group, size))
    await watcher.until(lambda: group_load.is_done(watcher, group, size))


def figures(own: Mapping[str, Counter[Request]], size: int) -> dict[str, Any]:
    """Return writes per member beside what is wanted, all requests per member, and the writes to the Workload."""
    (of_workload,) = audit.against(own, {("mgmt", "workloads"): 0}, 1).values()
    return {
        "per_member": audit.against(own, EXPECTED, size),
        "to_the_workload": int(of_workload["found"]),
        "requests_per_member": audit.per_workload(own, size),
    }
