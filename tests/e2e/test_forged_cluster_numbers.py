"""HD-225, HD-226: numbers that nobody has come to in a WorkerCluster's status, on a real API server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.installation import MANAGER, MANAGER_ACCOUNT
from support.e2e.world import MODULE_SECONDS, WORKERS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

HIGHEST = 2**63 - 1
SOON_SECONDS = 30.0
WHERE = WORKERS[-1]
TERMS = [pytest.param({"term": 1000}, id="HD-225 term 1000"), pytest.param({"term": 2**62}, id="HD-225 term 2^62")]
SESSIONS = [
    pytest.param({"session": HIGHEST}, id="HD-226 session"),
    pytest.param({"settledSession": HIGHEST, "fencedThroughSession": HIGHEST}, id="HD-226 words"),
    pytest.param({"replacedSession": HIGHEST, "openedSession": HIGHEST}, id="HD-226 doubts"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def client(world: World) -> AsyncIterator[Client]:
    """Give the manager's own credentials, which the policies let through."""
    config = await from_kubeconfig(str(world.installation.kubeconfig(world.clusters["mgmt"], MANAGER_ACCOUNT)))
    async with Client.connect(config) as connected:
        yield connected


async def write(client: Client, cluster: str, numbers: Json) -> None:
    ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", cluster))
    await client.patch(ref, json.dumps({"status": numbers}).encode(), subresource="status")


async def status(world: World, cluster: str) -> Json:
    found = await world.get("mgmt", WORKER_CLUSTER, cluster)
    assert found is not None
    said: Json = found["status"]
    return said


async def runs(world: World, queue: str, cluster: str | None = None) -> None:
    name = world.name("after-it")
    pod = world.pod(name, queue, does=Behaviour(run_seconds=0.5))
    if cluster is not None:
        pod["metadata"].setdefault("annotations", {})["gatelift.dev/cluster"] = cluster
    await world.create(pod)
    await world.phase(name, "Succeeded")


async def gone(world: World, cluster: str, numbers: Json) -> None:
    async def put_back() -> bool:
        said = await status(world, cluster)
        return all(said.get(name, 0) != number for name, number in numbers.items())

    await world.until(put_back, f"{numbers} is written over", SOON_SECONDS)


@pytest.mark.parametrize("numbers", TERMS + SESSIONS)
async def test_hd_225_hd_226_what_its_leader_knows_better_is_put_back_within_seconds(
    world: World, client: Client, numbers: Json
) -> None:
    before = await status(world, WHERE)
    await write(client, WHERE, numbers)
    await gone(world, WHERE, numbers)
    after = await status(world, WHERE)
    assert {name: after.get(name, 0) for name in numbers} == {name: before.get(name, 0) for name in numbers}
    agent = world.installation.daemons[f"agent-{WHERE}"]
    world.installation.kill(agent)
    await world.installation.restart(agent)

    async def served() -> bool:
        return bool((await status(world, WHERE))["session"] == before["session"] + 1)

    await world.until(served, "its agent gets the next session", SOON_SECONDS)
    await runs(world, "multi", WHERE)


@pytest.mark.parametrize(("cluster", "queue"), [("local", "at-home"), (WHERE, "multi")])
@pytest.mark.parametrize("numbers", [*TERMS, SESSIONS[0]])
async def test_hd_225_hd_226_the_next_leader_serves_though_it_finds_it(
    world: World, client: Client, numbers: Json, cluster: str, queue: str
) -> None:
    manager = world.installation.daemons[MANAGER]
    world.installation.kill(manager)
    await world.installation.restart(manager)  # it waits for the Lease of who was killed
    await write(client, cluster, numbers)
    await world.installation.wait_connected(*WORKERS)
    await gone(world, cluster, numbers)
    await runs(world, queue, None if cluster == "local" else cluster)
