"""Groups on real API servers that are preempted, deactivated, or found not ready, and come back; and their quota."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import CLUSTER_QUEUE, POD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import HIGH, LOW, manager_with, queue, runs, said, set_up
from support.e2e.groups import FOR_EVER, Group, K
from support.e2e.world import MODULE_SECONDS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

HOME, WORKS, PARTLY = "grp-home", "grp-works", "grp-partly"
SLOW = Behaviour(stop_seconds=3.0)
PLACES = pytest.mark.parametrize("place", [HOME, WORKS])
EACH = "500m"
"""Two of a group fill a queue."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def queues(world: World) -> AsyncIterator[None]:
    await set_up(world, [queue(WORKS, "1", withinClusterQueue="LowerPriority")])
    partly = queue(PARTLY, "1", checks=(), withinClusterQueue="LowerPriority")
    partly[0]["metadata"]["annotations"] = {"gatelift.dev/release-partial": "true"}
    await applying.apply(world.clients["mgmt"], queue(HOME, "1", checks=(), withinClusterQueue="LowerPriority"))
    await applying.apply(world.clients["mgmt"], partly)
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


async def preempt(world: World, place: str, cpu: str = "1") -> str:
    """Make a pod of a higher class that wants room which a group has."""
    name = world.name("high")
    pod = world.pod(name, queue=place, cpu=cpu, does=FOR_EVER)
    pod["metadata"]["labels"][f"{K}priority-class"] = HIGH
    await world.create(pod)
    return name


async def starts(world: World, name: str) -> float:
    """Wait until a pod has started; return when."""

    async def look() -> bool:
        return bool(runs(world, name))

    await world.until(look, f"{name} runs")
    return runs(world, name)[0].started


async def low(world: World, base: str, place: str, does: Behaviour = FOR_EVER, *, runs_now: bool = True) -> Group:
    """Make a group of two of the lower class."""
    group = Group(world, base, place, total=2)
    await group.make("ab", does, cpu=EACH, labels={f"{K}priority-class": LOW})
    if runs_now:
        await group.run("ab")
    return group


async def told_why(group: Group, names: str, reason: str) -> None:
    """Wait until just these pods of a group say why they are ended."""

    def met(pod: Json) -> bool:
        return (said(pod, "TerminationTarget") or ("", ""))[:2] == ("True", reason)

    await group.holds(names, met, f"say {reason}")


async def test_pg_16_26_qr_1_a_preempted_group_is_ended_and_runs_again_once_it_is_replaced(world: World) -> None:
    """PG-16, PG-26. QR-1: who preempts is admitted before the group has stopped, and the group ends in peace."""
    group = await low(world, "preempted", HOME, SLOW)
    before = await group.uid()
    high = await preempt(world, HOME)
    began = await starts(world, high)
    assert all(run.stopped is None or run.stopped > began for run in group.all_runs()), "their quota was free before"
    await told_why(group, "ab", "WorkloadEvictedDueToPreempted")
    await group.are_shown("ab", "Failed")
    await group.says("WaitingForReplacementPods", "True", "Preempted")
    await group.are_held("ab")
    await world.remove(POD, high)
    await group.make("cd", cpu=EACH, labels={f"{K}priority-class": LOW})
    await group.run("cd")
    await group.are_held("cd")
    assert await group.uid() == before
    await group.remove()


async def test_pg_17_mc_11_a_group_at_a_worker_is_preempted_and_runs_again_with_the_same_pods(world: World) -> None:
    """PG-17; MC-11: what we stop is never shown as failed. QR-1, QR-8: nobody waits for its end."""
    group = await low(world, "resumed", WORKS, SLOW)
    uids = {pod["metadata"]["uid"] for pod in await group.pods()}
    high = await preempt(world, WORKS)
    await starts(world, high)
    await group.run("")
    await group.says("QuotaReserved", "False")
    assert await group.names(lambda pod: pod["status"].get("phase") == "Failed") == ""
    await world.remove(POD, high)
    await group.run("ab")
    assert {pod["metadata"]["uid"] for pod in await group.pods()} == uids
    assert {run.epoch for run in group.all_runs()} >= {2}
    await group.remove()


async def test_pg_18_26_a_group_that_is_evicted_again_says_the_newer_reason(world: World) -> None:
    group = await low(world, "again", HOME)
    await group.patch({"spec": {"active": False}})
    await told_why(group, "ab", "WorkloadEvictedDueToDeactivated")
    await group.says("WaitingForReplacementPods", "True", "Deactivated")
    await group.patch({"spec": {"active": True}})
    await group.make("cd", cpu=EACH)
    await group.run("cd")
    await group.says("WaitingForReplacementPods", "False")
    await world.patch(CLUSTER_QUEUE, HOME, {"spec": {"stopPolicy": "HoldAndDrain"}})
    try:
        await told_why(group, "cd", "WorkloadEvictedDueToClusterQueueStopped")
        await group.says("WaitingForReplacementPods", "True", "ClusterQueueStopped")
    finally:
        await world.patch(CLUSTER_QUEUE, HOME, {"spec": {"stopPolicy": "None"}})
    await group.end()


async def test_pg_19_26_a_group_whose_pods_do_not_get_ready_is_requeued_and_waits_for_replacements(
    world: World,
) -> None:
    """PG-19: no node takes the second, which goes at once; no turn for quota before replacements are there."""
    waits = {"waitForPodsReady": {"timeout": "2s", "requeuingStrategy": {"backoffBaseSeconds": 1}}}
    async with manager_with(world, waits):
        group = Group(world, "unready", HOME, total=2)
        await group.make("a", cpu="100m")
        await group.make("b", cpu="100m", nodeSelector={"nowhere": "true"})
        await group.says("WaitingForReplacementPods", "True", "PodsReadyTimeout")
        await told_why(group, "a", "WorkloadEvictedDueToPodsReadyTimeout")
        await group.says("QuotaReserved", "False")
        await group.end()


async def test_pg_29_a_group_that_waits_follows_its_pods(world: World) -> None:
    """PG-29: to another queue, in place."""
    group = Group(world, "moves", HOME, total=2)
    await group.make("ab", cpu="800m")
    await group.says("QuotaReserved", "False")
    before = await group.uid()
    for each in "ab":
        await world.patch(POD, f"{group.name}-{each}", {"metadata": {"labels": {f"{K}queue-name": "at-home"}}})
    found = await group.says("Admitted", "True")
    assert (found["metadata"]["uid"], found["spec"]["queueName"]) == (before, "at-home")
    await group.run("ab")
    await group.remove()


@PLACES
async def test_qr_4_a_group_of_which_one_pod_goes_on_keeps_the_quota_of_all(world: World, place: str) -> None:
    """QR-4, at home and (QR-8) at a worker: released once the last one is leaving too, whoever has stopped."""
    group = Group(world, "mixed", place, total=2)
    await group.make("a", Behaviour(run_seconds=1.0), cpu=EACH, labels={f"{K}priority-class": LOW})
    await group.make("b", SLOW, cpu=EACH, labels={f"{K}priority-class": LOW})
    await group.run("b")
    high = await preempt(world, place)
    began = await starts(world, high)
    [run] = group.runs_of("b")
    assert run.stopped is None or run.stopped > began
    await world.remove(POD, high)
    await group.end()


async def test_qr_7_of_a_queue_that_takes_parts_each_that_is_over_gives_its_share_back(world: World) -> None:
    """QR-7: under OnTerminal the whole would be free with the last one alone."""
    async with manager_with(world, {"gatelift": {"release": {"strategies": {"Pod": "OnTerminal"}}}}):
        group = Group(world, "parts", PARTLY, total=2)
        await group.make("a", cpu=EACH, labels={f"{K}priority-class": LOW})
        await group.make("b", Behaviour(stop_seconds=8.0), cpu=EACH, labels={f"{K}priority-class": LOW})
        await group.run("ab")
        high = await preempt(world, PARTLY, cpu=EACH)
        began = await starts(world, high)
        [first], [second] = group.runs_of("a"), group.runs_of("b")
        assert first.stopped is not None
        assert first.stopped <= began
        assert second.stopped is None or second.stopped > began
        await world.remove(POD, high)
        await group.end()
