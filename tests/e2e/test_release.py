"""Release of quota while pods stop (KEP-6143), on running clusters: at home and at workers, by rule and by deadline.

The records of the kubelets say what really ran when; times are those of the servers' own conditions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import POD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import HIGH, LOW, manager_with, queue, runs, said, set_up
from support.e2e.world import MODULE_SECONDS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

GRACE_SECONDS = 60
SLOW_TO_STOP = Behaviour(stop_seconds=25.0)
"""Within its grace, and longer than all that is looked at meanwhile takes."""
FOR_EVER = Behaviour()
DRAINING = "gatelift.dev/Draining"
QUEUES = [
    queue("rel-works", "1", withinClusterQueue="LowerPriority"),
    queue("rel-home", "1", checks=(), withinClusterQueue="LowerPriority"),
]
PLACES = pytest.mark.parametrize("queue_name", ["rel-home", "rel-works"])


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def queues(world: World) -> AsyncIterator[None]:
    await set_up(world, QUEUES[:1])
    await applying.apply(world.clients["mgmt"], QUEUES[1])
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


def a_pod(world: World, name: str, queue_name: str, rank: str, does: Behaviour = FOR_EVER) -> Json:
    pod = world.pod(name, queue=queue_name, cpu="1", does=does)
    pod["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = rank
    pod["spec"]["terminationGracePeriodSeconds"] = GRACE_SECONDS
    return pod


async def is_admitted(world: World, name: str) -> bool:
    workload = await world.workload_of(name)
    found = said(workload, "QuotaReserved") if workload is not None else None
    return found is not None and found[0] == "True"


def still_runs(world: World, name: str) -> bool:
    return any(run.stopped is None for run in runs(world, name))


@PLACES
async def test_qr_1_who_preempts_is_admitted_while_the_victim_ends_in_peace(world: World, queue_name: str) -> None:
    """QR-1 at home, QR-8 at a worker: grace 60 s, and the preemptor waits for none of it."""
    low, high = world.name("low"), world.name("high")
    await world.create(a_pod(world, low, queue_name, LOW, SLOW_TO_STOP))
    await runs_somewhere(world, low)
    await world.create(a_pod(world, high, queue_name, HIGH))
    await world.until(lambda: is_admitted(world, high), f"{high} is admitted", seconds=10)
    assert still_runs(world, low), "it ends in its own time"
    workload = await world.workload_of(low)
    assert workload is not None
    assert (said(workload, "QuotaReserved") or ())[:1] == ("True",), "released is not ended"
    assert (said(workload, DRAINING) or ())[:2] == ("True", "QuotaReleased")
    await runs_somewhere(world, high)
    await world.remove(POD, high)
    await gone_or_waits(world, low)


async def runs_somewhere(world: World, name: str) -> None:
    async def look() -> bool:
        return still_runs(world, name)

    await world.until(look, f"{name} runs")


async def gone_or_waits(world: World, name: str) -> None:
    """Wait until the first run of a pod has ended, and take it away."""

    async def look() -> bool:
        return any(run.stopped is not None for run in runs(world, name))

    await world.until(look, f"{name} has stopped", seconds=GRACE_SECONDS)
    if await world.get("mgmt", POD, name) is not None:
        await world.remove(POD, name)


@PLACES
async def test_qr_2_with_the_gate_off_it_waits(world: World, queue_name: str) -> None:
    """QR-2 at home, QR-8 at a worker."""
    async with manager_with(world, {"featureGates": {"PodIntegrationFastQuotaRelease": False}}):
        low, high = world.name("slow"), world.name("waits")
        await world.create(a_pod(world, low, queue_name, LOW, SLOW_TO_STOP))
        await runs_somewhere(world, low)
        await world.create(a_pod(world, high, queue_name, HIGH))
        await world.until(lambda: is_admitted(world, high), f"{high} is admitted", seconds=GRACE_SECONDS)
        assert not still_runs(world, low), "it had stopped by then"
        await world.remove(POD, high)
        await gone_or_waits(world, low)


@PLACES
async def test_qr_5_on_terminal_it_says_that_it_drains_and_keeps_its_quota(world: World, queue_name: str) -> None:
    """QR-5 at home, QR-8 at a worker, by the configuration's word for pods."""
    async with manager_with(world, {"gatelift": {"release": {"strategies": {"Pod": "OnTerminal"}}}}):
        low, high = world.name("held"), world.name("late")
        await world.create(a_pod(world, low, queue_name, LOW, SLOW_TO_STOP))
        await runs_somewhere(world, low)
        await world.create(a_pod(world, high, queue_name, HIGH))
        await world.until(lambda: is_held(world, low), f"{low} drains and keeps its quota", seconds=20)
        assert not await is_admitted(world, high)
        await world.until(lambda: is_admitted(world, high), f"{high} is admitted", seconds=GRACE_SECONDS)
        assert not still_runs(world, low)
        await world.remove(POD, high)
        await gone_or_waits(world, low)


async def is_held(world: World, name: str) -> bool:
    workload = await world.workload_of(name)
    found = said(workload, DRAINING) if workload is not None else None
    return found is not None and found[:2] == ("True", "QuotaHeld")
