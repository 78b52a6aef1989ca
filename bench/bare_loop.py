"""A loop that makes gated pods on a worker, and then lets them go: what an agent does of a group, and nothing else.

`python -m bench.bare_loop W1_KUBECONFIG GROUP COUNT IN_FLIGHT`. With an agent's client and rights, and so many writes
under way as an agent has. It watches nothing, and ends when all are let go.
"""

from __future__ import annotations

import json
import sys

import uvloop

from bench import group_bodies
from bench.fleet import NAMESPACE
from bench.group_floor import let_go
from bench.group_load import gated, members
from bench.hands import by_hands
from bench.write_floor import ORIGIN, PATIENCE
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.decoding import decoding
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD
from gatelift_wire.values.keys import PlacementKey

UID = "00000000-0000-4000-8000-000000000000"


def bodies(group: str, count: int) -> list[bytes]:
    """Return the pods of a group as an agent makes them; let go they stay as they are."""
    documents = gated(members(group, count, scheduled=False))
    raw = json.dumps(documents[0]).encode()
    first = decoding.read_object(POD, raw)
    if not isinstance(first, Pod):
        raise TypeError(f"no Pod: {first!r}")
    placed = group_bodies.placed(first, raw, count, PlacementKey(UID, 1), ORIGIN)
    return [placed.body(document["metadata"]["name"], UID) for document in documents]


async def write(kubeconfig: str, group: str, count: int, in_flight: int) -> None:
    """Make them, and let them go."""
    made_of = bodies(group, count)
    async with Client.connect(await from_kubeconfig(kubeconfig), user_agent="bare-loop") as client:
        await by_hands(range(in_flight), lambda _: client.raw("GET", "/version"), in_flight)  # connections
        made = await by_hands(made_of, lambda body: client.create(POD, NAMESPACE, body, seconds=PATIENCE), in_flight)
        await by_hands(made, lambda served: let_go(client, served), in_flight)


if __name__ == "__main__":
    uvloop.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
