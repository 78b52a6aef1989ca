"""Hostile values through both cores, on all processors: `make simulate`, or `python -m support.fuzz.many`.

Each seed lives 100 cases through the manager's core and 100 through an agent's, beside the same history without them.
Prints what was set aside, by where it raised; ends with 1 when anything left `handle`, or touched the honest.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from support.fuzz import agent, manager

CASES = 100
"""Of one seed and core; a manager and an agent are started anew behind them."""
CORES = {"manager": manager.live, "agent": agent.live}
TREE = Path(__file__).parents[3]
SOURCES = ("manager", "worker_agent", "kinds", "kube", "protos", "admission")
KEY = re.compile(r'"((?:gatelift\.dev|[a-z-]*\.?kueue\.x-k8s\.io)/[a-z0-9-]+)"')
NO_MARKS = frozenset({"kueue.x-k8s.io/v1beta2", "kueue.x-k8s.io/v1beta1", "gatelift.dev/v1alpha1"})
TOLD_EVERY_SECONDS = 30.0


@dataclass
class Sum:
    """What became of many seeds."""

    cases: int = 0
    refused: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


def marks() -> tuple[str, ...]:
    """Return every label and annotation key that the sources name; a new one is tried as soon as it is there."""
    files = itertools.chain.from_iterable((TREE / each).rglob("*.py") for each in SOURCES)
    return tuple(sorted({key for file in files for key in KEY.findall(file.read_text())} - NO_MARKS))


def lived(core: str, seed: int, cases: int = CASES) -> Sum:
    """Live through one seed on one core, with its cases and without; compare what the honest have in the end."""
    found, keys = Sum(), marks()
    try:
        with_them = CORES[core](seed, cases, keys)
        without = CORES[core](seed, cases, keys, hostile=False)
    except Exception as error:  # noqa: BLE001 - whatever it was, this seed is told, and the others go on
        found.failed.append(f"{core} {seed}: {type(error).__name__}: {error}"[:3000])
        return found
    found.cases, found.refused, found.aside = with_them.cases, with_them.refused, with_them.aside
    if without.aside:
        found.failed.append(f"{core} {seed}: valid input was set aside: {without.aside}")
    if not without.books or with_them.books != without.books:
        found.failed.append(f"{core} {seed}: the honest have {with_them.books}, without the cases {without.books}")
    return found


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _one(job: tuple[str, int]) -> Sum:
    return lived(*job)


def main() -> int:
    """Live through as many cases as asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--cases", type=int, default=200_000, help="how many cases, of both cores")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="how many at once")
    told = parser.parse_args()
    seeds = -(-told.cases // (CASES * len(CORES)))
    jobs = [(core, told.first + seed) for seed in range(seeds) for core in CORES]
    total, began, said_at = Sum(), time.monotonic(), time.monotonic()
    with multiprocessing.Pool(told.processes) as pool:
        for one in pool.imap_unordered(_one, jobs, chunksize=4):
            total.cases += one.cases
            total.refused += one.refused
            total.aside += one.aside
            total.failed += one.failed
            for text in one.failed:
                say(text)
            if time.monotonic() - said_at > TOLD_EVERY_SECONDS:
                said_at = time.monotonic()
                say(f"{total.cases} cases, {sum(total.aside.values())} times set aside")
    for where, count in total.aside.most_common():
        say(f"set aside {count} times:\n{where}")
    seconds = time.monotonic() - began
    say(f"{total.cases} cases ({total.refused} refused before a core) in {seconds:.0f} s, {len(total.failed)} failed")
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
