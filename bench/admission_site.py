"""One real control plane with the queues of a generator load, and the manager as its only client of ours.

As in Kueue's own suite: no webhooks, and of the control plane only API server and etcd. No workers: Workloads have no
owner, so the manager admits them by itself. Neighbours: `admission_load` and `admission_restart` measure on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fleet import LEASE
from bench.generator import FLAVOR, Load, cluster_queues, document
from bench.one_cluster import one_cluster
from bench.processes import Usage, children_of_cluster, cpu_seconds
from gatelift_kube.api.client import Client
from gatelift_sandbox import applying, children
from gatelift_sandbox.installation import Installation
from gatelift_sandbox.provider import Cluster

LEADING_SECONDS = 60.0
POLL_SECONDS = 0.02
_NOT_NEEDED = ("kube-controller-manager", "kube-scheduler")
"""They watch every kind there is: each write would be sent to them, too."""


@dataclass(slots=True, kw_only=True)
class Site:
    """The control plane, what is installed on it, and a client with all rights."""

    home: Path
    management: Cluster
    installation: Installation
    client: Client
    ends: Client
    """For the ends of runs: behind three thousand creates they would wait while they hold their quota."""

    async def manager(self) -> children.Child:
        """Start the manager, wait until it leads, and return its process."""
        log = self.installation.folder / "manager.log"
        before = _leads(log)
        daemon = await self.installation.start_manager()
        if daemon.child is None:
            raise RuntimeError("the manager has no process")
        async with asyncio.timeout(LEADING_SECONDS):
            while _leads(log) == before:  # noqa: ASYNC110  # what is waited for is in another process
                await asyncio.sleep(POLL_SECONDS)
        return daemon.child

    def usage(self) -> Usage:
        """Return CPU seconds so far of each part of the control plane."""
        parts = children_of_cluster(self.home, self.management.name)
        return Usage({name: cpu_seconds(child.pid) for name, child in parts.items()})


def _leads(log: Path) -> int:
    """Return how often a manager has said that it leads."""
    return log.read_text(errors="replace").count('"leading"') if log.exists() else 0


@asynccontextmanager
async def site(load_: Load, qps: float = 0.0) -> AsyncIterator[Site]:
    """Raise it. `qps`: writes a second that the manager allows itself, 0 as it ships."""
    settings: dict[str, Any] = {"clientConnection": {"qps": qps, "burst": int(qps)}} if qps else {}
    settings["leaderElection"] = LEASE
    names = [queue.metadata.name for queue in cluster_queues(load_)]
    async with one_cluster("local", names, settings) as made:
        await applying.apply(made.client, _objects(load_))
        parts = children_of_cluster(made.state, made.cluster.name)
        await asyncio.gather(*(children.stop(parts[name]) for name in _NOT_NEEDED if name in parts))
        async with await made.installation.admin(made.cluster) as ends:
            yield Site(
                home=made.state,
                management=made.cluster,
                installation=made.installation,
                client=made.client,
                ends=ends,
            )


def _objects(load_: Load) -> list[dict[str, Any]]:
    made = [document("ResourceFlavor", FLAVOR, {})]
    for queue in cluster_queues(load_):
        name = queue.metadata.name
        made.append(document("ClusterQueue", name, queue.spec))
        made.append(document("LocalQueue", name, {"clusterQueue": name}, name))
    return made


def last_words(installation: Installation) -> str:
    """Return the end of the manager's log, for an error."""
    return children.log_tail(installation.folder / "manager.log")
