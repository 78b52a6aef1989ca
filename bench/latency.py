"""How long the steps of one pod's way take with nothing else to do: p50 and p99 in milliseconds.

`python -m bench.latency [--samples N]`. Real control planes, Gatelift as processes, one pod at a time. All times are
arrivals of watch events in this one process, on the monotonic clock: a step is from the event that shows its cause to
the event that shows its effect, so it holds one watch delay more or less, and the API servers' own time for the writes
between. Quota shows that it is released only by what it is used for: a queue with room for one pod, the next one
waiting. `finished_to_next_reserved` is therefore an upper bound: it holds the next one's offer, bid and status write.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import uvloop

from bench.fleet import NARROW, conditions, fleet
from bench.loader import Watcher, Way, create, manifest, watching

SAMPLES = 60
WARM_UP = 10
RUN_SECONDS = 0.2
PAUSE_SECONDS = 0.1
"""Between two pods, so that the clean-up of one is not part of the next."""
STEP_SECONDS_MAX = 60.0

STEPS: tuple[tuple[str, str, str], ...] = (
    ("created_to_workload", "created", "workload"),
    ("created_to_admitted", "created", "admitted"),
    ("created_to_lifted", "created", "lifted"),
    ("admitted_to_lifted", "admitted", "lifted"),
    ("over_to_mirrored", "over", "mirrored"),
    ("over_to_finished", "over", "finished"),
    ("over_to_cleaned_up", "over", "removed"),
)
"""Name, cause, effect; both as `loader.Way` names them. `over` is the worker's pod in its terminal phase."""

GOALS = {"admitted_to_lifted": (50.0, 250.0), "finished_to_next_reserved": (100.0, None)}
"""p50 and p99 wanted, in ms."""


def steps(ways: Iterable[Way]) -> dict[str, list[float]]:
    """Return the milliseconds of each step, in every way; a watch that was faster than another one gives 0."""
    found: dict[str, list[float]] = {name: [] for name, _, _ in STEPS}
    for way in ways:
        for name, cause, effect in STEPS:
            found[name].append(max(0.0, 1000 * (way.seen[effect] - way.seen[cause])))
    return found


def releases(ways: Iterable[Way]) -> list[float]:
    """Return the milliseconds from each pod's end to the next one's reservation, in a queue with room for one."""
    ordered = sorted(ways, key=lambda way: way.seen["reserved"])
    return [max(0.0, 1000 * (after.seen["reserved"] - before.seen["over"])) for before, after in pairwise(ordered)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of all does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return p50, p99 and the worst."""
    return {
        "p50": round(statistics.median(values), 1),
        "p99": round(percentile(values, 0.99), 1),
        "max": round(max(values), 1),
    }


async def one_by_one(watcher: Watcher, client: Any, count: int, name: str) -> list[Way]:
    """Send pods on their way, each when the one before has gone all of it."""
    watcher.forget()
    for number in range(count):
        pod = f"{name}{number:03}"
        await create(client, [manifest(pod, run_seconds=RUN_SECONDS)], in_flight=1)
        await watcher.until(lambda pod=pod: _done(watcher, pod), STEP_SECONDS_MAX)  # type: ignore[misc]  # default binds
        await asyncio.sleep(PAUSE_SECONDS)
    return [way for pod, way in watcher.ways.items() if pod.startswith(name)]


def _done(watcher: Watcher, pod: str) -> bool:
    return pod in watcher.ways and watcher.ways[pod].done


async def in_line(watcher: Watcher, client: Any, count: int) -> list[Way]:
    """Let pods wait in line for a queue with room for one of them."""
    watcher.forget()
    documents = [manifest(f"line{number:03}", queue=NARROW, run_seconds=RUN_SECONDS) for number in range(count)]
    await create(client, documents, in_flight=1)
    await watcher.until(lambda: all(_done(watcher, f"line{number:03}") for number in range(count)))
    return [way for pod, way in watcher.ways.items() if pod.startswith("line")]


async def measure(samples: int) -> dict[str, dict[str, float]]:
    """Return the summary of each step."""
    async with fleet() as made, watching(made.clients) as watcher:
        await made.start()
        client = made.clients["mgmt"]
        await one_by_one(watcher, client, WARM_UP, "warm")
        print(f"one at a time: {samples} pods")
        found = {
            name: summary(values) for name, values in steps(await one_by_one(watcher, client, samples, "p")).items()
        }
        print(f"in line: {samples + 1} pods")
        found["finished_to_next_reserved"] = summary(releases(await in_line(watcher, client, samples + 1)))
    return found


def main() -> int:
    """Measure, print a table, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    samples: int = parser.parse_args().samples
    said = {**conditions(), "samples": samples, "pods_run_seconds": RUN_SECONDS}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures = uvloop.run(measure(samples))
    print(f"{'ms':28}{'p50':>9}{'p99':>9}{'max':>9}   goal (p50, p99)")
    for name, row in figures.items():
        goal = "" if name not in GOALS else f"   {GOALS[name]}"
        print(f"{name:28}{row['p50']:>9.1f}{row['p99']:>9.1f}{row['max']:>9.1f}{goal}")
    print(json.dumps({"bench": "latency", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
