"""IS-45: what crashes at a worker says so at home, on its Workload and on the user's pod.

Here since a real API server judges the conditions: of a Workload by the policies, of a pod by its own rules.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.pod_trouble import CONDITION, CRASH
from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
CRASHES = Behaviour(run_seconds=0.5, exit_code=3)
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
