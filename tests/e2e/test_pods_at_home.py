"""Pods at home that claim a Job, or are debugged: what rests on the real Job controller and a subresource of pods."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
LONG = Behaviour(run_seconds=3600)


async def test_hd_198_a_pod_that_says_it_is_a_waiting_jobs_waits_for_its_own_quota(world: World) -> None:
    name = world.name("claimed")
    await world.create(world.job(name, pods=5, queue="at-home", cpu="64", does=LONG))
    await world.condition(name, "QuotaReserved", kind="Job", status="False")
    uid = (await world.get("mgmt", JOB, name) or {})["metadata"]["uid"]
    pod = world.pod(f"{name}-pod", queue="at-home", cpu="64", does=LONG)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    await world.create(pod)
    await world.condition(f"{name}-pod", "QuotaReserved", status="False")
    found = await world.get("mgmt", POD, f"{name}-pod")
    assert found is not None
    assert {"name": "kueue.x-k8s.io/admission"} in found["spec"]["schedulingGates"]
    await world.remove(POD, f"{name}-pod")
    await world.remove(JOB, name)


async def test_hd_213_a_pod_that_runs_elsewhere_is_debugged_there(world: World) -> None:
    name = world.name("debugged")
    await world.create(world.pod(name, cpu="10m", does=LONG))
    await world.condition(name, "Admitted")
    debugger = {"spec": {"ephemeralContainers": [{"name": "debugger", "image": "tools"}]}}
    with pytest.raises(ApiError, match="debug it there, in worker cluster"):
        await world.patch(POD, name, debugger, subresource="ephemeralcontainers")
    await world.remove(POD, name)
