"""Many agents against one manager: placements per CPU second, memory per agent, and the others while one agent hangs.

`python -m bench.fanout [--agents 10 100] [--workloads N]`. The manager is the real daemon; its management API is the
embedded server; the agents are real machines on real mTLS streams, several in a process, each on a cluster in memory
(`fake_agents`). Pods arrive already mutated. The agent that hangs has a process of its own, which is stopped (SIGSTOP):
its stream stays open, nothing is read and nothing answered.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import itertools
import json
import os
import platform
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import uvloop
import yaml

from bench.fake_agents import AgentIdentity, Plan
from bench.fleet import AMPLE, FLAVOR, NAMESPACE, QUEUE, flavor_and_check, local_queue, queue
from bench.latency import summary
from bench.loader import Watcher, create, manifest, mutated, watching
from bench.one_cluster import one_cluster
from bench.processes import cpu_seconds
from bench.side_scripts import beside
from gatelift.adapters import authority
from gatelift_agent.adapters.enrolment import new_key, signing_request
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.objects import conditions
from gatelift_kube.objects.core import Secret
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import SECRET, WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_sandbox import applying, children
from gatelift_sandbox.installation import SYSTEM
from gatelift_wire.streams.identity import uri_of

WORKLOADS = 300
ROUNDS = 3
PACED = 200
PACE_SECONDS = 0.05
"""Between two pods of the rounds that look at latency: 20 a second."""
PACED_SECONDS_MAX = 40.0
"""What is not through by then hangs as well; it is below the 60 s after which a silent cluster counts as lost."""
RUN_SECONDS = 0.2
ON_THEIR_WAY = 32
"""Placements under way at a time in the rounds that look at CPU: enough to keep the manager busy, and no more: where
agents answer offers later than `bidSeconds`, each workload is offered to more and more of them, which is another bench.
"""
BURST_SECONDS_MAX = 120.0
PER_PROCESS = 25
CONNECT_SECONDS = 120.0
POLL_SECONDS = 0.2
SETTLE_SECONDS = 3.0
"""After the last agent has connected, before memory is read: capacities and statuses are written."""
IDLE_SECONDS = 10.0
LIFETIME = dt.timedelta(hours=6)
BUDGET_PER_SECOND = 5_000
"""More writes a second than the embedded server takes."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """A manager with its agents."""

    client: Client
    watcher: Watcher
    manager: children.Child
    address: str
    status: str
    home: Path
    kubeconfig: Path
    hanging: str
    hanging_pid: int
    bytes_alone: int
    bytes_connected: int

    def cpu(self) -> float:
        """Return the manager's CPU seconds so far."""
        return cpu_seconds(self.manager.pid)

    def gone_through(self, count: int, but: str = "") -> Callable[[], bool]:
        """Return the question whether all pods have finished, those on one cluster left out."""

        def done() -> bool:
            ways = self.watcher.ways.values()
            finished = ({"finished", "released"} <= way.seen.keys() or (but and way.cluster == but) for way in ways)
            return len(ways) == count and all(finished)

        return done


@asynccontextmanager
async def stage(
    agents: int, *, per_second: int = BUDGET_PER_SECOND, namespaces: tuple[str, ...] = ()
) -> AsyncIterator[Stage]:
    """Raise a management cluster, a manager with such a budget of writes, and so many agents.

    `namespaces` are there besides that of the pods, and none of the agents takes work of them.
    """
    names = [f"a{number:03}" for number in range(agents)]
    budget = {"clientConnection": {"qps": per_second, "burst": per_second}}
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(one_cluster("embedded", [NAMESPACE, *namespaces], budget))
        client, installation = made.client, made.installation
        # A list of clusters holds 20 names, a selector has no limit.
        manifests = flavor_and_check(names[0], selector="bench=fanout") + queue(QUEUE, AMPLE)
        manifests = "---\n".join([manifests, *(local_queue(QUEUE, namespace) for namespace in namespaces)])
        await applying.apply(client, yaml.safe_load_all(manifests))
        daemon = await installation.start_manager()
        if daemon.child is None:
            raise RuntimeError("the manager has no process")
        identities = await enrol(client, names)
        await asyncio.sleep(SETTLE_SECONDS)
        alone = children.rss_bytes(daemon.child)
        watcher = await stack.enter_async_context(watching({"mgmt": client}))
        pids = []
        for number, plan in enumerate(_plans(made.manager, *identities)):
            path = made.home / f"plan-{number}.json"
            await asyncio.to_thread(write_secret, path, msgspec.json.encode(plan))
            agents_of_plan = beside("bench.fake_agents", str(path), fail=watcher.fail)
            pids.append(await stack.enter_async_context(agents_of_plan))
        await _connected(client, agents)
        await asyncio.sleep(SETTLE_SECONDS)
        yield Stage(
            client=client,
            watcher=watcher,
            manager=daemon.child,
            address=made.manager,
            status=daemon.status,
            home=made.home,
            kubeconfig=made.cluster.kubeconfig,
            hanging=names[-1],
            hanging_pid=pids[-1],
            bytes_alone=alone,
            bytes_connected=children.rss_bytes(daemon.child),
        )


async def enrol(client: Client, names: list[str], label: str = "fanout") -> tuple[str, list[AgentIdentity]]:
    """Make each WorkerCluster with an approved key, signed by the manager's authority; return bundle and identities."""
    secret = (await client.get(ObjectRef(SECRET, ObjectKey(SYSTEM, "gatelift-ca")))).raw
    state = authority.AuthorityState.from_secret(msgspec.json.decode(secret, type=Secret).data)
    now = dt.datetime.now(dt.UTC)
    identities = []
    for name in names:
        key = new_key()
        request = signing_request(key, name)
        document = {
            "apiVersion": WORKER_CLUSTER.api_version,
            "kind": WORKER_CLUSTER.kind,
            "metadata": {"name": name, "labels": {"bench": label}},
            "spec": {},
        }
        await client.create(WORKER_CLUSTER, "", json.dumps(document).encode())
        status = {"status": {"keyDigest": authority.request_digest(request)}}
        ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", name))
        await client.patch(ref, json.dumps(status).encode(), subresource="status")
        certificate = authority.sign_agent(state, request, uri_of(name), LIFETIME, now)
        identities.append(AgentIdentity(cluster=name, key=key.decode(), certificate=certificate.decode()))
    return state.bundle.decode(), identities


def _plans(manager: str, bundle: str, identities: list[AgentIdentity]) -> list[Plan]:
    """Return a plan for each process; the last agent has one of its own."""
    groups = [identities[:-1][at : at + PER_PROCESS] for at in range(0, len(identities) - 1, PER_PROCESS)]
    return [
        Plan(
            manager=manager,
            bundle=bundle,
            namespace=NAMESPACE,
            run_seconds=RUN_SECONDS,
            flavor=FLAVOR,
            cpu_millis=1_000_000,
            agents=tuple(group),
        )
        for group in [*groups, identities[-1:]]
    ]


def write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)  # it holds keys
    path.write_bytes(content)


async def _connected(client: Client, agents: int) -> None:
    async with asyncio.timeout(CONNECT_SECONDS):
        while True:
            found = [
                served.object
                async for page in client.list(WORKER_CLUSTER, Selection(labels="bench=fanout"))
                for served in page.items
                if isinstance(served.object, WorkerCluster)
            ]
            if sum(conditions.is_true(each.status.conditions, "Connected") for each in found) == agents:
                return
            await asyncio.sleep(POLL_SECONDS)


_numbers = itertools.count()


def _pods(count: int) -> list[dict[str, Any]]:
    return [mutated(manifest(f"p{next(_numbers):06}")) for _ in range(count)]


async def burst(made: Stage, count: int) -> tuple[float, float]:
    """Send pods, so many on their way at a time; return placements per CPU second of the manager, and per second."""
    watcher = made.watcher
    watcher.forget()
    used, began = made.cpu(), time.monotonic()
    for sent, document in enumerate(_pods(count), start=1):
        await watcher.until(lambda sent=sent: sent - _through(watcher) <= ON_THEIR_WAY, BURST_SECONDS_MAX)  # type: ignore[misc]  # default binds the loop variable
        await create(made.client, [document], in_flight=1)
    await watcher.until(made.gone_through(count), BURST_SECONDS_MAX)
    return count / (made.cpu() - used), count / (time.monotonic() - began)


def _through(watcher: Watcher) -> int:
    return sum({"finished", "released"} <= way.seen.keys() for way in watcher.ways.values())


async def paced(
    made: Stage, count: int, but: str = "", *, within: float = PACED_SECONDS_MAX, pace: float = PACE_SECONDS
) -> dict[str, dict[str, float]]:
    """Send pods at an even pace; return summaries of created to admitted and created to finished, in ms."""
    made.watcher.forget()
    for document in _pods(count):
        await create(made.client, [document], in_flight=1)
        await asyncio.sleep(pace)
    await made.watcher.until(made.gone_through(count, but), within)
    others = [way.seen for way in made.watcher.ways.values() if way.cluster != but]
    return {
        "pods": {"others": len(others), "there": count - len(others)},
        "created_to_admitted": summary([1000 * (seen["admitted"] - seen["created"]) for seen in others]),
        "created_to_finished": summary([1000 * (seen["finished"] - seen["created"]) for seen in others]),
    }


async def measure(agents: int, workloads: int, rounds: int) -> dict[str, Any]:
    """Return the figures of one number of agents."""
    async with stage(agents) as made:
        idle = made.cpu()
        await asyncio.sleep(IDLE_SECONDS)
        idle = 1000 * (made.cpu() - idle) / IDLE_SECONDS
        await burst(made, workloads)
        print(f"{agents} agents: connected and warm")
        bursts = [await burst(made, workloads) for _ in range(rounds)]
        calm = await paced(made, PACED)
        os.kill(made.hanging_pid, signal.SIGSTOP)
        try:
            hung = await paced(made, PACED, made.hanging)
        finally:
            os.kill(made.hanging_pid, signal.SIGCONT)
        return {
            "placements_per_cpu_second": round(sorted(each[0] for each in bursts)[len(bursts) // 2], 1),
            "placements_per_second": round(sorted(each[1] for each in bursts)[len(bursts) // 2], 1),
            "manager_idle_cpu_ms_per_second": round(idle, 1),
            "manager_mb": round(made.bytes_connected / 1e6, 1),
            "kb_per_agent": round((made.bytes_connected - made.bytes_alone) / agents / 1000, 1),
            "calm": calm,
            "one_hangs": hung,
        }


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    said = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "management_api": "embedded server, a process of its own",
        "agents": f"real machines over mTLS, {PER_PROCESS} a process, clusters in memory",
        "workloads": given.workloads,
        "rounds": given.rounds,
        "placements_under_way": ON_THEIR_WAY,
        "paced": f"{PACED} pods, {1 / PACE_SECONDS:g} a second, running {RUN_SECONDS:g} s",
    }
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures = {}
    for agents in given.agents:
        figures[f"agents_{agents}"] = found = uvloop.run(measure(agents, given.workloads, given.rounds))
        print(
            f"{agents} agents: {found['placements_per_cpu_second']} placements per CPU second of the manager,"
            f" {found['placements_per_second']}/s, {found['kb_per_agent']} kB an agent,"
            f" idle {found['manager_idle_cpu_ms_per_second']} ms/s"
        )
        for name in ("calm", "one_hangs"):
            admitted, finished = found[name]["created_to_admitted"], found[name]["created_to_finished"]
            print(f"  {name:10} created to admitted p99 {admitted['p99']} ms, to finished p99 {finished['p99']} ms")
    print(json.dumps({"bench": "fanout", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
