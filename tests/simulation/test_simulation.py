"""Runs of whole simulated installations: whatever breaks, nothing runs twice, and everything comes to its end.

A failure prints its seed. `GATELIFT_SEED=296 python -m pytest tests/simulation -k one_seed` lives through that run
again and prints its trace; `make simulate GATELIFT_RUNS=2000` runs many more seeds than `make test` does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.sim.faults import Faults
from support.sim.world import LONG, Plan, SimWorld

SEEDS = 60
"""Runs of `make test`: some fifteen seconds of CPU; `make simulate` is for the others."""
BATCH = 20
TRACE_LINES = 200
GENTLE = Plan(faults=Faults(), break_every=0.0)
SEED = os.environ.get("GATELIFT_SEED", "")

_PRINT_DIGEST = """
import sys
from support.sim.world import SimWorld
print(SimWorld(int(sys.argv[1])).run().time.digest)
"""


def live_through(seed: int, plan: Plan | None = None) -> SimWorld:
    """Run a seed; a broken promise is told with the seed and the last lines of the trace."""
    world = SimWorld(seed, plan)
    try:
        return world.run()
    except Exception as problem:
        trace = "\n".join(list(world.time.trace)[-TRACE_LINES:])
        where = f"seed {seed} at {world.time.now:.3f} s ({world.faults})"
        raise AssertionError(f"{where}: {type(problem).__name__}: {problem}\n{trace}") from problem


@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_whatever_breaks_nothing_runs_twice_and_all_comes_to_its_end(first: int) -> None:
    ran = sum(len(live_through(seed).truth.runs) for seed in range(first, first + BATCH))
    assert ran > BATCH, "a world that starts nothing proves nothing; in a single one users may delete all in time"


@pytest.mark.parametrize("seed", range(5))
def test_without_faults_every_workload_runs_or_waits_for_quota(seed: int) -> None:
    world = live_through(seed, GENTLE)
    assert world.truth.runs


@pytest.mark.parametrize("seed", range(2))
def test_a_long_trouble_ends_well(seed: int) -> None:
    live_through(seed, LONG)


def test_one_seed_is_one_run() -> None:
    first, second = live_through(7), live_through(7)
    assert first.time.digest == second.time.digest
    assert first.time.steps == second.time.steps > 1000
    assert live_through(8).time.digest != first.time.digest


def test_one_seed_is_one_run_in_another_process_too() -> None:
    tests = Path(__file__).parent.parent
    digests = {
        subprocess.run(  # noqa: S603 (our own interpreter and program)
            [sys.executable, "-c", _PRINT_DIGEST, "7"],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": f"{tests}:{os.environ.get('PYTHONPATH', '')}",
            },
            capture_output=True,
            text=True,
            timeout=110,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert digests == {live_through(7).time.digest + "\n"}


def test_one_seed() -> None:
    """Replay `GATELIFT_SEED` (default: 0), the trace on standard output."""
    world = SimWorld(int(SEED or 0))
    try:
        world.run()
    finally:
        sys.stdout.write("\n".join(world.time.trace) + "\n" if SEED else "")
