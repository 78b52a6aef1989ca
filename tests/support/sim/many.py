"""Many simulated installations, seed after seed on all cores: `make simulate`, or `python -m support.sim.many`.

Prints as it goes how many have been lived through and how often each thing was done to them, a line for each seed that
breaks a promise, and at the end the table. Ends with 1 when there was one. Counted is what came true: an attack that
found nothing to be done to is none. Seeds from `world.GROUPS_FROM` on have pod groups.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.sim.attacks import ATTACKS, DRAWN
from support.sim.world import LONG, SimWorld

LONG_EVERY = 10
"""One history in so many is a long one."""
TOLD_EVERY_SECONDS = 30.0
CHUNK = 5
COLLECTED_EVERY = 50_000
"""Allocations between two looks for garbage: histories are short, and most of what they make is freed at once."""


@dataclass
class Lived:
    """What became of some seeds."""

    histories: int = 0
    last: int = 0
    """Highest seed."""
    runs: int = 0
    checks: int = 0
    steps: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """How often each thing was done."""
    within: Counter[str] = field(default_factory=Counter)
    """In how many histories it was done."""
    failed: dict[int, str] = field(default_factory=dict)

    def add(self, other: Lived) -> None:
        """Take in what became of other seeds."""
        self.histories += other.histories
        self.last = max(self.last, other.last)
        self.runs += other.runs
        self.checks += other.checks
        self.steps += other.steps
        self.counts += other.counts
        self.within += other.within
        self.failed |= other.failed


def live(seed: int) -> Lived:
    """Live through one seed."""
    lived = Lived(histories=1, last=seed)
    world = SimWorld(seed, LONG if seed % LONG_EVERY == LONG_EVERY - 1 else None)
    try:
        world.run()
    except Exception as problem:  # noqa: BLE001 (each seed is judged, all are told)
        lived.failed[seed] = f"{type(problem).__name__} at {world.time.now:.1f} s with {world.attacks}: {problem}"
    lived.runs, lived.steps = len(world.truth.runs), world.time.steps
    lived.checks = world.truth.checks + world.account.checks + world.members.checks
    lived.counts, lived.within = Counter(world.counts), Counter(world.counts.keys())
    return lived


def begin() -> None:
    """Make a process ready, once: what is frozen later is the garbage of histories, and is kept for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's
    gc.freeze()
    gc.set_threshold(COLLECTED_EVERY)


def live_some(seeds: range) -> Lived:
    """Live through some seeds, in a process of their own."""
    lived = Lived()
    for seed in seeds:
        lived.add(live(seed))
    return lived


def all_of(seeds: range, processes: int) -> Iterator[Lived]:
    """Live through seeds on several processes; yield what became of them as they end."""
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    with multiprocessing.get_context("spawn").Pool(processes, initializer=begin) as pool:
        yield from pool.imap_unordered(live_some, chunks)


def table(lived: Lived, first: int, seconds: float) -> str:
    """Return what a person reads at the end."""
    lines = [
        f"{lived.histories} histories, seeds {first} to {lived.last}, in {seconds:.0f} s",
        f"{len(lived.failed)} violations, {lived.runs} runs, {lived.checks} checks of them, {lived.steps} steps",
        f"{'done to them':<34}{'times':>10}{'histories':>11}",
    ]
    names = sorted({*lived.counts, *DRAWN})
    lines += [f"{name:<34}{lived.counts[name]:>10}{lived.within[name]:>11}" for name in names]
    lines += [f"not drawn: {name}: {each.off}" for name, each in ATTACKS.items() if each.off]
    return "\n".join(lines)


def main() -> int:
    """Run what the command line asks for; return 1 when a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--histories", type=int, default=1000, help="how many seeds")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    parser.add_argument("--seconds", type=float, default=0.0, help="stop after so long (0: when all are done)")
    asked = parser.parse_args()
    began = told = time.monotonic()
    lived, seeds = Lived(), range(asked.first, asked.first + asked.histories)
    for some in all_of(seeds, asked.processes):
        lived.add(some)
        for seed, text in some.failed.items():
            sys.stdout.write(f"seed {seed}: {text}\n")
        now = time.monotonic()
        if now - told > TOLD_EVERY_SECONDS:
            told = now
            progress = {"histories": lived.histories, "seconds": round(now - began), "failed": sorted(lived.failed)}
            sys.stdout.write(json.dumps({**progress, "counts": dict(sorted(lived.counts.items()))}) + "\n")
        sys.stdout.flush()
        if asked.seconds and now - began > asked.seconds:
            break
    sys.stdout.write(table(lived, asked.first, time.monotonic() - began) + "\n")
    return 1 if lived.failed else 0


if __name__ == "__main__":
    sys.exit(main())
