"""A driver at a worker makes its workers there, on real API servers: gated by the agent's webhook, one group (DW-6)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.values.resources import POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.driven import Driven, adopting, asks
from support.e2e.groups import K
from support.e2e.world import MODULE_SECONDS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

HEARD_SECONDS = 420.0
"""Longer than from one word of a kubelet about its node to the next: before that what vanished may have a slot."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _adopting(world: World) -> AsyncIterator[None]:
    async with adopting(world):
        yield


async def test_dw_6_what_a_driver_makes_at_a_worker_runs_as_its_group_and_ends_it(world: World) -> None:
    group = Driven(world, "driven")
    where = await group.drive(Behaviour(run_seconds=20.0))
    await group.makes(where, "abc", Behaviour(run_seconds=8.0))
    await group.run("abd")
    await group.holds("abd", lambda _: True, "are there", cluster=where)
    assert await group.names() == "d", "home has no pod of theirs"

    async def told() -> bool:
        notes = ((await group.workload()) or {})["metadata"].get("annotations", {})
        return "1 turned away" in notes.get("gatelift.dev/made-there", "")

    await world.until(told, "home tells of them")
    await group.says("Finished", "True", "Succeeded", "Pods succeeded: 3/3")
    await group.remove()


async def test_dw_6_dw_3_another_shape_waits_at_its_gate_which_nobody_else_takes_off(world: World) -> None:
    group = Driven(world, "misshapen")
    where = await group.drive()
    await group.makes(where, "a", cpu="200m")
    await group.makes(where, "b")
    await group.run("bd")
    name = f"{group.name}-a"
    for body in (
        [{"op": "remove", "path": "/spec/schedulingGates/0"}],
        [{"op": "remove", "path": "/metadata/labels/gatelift.dev~1made-here"}],
        [{"op": "replace", "path": "/metadata/labels/kueue.x-k8s.io~1pod-group-role", "value": "driver"}],
    ):
        with pytest.raises(ApiError, match=r"made-here|agent only"):
            await world.clients[where].raw(
                "PATCH",
                f"{POD.path('team-a')}/{name}",
                body=json.dumps(body).encode(),
                content_type="application/json-patch+json",
            )
    assert group.running() == "bd"
    await group.patch({"spec": {"active": False}})
    await group.holds("", lambda _: True, "are there", cluster=where)
    await group.remove()


async def test_hd_484_a_worker_that_names_its_group_by_the_annotation_is_gated_and_charged_as_any(world: World) -> None:
    """HD-484. One whose annotation cannot be a label is not made: it would run uncharged."""
    group = Driven(world, "annotated", workers=1)
    where = await group.drive()
    for each in "ab":
        document = group.worker(each)
        name = document["metadata"]["labels"].pop(f"{K}pod-group-name")
        document["metadata"]["annotations"][f"{K}pod-group-name"] = name
        await world.create(document, cluster=where)
    await group.run("ad")
    await group.holds("ad", lambda _: True, "are there", cluster=where)
    document["metadata"]["name"] += "-long"
    document["metadata"]["annotations"][f"{K}pod-group-name"] = "x" * 64
    with pytest.raises(ApiError, match="must be no more than 63"):
        await world.clients[where].create(POD, "team-a", json.dumps(document).encode())
    await group.patch({"spec": {"active": False}})
    await group.remove()


async def test_dw_8_an_agent_that_begins_anew_between_two_workers_finds_the_first_and_lets_none_go_twice(
    world: World,
) -> None:
    group = Driven(world, "restarted")
    where = await group.drive()
    await group.makes(where, "a")
    await group.run("ad")
    world.installation.kill(world.installation.daemons[f"agent-{where}"])
    await world.installation.restart(world.installation.daemons[f"agent-{where}"])
    await world.until(lambda: asks(world, where), "its gate answers")
    await group.makes(where, "bc")

    async def two_run() -> bool:
        return group.running() == "abd"

    await world.until(two_run, "another runs, once each node was heard of", seconds=HEARD_SECONDS)
    await group.holds("abd", lambda _: True, "are there", cluster=where)
    assert len(group.runs_of("a")) == 1
    await group.patch({"spec": {"active": False}})
    await group.holds("", lambda _: True, "are there", cluster=where)
    assert group.running() == ""
    await group.remove()


async def test_hd_380_while_no_agent_answers_such_a_pod_cannot_be_made(world: World) -> None:
    """HD-380. Others can."""
    group = Driven(world, "ungated")
    await world.installation.end("agent-w1")
    try:
        with pytest.raises(ApiError, match=r"members\.agent\.gatelift\.dev"):
            await world.clients["w1"].create(POD, "team-a", json.dumps(group.worker("a")).encode())
        other = group.worker("b")
        del other["metadata"]["labels"][f"{K}pod-group-role"]
        await world.create(other, cluster="w1")
        await world.delete(POD, f"{group.name}-b", cluster="w1")
    finally:
        await world.installation.start_agent(world.clusters["w1"])
        await world.installation.wait_connected("w1")
