"""Members of a group on real API servers that fail, are deleted or vanish, and who takes their slots."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.groups import AWAY, PLACES, Group, placed_at, remove_at
from support.e2e.world import MODULE_SECONDS, NAMESPACE, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

SOON = Behaviour(run_seconds=0.5)
FAILS = Behaviour(run_seconds=0.5, exit_code=1)
SLOW = Behaviour(stop_seconds=3.0)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def no_overlaps(world: World) -> AsyncIterator[None]:
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


def never_two_in_a_slot(group: Group, before: str, after: str) -> None:
    """Check that a pod began to run after another one had stopped."""
    [old], [new] = group.runs_of(before), group.runs_of(after)
    assert old.stopped is not None
    assert old.stopped <= new.started


@PLACES
async def test_pg_7_a_member_that_failed_is_replaced_under_the_same_workload_and_quota(
    world: World, queue: str
) -> None:
    """PG-7: its finalizer goes once another pod has its slot, and not before."""
    group = Group(world, "replaced", queue)
    await group.make("a", FAILS)
    await group.make("bc")
    await group.are_shown("a", "Failed")
    before = await group.says("WaitingForReplacementPods", "True", "PodsFailed")
    await group.are_held("abc")
    await group.make("d")
    await group.run("bcd")
    await group.are_held("bcd")
    after = await group.says("WaitingForReplacementPods", "False", "PodsReady")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["admission"] == before["status"]["admission"]
    await group.remove()


async def test_pg_8_the_slot_of_who_failed_first_is_taken_first(world: World) -> None:
    group = Group(world, "oldest")
    await group.make("a", Behaviour(run_seconds=2.5, exit_code=1))
    await group.make("b", FAILS)
    await group.make("c")
    await group.are_shown("ab", "Failed")
    await group.make("d")
    await group.are_held("acd")
    await group.make("e")
    await group.are_held("cde")
    await group.run("cde")
    await group.remove()


@PLACES
async def test_pg_9_who_comes_early_for_one_that_leaves_waits_for_it_and_is_not_too_many(
    world: World, queue: str
) -> None:
    group = Group(world, "early", queue, total=2)
    await group.make("a", SLOW)
    await group.make("b")
    await group.run("ab")
    await group.delete("a")
    await group.make("c")
    await group.run("bc")
    never_two_in_a_slot(group, "a", "c")
    await group.exist("bc")
    await group.remove()


async def test_pg_10_who_is_deleted_before_it_has_a_node_is_replaced_at_once(world: World) -> None:
    group = Group(world, "unbound", total=2)
    await group.make("a")
    await group.make("b", cpu="20")  # more than a node has, and less than would be refused
    await group.says("QuotaReserved", "False")
    await group.delete("b")
    await group.make("c")
    await group.run("ac")
    await group.remove()


async def test_re_10_who_succeeded_gives_his_share_back_and_who_failed_does_not(world: World) -> None:
    """RE-10: by role, while the rest of the group runs."""
    group, waiting = Group(world, "shares"), Group(world, "waits", total=1)
    await group.make("a", SOON, cpu="1500m")
    await group.make("b", FAILS, cpu="1500m")
    await group.make("c", cpu="1")
    await waiting.make("a", cpu="1500m")
    await waiting.run("a")
    [done], [other] = group.runs_of("a"), waiting.runs_of("a")
    assert done.stopped is not None
    assert done.stopped <= other.started
    found = await group.workload()
    assert found is not None
    assert [each["count"] for each in found["status"]["reclaimablePods"]] == [1]
    await waiting.remove()
    await group.remove()


async def test_mc_4_who_is_deleted_at_home_ends_there_and_leaves_its_slot(world: World) -> None:
    group = Group(world, "gone-home", AWAY, total=2)
    await group.make("a", SLOW)
    await group.make("b")
    await group.run("ab")
    before = await group.uid()
    await group.delete("a")
    await group.exist("b")
    await group.run("b")
    await group.make("c")
    await group.run("bc")
    never_two_in_a_slot(group, "a", "c")
    assert await group.uid() == before
    await group.remove()


async def test_mc_5_hd_396_who_is_removed_at_the_worker_is_shown_as_failed_and_can_be_replaced(world: World) -> None:
    group = Group(world, "gone-there", AWAY, total=2)
    await group.make("ab")
    await group.run("ab")
    await world.delete(POD, f"{group.name}-a", cluster=await placed_at(group))
    await group.are_shown("a", "Failed")
    pod = await world.get("mgmt", POD, f"{group.name}-a")
    assert pod is not None
    assert pod["status"]["reason"] == "WorkerPodDeleted"
    assert group.running() == "b"
    await group.make("c")
    await group.run("bc")
    await group.are_held("bc")
    await group.remove()


async def test_mc_8_a_replacement_of_the_same_name_is_another_pod_made_after_the_old_one_has_stopped(
    world: World,
) -> None:
    group = Group(world, "same", AWAY, total=2)
    await group.make("a", SLOW)
    await group.make("b")
    await group.run("ab")
    await group.delete("a")
    await group.exist("b")
    await group.make("a")

    async def again() -> bool:
        return len(group.runs_of("a")) == 2

    await world.until(again, "another pod of that name runs")
    first, second = group.runs_of("a")
    assert first.stopped is not None
    assert first.stopped <= second.started
    there = await world.get(await placed_at(group), POD, f"{group.name}-a")
    at_home = await world.get("mgmt", POD, f"{group.name}-a")
    assert at_home is not None
    assert there is not None
    assert there["metadata"]["annotations"]["gatelift.dev/user-uid"] == at_home["metadata"]["uid"]
    await group.remove()


async def test_mc_3_a_name_that_somebody_has_at_the_worker_is_a_refusal_before_anything_runs(world: World) -> None:
    """MC-3: the group runs at the other one; with a foreign pod at both it waits, and says whose name is taken."""
    group = Group(world, "taken", AWAY, total=2)
    for worker in ("w1", "w2"):
        await world.create(stranger(world, f"{group.name}-b"), cluster=worker)
    await group.make("ab")

    async def told() -> Json | None:
        found = await group.workload()
        text = str((found or {}).get("status", {}))
        return found if "NameConflict" in text or "another object" in text or "somebody" in text else None

    await world.until(told, "it is told of")
    assert group.runs_of("a") == []
    for worker in ("w1", "w2"):
        await remove_at(world, worker, f"{group.name}-b")
    await group.run("ab")
    await group.remove()


def stranger(world: World, name: str) -> Json:
    """Return a pod of somebody else at a worker."""
    pod = world.pod(name)
    pod["metadata"] = {"name": name, "namespace": NAMESPACE}
    return pod
