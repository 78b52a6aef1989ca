"""Pods of a group on real API servers, at home and at a worker: they wait, run as one, and end with a result."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e import group_story
from support.e2e.groups import PLACES, RETRIABLE, Group, K
from support.e2e.world import GPU, MODULE_SECONDS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

SOON = Behaviour(run_seconds=0.5)
FAILS = Behaviour(run_seconds=0.5, exit_code=1)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def story_queues(world: World) -> AsyncIterator[None]:
    await group_story.queues(world, "story")
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


@pytest.mark.parametrize("name", ["story-home", "story-away"])
async def test_pg_1_2_the_documents_manifests_run_as_one_under_one_quota(world: World, name: str) -> None:
    """PG-1 at home, PG-2 at a worker; B1, B2 and B5 of what MultiKueue does: gated as a whole, let go as a whole."""
    async with group_story.user_queue(world, name):
        await group_story.told(world, name)


@PLACES
async def test_pg_11_3_all_succeed_and_the_group_is_done(world: World, queue: str) -> None:
    """PG-11, PG-3: two roles, one Workload; its pods stay, without our finalizer. HD-650: also such that tolerate."""
    group = Group(world, "done", queue)
    await group.make("a", SOON, cpu="200m")
    await group.make("bc", SOON, tolerations=[{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}])
    done = await group.says("Finished", "True", "Succeeded", "Pods succeeded: 3/3")
    assert sorted(each["count"] for each in done["spec"]["podSets"]) == [1, 2]
    await group.are_held("")
    await group.are_shown("abc", "Succeeded")
    assert {run.cluster for run in group.all_runs()} == {done["status"].get("clusterName", "mgmt")}
    await group.remove()


async def test_pg_3_a_group_of_one(world: World) -> None:
    group = Group(world, "one", total=1)
    await group.make("a", SOON)
    await group.says("Finished", "True", "Succeeded", "Pods succeeded: 1/1")
    await group.remove()


@PLACES
async def test_pg_4_an_incomplete_group_is_told_and_runs_once_it_is_complete(world: World, queue: str) -> None:
    group = Group(world, "partly", queue)
    await group.make("ab")
    assert await group.warned("a", "ErrWorkloadCompose") == "1 of 3 pods of the group is not there yet"
    assert await group.workload() is None
    assert group.all_runs() == []
    await group.make("c")
    await group.run("abc")
    await group.remove()


async def test_pg_5_who_is_too_many_while_the_group_waits_is_deleted_and_told(world: World) -> None:
    group = Group(world, "excess", total=2)
    await group.make("ab", cpu="64")
    await group.says("QuotaReserved", "False")
    await group.make("c", cpu="64")
    await group.exist("ab")
    assert await group.warned("c", "ExcessPodDeleted")
    await group.remove()


@PLACES
async def test_pg_6_who_is_too_many_of_its_role_in_a_group_that_runs_is_deleted(world: World, queue: str) -> None:
    group = Group(world, "beyond", queue, total=2)
    await group.make("a", cpu="200m")
    await group.make("b")
    await group.run("ab")
    await group.make("c")
    assert await group.warned("c", "ExcessPodDeleted")
    await group.exist("ab")
    assert group.running() == "ab"
    assert not group.runs_of("c")
    await group.remove()


@PLACES
async def test_pg_14_12_a_group_of_which_some_failed_for_good_is_failed_with_numbers(world: World, queue: str) -> None:
    """PG-14; PG-12: said from the start."""
    group = Group(world, "failed", queue)
    never = {RETRIABLE: "false"}
    await group.make("a", SOON, notes=never)
    await group.make("bc", FAILS, notes=never)
    await group.says("Finished", "True", "Failed", "Pods succeeded: 1/3, failed: 2")
    await group.are_held("")
    await group.remove()


@PLACES
async def test_pg_13_nobody_is_to_be_replaced_once_that_is_said_of_one_that_has_failed(
    world: World, queue: str
) -> None:
    group = Group(world, "later", queue, total=2)
    await group.make("a", FAILS)
    await group.make("b", SOON)
    await group.says("WaitingForReplacementPods", "True", "PodsFailed")
    await group.are_shown("b", "Succeeded")
    await world.patch(POD, f"{group.name}-a", {"metadata": {"annotations": {RETRIABLE: "false"}}})
    await group.says("Finished", "True", "Failed", "Pods succeeded: 1/2, failed: 1")
    await group.are_held("")
    await group.remove()


async def test_pg_20_with_fast_admission_the_first_pod_has_quota_reserved_for_all(world: World) -> None:
    group = Group(world, "fast")
    await group.make("a", notes={f"{K}pod-group-fast-admission": "true"})
    admitted = await group.says("Admitted", "True")
    assert [each["count"] for each in admitted["spec"]["podSets"]] == [3]
    await group.run("a")
    await group.make("bc", notes={f"{K}pod-group-fast-admission": "true"})
    await group.run("abc")
    await group.remove()


@PLACES
async def test_pg_21_a_serving_group_goes_on_when_all_its_pods_have_ended(world: World, queue: str) -> None:
    group = Group(world, "serving", queue, total=2)
    await group.make("a", SOON, notes={f"{K}pod-group-serving": "true"})
    await group.make("b", notes={f"{K}pod-group-serving": "true"})
    await group.are_shown("a", "Succeeded")
    await group.run("b")
    found = await group.workload()
    assert found is not None
    assert found["status"].get("reclaimablePods", []) == []
    await group.are_held("ab")
    await group.remove()


@PLACES
async def test_pg_25_hd_395_a_member_with_a_gate_of_its_users_counts_and_runs_once_that_is_off(
    world: World, queue: str
) -> None:
    group = Group(world, "gated", queue, total=2)
    await group.make("a")
    await group.make("b", schedulingGates=[{"name": "example.com/wait"}])
    await group.says("Admitted", "True")
    await group.run("a")
    pod = await world.get("mgmt", POD, f"{group.name}-b")
    assert pod is not None
    left = [each for each in pod["spec"]["schedulingGates"] if each["name"] != "example.com/wait"]
    await world.patch(POD, f"{group.name}-b", {"spec": {"schedulingGates": left}})
    await group.run("ab")
    await group.remove()
