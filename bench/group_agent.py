"""What an agent's core does for one member of a group at a worker whose API server takes its time, by how many.

`python -m bench.group_agent [--members 50,200,1000]`. The agent's machine is the one of its tests, around which the
worker's API server is a dictionary; but each write lands `1 / WRITES_A_SECOND` after the one before it, and so does
each word of a kubelet, as on a real server: with each of these there may be a look at the group. One group is made, let
go, runs, is over, and is stopped and removed; another one is stopped while it runs. Function calls are counted by the
profiler inside of the machine, and are the same on each machine and at each load; CPU is the thread's time in a run
without it. PF-2 and PF-3, as far as an agent's core goes.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import heapq
import json
import os
import platform
import pstats
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gatelift_kube.process import collector
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m

TESTS = str(Path(__file__).parents[1] / "tests")
MEMBERS = (50, 200, 1000)
WRITES_A_SECOND = 400.0
"""What an API server of this machine takes of an agent and of kubelets."""
STARTS_SECONDS, RUNS_SECONDS, STOPS_SECONDS = 0.3, 1.0, 0.5
"""How long a kubelet takes with a pod."""
LOOKS_EVERY = 16
"""Writes between two looks of this bench at what it waits for."""
LIMIT_MS = 20.0
"""What one call may take at most (PF-3)."""
GOAL = 1.2
"""At most: what one member costs in the largest group, to the smallest (PF-2)."""
WITHIN_SECONDS = 600.0
MEASURE_SECONDS_MAX = 1800.0


@dataclass(slots=True)
class Meter:
    """Measures what is handed to a machine, by phase."""

    profile: cProfile.Profile | None = None
    phase: str = ""
    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    longest: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def metered(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, measured."""

        def measured(*args: Any) -> Any:
            if self.profile is not None:
                self.profile.enable()
            began = time.thread_time()
            try:
                return function(*args)
            finally:
                took = time.thread_time() - began
                if self.profile is not None:
                    self.profile.disable()
                self.cpu[self.phase] += took
                self.longest[self.phase] = max(took, self.longest[self.phase])

        return measured

    def begins(self, phase: str) -> None:
        """Take what follows as a phase, and count what was called in the one before."""
        if self.profile is not None:
            self.calls[self.phase] += called(self.profile) - sum(self.calls.values())
        self.phase = phase


def called(profile: cProfile.Profile) -> int:
    """Return how many functions were called."""
    return sum(each.callcount for each in profile.getstats())


class Way:
    """One group on its way at a worker. `runs_on`: until its manager stops it."""

    def __init__(self, members: int, meter: Meter, *, runs_on: bool = False) -> None:
        sys.path.insert(0, TESTS)
        from support.agent import group_stage, values  # noqa: PLC0415  # that stage is part of the tests

        self.stage: Any = group_stage.GroupStage()
        self._key = values.KEY
        self._names = [f"p{number:04}" for number in range(members)]
        self._runs_on = runs_on
        self._meter = meter
        self._kubelets: list[tuple[float, str, Callable[[str], None]]] = []
        self.stage.start()
        self.stage.hold = lambda write: write.ref.resource == POD
        for name in ("handle", "next_deadline"):
            setattr(self.stage.machine, name, meter.metered(getattr(self.stage.machine, name)))

    def goes(self) -> None:
        """Have it go all its way. RuntimeError: it stands still."""
        stage, total = self.stage, len(self._names)
        self._meter.begins("starts")
        stage.group(*self._names)
        self._until("all are let go", lambda: bool(stage.peer.of(m.GatesLifted)))
        wanted = "Running" if self._runs_on else "Succeeded"
        self._until(f"{wanted} is told of all", lambda: len(self._told(wanted)) == total)
        self._meter.begins("stops" if self._runs_on else "ends")
        stage.send(m.Stop(key=self._key, reason="Finished"))
        self._until("it is stopped", lambda: bool(stage.peer.of(m.Stopped)))
        stage.send(m.Forget(key=self._key, gone=True))
        self._until("nothing is left", lambda: not stage.there() and stage.placement() is None)
        self._meter.begins("")

    def _told(self, phase: str) -> set[str]:
        said = f'"phase":"{phase}"'.encode()
        return {each.name for each in self.stage.peer.of(m.ObjectReport) if said in each.status}

    def _until(self, what: str, met: Callable[[], bool]) -> None:
        end, turns = self.stage.now + WITHIN_SECONDS, 0
        while turns % LOOKS_EVERY or not met():
            turns += 1
            self.stage.pass_seconds(1 / WRITES_A_SECOND)
            self._write()
            if self.stage.now > end:
                raise RuntimeError(f"not within {WITHIN_SECONDS:g} s: {what}")

    def _write(self) -> None:
        """Let one write land: a kubelet's that is due, or the agent's."""
        stage = self.stage
        if self._kubelets and self._kubelets[0][0] <= stage.now:
            _, name, does = heapq.heappop(self._kubelets)
            does(name)
        elif stage.held:
            write = stage.held[0].command
            stage.land(count=1)
            self._kubelet_sees(write.ref.key.name)

    def _kubelet_sees(self, name: str) -> None:
        """Have the kubelet do what follows from a write of the agent."""
        pod = self.stage.document(POD, name)
        if pod is None or pod["spec"].get("schedulingGates"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            if pod["status"].get("phase") == "Running":
                self._then(name, STOPS_SECONDS, self.stage.finish)
        elif not pod["spec"].get("nodeName"):
            self._then(name, 0.0, self.stage.bind)
            self._then(name, STARTS_SECONDS, self._ready)
            if not self._runs_on:
                self._then(name, STARTS_SECONDS + RUNS_SECONDS, self.stage.finish)

    def _ready(self, name: str) -> None:
        ready = [{"type": each, "status": "True"} for each in ("PodScheduled", "Ready")]
        self.stage.change(POD, name, {"status": {"phase": "Running", "conditions": ready}}, "status")

    def _then(self, name: str, seconds: float, does: Callable[[str], None]) -> None:
        heapq.heappush(self._kubelets, (self.stage.now + seconds, name, does))


def measure(members: int, *, counted: bool, top: int = 0) -> dict[str, Any]:
    """Return what one group that ends by itself costs, and one that is stopped, in this process."""
    meter = Meter(cProfile.Profile() if counted else None)
    collector.tune()
    gc.disable()
    for runs_on in (False, True):
        Way(members, meter, runs_on=runs_on).goes()
        gc.collect()
    if meter.profile is not None and top:
        stats: Any = pstats.Stats(meter.profile, stream=sys.stderr)
        stats.sort_stats("tottime").print_stats(top)
        stats.sort_stats("cumulative").print_stats(top)
    phases = [name for name in meter.cpu if name]
    if counted:
        return {f"{name}_calls": round(meter.calls[name] / members) for name in phases}
    return {
        **{f"{name}_cpu_ms": round(1000 * meter.cpu[name] / members, 3) for name in phases},
        "longest_ms": round(1000 * max(meter.longest[name] for name in phases), 2),
    }


def apart(members: int, what: str, top: int) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "bench.group_agent", "--measure", what, "--members", str(members)]
    done = subprocess.run(
        [*command, "--top", str(top)],
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
    parser.add_argument("--top", type=int, default=0, help="print so many of the dearest functions")
    parser.add_argument("--measure", choices=["calls", "cpu"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = [int(each) for each in given.members.split(",")]
    if given.measure:
        print(json.dumps(measure(sizes[0], counted=given.measure == "calls", top=given.top)))
        return 0
    said = {"python": platform.python_version(), "members": sizes, "writes_a_second": WRITES_A_SECOND}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures = {size: {**apart(size, "calls", given.top), **apart(size, "cpu", 0)} for size in sizes}
    for size, row in figures.items():
        print(f"{size:5} members: " + ", ".join(f"{name} {value}" for name, value in row.items()))
    first, last = figures[sizes[0]], figures[sizes[-1]]
    growth = {name: round(last[name] / first[name], 2) for name in first if name != "longest_ms"}
    print(f"growth {growth} (goal {GOAL}), the longest call {last['longest_ms']} ms of {LIMIT_MS:g}")
    print(json.dumps({"bench": "group_agent", "conditions": said, "figures": {**figures, "growth": growth}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
