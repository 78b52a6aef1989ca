"""What resizing elastic Jobs costs and how long it takes, on real API servers with Gatelift as processes (KEP-77).

`python -m bench.resize [--jobs N] [--pods N] [--rounds N] [--parts writes,rates,latency,memory,core]`. One management
cluster and one worker; daemons serve elastic Jobs, which the product does not yet. What is said of speed is a ratio to
scripts that do the same in the same run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

import uvloop

from bench import resize_core, resize_latency, resize_memory, resize_rates, resize_writes
from bench.fleet import conditions, fleet
from bench.group_runs import sizes_of

JOBS = 1000
PODS = 1000
ROUNDS = 3
SAMPLES = 40
AUDITED = (1, 10)
WORKER = "w1"
PARTS = ("writes", "rates", "latency", "memory", "core")
CHAINS = 500


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the parts that are asked for."""
    found: dict[str, Any] = {}
    parts = set(given.parts.split(","))
    if "writes" in parts:
        async with fleet(worker_names=[WORKER], audit=True, elastic=True) as made:
            found["writes"] = await resize_writes.measure(made, sizes_of(given.audited))
    if {"rates", "latency"} & parts:
        async with fleet(worker_names=[WORKER], elastic=True) as made:
            if "latency" in parts:
                found["latency"] = await resize_latency.measure(made, given.samples)
                print(found["latency"], flush=True)
            if "rates" in parts:
                found["rates"] = await resize_rates.measure(made, given.jobs, given.pods, given.rounds)
    if "memory" in parts:
        found["memory"] = await resize_memory.measure(given.chains, given.rounds)
    if "core" in parts:
        found["core"] = await asyncio.to_thread(resize_core.measure)
    return found


def shown(figures: Mapping[str, Any]) -> list[str]:
    """Return the lines that say what was found, each beside what is wanted."""
    lines = []
    for name, row in figures.get("writes", {}).get("resizes", {}).items():
        said = ", ".join(f"{what} {each['found']:g} of {each['wanted']}" for what, each in row["writes"].items())
        lines.append(f"{name}: {said}; besides {row['besides'] or 'nothing'}; told {row['told']}")
    for name, row in figures.get("latency", {}).items():
        goal = f"   goal (p50, p99) {resize_latency.GOALS[name]}" if name in resize_latency.GOALS else ""
        lines.append(f"{name:34}{row}{goal}")
    if core := figures.get("core"):
        lines.append(f"calls a pod {core['calls_a_pod']}, growth {core['growth']}   goal {resize_core.GOAL}")
    rates = figures.get("rates", {})
    for name, (least, what) in resize_rates.GOALS.items():
        if rates:
            lines.append(f"{name:18}{rates[name]:>8}   {'' if least is None else least} {what}")
    lines += [f"{name:34}{value:>8}" for name, value in rates.items() if name not in resize_rates.GOALS]
    return lines


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=JOBS, help="Jobs that are resized at once")
    parser.add_argument("--pods", type=int, default=PODS, help="to how many one Job grows")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of each latency")
    parser.add_argument("--audited", default=",".join(map(str, AUDITED)), help="growths whose writes are counted")
    parser.add_argument("--chains", type=int, default=CHAINS, help="whose memory is measured")
    given = parser.parse_args()
    said = {**conditions(workers=1), **{name: getattr(given, name) for name in ("jobs", "pods", "rounds", "parts")}}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()), flush=True)
    figures = uvloop.run(measure(given))
    for line in shown(figures):
        print(line)
    print(json.dumps({"bench": "resize", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
