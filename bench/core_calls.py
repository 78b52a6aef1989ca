"""What the two pure cores do for one placed pod: function calls, deterministic, and CPU, without any input or output.

`python -m bench.core_calls [--placements N] [--top N]`. A whole installation of the simulation (one manager, two
workers) on simulated time without faults: pods that run for half a second, ten a second, one at a time. Calls are
counted by the profiler inside `handle` and `next_deadline` of the machines, so that a change of 1 % shows; CPU is the
thread's time in the same calls without the profiler, in a run before.
"""

from __future__ import annotations

import argparse
import cProfile
import dataclasses
import functools
import json
import os
import platform
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gatelift.core import machine as manager
from gatelift_agent.core import machine as agent
from gatelift_kube.process import collector
from gatelift_kube.values.resources import WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS

TESTS = str(Path(__file__).parents[1] / "tests")
PLACEMENTS = 200
SEED = 3
CALM_SECONDS = 120.0
"""Simulated time before the first pod: everybody is connected and has said what there is to say."""
EVERY_SECONDS = 0.1
END_SECONDS = 60.0
ROUNDS = 3
MEASURE_SECONDS_MAX = 600.0
HASH_SEED = "0"
"""The order of sets of texts is part of what is counted."""


@dataclass(slots=True)
class Meter:
    """Counts what happens in one core while it is handed events."""

    profile: cProfile.Profile | None
    cpu_seconds: float = 0.0
    handed: int = 0

    def metered(self, function: Callable[..., Any], *, counted: bool) -> Callable[..., Any]:
        """Return the function, measured."""

        @functools.wraps(function)
        def measured(*args: Any, **kwargs: Any) -> Any:
            self.handed += counted
            if self.profile is not None:
                self.profile.enable()
            began = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                self.cpu_seconds += time.thread_time() - began
                if self.profile is not None:
                    self.profile.disable()

        return measured


def install(machine: type[Any], meter: Meter) -> None:
    """Measure all instances of a machine from now on; this process does nothing else."""
    collector.tune()  # as both daemons do: else it walks through the simulation's objects inside of the cores
    machine.handle = meter.metered(machine.handle, counted=True)
    machine.next_deadline = meter.metered(machine.next_deadline, counted=False)


def play(placements: int, meters: dict[str, Meter]) -> None:
    """Let so many pods go their way in the simulation. Raises RuntimeError where one does not finish."""
    sys.path.insert(0, TESTS)
    from support.sim.faults import Faults  # noqa: PLC0415  # the simulation is part of the tests
    from support.sim.world import Plan, SimWorld  # noqa: PLC0415

    world = SimWorld(SEED, Plan(faults=Faults(), break_every=0.0, workloads=0))
    for each in world.managers:
        core = each.machine.core
        core.settings = dataclasses.replace(core.settings, debug_invariants=False)  # checks are for tests
    world.pass_seconds(CALM_SECONDS)
    install(manager.Machine, meters["manager"])
    install(agent.AgentMachine, meters["agent"])
    for number in range(placements):
        create = functools.partial(world.make_pod, f"p{number}", "travels", "1m", {RUN_SECONDS: "0.5"})
        world.time.after(number * EVERY_SECONDS, create)
    world.pass_seconds(placements * EVERY_SECONDS + END_SECONDS)
    ended = [
        each
        for each in world.home.all(WORKLOAD)
        if any(one["type"] == "Finished" for one in each.get("status", {}).get("conditions", []))
    ]
    if len(ended) != placements:
        raise RuntimeError(f"{len(ended)} of {placements} pods have finished")


def measure(placements: int, *, calls: bool, top: int) -> dict[str, float]:
    """Play once in this process; return calls or CPU per placement of each core, and print the dearest functions."""
    meters = {name: Meter(cProfile.Profile() if calls else None) for name in ("manager", "agent")}
    play(placements, meters)
    found: dict[str, float] = {}
    for name, meter in meters.items():
        found[f"{name}_events"] = round(meter.handed / placements, 1)
        if meter.profile is None:
            found[f"{name}_cpu_ms"] = round(1000 * meter.cpu_seconds / placements, 2)
            continue
        stats: Any = pstats.Stats(meter.profile, stream=sys.stderr)  # its figures are not in its stub
        found[f"{name}_calls"] = round(stats.total_calls / placements)
        if top:
            stats.sort_stats("cumulative").print_stats(top)
    return found


def apart(placements: int, what: str, top: int) -> dict[str, float]:
    """Measure in a process of its own, whose sets have the same order each time."""
    command = [sys.executable, "-m", "bench.core_calls", "--measure", what]
    command += ["--placements", str(placements), "--top", str(top)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONHASHSEED": HASH_SEED},
        stdout=subprocess.PIPE,
        check=True,
        timeout=MEASURE_SECONDS_MAX,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--placements", type=int, default=PLACEMENTS)
    parser.add_argument("--top", type=int, default=0, help="print so many of the dearest functions of each core")
    parser.add_argument("--measure", choices=["calls", "cpu"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.placements, calls=given.measure == "calls", top=given.top)))
        return 0
    said = {"python": platform.python_version(), "placements": given.placements, "workers": 2, "seed": SEED}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    runs = [apart(given.placements, "cpu", 0) for _ in range(ROUNDS)]
    figures = apart(given.placements, "calls", given.top)
    for core in ("manager", "agent"):
        figures[f"{core}_cpu_ms"] = statistics.median(run[f"{core}_cpu_ms"] for run in runs)
        print(
            f"{core:8} {figures[f'{core}_calls']:6.0f} function calls, {figures[f'{core}_cpu_ms']:5.2f} ms,"
            f" {figures[f'{core}_events']:5.1f} events a placement"
        )
    print(json.dumps({"bench": "core_calls", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
