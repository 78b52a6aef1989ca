"""The benches of what strangers and workers spoil run, and their hostile side is not turned away for its mistakes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.bare_sessions import failed, prepare
from bench.costly_statuses import LIMIT_MS
from bench.hostile_answers import nonsense, words
from bench.hostile_worker import KEY, LOADS, messages
from bench.side_scripts import beside

from bench import strangers
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.values.messages import Frame
from support.until import until

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
    figures = run("strangers", "--seconds", "0.2", "--loads", "half_open,endless_headers")
    assert [figures[load]["honest_lost"] for load in ("half_open", "endless_headers")] == [0, 0]


@pytest.mark.parametrize("load", ["half_open", "endless_headers", "silent_calls"])
async def test_strangers_of_the_bench_are_answered_or_cut_again_and_again(tmp_path: Path, load: str) -> None:
    """A load that stands still measures nothing."""
    prepare(tmp_path)
    async with beside("bench.strangers", "--role", "server", "--folder", str(tmp_path), fail=failed):
        crowd = spawn(load, strangers.forever(tmp_path, load))
        await until(lambda: strangers.done(tmp_path, load) > 0)
        crowd.cancel()
        await asyncio.wait({crowd})


@pytest.mark.timeout(300)
def test_the_bench_of_isolation_has_a_hostile_worker_that_is_taken_seriously() -> None:
    figures = run("isolation", "--agents", "1", "--pods", "4", "--rounds", "1", "--loads", "finished")
    hostile = figures["finished"]["with"][0]["hostile"]
    assert hostile["frames"] > 0
    assert hostile["closed"] == 0, hostile["reasons"]


@pytest.mark.parametrize("load", LOADS)
def test_what_the_hostile_worker_sends_is_legal(load: str) -> None:
    """What is not is refused for its form, and costs nobody anything: the bench would measure that."""
    frame = Frame(session=1, sequence=1, messages=messages(load))
    assert codec.decode_from_agent(codec.encode_from_agent(frame)) == frame


@pytest.mark.parametrize("turn", range(11))
def test_what_it_answers_that_means_nothing_is_legal(turn: int) -> None:
    for said in (nonsense(KEY, turn), words(KEY)):
        frame = Frame(session=1, sequence=1, messages=tuple(said))
        assert codec.decode_from_agent(codec.encode_from_agent(frame)) == frame


@pytest.mark.timeout(300)
def test_is_10_no_legal_status_holds_the_core_or_the_interpreter_for_long() -> None:
    """Of CPU, so that neighbours do not count; five times what it is to be, for machines that are slower.

    The symptom: 32,768 fractions 400 ms in the core, as many numbers of 40 digits 40 ms in one call of the decoding.
    """
    for shape, figures in run("costly_statuses", "--rounds", "1").items():
        assert max(figures["handle_ms"], figures["call_ms"]) < 5 * LIMIT_MS, (shape, figures)
