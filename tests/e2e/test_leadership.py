"""A second manager takes over; the first, paused and woken, commands and releases nothing."""

from __future__ import annotations

import signal

import pytest

from gatelift_kube.resources import LEASE, POD, WORKER_CLUSTER
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.installation import SYSTEM
from support.e2e_world import WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


async def test_a_paused_leader_that_wakes_finds_itself_deposed_and_does_nothing(world: World) -> None:
    name = world.name("takeover")
    await world.create(world.pod(name, does=Behaviour()))
    worker = await world.running_on(name)
    before = await world.get(worker, POD, name)
    assert before is not None
    first = world.installation.daemons["manager"]
    term = await _term(world, worker)
    world.installation.signal(first, signal.SIGSTOP)
    second = await world.installation.start_manager("manager-2")
    for proxy in world.installation.proxies.values():
        proxy.cut()
        proxy.mend()

    async def taken_over() -> bool:
        return await _term(world, worker) > term

    try:
        await world.until(taken_over, "the second manager writes its term", seconds=90.0)
        await world.installation.wait_connected(*WORKERS)
        other = world.name("under-the-second")
        await world.create(world.pod(other, does=Behaviour(run_seconds=1.0)))
        await world.phase(other, "Succeeded")
    finally:
        world.installation.signal(first, signal.SIGCONT)

    async def ended() -> bool:
        return not first.alive

    await world.until(ended, "the deposed manager ends itself", seconds=60.0)
    after = await world.get(worker, POD, name)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    workload = await world.workload_of(name)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    assert workload["status"]["clusterName"] == worker
    lease = await world.get("mgmt", LEASE, "gatelift-manager", namespace=SYSTEM)
    assert lease is not None
    await world.delete(POD, name)
    await world.gone("mgmt", POD, name)
    await world.nothing_left(name, other)
    world.installation.signal(second, signal.SIGTERM)
    await world.installation.start_manager("manager")
    for proxy in world.installation.proxies.values():
        proxy.cut()
        proxy.mend()
    await world.installation.wait_connected(*WORKERS)


async def _term(world: World, worker: str) -> int:
    found = await world.get("mgmt", WORKER_CLUSTER, worker)
    assert found is not None
    return int(found["status"]["term"])
