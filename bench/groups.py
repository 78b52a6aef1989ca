"""What the two pure cores do for a group of pods: CPU per member, and the longest single call, by how many there are.

`python -m bench.groups [--members 50,200,1000]`. A whole installation of the simulation (one manager and its agent of
`local`) on simulated time without faults, with the kinds that serve groups: a group is created, let go as one, runs and
ends; another one is deleted by its user while it runs. CPU is the thread's time inside of `handle` and `next_deadline`,
so what API servers cost is no part of it. PF-2 and PF-3, as far as the cores go.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gatelift.core import machine as manager
from gatelift_agent.core import machine as agent
from gatelift_kube.process import collector
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS

TESTS = str(Path(__file__).parents[1] / "tests")
MEMBERS = (50, 200, 1000)
SEED = 3
CALM_SECONDS = 120.0
RUNS_SECONDS = 120.0
WITHIN_SECONDS = 900.0
"""Simulated; a group that takes longer stands still."""
CREATES_A_SECOND = 50.0
LIMIT_MS = 20.0
"""What one call may take at most (PF-3)."""
MEASURE_SECONDS_MAX = 1800.0
GROUP = "crew"
K = "kueue.x-k8s.io/"


@dataclass(slots=True)
class Meter:
    """Takes the time of each call of one core, by phase and by what it was handed."""

    phase: str = ""
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    longest: dict[tuple[str, str], float] = field(default_factory=dict)

    def metered(self, function: Callable[..., Any], *, handles: bool) -> Callable[..., Any]:
        """Return the function, measured."""

        @functools.wraps(function)
        def measured(machine: Any, *args: Any) -> Any:
            began = time.thread_time()
            try:
                return function(machine, *args)
            finally:
                took = time.thread_time() - began
                self.cpu[self.phase] += took
                if handles:
                    self.calls[self.phase] += 1
                    key = self.phase, type(args[0]).__name__
                    self.longest[key] = max(took, self.longest.get(key, 0.0))

        return measured


@dataclass
class Play:
    """One installation and what is done in it."""

    world: Any
    meters: dict[str, Meter]

    def begins(self, phase: str) -> None:
        """Take the times that follow as those of a phase."""
        for meter in self.meters.values():
            meter.phase = phase

    def create(self, group: str, members: int, seconds: float) -> None:
        """Have a user create all pods of a group, so many a second."""
        for number in range(members):
            make = functools.partial(self._pod, group, f"{group}-{number:04}", members, seconds)
            self.world.time.after(number / CREATES_A_SECOND, make)

    def delete(self, group: str) -> None:
        """Have a user delete all pods of a group at once."""
        for each in self.world.home.all(POD):
            meta = each["metadata"]
            if meta["labels"].get(f"{K}pod-group-name") == group:
                self.world.home.delete(POD, meta["name"])

    def until(self, what: str, met: Callable[[], bool]) -> None:
        """Let simulated time pass. RuntimeError: it does not come."""
        if not (met() or self.world.pass_seconds(WITHIN_SECONDS, met)):
            raise RuntimeError(f"not within {WITHIN_SECONDS:g} s: {what}")

    def running(self) -> int:
        """Return how many pods run."""
        return sum(each.get("status", {}).get("phase") == "Running" for each in self.world.home.all(POD))

    def finished(self, group: str) -> bool:
        """Say whether a group's Workload is finished."""
        found = self.world.home.look(WORKLOAD, group, "team")
        said = (found or {}).get("status", {}).get("conditions", [])
        return any(one["type"] == "Finished" for one in said)

    def _pod(self, group: str, name: str, total: int, seconds: float) -> None:
        from support.manager.group_world import a_member  # noqa: PLC0415  # the simulation is part of the tests

        document = a_member(name, total=total, cpu="1m")
        meta = document["metadata"]
        meta["namespace"] = "team"
        meta["labels"] |= {f"{K}queue-name": "stays", f"{K}pod-group-name": group}
        meta["annotations"] |= {RUN_SECONDS: f"{seconds:g}"} if seconds else {}
        del document["status"], meta["creationTimestamp"]
        self.world.home.create(POD, document)


def begun() -> Play:
    """Return an installation that serves groups, and whose cores are measured from now on."""
    sys.path.insert(0, TESTS)
    from support.sim import cluster as sim_cluster  # noqa: PLC0415  # the simulation is part of the tests
    from support.sim.faults import Faults  # noqa: PLC0415
    from support.sim.world import Plan, SimWorld  # noqa: PLC0415

    room, part = {"cpu": "64", "memory": "64Gi", "pods": "10000"}, vars(sim_cluster)
    part["NodeSettings"] = functools.partial(_roomy, part["NodeSettings"], room)
    world: Any = SimWorld(SEED, Plan(faults=Faults(), break_every=0.0, workloads=0))
    for part in (world.truth, world.account):  # what tests check after each write goes through all pods
        for name in ("_check", "check_quota", "_settle", "compare"):
            if hasattr(part, name):
                setattr(part, name, lambda *_, **__: None)
    for each in world.managers:
        core = each.machine.core
        core.settings = replace(core.settings, debug_invariants=False)
    world.pass_seconds(CALM_SECONDS)
    meters = {"manager": Meter(), "agent": Meter()}
    collector.tune()
    gc.disable()  # a process of its own has no API servers and kubelets to go through
    for name, machine in (("manager", manager.Machine), ("agent", agent.AgentMachine)):
        for method, handles in (("handle", True), ("next_deadline", False)):
            setattr(machine, method, meters[name].metered(getattr(machine, method), handles=handles))
    return Play(world, meters)


def _roomy(settings: Callable[..., Any], room: dict[str, str], *, name: str, **_: Any) -> Any:
    """Return the settings of a node that takes all pods of a group."""
    return settings(name=name, capacity=room)


def one_group(members: int) -> dict[str, Any]:
    """Return what one group costs: created, let go, run, ended; and one that is deleted while it runs."""
    play = begun()
    play.begins("create")
    play.create(GROUP, members, RUNS_SECONDS + members / CREATES_A_SECOND)
    play.until("all members run", lambda: play.running() == members)
    play.begins("end")
    play.until("the group has finished", lambda: play.finished(GROUP))
    play.until("its finalizers are gone", lambda: not any(map(_held, play.world.home.all(POD))))
    play.begins("created again")
    play.create("again", members, 0.0)
    play.until("all members run", lambda: play.running() == members)
    play.begins("stop")
    play.delete("again")
    play.until("nothing is left of it", lambda: play.running() == 0)
    play.world.pass_seconds(30.0)
    return {name: _figures(meter, members) for name, meter in play.meters.items()}


def _held(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"].get("finalizers"))


def _figures(meter: Meter, members: int) -> dict[str, Any]:
    lived = meter.cpu["create"] + meter.cpu["end"]
    worst = sorted(meter.longest.items(), key=lambda each: -each[1])[:8]
    return {
        "cpu_ms_per_member": round(1000 * lived / members, 3),
        "stop_ms_per_member": round(1000 * meter.cpu["stop"] / members, 3),
        "calls_per_member": round((meter.calls["create"] + meter.calls["end"]) / members, 1),
        "longest_ms": round(1000 * max(meter.longest.values()), 2),
        "longest": {f"{phase}: {event}": round(1000 * took, 2) for (phase, event), took in worst},
    }


def apart(members: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "bench.groups", "--measure", str(members)]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=MEASURE_SECONDS_MAX,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", default=",".join(map(str, MEMBERS)), help="sizes of groups, smallest first")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(one_group(given.measure)))
        return 0
    sizes = [int(each) for each in given.members.split(",")]
    said = {"python": platform.python_version(), "members": sizes, "seed": SEED, "load_before": os.getloadavg()[0]}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures: dict[str, Any] = {str(size): apart(size) for size in sizes}
    for size in sizes:
        for name, found in figures[str(size)].items():
            print(
                f"{size:5} members, {name:8} {found['cpu_ms_per_member']:7.3f} ms a member,"
                f" {found['stop_ms_per_member']:7.3f} ms to stop it, longest call {found['longest_ms']:7.2f} ms"
            )
    first, last = figures[str(sizes[0])], figures[str(sizes[-1])]
    growth = {name: round(last[name]["cpu_ms_per_member"] / first[name]["cpu_ms_per_member"], 2) for name in first}
    longest = max(found["longest_ms"] for found in last.values())
    print(f"growth {growth}, the longest call {longest} ms of {LIMIT_MS:g}")
    print(json.dumps({"bench": "groups", "conditions": said, "figures": {**figures, "growth": growth}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
