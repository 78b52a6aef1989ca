"""A fleet for benches: real control planes with queues on them, and a Gatelift that can be started and stopped.

With Gatelift stopped its webhooks are taken off the API server too, so that nothing of it stands between a loader and
etcd. Agents speak to the manager directly: the installation's own proxies are not in the way.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench import without_webhooks
from bench.processes import Usage, children_of_cluster, cpu_seconds
from gatelift.cli.manifests import deploy_folder
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, ObjectKey, ObjectRef, Resource
from gatelift_sandbox import applying
from gatelift_sandbox.errors import SandboxError
from gatelift_sandbox.installation import MANAGER_ACCOUNT, Installation
from gatelift_sandbox.provider import Cluster, NodeShape, Provider, ProviderSettings, load

NAMESPACE = "bench"
QUEUE = "bench"
NARROW = "narrow"
"""A queue with room for one pod at a time: the next one shows when quota is free again."""
UNSCHEDULED = "nobody"
"""A scheduler that workers accept and that there is not."""
CHECK = "workers"
FLAVOR = "default-flavor"
WORKERS = ("w1", "w2")
POD_CPU = "10m"
AMPLE = "10000"
"""CPUs of the queue, the agents' capacity and the nodes: quota is never what a bench waits for."""
BUDGET_PER_SECOND = 2_000
"""Writes a second that manager and agents allow themselves here: more than this machine's API servers take."""
CLEANUP_IN_FLIGHT = 32
CLEANUP_SECONDS = 240.0
_AT_ONCE = b'{"gracePeriodSeconds":0,"propagationPolicy":"Background"}'
POLL_SECONDS = 0.05
TESTS = str(Path(__file__).parents[1] / "tests")
ELASTIC_PROGRAM = ("-m", "support.e2e.sliced_program")
"""How daemons are run that serve elastic Jobs: the product has them switched off, and tests bring this."""
ELASTIC_POLICIES = ("components", "elastic-jobs", "policies.yaml")
REAL = "real kube-apiserver, etcd, scheduler; stand-in kubelet; no fsync"
LEASE = {"leaseDuration": "60s", "renewDeadline": "45s", "retryPeriod": "2s"}
"""An API server that is loaded to its limit answers renewals of the Lease late, too: on a machine with other work the
lead would be lost at the usual 10 s. Nothing that is measured depends on it."""


def flavor_and_check(*clusters: str, selector: str = "") -> str:
    """Return manifests of the flavor, and of a check that dispatches to these clusters or to all that match."""
    annotations = f", annotations: {{gatelift.dev/cluster-selector: {selector}}}" if selector else ""
    return f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {{name: {FLAVOR}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {{name: workers{annotations}}}
spec: {{clusters: [{", ".join(clusters)}]}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {{name: {CHECK}}}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {{apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: workers}}
---"""


def queue(name: str, quota: str) -> str:
    """Return manifests of a queue that dispatches to the workers, with so much CPU."""
    return f"""
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec:
  namespaceSelector: {{}}
  admissionChecksStrategy: {{admissionChecks: [{{name: {CHECK}}}]}}
  resourceGroups:
    - coveredResources: [cpu]
      flavors: [{{name: {FLAVOR}, resources: [{{name: cpu, nominalQuota: "{quota}"}}]}}]
---
{local_queue(name, NAMESPACE)}"""


def local_queue(name: str, namespace: str) -> str:
    """Return the manifest of a namespace's way into a queue."""
    return f"""apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{clusterQueue: {name}}}
"""


@dataclass(slots=True, kw_only=True)
class Fleet:
    """One management cluster, two workers, and clients with the rights of the person who made them."""

    home: Path
    provider: Provider
    management: Cluster
    workers: Sequence[Cluster]
    installation: Installation
    clients: dict[str, Client]

    async def start(self) -> None:
        """Start webhooks, manager and agents; return when all are connected."""
        await self.installation.start_webhooks()
        await self.installation.start_manager()
        await asyncio.gather(*(self.installation.start_agent(worker) for worker in self.workers))
        await self.installation.wait_connected(*(worker.name for worker in self.workers))

    async def stop(self) -> None:
        """Stop them, and take the webhooks off the API server."""
        await self.installation.stop()
        await without_webhooks.leave_empty(self.clients["mgmt"])

    def usage(self) -> Usage:
        """Return CPU seconds so far, by process: manager, webhooks, each agent, and each part of each cluster."""
        found = {
            daemon.name: cpu_seconds(daemon.child.pid)
            for daemon in self.installation.daemons.values()
            if daemon.child is not None
        }
        for cluster in (self.management, *self.workers):
            for process, child in children_of_cluster(self.home, cluster.name).items():
                found[f"{cluster.name}/{process}"] = cpu_seconds(child.pid)
        return Usage(found)

    async def clean(self) -> None:
        """Remove all Jobs, pods and Workloads of the bench everywhere, whatever holds them. Gatelift is stopped."""
        for name, client in self.clients.items():
            await _remove_all(client, JOB, client)
            await _remove_all(client, POD, client)
            if name == "mgmt":  # nobody else takes the finalizer off one that has quota
                manager = await from_kubeconfig(str(self.installation.kubeconfig(self.management, MANAGER_ACCOUNT)))
                async with Client.connect(manager, user_agent="bench") as unholding:
                    await _remove_all(client, WORKLOAD, unholding)


async def _remove_all(client: Client, resource: Resource, unholding: Client) -> None:
    path = resource.path(NAMESPACE)
    free = asyncio.Semaphore(CLEANUP_IN_FLIGHT)

    async def unhold(item: dict[str, Any]) -> None:
        async with free:
            if not item["metadata"].get("finalizers"):
                return
            ref = ObjectRef(resource, ObjectKey(NAMESPACE, item["metadata"]["name"]))
            try:
                await unholding.patch(ref, b'{"metadata":{"finalizers":null}}')
            except NotFoundError:
                return

    async with asyncio.timeout(CLEANUP_SECONDS):
        while True:
            items = json.loads(await client.raw("GET", path))["items"]
            if not items:
                return
            await client.raw("DELETE", path, body=_AT_ONCE, seconds=CLEANUP_SECONDS)
            await asyncio.gather(*(unhold(item) for item in items))
            await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def fleet(
    *, audit: bool = False, provider_name: str = "local", worker_names: Sequence[str] = WORKERS, elastic: bool = False
) -> AsyncIterator[Fleet]:
    """Make a fleet in a folder of its own, Gatelift installed but stopped; end and remove all of it at the end.

    `elastic`: its daemons serve elastic Jobs, and all clusters have the policies of these.
    """
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gatelift-bench-")))
        settings = ProviderSettings(
            home=home / "state",
            kubeconfigs=home / "kubeconfigs",
            audit=audit,
            nodes=NodeShape(cpu=AMPLE, memory="1Ti", pods=10_000),
        )
        provider = load(provider_name, settings)
        stack.push_async_callback(provider.down)
        management, *workers = await provider.up(["mgmt", *worker_names])
        installation = _installation(home, management, workers, elastic=elastic)
        stack.push_async_callback(installation.stop)
        await installation.install()
        clients = {}
        for cluster in (management, *workers):
            clients[cluster.name] = await installation.admin(cluster)
            stack.push_async_callback(clients[cluster.name].aclose)
        made = Fleet(
            home=settings.home,
            provider=provider,
            management=management,
            workers=workers,
            installation=installation,
            clients=clients,
        )
        await without_webhooks.leave_empty(clients["mgmt"])
        await without_webhooks.serve_one_version(clients["mgmt"])
        manifests = flavor_and_check(*worker_names) + queue(QUEUE, AMPLE) + "---" + queue(NARROW, POD_CPU)
        await applying.apply(clients["mgmt"], yaml.safe_load_all(manifests))
        if elastic:
            text = deploy_folder().joinpath(*ELASTIC_POLICIES).read_text(encoding="utf-8")
            for client in clients.values():
                await applying.apply(client, yaml.safe_load_all(text))
        try:
            yield made
        except SandboxError as error:
            raise SandboxError(f"{error}\n{_last_words(installation)}") from error


def _installation(home: Path, management: Cluster, workers: Sequence[Cluster], *, elastic: bool) -> Installation:
    port = free_port()
    capacity = [{"flavor": FLAVOR, "resource": "cpu", "nominal": AMPLE}]
    of_agents = {
        "manager": f"127.0.0.1:{port}",
        "capacity": capacity,
        "apiPerSecond": BUDGET_PER_SECOND,
        "policy": {"schedulers": ["default-scheduler", UNSCHEDULED]},
    }
    return Installation(
        folder=home / "installation",
        management=management,
        workers=workers,
        namespaces=[NAMESPACE],
        agent_settings={worker.name: of_agents for worker in workers},
        manager_settings={
            "gatelift": {"listen": f"127.0.0.1:{port}"},
            "leaderElection": LEASE,
            "clientConnection": {"qps": BUDGET_PER_SECOND, "burst": BUDGET_PER_SECOND},
        },
        **elastic_daemons(on=elastic),
    )


def elastic_daemons(*, on: bool) -> dict[str, Any]:
    """Return what of an installation says whether its daemons serve elastic Jobs."""
    if not on:
        return {}
    return {
        "program": ELASTIC_PROGRAM,
        "environment": {"PYTHONPATH": os.pathsep.join([TESTS, *filter(None, sys.path)])},
    }


def _last_words(installation: Installation) -> str:
    lines = []
    for daemon in installation.daemons.values():
        if daemon.log.exists():
            lines += [f"--- {daemon.name}", *daemon.log.read_text(errors="replace").splitlines()[-5:]]
    return "\n".join(lines)


def conditions(workers: int = len(WORKERS)) -> dict[str, Any]:
    """Return what all figures of a fleet depend on."""
    return {
        "clusters": f"1 management and {workers} workers, {REAL}",
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def free_port() -> int:
    """Return a TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
