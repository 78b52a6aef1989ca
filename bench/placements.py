"""Single-pod workloads end to end on real control planes, against the write floor.

`python -m bench.placements [--workloads N] [--rounds N]`. Each round is run twice in turn, by Gatelift and by
`write_floor`, on the same API servers with the same loader. Then one round on clusters with an audit log counts the
requests of each workload, by process, verb and resource.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import uvloop

from bench import audit
from bench.fleet import NAMESPACE, WORKERS, Fleet, conditions, fleet
from bench.loader import CREATES_IN_FLIGHT, Watcher, create, manifest, mutated, watching
from bench.processes import Usage, cpu_seconds
from bench.side_scripts import beside

WORKLOADS = 300
AUDITED = 60
ROUNDS = 3
WARM_UP = 20
"""Pods before the first round of each side: connections, code paths, caches of the API servers."""
AUDIT_FLUSH_SECONDS = 1.0
"""The API server writes audit lines at once, but a last request may still be on its way out."""

EXPECTED: dict[tuple[str, str], int] = {
    ("mgmt", "workloads"): 3,
    ("mgmt", "pods"): 3,
    ("workers", "pods"): 4,
}
"""Writes of manager and agents per workload (design 11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of one side."""

    per_second: float
    usage: Usage
    placed: Counter[str]


async def run_round(fleet_: Fleet, watcher: Watcher, count: int, *, floor: bool, extra_pid: int = 0) -> Round:
    """Create `count` pods and wait until all have gone their way."""
    watcher.forget()
    documents = [manifest(f"p{number:05}") for number in range(count)]
    if floor:
        documents = [mutated(document) for document in documents]
    before, own = fleet_.usage(), cpu_seconds(extra_pid) if extra_pid else 0.0
    began = time.monotonic()
    creating = create(fleet_.clients["mgmt"], documents)
    await creating
    await watcher.until(lambda: len(watcher.ways) == count and all(way.done for way in watcher.ways.values()))
    ended = max(max(way.seen.values()) for way in watcher.ways.values())
    used = dict(fleet_.usage().since(before).seconds)
    if extra_pid:
        used["floor"] = cpu_seconds(extra_pid) - own
    placed = Counter(way.cluster for way in watcher.ways.values())
    return Round(per_second=count / (ended - began), usage=Usage(used), placed=placed)


async def gatelift_round(fleet_: Fleet, count: int) -> Round:
    """Start Gatelift, warm it up, run a round, stop it, clean up."""
    async with watching(fleet_.clients) as watcher:
        await fleet_.start()
        await warm_up(fleet_, watcher, floor=False)
        done = await run_round(fleet_, watcher, count, floor=False)
        await fleet_.stop()
        await fleet_.clean()
    return done


async def floor_round(fleet_: Fleet, count: int) -> Round:
    """Start the floor with the rights of manager and agents, warm it up, run a round, stop it, clean up."""
    of = fleet_.installation.kubeconfig
    paths = [of(fleet_.management, "gatelift-manager"), *(of(worker, "gatelift-agent") for worker in fleet_.workers)]
    kubeconfigs = [str(path) for path in paths]
    async with watching(fleet_.clients) as watcher:
        async with beside("bench.write_floor", *kubeconfigs, fail=watcher.fail) as pid:
            await warm_up(fleet_, watcher, floor=True)
            done = await run_round(fleet_, watcher, count, floor=True, extra_pid=pid)
        await fleet_.clean()
    return done


async def warm_up(fleet_: Fleet, watcher: Watcher, *, floor: bool) -> None:
    """Let some pods through that are not counted."""
    documents = [manifest(f"warm{number:02}") for number in range(WARM_UP)]
    if floor:
        documents = [mutated(document) for document in documents]
    watcher.forget()
    await create(fleet_.clients["mgmt"], documents)
    await watcher.until(lambda: len(watcher.ways) == WARM_UP and all(way.done for way in watcher.ways.values()))


async def measure(count: int, rounds: int) -> dict[str, Any]:
    """Alternate rounds of both sides and return medians."""
    ours: list[Round] = []
    floors: list[Round] = []
    async with fleet() as made:
        for number in range(rounds):
            floors.append(await floor_round(made, count))
            print(f"round {number + 1}: floor    {floors[-1].per_second:6.1f}/s   {shares(floors[-1], count)}")
            ours.append(await gatelift_round(made, count))
            print(f"round {number + 1}: gatelift {ours[-1].per_second:6.1f}/s   {shares(ours[-1], count)}")
    rate = statistics.median(each.per_second for each in ours)
    floor_rate = statistics.median(each.per_second for each in floors)
    machine = {
        "gatelift": _median_ms(ours, lambda each: each.usage.total, count),
        "floor": _median_ms(floors, lambda each: each.usage.total, count),
    }
    return {
        "per_second": round(rate, 1),
        "floor_per_second": round(floor_rate, 1),
        "ratio": round(rate / floor_rate, 3),
        "ratios": [round(one.per_second / other.per_second, 3) for one, other in zip(ours, floors, strict=True)],
        "cpu_ms_per_placement": _costs(ours, count),
        "floor_cpu_ms_per_placement": _median_ms(floors, lambda each: each.usage.of("floor"), count),
        "machine_cpu_ms_per_placement": machine,
        "cpu_ratio": round(machine["floor"] / machine["gatelift"], 3),
    }


def _costs(rounds: list[Round], count: int) -> dict[str, float]:
    costs = {
        "manager": _median_ms(rounds, lambda each: each.usage.of("manager"), count),
        "webhooks": _median_ms(rounds, lambda each: each.usage.of("webhooks"), count),
    }
    for worker in WORKERS:
        per_own = [1000 * each.usage.of(f"agent-{worker}") / max(1, each.placed[worker]) for each in rounds]
        costs[f"agent-{worker}"] = round(statistics.median(per_own), 2)
    return costs


def _median_ms(rounds: list[Round], used: Callable[[Round], float], count: int) -> float:
    return round(statistics.median(1000 * used(each) / count for each in rounds), 2)


def shares(one: Round, count: int) -> str:
    """Return what one of the workloads of a round cost, by process."""
    usage = one.usage
    parts = {
        "API servers": usage.of("kube-apiserver"),
        "etcd": usage.of("etcd"),
        "schedulers": usage.of("kube-scheduler"),
        "controllers": usage.of("kube-controller-manager"),
        "kubelets": usage.of("kubelet"),
        "manager": usage.of("manager"),
        "webhooks": usage.of("webhooks"),
        "agents": usage.of(*(f"agent-{worker}" for worker in WORKERS)),
        "floor": usage.of("floor"),
    }
    shown = ", ".join(f"{name} {1000 * used / count:.1f}" for name, used in parts.items() if used)
    return f"CPU ms a workload: {shown}"


async def requests(count: int) -> dict[str, Any]:
    """Count the requests of `count` workloads by the audit logs."""
    async with fleet(audit=True) as made, watching(made.clients) as watcher:
        await made.start()
        await warm_up(made, watcher, floor=False)
        logs = {cluster.name: cluster.logs for cluster in (made.management, *made.workers) if cluster.logs is not None}
        starts = {name: (folder / "audit.log").stat().st_size for name, folder in logs.items()}
        began = time.monotonic()
        await run_round(made, watcher, count, floor=False)
        await asyncio.sleep(AUDIT_FLUSH_SECONDS)
        seconds = time.monotonic() - began
        lines = {
            name: audit.parse((folder / "audit.log").read_bytes()[starts[name] :]) for name, folder in logs.items()
        }
    management, workers = lines["mgmt"], [line for name in WORKERS for line in lines[name]]
    sides = {"mgmt": management, "workers": workers}
    own = {side: audit.count(of, NAMESPACE, own=True) for side, of in sides.items()}
    rest = {side: audit.count(of, NAMESPACE, own=False) for side, of in sides.items()}
    return {
        "workloads": count,
        "per_workload": audit.per_workload(own, count),
        "against_design": audit.against(own, EXPECTED, count),
        "others_per_second": audit.others(rest, seconds),
        "refused": {
            f"{request.process} {request.verb} {request.resource} {code}": number
            for (request, code), number in sorted(audit.failed(management + workers, NAMESPACE).items())
        },
    }


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--audited", type=int, default=AUDITED, help="workloads of the audited round, 0: no such round")
    given = parser.parse_args()
    said = {
        **conditions(),
        "workloads": given.workloads,
        "rounds": given.rounds,
        "creates_in_flight": CREATES_IN_FLIGHT,
    }
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures = uvloop.run(measure(given.workloads, given.rounds))
    print(f"gatelift {figures['per_second']}/s, floor {figures['floor_per_second']}/s, ratio {figures['ratio']}")
    print(f"CPU of all processes, floor to gatelift: {figures['cpu_ratio']} (what the ratio is where CPU is the bound)")
    if given.audited:
        figures["requests"] = uvloop.run(requests(given.audited))
        for side, rows in figures["requests"]["per_workload"].items():
            for what, number in rows.items():
                print(f"{side:8} {what:44} {number:6.2f} a workload")
    print(json.dumps({"bench": "placements", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
