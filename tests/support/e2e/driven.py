"""Drivers that make their workers at a worker cluster, whose agent takes them in (`groupMembers: adopt`)."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from gatelift_agent.adapters.members_gate import CONFIGURATION, NAME
from gatelift_sandbox import applying, ports
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.groups import AWAY, FOR_EVER, RETRIABLE, Group, K, placed_at
from support.e2e.world import WORKERS, Json, World

COMPONENT = Path(__file__).parents[3] / "deploy" / "components" / "group-members" / "worker"


@contextlib.asynccontextmanager
async def adopting(world: World) -> AsyncIterator[None]:
    """Have the agents of both workers take in what drivers make there, meanwhile."""
    installation = world.installation
    before = installation.agent_settings
    installation.agent_settings = {name: {**before.get(name, {}), **_settings(world, name)} for name in WORKERS}
    for name in WORKERS:
        documents = [*_documents("access.yaml"), *[one for one in _documents("gate.yaml") if one["kind"] != "Service"]]
        await applying.apply(world.clients[name], documents)
        await _restart(world, name)
        await world.until(partial(asks, world, name), f"the API server of {name} asks the agent")
    yield
    installation.agent_settings = before
    for name in WORKERS:
        await world.delete(CONFIGURATION, NAME, cluster=name)
        await _restart(world, name)
    await installation.wait_connected(*WORKERS)


async def asks(world: World, name: str) -> bool:
    """Say whether the API server of a worker asks its agent of each such pod."""
    found = await world.get(name, CONFIGURATION, NAME)
    return bool(found and found.get("webhooks"))


def _settings(world: World, name: str) -> Json:
    host, port = world.clusters[name].host_address, ports.free()
    url = f"https://{host}:{port}"
    return {"groupMembers": "adopt", "groupMembersAddress": f"{host}:{port}", "groupMembersUrl": url}


def _documents(file: str) -> list[Json]:
    return list(yaml.safe_load_all((COMPONENT / file).read_text()))


async def _restart(world: World, name: str) -> None:
    await world.installation.end(f"agent-{name}")
    await world.installation.start_agent(world.clusters[name])


class Driven(Group):
    """A group of a driver `d` and so many workers, which it makes where it runs."""

    def __init__(self, world: World, base: str, workers: int = 2, cpu: str = "100m") -> None:
        super().__init__(world, base, AWAY, None)
        self.workers = workers
        self.cpu = cpu

    async def drive(self, does: Behaviour = FOR_EVER) -> str:
        """Make the driver, and wait until it runs; return where."""
        template = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": self.cpu}}}]}}
        sets = [{"name": "driver", "count": 1}, {"name": "workers", "count": self.workers, "template": template}]
        notes = {f"{K}pod-group-sets": json.dumps(sets), RETRIABLE: "false"}
        await self.make("d", does, cpu=self.cpu, labels={f"{K}pod-group-role": "driver"}, notes=notes)
        where = await placed_at(self)
        await self.run("d")
        return where

    def worker(self, each: str, does: Behaviour = FOR_EVER, cpu: str = "") -> Json:
        """Return a worker as its driver makes it."""
        document = self.pod(each, does, cpu or self.cpu, labels={f"{K}pod-group-role": "workers"})
        del document["metadata"]["labels"][f"{K}queue-name"]
        return document

    async def makes(self, where: str, names: str, does: Behaviour = FOR_EVER, **more: Any) -> None:
        """Make workers there."""
        for each in names:
            await self.world.create(self.worker(each, does, **more), cluster=where)
