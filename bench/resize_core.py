"""What an agent's core does for one pod that an elastic Job grows by, by how many these are. See `resize`.

The agent's machine is the one of its tests, around which the worker's API server is a dictionary. Its Job grows from a
few pods to many; the Job controller makes one after the other, and each write lands `1 / WRITES_A_SECOND` after the one
before it. Function calls are counted by the profiler inside of the machine: they are the same on each machine and at
each load.
"""

from __future__ import annotations

import cProfile
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bench.group_agent import MEASURE_SECONDS_MAX, TESTS, WRITES_A_SECOND, Meter, called

BEFORE = 10
PODS = (100, 1000)
GOAL = 1.2
"""At most: what one pod costs in the largest growth, to the smallest."""


def calls(pods: int) -> dict[str, float]:
    """Return the function calls for each pod that is let go, in this process."""
    sys.path.insert(0, TESTS)
    from support.agent import size_stage  # noqa: PLC0415  # that stage is part of the tests

    stage: Any = size_stage.SizeStage()
    stage.begin(BEFORE)
    stage.hold_ungates()
    meter = Meter(cProfile.Profile())
    for name in ("handle", "next_deadline"):
        setattr(stage.machine, name, meter.metered(getattr(stage.machine, name)))
    stage.resize(2, main=pods)
    for number in range(2 * pods):
        if number < pods - BEFORE:
            stage.make_of("main")
        if stage.held:
            stage.land(count=1)
        stage.settle()
        stage.pass_seconds(1 / WRITES_A_SECOND)
    if len(stage.lifted()) != pods or stage.answers[-1] != 2:
        raise RuntimeError(f"only {len(stage.lifted())} of {pods} were let go")
    if meter.profile is None:
        raise RuntimeError("nothing was counted")
    return {"calls_a_pod": round(called(meter.profile) / (pods - BEFORE))}


def measure(sizes: Sequence[int] = PODS) -> dict[str, Any]:
    """Return both, each measured in a process of its own, and the ratio."""
    found = {pods: _apart(pods)["calls_a_pod"] for pods in sizes}
    return {"calls_a_pod": found, "growth": round(found[sizes[-1]] / found[sizes[0]], 2)}


def _apart(pods: int) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.resize_core", str(pods)]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=MEASURE_SECONDS_MAX)
    found: dict[str, float] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(calls(int(sys.argv[1]))))
