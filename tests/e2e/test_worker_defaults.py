"""HD-151. What a worker's LimitRange adds to what pods ask for, on real API servers: it never runs uncharged."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.resources import JOB, LIMIT_RANGE, POD, Resource
from gatelift_sandbox.behaviour import Behaviour
from support.e2e_world import MODULE_SECONDS, NAMESPACE, WORKERS, Json, World, is_of

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


@pytest.mark.parametrize("resource", [POD, JOB], ids=["Pod", "Job"])
async def test_hd_151_a_limit_range_of_the_workers_lets_nothing_run_uncharged(world: World, resource: Resource) -> None:
    name = world.name("defaulted")
    does = Behaviour(run_seconds=0.5)
    made: dict[str, Any] = world.pod(name, does=does) if resource == POD else world.job(name, pods=2, does=does)
    spec = made["spec"] if resource == POD else made["spec"]["template"]["spec"]
    del spec["containers"][0]["resources"]
    for worker in WORKERS:
        await world.create(LIMITS, cluster=worker)
    try:
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
