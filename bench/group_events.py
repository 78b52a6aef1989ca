"""What an event of one pod costs the manager's core, with few groups beside it and with many (PF-4). See `group_runs`.

`python -m bench.group_events PODS` measures with so many. The manager's machine is the one of its tests, around which
the management API is a dictionary, and groups of 100 run at a worker; then one more comes, runs and succeeds. Lines
are those of Python that are executed in the core: they are the same on each machine and at each load.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gatelift.core.rules import invariants
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared import markers
from gatelift_kube.process import collector
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import ObjectReport

TESTS = str(Path(__file__).parents[1] / "tests")
MEMBERS = 100
FEW, MANY = 1_000, 50_000
GOAL = 1.2
MEASURE_SECONDS_MAX = 7200.0
STEPS_MAX = 10_000_000
PHASES = ("Running", "Succeeded")
"""What a worker says of each pod; with its creation these are the events of its life."""
TIMED = 3
"""Groups of which the CPU is taken; of one more the lines, since counting these takes most of the time."""


class Crowd:
    """A manager with groups that run at worker `a`."""

    def __init__(self) -> None:
        sys.path.insert(0, TESTS)
        from support.manager import builders, group_world, world  # noqa: PLC0415  # that world is part of the tests

        vars(invariants)["check"] = lambda *_: None  # what tests check after each event goes through everything
        vars(world)["queue_is_wrong"] = lambda *_: ()
        vars(world)["STEPS_MAX"] = STEPS_MAX
        self._member = group_world.a_member
        setting = builders.a_setting(cpu=10 * MANY, clusters=("a",))
        self.world: Any = world.a_world(setting, clusters=(), kinds=WITH_GROUPS)
        self.agent: Any = self.world.connect("a", version=VERSION_OF_CHANGE)
        self.world.advance(3.0)

    def comes(self, group: str) -> dict[str, str]:
        """Have the pods of a group be made, and be placed; return their UIDs by name."""
        labels, uids = {markers.POD_GROUP_NAME: group}, {}
        for number in range(MEMBERS):
            name = f"{group}-{number:03}"
            made = self.world.api.apply(self._member(name, total=MEMBERS, cpu="1m", labels=labels))
            uids[name] = made["metadata"]["uid"]
        before = len(self.agent.commits)
        self.world.advance(1.0)
        if len(self.agent.commits) != before + 1:
            raise RuntimeError(f"group {group} was not placed")
        for kept in (self.world.history, self.world.api.writes, self.world.links.log, self.world.notes):
            kept.clear()
        return uids

    def lives(self, group: str) -> None:
        """Have a group come, run and succeed."""
        uids, key = self.comes(group), self.agent.commits[-1]
        for phase in PHASES:
            body = json.dumps({"phase": phase}).encode()
            for name, uid in uids.items():
                self.agent.say(
                    ObjectReport(key=key, kind="PodGroup", name=name, uid=f"w-{uid}", status=body, owner_uid=uid)
                )
            self.world.advance(1.0)


class Clock:
    """Takes the thread's time inside of a machine."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self.seconds = 0.0
        self.handle, self.next_deadline = self._timed(machine.handle), self._timed(machine.next_deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*args)
            finally:
                self.seconds += time.thread_time() - began

        return timed


def with_pods(pods: int) -> dict[str, float]:
    """Return what an event costs where so many pods are there in groups that run."""
    crowd = Crowd()
    collector.tune()
    gc.disable()
    for number in range(pods // MEMBERS):
        crowd.comes(f"there-{number:04}")
    gc.collect()
    machine, events = crowd.world.machine, MEMBERS * (1 + len(PHASES))
    crowd.lives("warm")
    clock = crowd.world.machine = Clock(machine)
    for number in range(TIMED):
        crowd.lives(f"timed-{number}")
    from support.touched import Counted, Touched  # noqa: PLC0415  # part of the tests

    touched = Touched()
    crowd.world.machine = Counted(machine, touched)
    crowd.lives("counted")
    return {
        "cpu_ms_per_event": round(1000 * clock.seconds / events / TIMED, 4),
        "lines_per_event": round(touched.taken() / events, 1),
    }


def measure(few: int = FEW, many: int = MANY) -> dict[str, Any]:
    """Return both, each measured in a process of its own, and the ratios."""
    found = {pods: _apart(pods) for pods in (few, many)}
    growth = {f"{name}_growth": round(found[many][name] / found[few][name], 3) for name in found[few]}
    return {**{str(pods): each for pods, each in found.items()}, **growth}


def _apart(pods: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.group_events", str(pods)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=MEASURE_SECONDS_MAX)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(with_pods(int(sys.argv[1]))))
