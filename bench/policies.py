"""What the admission policies cost: the floor's writes with them in force and without, in turns, on one fleet.

The floor makes the writes of a placement and decides nothing (`write_floor`), so what differs is what the API servers
compute. Neighbour: `placements` has the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import uvloop

from bench.fleet import Fleet, conditions, fleet
from bench.placements import WORKLOADS, Round, floor_round, shares
from gatelift_kube.api.client import Client

ROUNDS = 3
IN_FORCE_SECONDS = 5.0
"""An API server reads its policies anew each second."""
_BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

Bindings = Mapping[str, Sequence[dict[str, Any]]]
"""By cluster."""


async def bindings_of(made: Fleet) -> Bindings:
    """Return what binds the policies, as it may be made again."""
    return {name: [_plain(each) for each in await _items(client)] for name, client in made.clients.items()}


async def take_off(made: Fleet) -> None:
    """Delete the bindings, and wait until no policy is in force."""
    for client in made.clients.values():
        for each in await _items(client):
            await client.raw("DELETE", f"{_BINDINGS}/{each['metadata']['name']}")
    await asyncio.sleep(IN_FORCE_SECONDS)


async def put_back(made: Fleet, bindings: Bindings) -> None:
    """Make the bindings again, and wait until the policies are in force."""
    for name, client in made.clients.items():
        for each in bindings[name]:
            await client.raw("POST", _BINDINGS, body=json.dumps(each).encode(), content_type="application/json")
    await asyncio.sleep(IN_FORCE_SECONDS)


async def measure(count: int, rounds: int) -> dict[str, Any]:
    """Return medians of both, in turns."""
    bound: list[Round] = []
    free: list[Round] = []
    async with fleet() as made:
        bindings = await bindings_of(made)
        for number in range(rounds):
            bound.append(await floor_round(made, count))
            print(f"round {number + 1}: with    {bound[-1].per_second:6.1f}/s   {shares(bound[-1], count)}")
            await take_off(made)
            free.append(await floor_round(made, count))
            print(f"round {number + 1}: without {free[-1].per_second:6.1f}/s   {shares(free[-1], count)}")
            await put_back(made, bindings)
    return {
        "policies": sum(len(each) for each in bindings.values()),
        "per_second": _rate(bound),
        "per_second_without": _rate(free),
        "ratios": [round(one.per_second / other.per_second, 3) for one, other in zip(bound, free, strict=True)],
        "api_servers_cpu_ms": _api_servers(bound, count),
        "api_servers_cpu_ms_without": _api_servers(free, count),
    }


def _rate(rounds: list[Round]) -> float:
    return round(statistics.median(each.per_second for each in rounds), 1)


def _api_servers(rounds: list[Round], count: int) -> float:
    return round(statistics.median(1000 * each.usage.of("kube-apiserver") / count for each in rounds), 2)


async def _items(client: Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(await client.raw("GET", _BINDINGS))["items"]
    return found


def _plain(binding: dict[str, Any]) -> dict[str, Any]:
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding"}
    return {**kind, "metadata": {"name": binding["metadata"]["name"]}, "spec": binding["spec"]}


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    said = {**conditions(), "workloads": given.workloads, "rounds": given.rounds}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures = uvloop.run(measure(given.workloads, given.rounds))
    print(json.dumps({"bench": "policies", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
