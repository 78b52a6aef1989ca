"""Resident memory of manager and agent per 10,000 workloads and per 10,000 pods.

`python -m bench.memory [--objects N]`. The API is the embedded server, the daemons are the real ones. Objects are made
first, then the daemon is started and left until its memory stands still; what it has more than with no objects is what
they cost. Manager, workloads: Workloads without an owner in a queue that is stopped. Manager, pods: gated pods of the
user beside their Workloads, less the Workloads. Agent, pods: placed pods of as many placements, as after a restart.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import uvloop
import yaml

from bench.fleet import AMPLE, FLAVOR, NAMESPACE, POD_CPU, QUEUE
from bench.hands import by_hands
from bench.loader import manifest, mutated
from bench.one_cluster import one_cluster
from gatelift_kinds.pod.kind import PodKind
from gatelift_kinds.shared.values import Part, Placing, Priority
from gatelift_kube.api.client import Client
from gatelift_kube.decoding import decoding
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD, WORKLOAD, Resource
from gatelift_sandbox import applying, children
from gatelift_sandbox.installation import Installation, InstalledProcess
from gatelift_sandbox.provider import Cluster
from gatelift_wire.values.keys import PlacementKey

OBJECTS = 10_000
PER = 10_000
ROUNDS = 3
IN_FLIGHT = 32
CREATE_SECONDS_MAX = 60.0
STILL_SECONDS = 5.0
"""Memory that has not grown for so long has settled."""
STILL_BYTES = 256 * 1024
SETTLE_SECONDS_MAX = 120.0
POLL_SECONDS = 0.5
KIND = PodKind()

_STOPPED_QUEUE = f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: {FLAVOR}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {QUEUE}}}
spec:
  stopPolicy: Hold
  namespaceSelector: {{}}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{{name: {FLAVOR}, resources: [{{name: cpu, nominalQuota: "{AMPLE}"}}]}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {QUEUE}, namespace: {NAMESPACE}}}
spec: {{clusterQueue: {QUEUE}}}
"""


@dataclass(slots=True, kw_only=True)
class Site:
    """One embedded cluster, management cluster and worker at once: everything is installed, nothing is started."""

    client: Client
    cluster: Cluster
    installation: Installation

    async def manager(self) -> int:
        """Start the manager, wait until its memory stands still, end it; return that memory."""
        return await self._measured(await self.installation.start_manager())

    async def agent(self) -> int:
        """Do the same with the agent; it is enrolled and its manager is away, so nobody tells it to drop anything."""
        return await self._measured(await self.installation.start_agent(self.cluster))

    async def enrol(self) -> None:
        """Let the agent get its certificate."""
        await self.installation.start_manager()
        await self.installation.start_agent(self.cluster)
        await self.installation.stop()

    async def _measured(self, daemon: InstalledProcess) -> int:
        if daemon.child is None:
            raise RuntimeError(f"{daemon.name} has no process")
        try:
            return await settled(daemon.child)
        finally:
            await children.stop(daemon.child)


async def settled(child: children.Child) -> int:
    """Return a process's memory once it has stopped growing."""
    highest, since = children.rss_bytes(child), time.monotonic()
    async with asyncio.timeout(SETTLE_SECONDS_MAX):
        while time.monotonic() - since < STILL_SECONDS:
            await asyncio.sleep(POLL_SECONDS)
            now = children.rss_bytes(child)
            if not now:
                raise RuntimeError("the process ended while its memory was looked at")
            if now > highest + STILL_BYTES:
                highest, since = now, time.monotonic()
    return children.rss_bytes(child)


@asynccontextmanager
async def site(*, elastic: bool = False) -> AsyncIterator[Site]:
    """Raise the cluster and install everything."""
    async with one_cluster("embedded", [NAMESPACE], name="w1", with_agent=True, elastic=elastic) as made:
        await applying.apply(made.client, yaml.safe_load_all(_STOPPED_QUEUE))
        yield Site(client=made.client, cluster=made.cluster, installation=made.installation)


# --- objects -------------------------------------------------------------------------------------------------------


def bare_workload(number: int) -> dict[str, Any]:
    """Return a Workload without an owner that waits in the stopped queue."""
    spec = manifest("x")["spec"]
    return {
        "apiVersion": WORKLOAD.api_version,
        "kind": WORKLOAD.kind,
        "metadata": {"name": f"bare-{number:05}", "namespace": NAMESPACE},
        "spec": {"queueName": QUEUE, "podSets": [{"name": "main", "count": 1, "template": {"spec": spec}}]},
    }


def placed_pod(number: int) -> bytes:
    """Return a pod as an agent makes it, of a placement of its own."""
    document = manifest(f"placed-{number:05}")
    part = Part(
        name=document["metadata"]["name"],
        pod_set="main",
        metadata=json.dumps({"annotations": document["metadata"]["annotations"]}).encode(),
        spec=json.dumps(document["spec"]).encode(),
    )
    key = PlacementKey(f"00000000-0000-4000-8000-{number:012}", 1)
    return KIND.document(part, Placing(key=key, origin="bench", namespace=NAMESPACE))


async def make(client: Client, resource: Resource, bodies: Iterable[bytes]) -> list[bytes]:
    """Create objects, some at a time; return them as served, in no order."""

    async def create(body: bytes) -> bytes:
        return (await client.create(resource, NAMESPACE, body, seconds=CREATE_SECONDS_MAX)).raw

    return await by_hands(bodies, create, IN_FLIGHT)


async def _workloads(client: Client, count: int) -> None:
    await make(client, WORKLOAD, (json.dumps(bare_workload(number)).encode() for number in range(count)))


async def pods_and_workloads(client: Client, count: int) -> None:
    """Make gated pods and the very Workloads that the manager would make for them."""
    pods = (json.dumps(mutated(manifest(f"user-{number:05}"))).encode() for number in range(count))
    served = await make(client, POD, pods)
    await make(client, WORKLOAD, (_workload_of(raw) for raw in served))


def _workload_of(raw: bytes) -> bytes:
    pod = decoding.read_object(POD, raw)
    if not isinstance(pod, Pod):
        raise TypeError("the answer is no Pod")
    return KIND.workload_document(pod, raw, Priority())


async def placed_pods(client: Client, count: int) -> None:
    """Make pods as an agent makes them, each of a placement of its own."""
    await make(client, POD, (placed_pod(number) for number in range(count)))


# --- measuring -----------------------------------------------------------------------------------------------------


async def growth(made: Callable[[Client, int], Any], count: int, *, agent: bool, elastic: bool = False) -> float:
    """Return MB per 10,000 of what `made` makes, in one run. `elastic`: the daemons serve elastic Jobs."""
    async with site(elastic=elastic) as here:
        measure = here.agent if agent else here.manager
        if agent:
            await here.enrol()
        before = await measure()
        await made(here.client, count)
        return per_ten_thousand(await measure() - before, count)


def per_ten_thousand(extra_bytes: int, count: int) -> float:
    """Return MB per 10,000 objects."""
    return extra_bytes / count * PER / 1e6


async def measure(count: int, rounds: int) -> dict[str, float]:
    """Return medians of all cases."""
    cases: dict[str, tuple[Callable[[Client, int], Any], bool]] = {
        "manager_workloads": (_workloads, False),
        "manager_pods_and_workloads": (pods_and_workloads, False),
        "agent_placed_pods": (placed_pods, True),
    }
    found: dict[str, float] = {}
    for name, (made, agent) in cases.items():
        runs = [await growth(made, count, agent=agent) for _ in range(rounds)]
        found[name] = round(statistics.median(runs), 1)
        print(f"{name:30} {found[name]:8.1f} MB per {PER:,} ({', '.join(f'{run:.1f}' for run in runs)})")
    found["manager_pods"] = round(found["manager_pods_and_workloads"] - found["manager_workloads"], 1)
    print(f"{'manager_pods (difference)':30} {found['manager_pods']:8.1f} MB per {PER:,}")
    return found


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=OBJECTS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    said = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "api": "embedded server",
        "objects": given.objects,
        "rounds": given.rounds,
        "pod": f"one container, {POD_CPU} cpu, {len(json.dumps(manifest('x')))} bytes as written by the user",
    }
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures = uvloop.run(measure(given.objects, given.rounds))
    print(json.dumps({"bench": "memory", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
