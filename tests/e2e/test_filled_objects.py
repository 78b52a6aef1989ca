"""Objects that somebody has filled up to etcd's limit, which only a real etcd has."""

from __future__ import annotations

import json

import pytest

from gatelift_kube.deciding.errors import TooLargeError
from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, NAMESPACE, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

MANY = [f"example.com/{number:04d}-{'l' * 50}" for number in range(3000)]
APPLIERS_MAX = 40
"""Enough to fill 1.5 MiB with records of 200 KB and halves of them, down to one annotation."""


async def applies(world: World, cluster: str, name: str, who: str, keys: list[str]) -> bool:
    """Apply what the pod says already under one more name; say whether it had room for that."""
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": dict.fromkeys(keys, "")}
    body = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}).encode()
    query = f"fieldManager={who}&force=true"
    try:
        await world.clients[cluster].raw(
            "PATCH", POD.path(NAMESPACE, name), query, body, "application/apply-patch+yaml", seconds=30.0
        )
    except TooLargeError:
        return False
    return True


async def fill(world: World, cluster: str, name: str) -> None:
    """Fill a pod's record of writers until not even one annotation's fits."""
    count = len(MANY)
    for number in range(APPLIERS_MAX):
        while count and not await applies(world, cluster, name, f"who-{number}", MANY[:count]):
            count //= 2
    assert count == 0, "it is full"


@pytest.mark.parametrize("queue", ["at-home", "multi"])
async def test_hd_262_a_running_pod_that_is_filled_by_server_side_apply_is_stopped(world: World, queue: str) -> None:
    """HD-262: at its worker by whoever may patch it there, at home by its user: it ran on, and could not be deleted."""
    name = world.name("record")
    pod = world.pod(name, queue=queue, cpu="10m", does=Behaviour(run_seconds=3600))
    pod["metadata"]["annotations"] = {**pod["metadata"].get("annotations", {}), **dict.fromkeys(MANY, "")}
    await world.create(pod)
    cluster = "mgmt" if queue == "at-home" else await world.running_on(name)
    await world.phase(name, "Running")
    await fill(world, cluster, name)
    workload = await world.workload_of(name)
    assert workload is not None
    await world.patch(WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    if cluster == "mgmt":  # what is stopped at home is deleted, as Kueue does it
        await world.gone("mgmt", POD, name)
    else:
        await world.condition(name, "QuotaReserved", status="False")
        await world.nothing_left(name)
        await world.remove(POD, name)
