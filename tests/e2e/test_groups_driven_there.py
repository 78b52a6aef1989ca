"""A driver at a worker makes its workers there, on real API servers: gated by the agent's webhook, one group (DW-6)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from gatelift_agent.adapters.members_gate import CONFIGURATION, NAME
from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.values.resources import POD
from gatelift_sandbox import applying, ports
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.groups import AWAY, RETRIABLE, Group, K, placed_at
from support.e2e.world import MODULE_SECONDS, WORKERS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

COMPONENT = Path(__file__).parents[2] / "deploy" / "components" / "group-members" / "worker"
FOR_EVER = Behaviour()
HEARD_SECONDS = 420.0
"""Longer than from one word of a kubelet about its node to the next: before that what vanished may have a slot."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _adopting(world: World) -> AsyncIterator[None]:
    """Have the agents of both workers take in what drivers make there."""
    installation = world.installation
    before = installation.agent_settings
    installation.agent_settings = {name: {**before.get(name, {}), **_settings(world, name)} for name in WORKERS}
    for name in WORKERS:
        documents = [*_documents("access.yaml"), *[one for one in _documents("gate.yaml") if one["kind"] != "Service"]]
        await applying.apply(world.clients[name], documents)
        await _restart(world, name)
        await world.until(partial(_asks, world, name), f"the API server of {name} asks the agent")
    yield
    installation.agent_settings = before
    for name in WORKERS:
        await world.delete(CONFIGURATION, NAME, cluster=name)
        await _restart(world, name)
    await installation.wait_connected(*WORKERS)


def _settings(world: World, name: str) -> Json:
    host, port = world.clusters[name].host_address, ports.free()
    url = f"https://{host}:{port}"
    return {"groupMembers": "adopt", "groupMembersAddress": f"{host}:{port}", "groupMembersUrl": url}


def _documents(file: str) -> list[Json]:
    return list(yaml.safe_load_all((COMPONENT / file).read_text()))


async def _restart(world: World, name: str) -> None:
    await world.installation.end(f"agent-{name}")
    await world.installation.start_agent(world.clusters[name])


async def _asks(world: World, name: str) -> bool:
    found = await world.get(name, CONFIGURATION, NAME)
    return bool(found and found.get("webhooks"))


class Driven(Group):
    """A group of a driver `d` and so many workers, which it makes where it runs."""

    def __init__(self, world: World, base: str, workers: int = 2) -> None:
        super().__init__(world, base, AWAY, None)
        self.workers = workers

    async def drive(self, does: Behaviour = FOR_EVER) -> str:
        """Make the driver, and wait until it runs; return where."""
        template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}}
        sets = [{"name": "driver", "count": 1}, {"name": "workers", "count": self.workers, "template": template}]
        notes = {f"{K}pod-group-sets": json.dumps(sets), RETRIABLE: "false"}
        await self.make("d", does, labels={f"{K}pod-group-role": "driver"}, notes=notes)
        where = await placed_at(self)
        await self.run("d")
        return where

    def worker(self, each: str, does: Behaviour = FOR_EVER, cpu: str = "100m") -> Json:
        """Return a worker as its driver makes it."""
        document = self.pod(each, does, cpu, labels={f"{K}pod-group-role": "workers"})
        del document["metadata"]["labels"][f"{K}queue-name"]
        return document

    async def makes(self, where: str, names: str, does: Behaviour = FOR_EVER, **more: Any) -> None:
        """Make workers there."""
        for each in names:
            await self.world.create(self.worker(each, does, **more), cluster=where)


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
    await world.until(lambda: _asks(world, where), "its gate answers")
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
