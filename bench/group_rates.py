"""How fast one group goes its way at a worker, and what it costs manager and agent (PF-1, PF-2). See `group_runs`.

Each round is run by Gatelift and by scripts on the same API servers in turn. How fast a group runs and ends is held
against `group_floor`, one script; what that costs against `group_pair`, two that tell each other what they see; one
that is made and let go, and that no scheduler takes, against `bare_loop`.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench import group_load
from bench.fleet import Fleet
from bench.group_pair import both, kubeconfigs
from bench.loader import Watcher, create, watching
from bench.processes import Usage, cpu_seconds
from bench.side_scripts import beside

IN_FLIGHT = 32
"""Writes that an agent has under way as it ships (`apiInFlight`): the bare loop's, too."""
WARM_UP = 16
BARE_SECONDS_MAX = 300.0
LIFTED = ("applied", "lifted")
"""The sights of what an agent does until a group runs: each pod made, each let go."""
SIDES = ("floor", "pair", "gatelift")
"""Whose turns a round has: one script, two, and Gatelift."""
GOALS = {
    "ratio": (0.8, "at least: whole groups, to the write floor"),
    "creates_ratio": (0.9, "at least: to the bare loop"),
    "lifts_ratio": (0.9, "at least: to the bare loop"),
    "manager_growth": (1.2, "at most: CPU a member, the largest group's to the smallest's"),
    "agent_growth": (1.2, "at most: the same of the agent"),
    "cpu_to_floor": (1.5, "at most: both together to the two scripts of the floor"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One group on its way. `cpu_ms`: of each process, per member."""

    per_second: float
    cpu_ms: Mapping[str, float]

    @property
    def ours(self) -> float:
        """Return what manager and agent used."""
        return self.cpu_ms["manager"] + self.cpu_ms["agent"]


@dataclass(slots=True)
class Rounds:
    """What was measured: runs by side and size; pods a second by side (`bare`, `gatelift`) and sight."""

    runs: dict[tuple[str, int], list[Run]] = field(default_factory=dict)
    rates: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, side: str, size: int, run: Run) -> None:
        """Keep a run, and say so."""
        self.runs.setdefault((side, size), []).append(run)
        shown = ", ".join(f"{name} {used:.2f}" for name, used in run.cpu_ms.items() if used)
        print(f"{side:9}{size:6} members {run.per_second:7.1f}/s   CPU ms a member: {shown}", flush=True)

    def add_rates(self, side: str, ways: Mapping[str, Any], group: str) -> None:
        """Keep how fast pods of a group were made, and let go."""
        found = {sight: group_load.per_second(ways, group, sight) for sight in LIFTED}
        for sight, rate in found.items():
            self.rates.setdefault((side, sight), []).append(rate)
        print(f"{side:9} {', '.join(f'{sight} {rate:.1f}/s' for sight, rate in found.items())}", flush=True)

    def rate(self, side: str, sight: str) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.rates[side, sight])

    def median(self, side: str, size: int, of: Callable[[Run], float]) -> float:
        """Return the median over the rounds of something of a run."""
        return statistics.median(of(run) for run in self.runs[side, size])


async def run_group(made: Fleet, watcher: Watcher, group: str, total: int, *, scripts: Sequence[int] = ()) -> Run:
    """Have a group go all its way, then have its user delete its pods. `scripts`: their pids, in Gatelift's place."""
    client = made.clients["mgmt"]
    documents = group_load.members(group, total)
    if scripts:
        documents = group_load.gated(documents)
    before, floor_before = made.usage(), sum(map(cpu_seconds, scripts))
    began = time.monotonic()
    await create(client, documents)
    await watcher.until(lambda: group_load.is_done(watcher, group, total))
    ended = max(max(way.seen.values()) for way in watcher.ways.values())
    used = dict(made.usage().since(before).seconds)
    if scripts:
        used["floor"] = sum(map(cpu_seconds, scripts)) - floor_before
    await _forget(made, watcher, group, total)
    return Run(per_second=total / (ended - began), cpu_ms=_shares(Usage(used), made, total))


def _shares(used: Usage, made: Fleet, total: int) -> dict[str, float]:
    of = {
        "manager": used.of("manager"),
        "agent": used.of(*(f"agent-{worker.name}" for worker in made.workers)),
        "floor": used.of("floor"),
        "webhooks": used.of("webhooks"),
        "machine": used.total,
    }
    return {name: 1000 * seconds / total for name, seconds in of.items()}


async def _forget(made: Fleet, watcher: Watcher, group: str, total: int) -> None:
    """Have all pods of a group deleted, and nothing be left of it."""
    await group_load.delete(made.clients["mgmt"], [group_load.member_name(group, number) for number in range(total)])
    await watcher.until(lambda: group_load.have(watcher, group, total, "gone"))
    await watcher.until(lambda: all("removed" in way.seen for way in watcher.ways.values() if "applied" in way.seen))
    watcher.forget()


async def gatelift_round(made: Fleet, sizes: Sequence[int], rounds: Rounds) -> None:
    """Start Gatelift; have it see groups of all sizes through, and let one go that nobody runs; stop it."""
    async with watching(made.clients) as watcher:
        await made.start()
        await _see_through(made, watcher, sizes, partial(rounds.add, "gatelift"))
        await create(made.clients["mgmt"], group_load.members("idle", sizes[-1], scheduled=False))
        await watcher.until(lambda: group_load.have(watcher, "idle", sizes[-1], *LIFTED))
        rounds.add_rates("gatelift", watcher.ways, "idle")
        await _forget(made, watcher, "idle", sizes[-1])
        await made.stop()
        await made.clean()


async def floor_round(made: Fleet, sizes: Sequence[int], rounds: Rounds) -> None:
    """Have the write floor see groups of all sizes through, and the bare loop make and let go one."""
    manager, agent = kubeconfigs(made)
    async with watching(made.clients) as watcher:
        async with beside("bench.group_floor", manager, agent, fail=watcher.fail) as pid:
            await _see_through(made, watcher, sizes, partial(rounds.add, "floor"), [pid])
        await _bare(agent, sizes[-1])
        await watcher.until(lambda: group_load.have(watcher, "bare", sizes[-1], *LIFTED))
        rounds.add_rates("bare", watcher.ways, "bare")
        await made.clean()


async def pair_round(made: Fleet, sizes: Sequence[int], rounds: Rounds) -> None:
    """Have the floor of two scripts see groups of all sizes through."""
    async with watching(made.clients) as watcher, both(made, watcher) as pids:
        await _see_through(made, watcher, sizes, partial(rounds.add, "pair"), pids)
        await made.clean()


async def _see_through(
    made: Fleet,
    watcher: Watcher,
    sizes: Sequence[int],
    add: Callable[[int, Run], None],
    scripts: Sequence[int] = (),
) -> None:
    await run_group(made, watcher, "warm", WARM_UP, scripts=scripts)
    for size in sizes:
        add(size, await run_group(made, watcher, f"g{size}", size, scripts=scripts))


async def _bare(kubeconfig: str, count: int) -> None:
    command = [sys.executable, "-m", "bench.bare_loop", kubeconfig, "bare", str(count), str(IN_FLIGHT)]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        async with asyncio.timeout(BARE_SECONDS_MAX):
            code = await process.wait()
    except TimeoutError:
        process.kill()
        raise
    if code:
        raise RuntimeError("bench.bare_loop failed; its error is above")


async def measure(made: Fleet, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """Alternate rounds of all sides and return medians. `sizes`: the smallest first."""
    found = Rounds()
    for _ in range(rounds):
        await floor_round(made, sizes, found)
        await pair_round(made, sizes, found)
        await gatelift_round(made, sizes, found)
    return figures(found, sizes)


def figures(found: Rounds, sizes: Sequence[int]) -> dict[str, Any]:
    """Return what the rounds come to; goals are those of the largest group."""
    by_size = {str(size): _of_size(found, size) for size in sizes}
    first, last = by_size[str(sizes[0])], by_size[str(sizes[-1])]
    rates = {f"{side}_{sight}_per_second": round(found.rate(side, sight), 1) for side, sight in found.rates}
    return {
        "sizes": by_size,
        **rates,
        "creates_ratio": round(found.rate("gatelift", "applied") / found.rate("bare", "applied"), 3),
        "lifts_ratio": round(found.rate("gatelift", "lifted") / found.rate("bare", "lifted"), 3),
        "ratio": last["ratio"],
        "manager_growth": round(last["manager_ms"] / first["manager_ms"], 2),
        "agent_growth": round(last["agent_ms"] / first["agent_ms"], 2),
        "cpu_to_floor": last["cpu_to_floor"],
    }


def _of_size(found: Rounds, size: int) -> dict[str, float]:
    rates = {side: found.median(side, size, lambda run: run.per_second) for side in SIDES}
    machine = {side: found.median(side, size, lambda run: run.cpu_ms["machine"]) for side in SIDES}
    script, pair = (found.median(side, size, lambda run: run.cpu_ms["floor"]) for side in ("floor", "pair"))
    ours = found.median("gatelift", size, lambda run: run.ours)
    return {
        "per_second": round(rates["gatelift"], 1),
        "floor_per_second": round(rates["floor"], 1),
        "pair_per_second": round(rates["pair"], 1),
        "ratio": round(rates["gatelift"] / rates["floor"], 3),
        "manager_ms": round(found.median("gatelift", size, lambda run: run.cpu_ms["manager"]), 3),
        "agent_ms": round(found.median("gatelift", size, lambda run: run.cpu_ms["agent"]), 3),
        "script_ms": round(script, 3),
        "pair_ms": round(pair, 3),
        "cpu_to_script": round(ours / script, 2),
        "cpu_to_floor": round(ours / pair, 2),
        "machine_cpu_ratio": round(machine["floor"] / machine["gatelift"], 3),
    }
