"""How fast many elastic Jobs are resized at once, and how fast the pods of one are let go. See `resize`.

Each round is run by Gatelift and by scripts on the same API servers, in turn. Many Jobs: Gatelift places them, grows
and shrinks them, and is stopped; the floor takes the same Jobs over. One Job: at a worker its pods are let go as their
controller makes them; at home all of them wait for quota, and are let go once there is some.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from bench import resize_jobs
from bench.fleet import AMPLE, FLAVOR, NAMESPACE, POD_CPU, Fleet, local_queue
from bench.processes import cpu_seconds
from bench.resize_jobs import Chain, Chains, following
from bench.side_scripts import beside
from gatelift_kube.values.resources import CLUSTER_QUEUE, ObjectKey, ObjectRef
from gatelift_sandbox import applying

IN_FLIGHT = 32
"""Writes that an agent has under way as it ships (`apiInFlight`): the bare loop's, too."""
BEFORE = 10
"""Pods of the one Job before it grows."""
LIFTS_SECONDS_MAX = 300.0
QUIET_SECONDS = 2.0
"""Nothing is seen of any Job for so long: all that follows from a start has been done."""
HOME = "home-alone"
"""A queue that dispatches nowhere."""
GOALS = {
    "ratio": (0.7, "at least: growths of many Jobs, to the write floor"),
    "shrink_ratio": (None, "shrinks, to the same"),
    "lifts_ratio": (0.8, "at least: one Job at a worker, to the bare loop"),
    "home_lifts_ratio": (0.8, "at least: one Job at home, all pods of which wait, to the bare loop"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Many Jobs that were given another size, or pods of one that were let go. `cpu_ms`: of each process, for one."""

    per_second: float
    cpu_ms: Mapping[str, float]

    @property
    def told(self) -> str:
        """Return the CPU in words."""
        return "CPU ms: " + ", ".join(f"{name} {used:.2f}" for name, used in self.cpu_ms.items() if used)


@dataclass(slots=True)
class Rounds:
    """What was measured: runs by side and way (`grow`, `shrink`); pods let go a second, by side and place."""

    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)
    lifts: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def add(self, side: str, way: str, run: Run) -> None:
        """Keep a run, and say so."""
        self.runs.setdefault((side, way), []).append(run)
        print(f"{side:9}{way:7}{run.per_second:7.1f}/s   {run.told} a Job", flush=True)

    def add_lifts(self, side: str, place: str, lifts: Run) -> None:
        """Keep how fast pods were let go, and say so."""
        self.lifts.setdefault((side, place), []).append(lifts)
        print(f"{side:9}{place:7}{lifts.per_second:7.1f} pods let go a second   {lifts.told} a pod", flush=True)

    def median(self, side: str, way: str, of: Callable[[Run], float]) -> float:
        """Return the median over the rounds of something of a run."""
        return statistics.median(of(run) for run in self.runs[side, way])


def names(count: int) -> list[str]:
    """Return the names of many Jobs."""
    return [f"j{number:04}" for number in range(count)]


async def run(made: Fleet, watcher: Chains, count: int, pods: int, *, floor_pid: int = 0) -> Run:
    """Give many Jobs another size at once, and wait until each has it."""
    wanted = names(count)
    before, floor_before = made.usage(), cpu_seconds(floor_pid) if floor_pid else 0.0
    began = time.monotonic()
    await resize_jobs.resize(made.clients["mgmt"], wanted, pods)
    await watcher.all_of(wanted, pods)
    ended = max(settled(watcher.chains[name]) for name in wanted)
    used = dict(made.usage().since(before).seconds)
    if floor_pid:
        used["floor"] = cpu_seconds(floor_pid) - floor_before
    return Run(per_second=count / (ended - began), cpu_ms=shares(used, count))


def settled(chain: Chain) -> float:
    """Return when the last thing was seen by which a Job has another size."""
    return max(chain.last.get(sight, 0.0) for sight in ("lifted", "finished", "charged"))


def shares(used: Mapping[str, float], count: int) -> dict[str, float]:
    """Return CPU in ms per Job: of manager, agents, floor and webhooks, and of all processes together."""
    parts = {"manager": "manager", "agent": "agent-", "floor": "floor", "webhooks": "webhooks", "machine": ""}
    return {
        name: 1000 * sum(seconds for process, seconds in used.items() if process.startswith(start)) / count
        for name, start in parts.items()
    }


async def quiet(watcher: Chains) -> None:
    """Wait until nothing is seen of any Job for some time."""
    moved = time.monotonic()
    while (rest := QUIET_SECONDS - (time.monotonic() - moved)) > 0:
        await asyncio.sleep(min(rest, QUIET_SECONDS / 4))
        moved = max((chain.moved for chain in watcher.chains.values()), default=0.0)


async def many(made: Fleet, count: int, rounds: int, found: Rounds) -> None:
    """Have many Jobs placed, then grown and shrunk, by both sides in turn."""
    async with following(made) as watcher:
        for number in range(rounds):
            await made.start()
            if not number:
                documents = [resize_jobs.manifest(name, 1) for name in names(count)]
                await resize_jobs.create(made.clients["mgmt"], documents)
                await watcher.all_of(names(count), 1)
            await asyncio.sleep(QUIET_SECONDS)
            await quiet(watcher)
            await _there_and_back(made, watcher, count, found)
            await quiet(watcher)
            await made.stop()
            async with beside("bench.resize_floor", *_kubeconfigs(made), fail=watcher.fail) as pid:
                await _there_and_back(made, watcher, count, found, floor_pid=pid)
    await made.clean()


async def _there_and_back(made: Fleet, watcher: Chains, count: int, found: Rounds, *, floor_pid: int = 0) -> None:
    side = "floor" if floor_pid else "gatelift"
    for way, pods in (("grow", 2), ("shrink", 1)):
        found.add(side, way, await run(made, watcher, count, pods, floor_pid=floor_pid))


def _kubeconfigs(made: Fleet) -> list[str]:
    of = made.installation.kubeconfig
    paths = [of(made.management, "gatelift-manager"), *(of(worker, "gatelift-agent") for worker in made.workers)]
    return [str(path) for path in paths]


# --- one Job -------------------------------------------------------------------------------------------------------


class Lifts:
    """What is taken while pods of one Job are let go."""

    def __init__(self, made: Fleet, chain: Chain) -> None:
        self._made, self._chain = made, chain
        self._before, self._since = made.usage(), time.monotonic()

    def taken(self) -> Run:
        """Return how fast those since then were let go, and what CPU one took. A bare loop's own is not in it."""
        times = sorted(each for each in self._chain.lifted.values() if each >= self._since)
        used = self._made.usage().since(self._before).seconds
        return Run(per_second=rate(times), cpu_ms=shares(used, len(times)))


async def one(made: Fleet, pods: int, found: Rounds) -> None:
    """Have one Job grow at a worker, and one like it by the bare loop; then both at home."""
    client = made.clients["mgmt"]
    async with following(made) as watcher:
        await made.start()
        documents = [resize_jobs.manifest(name, BEFORE) for name in ("ours", "bare")]
        await resize_jobs.create(client, documents)
        await watcher.all_of(("ours", "bare"), BEFORE)
        await quiet(watcher)
        lifts = Lifts(made, watcher.chains["ours"])
        await resize_jobs.resize(client, ["ours"], pods)
        await watcher.all_of(["ours"], pods)
        found.add_lifts("gatelift", "worker", lifts.taken())
        await made.stop()
        found.add_lifts("bare", "worker", await bare(made, watcher, pods, _kubeconfigs(made)[1]))
    await made.clean()
    await at_home(made, pods, found)


async def at_home(made: Fleet, pods: int, found: Rounds) -> None:
    """Have all pods of a Job at home wait, then be let go: by Gatelift once there is quota, and by the bare loop."""
    client, both = made.clients["mgmt"], ("ours", "bare")
    await applying.apply(client, yaml.safe_load_all(home_queue(2 * BEFORE)))
    async with following(made, home=True) as watcher:
        await made.start()
        await resize_jobs.create(client, [resize_jobs.manifest(name, BEFORE, queue=HOME) for name in both])
        await watcher.all_of(both, BEFORE)
        await quiet(watcher)
        await resize_jobs.resize(client, ["ours"], pods)
        await watcher.until(lambda: len(watcher.chains["ours"].pods) == pods)
        await quiet(watcher)
        lifts = Lifts(made, watcher.chains["ours"])
        await client.patch(ObjectRef(CLUSTER_QUEUE, ObjectKey("", HOME)), json.dumps(quota(AMPLE)).encode())
        await watcher.all_of(["ours"], pods)
        found.add_lifts("gatelift", "home", lifts.taken())
        await made.stop()
        await resize_jobs.resize(client, ["bare"], pods)
        await watcher.until(lambda: len(watcher.chains["bare"].pods) == pods)
        await quiet(watcher)
        found.add_lifts("bare", "home", await bare(made, watcher, pods, _kubeconfigs(made)[0]))
    await made.clean()


def quota(cpu: str) -> dict[str, Any]:
    """Return what gives the queue at home so much."""
    resources = [{"name": "cpu", "nominalQuota": cpu}]
    return {"spec": {"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [_flavor(resources)]}]}}


def _flavor(resources: list[dict[str, str]]) -> dict[str, Any]:
    return {"name": FLAVOR, "resources": resources}


def home_queue(pods: int) -> str:
    """Return manifests of the queue at home, with room for so many pods."""
    cpu = f"{pods * int(POD_CPU.removesuffix('m'))}m"
    spec = {"namespaceSelector": {}, **quota(cpu)["spec"]}
    head = {"apiVersion": CLUSTER_QUEUE.api_version, "kind": CLUSTER_QUEUE.kind, "metadata": {"name": HOME}}
    return f"{yaml.safe_dump({**head, 'spec': spec})}---\n{local_queue(HOME, NAMESPACE)}"


def rate(times: Sequence[float]) -> float:
    """Return how many were let go in a second, from the first of them to the last."""
    return (len(times) - 1) / (times[-1] - times[0])


async def bare(made: Fleet, watcher: Chains, pods: int, kubeconfig: str) -> Run:
    """Let the pods of the Job `bare` go by the bare loop."""
    command = [sys.executable, "-m", "bench.resize_lifts", kubeconfig, "bare", str(pods), str(IN_FLIGHT)]
    chain = watcher.chains["bare"]
    lifts = Lifts(made, chain)
    process = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(LIFTS_SECONDS_MAX):
            code = await process.wait()
    except TimeoutError:
        process.kill()
        raise
    if code:
        raise RuntimeError("bench.resize_lifts failed; its error is above")
    await watcher.until(lambda: sum(chain.pods.values()) >= pods)
    return lifts.taken()


# --- figures -------------------------------------------------------------------------------------------------------


async def measure(made: Fleet, jobs: int, pods: int, rounds: int) -> dict[str, Any]:
    """Alternate rounds of both sides and return medians."""
    found = Rounds()
    await many(made, jobs, rounds, found)
    for _ in range(rounds):
        await one(made, pods, found)
    return figures(found)


def figures(found: Rounds) -> dict[str, Any]:
    """Return what the rounds come to."""
    rates = {(side, way): found.median(side, way, lambda run: run.per_second) for side, way in found.runs}
    lifts = {key: statistics.median(one.per_second for one in each) for key, each in found.lifts.items()}
    cpu = {
        f"{side}_{way}_{part}_ms": round(found.median(side, way, lambda run, part=part: run.cpu_ms[part]), 3)  # type: ignore[misc]  # default binds
        for side, way in found.runs
        for part in _PARTS[side]
    }
    of_lift = {"home": "manager", "worker": "agent"}
    lift_ms = {
        f"{part}_{place}_lift_ms": round(
            statistics.median(one.cpu_ms[part] for one in found.lifts["gatelift", place]), 3
        )
        for place, part in of_lift.items()
    }
    return {
        **lift_ms,
        **{f"{side}_{way}_per_second": round(value, 1) for (side, way), value in rates.items()},
        **{f"{side}_{place}_lifts_per_second": round(value, 1) for (side, place), value in lifts.items()},
        **cpu,
        "ratio": round(rates["gatelift", "grow"] / rates["floor", "grow"], 3),
        "shrink_ratio": round(rates["gatelift", "shrink"] / rates["floor", "shrink"], 3),
        "lifts_ratio": round(lifts["gatelift", "worker"] / lifts["bare", "worker"], 3),
        "home_lifts_ratio": round(lifts["gatelift", "home"] / lifts["bare", "home"], 3),
    }


_PARTS: Mapping[str, Sequence[str]] = {"gatelift": ("manager", "agent", "machine"), "floor": ("floor", "machine")}
