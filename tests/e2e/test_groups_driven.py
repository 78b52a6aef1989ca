"""KEP-976's story 3 on real API servers: a driver declares its workers, and makes them once it runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.group_story import declared
from support.e2e.groups import AT_HOME, FOR_EVER, RETRIABLE, Group, K
from support.e2e.world import MODULE_SECONDS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

ROLE = f"{K}pod-group-role"
SOON = Behaviour(run_seconds=0.5)


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def no_overlaps(world: World) -> AsyncIterator[None]:
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


async def driven(
    world: World, base: str, count: int, does: Behaviour = FOR_EVER, *, cpu: str = "100m", **notes: str
) -> Group:
    """Make a driver `a` that declares so many workers."""
    group = Group(world, base, AT_HOME, total=None)
    said = {f"{K}pod-group-sets": declared(count, cpu), **notes}
    await group.make("a", does, notes=said)
    return group


async def work(group: Group, names: str, does: Behaviour = FOR_EVER, **more: Any) -> None:
    """Make workers as the driver does."""
    await group.make(names, does, labels={ROLE: "workers"}, **more)


async def test_dw_1_a_driver_and_ten_workers_have_one_quota_and_run(world: World) -> None:
    """DW-1: all is admitted for the driver's declaration; a worker is let go as it comes, under the same admission."""
    group = await driven(world, "driver", 10)
    await group.run("a")
    admitted = await group.says("Admitted", "True")
    assert {each["name"]: each["count"] for each in admitted["status"]["admission"]["podSetAssignments"]} == {
        "driver": 1,
        "workers": 10,
    }
    await work(group, "b")
    await group.run("ab")
    await work(group, "cdefghijk")
    await group.run("abcdefghijk")
    after = await group.workload()
    assert after is not None
    assert after["metadata"]["uid"] == admitted["metadata"]["uid"]
    assert after["status"]["admission"] == admitted["status"]["admission"]
    await group.remove()


async def test_dw_2_3_a_worker_too_many_is_deleted_and_one_of_another_shape_is_never_let_go(world: World) -> None:
    """DW-2, DW-3: each is told why."""
    group = await driven(world, "strict", 2)
    await work(group, "x", cpu="200m")
    assert "200m" in await group.warned("x", "GroupShapeMismatch")
    await work(group, "bc")
    await group.run("abc")
    await work(group, "d")
    assert await group.warned("d", "ExcessPodDeleted")
    await group.exist("abcx")
    assert not group.runs_of("x")
    await group.remove()


async def test_dw_4_a_driver_waits_until_all_that_it_declares_has_room(world: World) -> None:
    group = await driven(world, "large", 10, cpu="1")
    await group.says("QuotaReserved", "False")
    assert not group.all_runs()
    await group.remove()


async def test_dw_5_the_group_is_over_with_its_driver_where_that_is_not_to_be_replaced(world: World) -> None:
    """DW-5, as Spark does it: the driver deletes its workers, and ends. Those are gone, and the message says so."""
    group = await driven(world, "spark", 2, Behaviour(run_seconds=4.0), **{RETRIABLE: "false"})
    await work(group, "bc")
    await group.run("abc")
    await group.delete("bc")
    await group.exist("a")
    await group.says("Finished", "True", "Failed", "Pods succeeded: 1/3, gone: 2")
    await group.are_held("")
    await group.remove()


async def test_dw_5_without_that_word_it_is_over_when_all_have_succeeded(world: World) -> None:
    group = await driven(world, "kept", 2, Behaviour(run_seconds=2.0))
    await work(group, "bc", SOON)
    await group.says("Finished", "True", "Succeeded", "Pods succeeded: 3/3")
    await group.remove()


async def test_dw_7_a_driver_that_dies_while_its_workers_run_is_replaced_by_another(world: World) -> None:
    group = await driven(world, "dies", 2, Behaviour(run_seconds=3.0, exit_code=1))
    await work(group, "bc")
    await group.run("abc")
    await group.are_shown("a", "Failed")
    await group.says("WaitingForReplacementPods", "True", "PodsFailed")
    assert group.running() == "bc"
    said = {f"{K}pod-group-sets": declared(2, "100m")}
    await group.make("d", notes=said)
    await group.run("bcd")
    await group.are_held("bcd")
    assert await world.get("mgmt", POD, f"{group.name}-a") is not None
    await group.remove()
