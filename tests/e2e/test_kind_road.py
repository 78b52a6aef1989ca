"""On real kubelets: real containers, real signals, a real kill for memory; three kind clusters at once."""

from __future__ import annotations

import time

import pytest

from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.behaviour import OOM_KILLED, Behaviour
from support.e2e.world import MODULE_SECONDS, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

CPU = "20m"
"""A kind node has what this machine has, and its own pods want most of two cores."""


async def test_a_single_pod_runs_in_a_real_container_and_its_end_is_mirrored(world: World) -> None:
    name = world.name("single")
    await world.create(world.pod(name, cpu=CPU, does=Behaviour(run_seconds=30.0)))  # and is seen to run meanwhile
    await world.phase(name, "Running")
    pod = await world.phase(name, "Succeeded")
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["exitCode"] == 0
    await world.condition(name, "Finished")
    await world.nothing_left(name)


async def test_a_job_of_five_pods_completes(world: World) -> None:
    name = world.name("five")
    await world.create(world.job(name, pods=5, cpu=CPU, does=Behaviour(run_seconds=3.0)))
    await world.condition(name, "Finished", kind="Job")
    job = await world.get("mgmt", JOB, name)
    assert job is not None
    assert job["status"]["succeeded"] == 5
    await world.nothing_left(name)


async def test_a_container_that_takes_five_seconds_to_stop_is_given_them_when_its_user_deletes_the_pod(
    world: World,
) -> None:
    name = world.name("slow-stop")
    await world.create(world.pod(name, cpu=CPU, does=Behaviour(stop_seconds=5.0, stop_exit_code=0)))
    worker = await world.running_on(name)
    await world.phase(name, "Running")
    began = time.monotonic()
    await world.delete(POD, name)

    await world.gone(worker, POD, name)
    assert time.monotonic() - began >= 4.0, "the container was let end in peace"
    await world.gone("mgmt", POD, name)


async def test_a_container_that_is_killed_for_memory_fails_at_home_with_that_reason(world: World) -> None:
    name = world.name("oom")
    await world.create(world.pod(name, cpu=CPU, does=Behaviour(exceed_memory=True)))
    pod = await world.phase(name, "Failed")
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert state["reason"] == OOM_KILLED
    workload = await world.condition(name, "Finished")
    finished = next(each for each in workload["status"]["conditions"] if each["type"] == "Finished")
    assert finished["reason"] == "Failed"
    worker = workload["status"]["clusterName"]
    kept = await world.get(worker, POD, name)
    assert kept is not None, "it is there to be looked at for an hour, as its Workload says"
    assert kept["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == OOM_KILLED
    await world.remove(POD, name)
    await world.nothing_left(name)


async def test_agent_and_manager_are_killed_mid_run_and_the_container_never_notices(world: World) -> None:
    name = world.name("crash")
    await world.create(world.pod(name, cpu=CPU, does=Behaviour(run_seconds=25.0)))
    worker = await world.running_on(name)
    before = await world.get(worker, POD, name)
    assert before is not None
    for daemon in (world.installation.daemons[f"agent-{worker}"], world.installation.daemons["manager"]):
        world.installation.kill(daemon)
        await world.installation.restart(daemon)
    await world.installation.wait_connected(*WORKERS)
    pod = await world.phase(name, "Succeeded")
    ran = before["status"]["containerStatuses"][0]
    ended = pod["status"]["containerStatuses"][0]
    assert ended["containerID"] == ran["containerID"]
    assert ended["restartCount"] == 0
    workload = await world.condition(name, "Finished")
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    await world.nothing_left(name)
