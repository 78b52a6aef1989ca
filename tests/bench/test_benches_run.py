"""The benches of what strangers and workers spoil run, and their hostile side is not turned away for its mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 240.0


def run(name: str, *arguments: str) -> dict[str, Any]:
    """Run a bench; return the figures of its last line."""
    command = [sys.executable, "-m", f"bench.{name}", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)  # noqa: S603 (our own interpreter)
    assert done.returncode == 0, done.stderr[-4000:]
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["figures"]
    return figures


@pytest.mark.timeout(300)
def test_the_bench_of_strangers_has_honest_ones_that_get_in() -> None:
    figures = run("strangers", "--seconds", "0.2", "--loads", "half_open")
    assert figures["half_open"]["honest_lost"] == 0


@pytest.mark.timeout(300)
def test_the_bench_of_isolation_has_a_hostile_worker_that_is_taken_seriously() -> None:
    figures = run("isolation", "--agents", "1", "--pods", "4", "--rounds", "1", "--loads", "finished")
    hostile = figures["finished"]["with"][0]["hostile"]
    assert hostile["frames"] > 0
    assert hostile["closed"] == 0, hostile["reasons"]
