"""A second manager takes over; the first, paused and woken, commands and releases nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.deciding.errors import ConflictError
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.values.resources import LEASE, POD, WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.installation import MANAGER, MANAGER_ACCOUNT, SYSTEM, InstalledProcess
from support.e2e import audit_log
from support.e2e.audit_log import Write
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

SECOND = "manager-2"


@pytest_asyncio.fixture(loop_scope="session")
async def first(world: World) -> AsyncIterator[InstalledProcess]:
    """Give the leading manager to be paused. However the test ends, one manager of that name leads after it."""
    try:
        yield world.installation.daemons[MANAGER]
    finally:
        await _lead_again(world)


async def _lead_again(world: World) -> None:
    """End both managers, whatever they do, and start the first one anew."""
    world.keeper.left |= {MANAGER, SECOND}
    for name in (MANAGER, SECOND):
        if name in world.installation.daemons:
            await world.installation.end(
                name
            )  # a session that it had still opened would be taken for one with the next
    await world.installation.start_manager(MANAGER)
    world.keeper.left -= {MANAGER, SECOND}
    _send_agents_elsewhere(world)
    await world.installation.wait_connected(*WORKERS)


async def test_a_paused_leader_that_wakes_finds_itself_deposed_and_writes_nothing(
    world: World, first: InstalledProcess
) -> None:
    name, other = world.name("takeover"), world.name("under-the-second")
    await world.create(world.pod(name, does=Behaviour()))
    worker = await world.running_on(name)
    await world.phase(name, "Running")  # all of it is shown: the leader is not paused while a write leaves its process
    before = await world.get(worker, POD, name)
    assert before is not None
    term = await _term(world, worker)
    world.keeper.left.add(first.name)  # it is to end, and to stay so
    world.installation.signal(first, signal.SIGSTOP)
    await world.installation.start_manager(SECOND)
    _send_agents_elsewhere(world)

    async def taken_over() -> bool:
        return await _term(world, worker) > term

    try:
        await world.until(taken_over, "the second manager writes its term")
        await world.installation.wait_connected(*WORKERS)
        await world.create(world.pod(other, does=Behaviour(run_seconds=1.0)))
        await world.phase(other, "Succeeded")
        woken = audit_log.size(_log(world))
        assert audit_log.writes(_log(world)), "what happened until now is in the audit log"
    finally:
        world.installation.signal(first, signal.SIGCONT)

    async def ended() -> bool:
        return not first.alive

    await world.until(ended, "the deposed manager ends itself")
    after = await world.get(worker, POD, name)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    workload = await world.workload_of(name)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    assert workload["status"]["clusterName"] == worker
    lease = await world.get("mgmt", LEASE, "gatelift-manager", namespace=SYSTEM)
    assert lease is not None
    assert lease["spec"]["holderIdentity"], "the second one still leads"
    await world.remove(POD, name)
    await world.nothing_left(other)
    await _check_writes(world, woken, name, other)


async def test_hd_171_a_term_that_no_leader_has_ends_nobody_and_is_put_back(world: World) -> None:
    """Written with the manager's own credentials, which the policies let through."""
    name = world.name("forged-term")
    await world.create(world.pod(name, does=Behaviour()))
    worker = await world.running_on(name)
    term, led, manager = await _term(world, worker), await _holder(world), world.installation.daemons[MANAGER]
    config = await from_kubeconfig(str(world.installation.kubeconfig(world.clusters["mgmt"], MANAGER_ACCOUNT)))
    async with Client.connect(config) as client:

        async def forged() -> bool:
            workload = await world.workload_of(name)
            assert workload is not None
            _mark(workload)["gatelift.dev/term"] = "999999"
            ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, workload["metadata"]["name"]))
            with suppress(ConflictError):
                await client.patch(ref, json.dumps(workload).encode(), PatchKind.REPLACE, subresource="status")
                return True
            return False

        await world.until(forged, "somebody writes it around the policies")

    async def put_back() -> bool:
        workload = await world.workload_of(name)
        return workload is not None and _mark(workload)["gatelift.dev/term"] == str(term)

    await world.until(put_back, "the term is put back")
    assert manager.alive
    assert await _holder(world) == led
    other = world.name("after-it")
    await world.create(world.pod(other, does=Behaviour(run_seconds=0.5)))
    await world.phase(other, "Succeeded")
    assert await world.running_on(name) == worker
    await world.remove(POD, name, other)


def _mark(workload: Json) -> Json:
    marks: Json = workload["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]
    return marks


async def _holder(world: World) -> str:
    lease = await world.get("mgmt", LEASE, "gatelift-manager", namespace=SYSTEM)
    assert lease is not None
    return str(lease["spec"]["holderIdentity"])


async def _check_writes(world: World, woken: int, *pods: str) -> None:
    """Check who wrote before and after the first manager woke, by the audit log of the management cluster."""
    first, second = _token(world, MANAGER_ACCOUNT), _token(world, SECOND)

    async def seen() -> bool:  # a write can be read before its answer, and the line in the log, are written
        later = audit_log.writes(_log(world), woken)
        return any(_of(pods, write) for write in later if write.credential == second)

    await world.until(seen, "the second one's writes are in the audit log")
    until_then = audit_log.writes(_log(world))
    assert any(_of(pods, write) for write in until_then if write.credential == first), "the first led at the beginning"
    since = audit_log.writes(_log(world), woken)
    assert [write for write in since if write.credential == first and write.done] == []
    refused = {write.code for write in since if write.credential == first}
    assert refused <= {409}, "what was on its way when the first one was paused met another version of the object"


def _of(pods: tuple[str, ...], write: Write) -> bool:
    return write.done and any(pod in write.name for pod in pods)


def _log(world: World) -> Path:
    logs = world.clusters["mgmt"].logs
    assert logs is not None
    return logs / "audit.log"


def _token(world: World, holder: str) -> str:
    return audit_log.credential(world.installation.kubeconfig(world.clusters["mgmt"], holder))


def _send_agents_elsewhere(world: World) -> None:
    """Break the agents' connections; new ones go to the manager that was started last."""
    for proxy in world.installation.proxies.values():
        proxy.cut()
        proxy.mend()


async def _term(world: World, worker: str) -> int:
    found = await world.get("mgmt", WORKER_CLUSTER, worker)
    assert found is not None
    return int(found["status"]["term"])
