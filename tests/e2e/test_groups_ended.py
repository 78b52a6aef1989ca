"""Groups on real API servers that end with their Workload, are deleted whole, or meet a stranger's Workload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import said
from support.e2e.groups import AT_HOME, AWAY, PLACES, Group, K, placed_at
from support.e2e.world import MODULE_SECONDS, NAMESPACE, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

SOON = Behaviour(run_seconds=0.5)
SLOW = Behaviour(stop_seconds=2.0)
KEPT = "example.com/kept"
DOUBTED_SECONDS = 300.0
"""An agent that begins anew on a busy machine doubts what was never made for a minute and a half (P10)."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def no_overlaps(world: World) -> AsyncIterator[None]:
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


@PLACES
async def test_pg_15_26_a_group_ends_with_its_workload_which_waits_for_nobody_elses_finalizer(
    world: World, queue: str
) -> None:
    """PG-15, at home and at a worker, also who had succeeded. PG-26: pods that ran here say why."""
    group = Group(world, "deleted", queue)
    await group.make("a", SOON)
    await group.make("b", SLOW)
    await group.make("c")
    await group.are_shown("a", "Succeeded")
    await group.run("bc")
    await world.patch(POD, f"{group.name}-b", {"metadata": {"finalizers": [f"{K}managed", KEPT]}})
    await world.delete(WORKLOAD, group.name)
    await group.exist("b")
    await group.are_held("")
    pod = await world.get("mgmt", POD, f"{group.name}-b")
    assert pod is not None
    if queue == AT_HOME:
        assert (said(pod, "TerminationTarget") or ())[:2] == ("True", "WorkloadDeleted")
    assert group.running() == ""
    await world.gone("mgmt", WORKLOAD, group.name)
    await group.exist("b")
    await world.patch(POD, f"{group.name}-b", {"metadata": {"finalizers": None}})
    await group.nobody_is_left()


async def test_pg_15_a_group_that_waits_goes_with_its_workload(world: World) -> None:
    group = Group(world, "waited", total=2)
    await group.make("ab", cpu="64")
    await group.says("QuotaReserved", "False")
    await world.delete(WORKLOAD, group.name)
    await group.nobody_is_left()


@PLACES
async def test_pg_30_all_are_deleted_at_once_wherever_they_stand(world: World, queue: str) -> None:
    """PG-30: some have succeeded or failed, others run, one is gone already, and one has come to replace it."""
    group = Group(world, "at-once", queue, total=20)
    for each in "abcdefghij":
        await group.make(each, SOON if each in "ab" else SLOW)
    await group.make("klmnopqrst", SLOW)
    await group.says("Admitted", "True")
    await group.are_shown("ab", "Succeeded")
    await group.delete("c")
    await group.make("u")
    for pod in await group.pods():
        await world.delete(POD, pod["metadata"]["name"])
    await group.nobody_is_left()


async def test_pg_3_30_a_hundred_run_as_one_and_go_as_one(world: World) -> None:
    """PG-3, PG-30: they are deleted while they are let go."""
    group = Group(world, "hundred", AWAY, total=100)
    names = [f"p{number:02}" for number in range(100)]
    for some in (names[:50], names[50:]):
        await asyncio.gather(*(world.create(group.pod(each, SLOW, cpu="10m")) for each in some))
    found = await group.says("Admitted", "True")
    assert [each["count"] for each in found["spec"]["podSets"]] == [100]
    await asyncio.gather(*(world.delete(POD, f"{group.name}-{each}") for each in names))
    await group.nobody_is_left(DOUBTED_SECONDS)


async def test_pg_23_a_strangers_workload_in_the_place_of_a_groups_is_left_alone(world: World) -> None:
    """PG-23: told at once, neither adopted nor changed; the group has its own as soon as that one is gone."""
    group = Group(world, "stranger", total=2)
    template = world.pod("x", cpu="100m")["spec"]
    theirs: Json = {
        "apiVersion": f"{K}v1beta2",
        "kind": "Workload",
        "metadata": {"name": group.name, "namespace": NAMESPACE},
        "spec": {"queueName": "nobodys", "podSets": [{"name": "main", "count": 1, "template": {"spec": template}}]},
    }
    made = await world.create(theirs)
    await group.make("ab")
    assert group.name in await group.warned("a", "WorkloadNameConflict")
    found = await group.workload()
    assert found is not None
    assert (found["metadata"]["uid"], found["spec"]) == (made["metadata"]["uid"], made["spec"])
    assert "ownerReferences" not in found["metadata"]
    await world.delete(WORKLOAD, group.name)
    await group.run("ab")
    await group.remove()


async def test_pg_23_a_workload_that_says_it_is_of_a_groups_pods_runs_nothing(world: World) -> None:
    """PG-23, the attack: an owner of a foreign Workload is a pod of the group, which is not let go by its quota."""
    group = Group(world, "attacked", total=2)
    await group.make("a")
    pod = await world.get("mgmt", POD, f"{group.name}-a")
    assert pod is not None
    owner = {"apiVersion": "v1", "kind": "Pod", "name": f"{group.name}-a", "uid": pod["metadata"]["uid"]}
    template = world.pod("x", cpu="1m")["spec"]
    theirs: Json = {
        "apiVersion": f"{K}v1beta2",
        "kind": "Workload",
        "metadata": {"name": group.name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "spec": {"queueName": AT_HOME, "podSets": [{"name": "main", "count": 1, "template": {"spec": template}}]},
    }
    await world.create(theirs)
    await group.make("b")
    await group.warned("a", "WorkloadNameConflict")
    found = await group.workload()
    assert found is not None
    assert found.get("status", {}).get("admission") is None
    assert group.all_runs() == []
    await world.delete(WORKLOAD, group.name)
    await group.run("ab")
    await group.remove()


async def test_mc_7_all_deleted_while_the_worker_is_cut_off_end_on_its_return(world: World) -> None:
    """Y4: by the agent's own list."""
    group = Group(world, "cut", AWAY, total=2)
    await group.make("ab")
    await group.run("ab")
    proxy = world.installation.proxies[await placed_at(group)]
    proxy.cut()
    try:
        await group.delete("ab")
        assert await group.names(lambda pod: "deletionTimestamp" in pod["metadata"]) == "ab"
        assert group.running() == "ab"
    finally:
        proxy.mend()
    await group.nobody_is_left()
