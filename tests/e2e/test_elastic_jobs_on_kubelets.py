"""SL-84 on real kubelets: 3 -> 10 -> 4 with containers that run, and crashes in it, at home and at a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB
from gatelift_sandbox import applying
from gatelift_sandbox.installation import MANAGER
from support.e2e.admission import queue, set_up
from support.e2e.elastic import HOME, ElasticJob, serving_slices, untouched
from support.e2e.world import MODULE_SECONDS, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(2 * MODULE_SECONDS)]

CPU = "10m"
"""A kind node has what this machine has, and its own pods want most of two cores."""
TEN = "100m"
DOUBTS_SECONDS = 480.0
"""After a start new slots wait until each node was heard of: two minutes by its Lease (HD-717), six and a half by its
status, where a slow machine makes breaks between its renewals."""
AT_HOME, AWAY = "sl-home", "sl-away"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sliced(world: World) -> AsyncIterator[World]:
    """Have the daemons serve elastic Jobs, and make queues with room for ten pods."""
    async with serving_slices(world):
        await set_up(world, [queue(AWAY, TEN)])
        await applying.apply(world.clients[HOME], queue(AT_HOME, TEN, checks=()))
        yield world


async def dies(world: World, name: str) -> None:
    """Kill a daemon and start it again."""
    daemon = world.installation.daemons[name]
    world.installation.kill(daemon)
    await world.installation.restart(daemon)
    await world.installation.wait_connected(*WORKERS)


@pytest.mark.parametrize("place", [AT_HOME, AWAY])
async def test_sl_84_3_10_4_in_real_containers_while_daemons_die(sliced: World, place: str) -> None:
    """SL-84, SL-15, SL-50, SL-54, HD-717: none of the first three is restarted, four of the ten go on at the end."""
    job = ElasticJob(sliced, place, place, CPU)
    await job.create(3)
    where = HOME if place == AT_HOME else await job.worker()
    first = await job.runs(where, 3)
    await job.settled(3)
    await job.resize(10)

    async def grows() -> bool:
        return len(await job.pods(where)) > len(first)

    await sliced.until(grows, "the first of its new pods is there")
    await dies(sliced, MANAGER if place == AT_HOME else f"agent-{where}")
    grown = await job.runs(where, 10, seconds=DOUBTS_SECONDS)
    assert untouched(first, grown)
    await job.settled(10, seconds=DOUBTS_SECONDS)
    await job.resize(4)
    await dies(sliced, MANAGER)
    shrunk = await job.runs(where, 4, seconds=DOUBTS_SECONDS)
    assert untouched(shrunk, grown), "who is left is who ran"
    await job.settled(4, seconds=DOUBTS_SECONDS)
    for other in set(WORKERS) - {where}:
        assert await sliced.get(other, JOB, job.name) is None
    await job.remove()
