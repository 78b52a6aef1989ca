"""What a group of pods costs and how long it takes, on real API servers with Gatelift as processes: PF-1, 2, 4, 6, 7.

`python -m bench.group_runs [--members 50,200,1000] [--rounds N] [--parts rates,writes,latency,memory,events]`. One
management cluster and one worker; what is said of speed is a ratio to scripts that do the same in the same run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

import uvloop

from bench import group_events, group_latency, group_memory, group_rates, group_writes
from bench.fleet import conditions, fleet

MEMBERS = (50, 200, 1000)
ROUNDS = 3
SAMPLES = 40
AUDITED = (20, 80)
WORKER = "w1"
PARTS = ("rates", "writes", "latency", "memory", "events")
MEMBERS_IN_MEMORY = 10_000


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of the parts that are asked for."""
    found: dict[str, Any] = {}
    parts = given.parts.split(",")
    if {"rates", "latency"} & set(parts):
        async with fleet(provider_name=given.provider, worker_names=[WORKER]) as made:
            if "rates" in parts:
                found["rates"] = await group_rates.measure(made, sizes_of(given.members), given.rounds)
            if "latency" in parts:
                found["latency"] = await group_latency.measure(made, given.samples)
    if "writes" in parts:
        async with fleet(provider_name=given.provider, worker_names=[WORKER], audit=True) as made:
            found["writes"] = await group_writes.measure(made, sizes_of(given.audited))
    if "memory" in parts:
        found["memory"] = await group_memory.measure(given.objects, given.rounds)
    return found


def sizes_of(text: str) -> list[int]:
    """Return sizes, the smallest first."""
    return sorted(int(each) for each in text.split(","))


def shown(figures: Mapping[str, Any]) -> list[str]:
    """Return the lines that say what was found, each beside what is wanted."""
    lines = []
    rates = figures.get("rates", {})
    for size, row in rates.get("sizes", {}).items():
        lines.append(f"{size} members: " + ", ".join(f"{name} {value}" for name, value in row.items()))
    lines += [f"{name:24}{rates[name]:>8}   {goal} {what}" for name, (goal, what) in group_rates.GOALS.items() if rates]
    if rates:
        lines.append(
            f"lifts a second {rates['gatelift_lifted_per_second']}, of the bare loop {rates['bare_lifted_per_second']}"
        )
    for size, row in figures.get("writes", {}).get("sizes", {}).items():
        said = ", ".join(f"{what} {each['found']} of {each['wanted']}" for what, each in row["per_member"].items())
        lines.append(f"writes, {size} members: {said} each; to the Workload {row['to_the_workload']}")
    for name, row in figures.get("latency", {}).items():
        lines.append(f"{name:28}{row}   goal (p50, p99) {group_latency.GOALS[name]}")
    return lines


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", default=",".join(map(str, MEMBERS)), help="sizes of groups")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--samples", type=int, default=SAMPLES, help="of each latency")
    parser.add_argument("--audited", default=",".join(map(str, AUDITED)), help="sizes whose writes are counted")
    parser.add_argument("--objects", type=int, default=MEMBERS_IN_MEMORY, help="pods whose memory is measured")
    parser.add_argument("--provider", default="local", help=argparse.SUPPRESS)
    given = parser.parse_args()
    said = {**conditions(workers=1), "members": sizes_of(given.members), "rounds": given.rounds, "parts": given.parts}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()), flush=True)
    figures = uvloop.run(measure(given))
    if "events" in given.parts.split(","):
        figures["events"] = group_events.measure()
    for line in shown(figures):
        print(line)
    print(json.dumps({"bench": "group_runs", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
