"""IS-48: our own image beside kind clusters, by testcontainers: its agents serve real kubelets over a real network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio

from gatelift.core.clusters.cluster_facts import LOST
from gatelift_kube.values.resources import POD, WORKER_CLUSTER
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.errors import SandboxError
from support.e2e import own_image
from support.e2e.contained_agent import ContainedAgent, in_place
from support.e2e.world import REQUIRED, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(2400)]

CPU = "20m"
RUN_SECONDS = 40.0
"""It is seen to run before its agent is cut off, and ends before its cluster counts as lost, which takes a minute."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def image(world: World) -> str:
    """Build the image, while the clusters wait. Where it cannot be, say why."""
    try:
        return await asyncio.to_thread(own_image.built)
    except SandboxError as error:
        if REQUIRED:
            raise
        pytest.skip(str(error))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def agents(world: World, image: str) -> AsyncIterator[Mapping[str, ContainedAgent]]:
    """Let all agents be containers of the image, each with a session of its own."""
    before = {name: await session(world, name) for name in WORKERS}
    async with contextlib.AsyncExitStack() as stack:
        made = await asyncio.gather(*(stack.enter_async_context(in_place(world, name, image)) for name in WORKERS))
        for name in WORKERS:
            await connected(world, name, before[name])
        yield dict(zip(WORKERS, made, strict=True))
    await world.installation.wait_connected(*WORKERS)


async def session(world: World, name: str) -> int:
    found = await world.get("mgmt", WORKER_CLUSTER, name)
    assert found is not None
    return int(found["status"]["session"])


async def shown(world: World, name: str) -> tuple[str, str]:
    """Return status and reason of whether a cluster is connected."""
    found = await world.get("mgmt", WORKER_CLUSTER, name)
    assert found is not None
    (one,) = [each for each in found["status"]["conditions"] if each["type"] == "Connected"]
    return one["status"], one["reason"]


async def connected(world: World, name: str, after: int) -> None:
    async def anew() -> bool:
        return await session(world, name) > after and (await shown(world, name))[0] == "True"

    await world.until(anew, f"{name} connects by a session after {after}")


async def test_is_48_a_pod_runs_through_an_agent_of_our_own_image(
    world: World, agents: Mapping[str, ContainedAgent]
) -> None:
    name = world.name("own-image")
    await world.create(world.pod(name, cpu=CPU, does=Behaviour(run_seconds=5.0)))
    worker = await world.running_on(name)
    said = await agents[worker].says("/opt/gatelift/bin/gatelift", "version")
    assert said.endswith("(admission engine: compiled)\n")
    await world.phase(name, "Succeeded")
    await world.condition(name, "Finished")
    await world.nothing_left(name)


async def test_is_48_work_is_untouched_while_its_agent_is_off_the_network_and_goes_on_afterwards(
    world: World, agents: Mapping[str, ContainedAgent]
) -> None:
    name = world.name("off-the-network")
    await world.create(world.pod(name, cpu=CPU, does=Behaviour(run_seconds=RUN_SECONDS)))
    worker = await world.running_on(name)
    await world.phase(name, "Running")
    before, number = await world.get(worker, POD, name), await session(world, worker)
    assert before is not None

    async def lost() -> bool:
        return await shown(world, worker) == ("False", LOST)

    await agents[worker].cut()
    try:
        await world.until(lost, f"{worker} is lost")
        ended = await world.phase(name, "Succeeded", cluster=worker)
        home = await world.get("mgmt", POD, name)
    finally:
        await agents[worker].mend()
    assert ended["metadata"]["uid"] == before["metadata"]["uid"]
    assert "deletionTimestamp" not in ended["metadata"]
    assert home is not None
    assert home["status"]["phase"] == "Running", "nobody could tell its end"
    await connected(world, worker, number)
    pod = await world.phase(name, "Succeeded")
    ran, told = (each["status"]["containerStatuses"][0] for each in (before, pod))
    assert (told["containerID"], told["restartCount"]) == (ran["containerID"], 0)
    workload = await world.condition(name, "Finished")
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    await world.nothing_left(name)
