"""Resident memory of manager and agent per member of a group, beside a single pod's of the same run (PF-4).

See `group_runs`; measured as in `memory`: objects are made, the daemon is started and left until its memory stands
still. Groups of 100 wait in a queue that is stopped, each beside its Workload; of an agent they are placed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from bench import group_bodies, group_load, memory
from bench.loader import manifest, mutated
from gatelift_kube.api.client import Client
from gatelift_kube.decoding import decoding
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_wire.values.keys import PlacementKey

MEMBERS = 100
Made = Callable[[Client, int], Awaitable[None]]


def read(raw: bytes) -> Pod:
    """Return the pod of a document."""
    pod = decoding.read_object(POD, raw)
    if not isinstance(pod, Pod):
        raise TypeError(f"no Pod: {pod!r}")
    return pod


async def waiting_groups(client: Client, count: int) -> None:
    """Make gated pods in groups, and the very Workloads that the manager would make for them."""
    for group in groups(count):
        served = await memory.make(client, POD, pods_of(group))
        pods = sorted(((read(raw), raw) for raw in served), key=lambda each: _age(each[0]))
        await memory.make(client, WORKLOAD, [group_bodies.group_workload(pods)])


async def placed_alone(client: Client, count: int) -> None:
    """Make pods as an agent makes them, each of a placement of its own."""
    bodies = []
    for number in range(count):
        raw = json.dumps(mutated(manifest(f"alone-{number:05}"))).encode()
        key = PlacementKey(f"00000000-0000-4000-8000-{number:012}", 1)
        bodies.append(group_bodies.placed_alone(read(raw), raw, key, "bench"))
    await memory.make(client, POD, bodies)


async def placed_groups(client: Client, count: int) -> None:
    """Make pods in groups as an agent makes them, of a placement for each group."""
    for number, group in enumerate(groups(count)):
        first, *others = pods_of(group)
        key = PlacementKey(f"00000000-0000-4000-8000-{number:012}", 1)
        placed = group_bodies.placed(read(first), first, MEMBERS, key, "bench")
        names = [read(raw).metadata.name for raw in (first, *others)]
        await memory.make(client, POD, [placed.body(name, f"user-of-{name}") for name in names])


def groups(count: int) -> Iterable[str]:
    """Return the names of the groups of so many pods."""
    return (f"crew{number:04}" for number in range(count // MEMBERS))


def pods_of(group: str) -> list[bytes]:
    """Return the pods of a group as the webhook leaves them."""
    return [json.dumps(document).encode() for document in group_load.gated(group_load.members(group, MEMBERS))]


def _age(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.name


async def measure(count: int, rounds: int) -> dict[str, Any]:
    """Return KB per member and per single pod, medians, and the ratios."""
    cases: dict[str, tuple[Made, bool]] = {
        "manager_single": (memory.pods_and_workloads, False),
        "manager_member": (waiting_groups, False),
        "agent_single": (placed_alone, True),
        "agent_member": (placed_groups, True),
    }
    found: dict[str, float] = {}
    for name, (made, agent) in cases.items():
        runs = [await memory.growth(made, count, agent=agent) for _ in range(rounds)]
        found[f"{name}_kb"] = round(statistics.median(runs) * 1000 / memory.PER, 2)
        print(f"{name:16}{found[f'{name}_kb']:8.2f} KB each", flush=True)
    for daemon in ("manager", "agent"):
        found[f"{daemon}_ratio"] = round(found[f"{daemon}_member_kb"] / found[f"{daemon}_single_kb"], 2)
    return found
