"""HD-151. What a worker's LimitRange adds to what pods ask for, on real API servers: it never runs uncharged."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, LIMIT_RANGE, POD, Resource
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, Json, World, is_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

ADDED = "150m"
LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "adds", "namespace": NAMESPACE},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": ADDED}}]},
}


def _refused(workload: Json) -> bool:
    said = [each.get("message", "") for each in workload.get("status", {}).get("conditions", [])]
    return any("RequestsRaised" in text and ADDED in text for text in said)


async def _adds(world: World, worker: str) -> bool:
    """Say whether the worker's API server has taken note of the LimitRange: it adds to a pod that it would make."""
    spec = {"containers": [{"name": "main", "image": "registry.local/other:1"}]}
    probe = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
    served = await world.clients[worker].create(POD, NAMESPACE, json.dumps(probe).encode(), dry_run=True)
    resources = json.loads(served.raw)["spec"]["containers"][0]["resources"]
    return bool(resources.get("requests", {}).get("cpu") == ADDED)


@pytest.mark.parametrize("resource", [POD, JOB], ids=["Pod", "Job"])
async def test_hd_151_a_limit_range_of_the_workers_lets_nothing_run_uncharged(world: World, resource: Resource) -> None:
    name = world.name("defaulted")
    does = Behaviour(run_seconds=0.5)
    made: dict[str, Any] = world.pod(name, does=does) if resource == POD else world.job(name, pods=2, does=does)
    spec = made["spec"] if resource == POD else made["spec"]["template"]["spec"]
    del spec["containers"][0]["resources"]
    try:
        for worker in WORKERS:
            await world.create(LIMITS, cluster=worker)
            await world.until(partial(_adds, world, worker), f"the LimitRange adds to pods of {worker}")
        await world.create(made)
        await world.showed(name, _refused, "the Workload says what would be added", resource.kind)
        for worker in WORKERS:
            pods = await world.every(worker, POD)
            assert not [pod for pod in pods if is_of(pod["metadata"]["name"], name) and pod["spec"].get("nodeName")]
    finally:
        for worker in WORKERS:
            await world.delete(LIMIT_RANGE, "adds", cluster=worker)
    await world.condition(name, "Finished", resource.kind)
    await world.remove(resource, name)
