"""IS-45: what crashes at a worker, waits at a gate there or is not made there says so at home.

Here since a real API server judges the conditions: of a Workload by the policies, of a pod by its own rules; and since
only real ones have a ResourceQuota, which the real Job controller meets.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.shared.markers import ADMISSION_GATE
from gatelift_kinds.shared.pod_trouble import CONDITION, CRASH, GATED, MISSING
from gatelift_kube.values.resources import JOB, POD, Resource
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
CRASHES = Behaviour(run_seconds=0.5, exit_code=3)
STAYS = Behaviour(run_seconds=3600.0)
RESOURCE_QUOTA = Resource("", "v1", "ResourceQuota", "resourcequotas")
QUOTA = "two-pods"
GATE = "example.com/quarantine"
SECONDS = 120.0
"""A kubelet waits longer after each crash; only what stands for ten seconds is said."""


def trouble(document: dict[str, Any] | None) -> dict[str, Any]:
    """Return our condition of an object, {} for none."""
    conditions = (document or {}).get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == CONDITION), {})


async def test_is_45_a_pod_that_crashes_at_its_worker_says_so_at_home(world: World) -> None:
    name = world.name("crashes")
    pod = world.pod(name, cpu="10m", does=CRASHES)
    pod["spec"]["restartPolicy"] = "Always"
    await world.create(pod)

    async def on_both() -> bool:
        found = [trouble(await world.workload_of(name)), trouble(await world.get("mgmt", POD, name))]
        return [each.get("reason") for each in found] == [CRASH, CRASH]

    await world.until(on_both, f"{CONDITION} on {name} and its Workload", SECONDS)
    assert f"Pod {name} on cluster" in trouble(await world.workload_of(name))["message"]
    await world.remove(POD, name)


async def test_is_45_a_job_whose_pods_crash_says_so_on_its_workload(world: World) -> None:
    name = world.name("crashing")
    job = world.job(name, pods=2, cpu="10m", does=CRASHES)
    job["spec"]["template"]["spec"]["restartPolicy"] = "OnFailure"
    job["spec"]["backoffLimit"] = 100
    await world.create(job)

    async def said() -> bool:
        return trouble(await world.workload_of(name, "Job")).get("reason") == CRASH

    await world.until(said, f"{CONDITION} on the Workload of Job {name}", SECONDS)
    await world.remove(JOB, name)


async def limit(world: World) -> None:
    """Let no worker have more than two pods in the namespace, and wait until its quota is counted."""
    metadata = {"name": QUOTA, "namespace": NAMESPACE}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": "2"}}}
    for worker in WORKERS:
        await world.create(quota, cluster=worker)

        async def counted(worker: str = worker) -> bool:
            found = await world.get(worker, RESOURCE_QUOTA, QUOTA)
            return found is not None and found.get("status", {}).get("hard") == {"pods": "2"}

        await world.until(counted, f"the ResourceQuota of {worker} is counted")


async def test_is_45_pods_that_a_quota_of_the_worker_keeps_out_are_said_to_be_missing_until_they_are_there(
    world: World,
) -> None:
    name = world.name("short")
    await limit(world)
    try:
        await world.create(world.job(name, pods=4, cpu="10m", does=STAYS))

        async def said() -> str:
            found = trouble(await world.workload_of(name, "Job"))
            return found["message"] if found.get("reason") == MISSING else ""

        text = await world.until(said, f"{CONDITION} on the Workload of Job {name}", SECONDS)
        assert f'Job {name} on cluster "w' in text
        assert "2 of 4 pods are not there; the API server there says no to one more: exceeded quota: two-pods" in text
        workload = await world.condition(name, "Admitted", "Job")
        assert workload["status"]["admission"]["podSetAssignments"][0]["count"] == 4, "it moves nothing"
    finally:
        for worker in WORKERS:
            await world.delete(RESOURCE_QUOTA, QUOTA, cluster=worker)

    async def over() -> bool:
        return trouble(await world.workload_of(name, "Job")) == {}

    await world.until(over, f"no {CONDITION} on the Workload of Job {name}", SECONDS)
    found = [each for worker in WORKERS for each in await world.every(worker, POD)]
    assert sum(each["metadata"]["name"].startswith(f"{name}-") for each in found) == 4
    await world.remove(JOB, name)


async def test_is_45_pods_of_a_job_that_wait_at_a_gate_of_its_users_say_so_at_home(world: World) -> None:
    name = world.name("gated")
    job = world.job(name, pods=2, cpu="10m", does=STAYS)
    job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": GATE}]
    await world.create(job)

    async def said() -> str:
        found = trouble(await world.workload_of(name, "Job"))
        return found["message"] if found.get("reason") == GATED else ""

    text = await world.until(said, f"{CONDITION} on the Workload of Job {name}", SECONDS)
    assert text.endswith(f'waits for scheduling gate "{GATE}" to be taken off')
    for worker in WORKERS:
        for pod in await world.every(worker, POD):
            if pod["metadata"]["name"].startswith(f"{name}-"):
                await world.patch(POD, pod["metadata"]["name"], {"spec": {"schedulingGates": None}}, cluster=worker)

    async def over() -> bool:
        return trouble(await world.workload_of(name, "Job")) == {}

    await world.until(over, f"no {CONDITION} on the Workload of Job {name}", SECONDS)
    await world.remove(JOB, name)


async def test_is_45_a_pod_that_waits_at_a_gate_of_its_users_says_so_and_starts_when_it_is_taken_off_at_home(
    world: World,
) -> None:
    name = world.name("gated-pod")
    pod = world.pod(name, cpu="10m", does=STAYS)
    pod["spec"]["schedulingGates"] = [{"name": GATE}]
    await world.create(pod)

    async def on_both() -> bool:
        found = [trouble(await world.workload_of(name)), trouble(await world.get("mgmt", POD, name))]
        return [each.get("reason") for each in found] == [GATED, GATED]

    await world.until(on_both, f"{CONDITION} on {name} and its Workload", SECONDS)
    await world.patch(POD, name, {"spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}})
    await world.running_on(name)

    async def over() -> bool:
        found = trouble(await world.workload_of(name)), trouble(await world.get("mgmt", POD, name))
        return found == ({}, {})

    await world.until(over, f"no {CONDITION} on {name} and its Workload", SECONDS)
    await world.remove(POD, name)
