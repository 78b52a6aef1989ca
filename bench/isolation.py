"""What other clusters notice of one worker that sends the costliest legal frames at full speed, and one of a tenant.

`python -m bench.isolation [--agents N] [--pods N] [--loads finished,older,...]`. The manager is the real daemon on the
embedded server; the honest agents are real machines over mTLS; the hostile one is a process of its own
(`hostile_worker`, which names the loads). For each load pods go through the honest clusters at an even pace, in turn
without it and with it, and the manager's event loop is asked every few milliseconds whether it answers. Where there is
more than one core the manager has the first to itself, as it would have a machine: what others notice is then its
doing, not that API server, agents and a hostile worker share a machine with it.

Some loads are of a worker that has pods and turns on them (`hostile_flip`, `hostile_answers`). The load `churn` is of a
tenant, who makes and deletes pods without end in a namespace of his own (`hostile_tenant`). What others notice of him
is how many writes the manager may make, so it has a stage with few, and pods at another pace.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import uvloop
from tenacity import stop_after_delay

from bench.fanout import PACE_SECONDS, Stage, enrol, paced, stage, write_secret
from bench.hostile_answers import ANSWERS
from bench.hostile_flip import PREFIX
from bench.hostile_tenant import EVIL
from bench.hostile_worker import LOADS, SMALL, Orders, Told
from bench.latency import summary
from bench.loader import BESIDE, create, manifest, mutated
from bench.processes import others_cores, own_core
from bench.side_scripts import beside
from gatelift_kinds.shared.cluster_selector import ANNOTATION_CLUSTER_SELECTOR
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.process import collector
from gatelift_kube.process.tasks import spawn
from gatelift_kube.process.waiting import until
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox import children
from gatelift_wire.values.keys import ANNOTATION_CLUSTER

AGENTS = 4
PODS = 200
ROUNDS = 3
"""With and without, in turn: what the machine does besides is in both."""
PROBE_SECONDS = 0.01
SETTLE_SECONDS = 2.0
PASS_SECONDS_MAX = 120.0
CHURN = "churn"
"""The load of `hostile_tenant`."""
CHURN_PER_SECOND, CHURN_PODS, CHURN_PACE_SECONDS = 20, 20, 1.0
"""Writes of the manager for it; a pod of others takes about seven, so these have a third of them."""
LEFT_SECONDS_MAX = 300.0
"""For the writes that what he has made and deleted takes."""
FLIP = "flip"
"""The load of `hostile_flip`."""
GIVEN = (FLIP, *ANSWERS)
"""Loads of one that has pods, and turns on them."""
SCRIPTS = {FLIP: "bench.hostile_flip"} | dict.fromkeys(ANSWERS, "bench.hostile_answers")
FLIPPED_MB_MIN = 0.2
"""Said in a round by one that has its pods: what a tenth of them alone would not come to."""
BESIDES = 100
"""Pods that wait for a cluster which is not there, for loads that wake what waits; or that the hostile worker has."""
HEARD_EVERY, HEARD_SECONDS = 0.05, 30.0
"""Within which it has said something: a frame of 3 MB, that is taken in slices, or fifty small ones."""
BESIDES_SECONDS = 15.0
"""Until those have found nobody and wait."""
_HANDLED = re.compile(r'^gatelift_[a-z_]*handle[a-z_]*_bucket\{event="([^"]+)",le="([^"]+)"\} (\S+)$', re.MULTILINE)


There = Callable[[], AbstractAsyncContextManager[Path]]
"""Has the hostile worker come for the time of a block; gives where it says what it has done."""


class Sizes(NamedTuple):
    """Pods of a round, rounds with and without, and seconds between two pods."""

    pods: int
    rounds: int
    pace: float = PACE_SECONDS


class Probe:
    """How long the manager's event loop takes to answer a request that costs nothing."""

    def __init__(self, status: str) -> None:
        self._url = f"http://{status}"
        self.milliseconds: list[float] = []

    async def run(self) -> None:
        """Ask again and again."""
        async with aiohttp.ClientSession() as session:
            while True:
                began = time.monotonic()
                async with session.get(f"{self._url}/healthz") as answer:
                    await answer.read()
                self.milliseconds.append(1000 * (time.monotonic() - began))
                await asyncio.sleep(PROBE_SECONDS)

    async def longest_handle(self) -> dict[str, float]:
        """Return counts of calls of the core by event and bucket, as they are now."""
        async with aiohttp.ClientSession() as session, session.get(f"{self._url}/metrics") as answer:
            return {f"{event} {limit}": float(count) for event, limit, count in _HANDLED.findall(await answer.text())}


def longest(before: dict[str, float], after: dict[str, float]) -> float | None:
    """Return the bucket's bound, in ms, below which all calls since stayed; None: the last bucket did not hold them."""
    most = 0.0
    for series, total in after.items():
        event, limit = series.split(" ")
        if limit != "+Inf":
            continue
        calls = total - before.get(series, 0.0)
        bounds = sorted((float(each.split(" ")[1]), each) for each in after if each.startswith(f"{event} "))
        held = next(bound for bound, each in bounds if after[each] - before.get(each, 0.0) >= calls)
        most = max(most, held)
    return None if most == float("inf") else 1000 * most


async def observed(made: Stage, sizes: Sizes) -> dict[str, Any]:
    """Let pods go through; return what they and the manager's loop were like meanwhile."""
    probe = Probe(made.status)
    handled = await probe.longest_handle()
    asking = spawn("probe", probe.run())
    used, began = made.cpu(), time.monotonic()
    try:
        passed = await paced(made, sizes.pods, within=PASS_SECONDS_MAX, pace=sizes.pace)
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
    return {
        "created_to_admitted_ms": passed["created_to_admitted"],
        "created_to_finished_ms": passed["created_to_finished"],
        "loop_answers_ms": summary(probe.milliseconds),
        "longest_handle_below_ms": longest(handled, await probe.longest_handle()),
        "manager_cpu_share": round((made.cpu() - used) / (time.monotonic() - began), 3),
        "manager_mb": round(children.rss_bytes(made.manager) / 1e6, 1),
    }


@asynccontextmanager
async def hostile(made: Stage, load: str, bundle: str, identity: Any) -> AsyncIterator[Path]:
    """Let the hostile worker be there for the time of a block, which begins once it was heard; gives what it has done.

    It floods all the time, or, if it has pods, while its switch is there.
    """
    told, path = made.home / f"told-{load}.json", made.home / f"orders-{load}.json"
    switch = str(_switch(made)) if load in GIVEN else ""
    orders = Orders(manager=made.address, bundle=bundle, identity=identity, load=load, told=str(told), switch=switch)
    await asyncio.to_thread(write_secret, path, msgspec.json.encode(orders))
    await asyncio.to_thread(told.unlink, missing_ok=True)
    script = SCRIPTS.get(load, "bench.hostile_worker")
    async with beside(script, str(path), fail=made.watcher.fail):
        if not await until(lambda: asyncio.to_thread(told.exists), HEARD_EVERY, stop_after_delay(HEARD_SECONDS)):
            raise TimeoutError(f"the hostile worker ({load}) said nothing in {HEARD_SECONDS:g} s")
        await asyncio.sleep(SETTLE_SECONDS)
        yield told


@asynccontextmanager
async def churning(made: Stage) -> AsyncIterator[Path]:
    """Let the hostile tenant be there for the time of a block; gives where it says what it has done.

    At the end it is waited until nothing of his is left: what others notice of that is his doing as well.
    """
    told = made.home / f"told-{CHURN}.json"
    async with beside("bench.hostile_tenant", str(made.kubeconfig), str(told), fail=made.watcher.fail):
        await asyncio.sleep(SETTLE_SECONDS)
        yield told
    if not await until(lambda: _is_empty(made.client, EVIL), 1.0, stop_after_delay(LEFT_SECONDS_MAX)):
        raise TimeoutError(f"after {LEFT_SECONDS_MAX:g} s something of the hostile tenant is left")


async def _is_empty(client: Client, namespace: str) -> bool:
    """Say whether a namespace has no pods and no Workloads."""
    for resource in (POD, WORKLOAD):
        async for page in client.list(resource, Selection(namespace=namespace)):
            if page.items:
                return False
    return True


def _switch(made: Stage) -> Path:
    return made.home / "floods"


@asynccontextmanager
async def flooding(made: Stage, load: str, there: There) -> AsyncIterator[Path]:
    """Let the hostile worker flood for the time of a block: come for it, or if it has pods and is there, begin."""
    if load not in GIVEN:
        async with there() as told:
            yield told
        return
    _switch(made).touch()
    await asyncio.sleep(SETTLE_SECONDS)
    try:
        yield made.home / f"told-{load}.json"
    finally:
        _switch(made).unlink()


def _label(load: str) -> str:
    """Return by which label it is selected: that of the honest ones if it is to be given work."""
    return "fanout" if load in GIVEN else "hostile"


def _besides(load: str) -> list[dict[str, Any]]:
    """Return the pods that are there besides: what waits and no change helps, or what the hostile worker is given."""
    if load in GIVEN:
        named, marks = f"{PREFIX}{load}-", {ANNOTATION_CLUSTER: f"hostile-{load}"}
    else:
        named, marks = f"{BESIDE}{load}-", {ANNOTATION_CLUSTER_SELECTOR: "bench=nowhere"}
    pods = [mutated(manifest(f"{named}{number:04}")) for number in range(BESIDES if load in {*SMALL, *GIVEN} else 0)]
    for pod in pods:
        pod["metadata"].setdefault("annotations", {}).update(marks)
    return pods


def _told(path: Path) -> Told:
    return msgspec.json.decode(path.read_bytes(), type=Told) if path.exists() else Told()


async def measure(agents: int, pods: int, rounds: int, loads: list[str]) -> dict[str, Any]:
    """Return the figures of each load."""
    figures: dict[str, Any] = {}
    apart = others_cores()
    of_workers = [load for load in loads if load != CHURN]
    if of_workers:
        figures |= await _beside_workers(agents, Sizes(pods, rounds), of_workers, apart=apart)
    if CHURN in loads:
        figures[CHURN] = await _beside_a_tenant(agents, rounds, apart=apart)
    return figures


async def _beside_a_tenant(agents: int, rounds: int, *, apart: bool) -> dict[str, Any]:
    async with stage(agents, per_second=CHURN_PER_SECOND, namespaces=(EVIL,)) as made:
        if apart:
            own_core(made.manager.pid)
        sizes = Sizes(CHURN_PODS, rounds, CHURN_PACE_SECONDS)
        await paced(made, sizes.pods // 4, pace=sizes.pace)
        return _compared(CHURN, *await _in_turn(made, CHURN, partial(churning, made), sizes))


async def _beside_workers(agents: int, sizes: Sizes, loads: list[str], *, apart: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    async with stage(agents) as made:
        if apart:
            own_core(made.manager.pid)
        await paced(made, sizes.pods // 4)
        for load in loads:
            bundle, (identity,) = await enrol(made.client, [f"hostile-{load}"], _label(load))
            others = _besides(load)
            await create(made.client, others)
            await asyncio.sleep(BESIDES_SECONDS if others else 0.0)
            there = partial(hostile, made, load, bundle, identity)
            async with there() if load in GIVEN else nullcontext():
                await asyncio.sleep(BESIDES_SECONDS if load in GIVEN else 0.0)  # it is given its pods
                figures[load] = _compared(load, *await _in_turn(made, load, there, sizes))
    return figures


def _compared(load: str, calm: list[dict[str, Any]], beside_it: list[dict[str, Any]]) -> dict[str, Any]:
    found = {"without": calm, "with": beside_it, **_ratios(calm, beside_it)}
    print(load, {name: value for name, value in found.items() if name.startswith("ratio")}, flush=True)
    return found


async def _in_turn(
    made: Stage, load: str, there: There, sizes: Sizes
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return what was observed without the load and with it."""
    calm, beside_it = [], []
    for _ in range(sizes.rounds):
        calm.append(await observed(made, sizes))
        began, before = time.monotonic(), _told(made.home / f"told-{load}.json") if load in GIVEN else Told()
        async with flooding(made, load, there) as path:
            beside_it.append({**await observed(made, sizes)})
            said = _told(path)
        beside_it[-1]["hostile"] = {
            "seconds": round(time.monotonic() - began, 1),
            "frames": said.frames - before.frames,
            "megabytes": round((said.size - before.size) / 1e6, 1),
            "streams": said.streams,
            "closed": said.closed,
            "reasons": said.reasons,
        }
        if load == FLIP and beside_it[-1]["hostile"]["megabytes"] < FLIPPED_MB_MIN:
            raise RuntimeError(f"the hostile worker said next to nothing: {said}")
    return calm, beside_it


def _ratios(calm: list[dict[str, Any]], beside_it: list[dict[str, Any]]) -> dict[str, float]:
    """Return with over without, by the median of the rounds: one that the machine disturbed counts in neither."""
    found = {}
    for step in ("created_to_admitted_ms", "created_to_finished_ms"):
        for share in ("p50", "p99"):
            with_, without = (statistics.median(each[step][share] for each in some) for some in (beside_it, calm))
            found[f"ratio_{step.removesuffix('_ms')}_{share}"] = round(with_ / max(without, 0.1), 3)
    return found


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--pods", type=int, default=PODS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--loads", default=",".join((*LOADS, *GIVEN, CHURN)))
    given = parser.parse_args()
    said = {
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "management_api": "embedded server, a process of its own",
        "agents": given.agents,
        "pods": given.pods,
        "rounds": given.rounds,
    }
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    collector.tune()  # as the daemons: a pause of whoever measures is in both sides
    figures = uvloop.run(measure(given.agents, given.pods, given.rounds, given.loads.split(",")))
    print(json.dumps({"bench": "isolation", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
