"""Daemons are killed and come back, networks are cut and mended: nothing runs twice, nothing is lost."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.books import Books
from support.e2e.world import GRACE_SECONDS, MODULE_SECONDS, NAMESPACE, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

HELD_SECONDS = 60.0
"""The longest time for which the report's finalizer holds up a pod's removal while no manager answers."""
MARGIN_SECONDS = 60.0
"""For the writes and looks in between, on a busy machine. Without the limit it would be held up until the manager is
back, which here is never."""
DRAIN_SECONDS = HELD_SECONDS + GRACE_SECONDS + MARGIN_SECONDS
LONG_ENOUGH = Behaviour(run_seconds=15.0)
"""It runs, is seen to, and its daemon is killed before it ends: on a busy machine nobody looks for seconds."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def books(world: World) -> AsyncIterator[Books]:
    """Keep books of what runs and what is charged through all crashes of this module."""
    async with Books(world.clients, NAMESPACE, "mgmt").kept() as kept:
        yield kept


async def test_an_agent_that_is_killed_and_restarted_touches_no_pod(world: World) -> None:
    name = world.name("agent-killed")
    await world.create(world.pod(name, does=Behaviour()))
    worker = await world.running_on(name)
    before = await world.get(worker, POD, name)
    assert before is not None
    agent = world.installation.daemons[f"agent-{worker}"]
    world.installation.kill(agent)
    await world.installation.restart(agent)
    await world.installation.wait_connected(worker)
    after = await world.get(worker, POD, name)
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["startTime"] == before["status"]["startTime"]
    assert after["status"]["phase"] == "Running"
    assert "deletionTimestamp" not in after["metadata"]
    workload = await world.workload_of(name)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    await world.remove(POD, name)


async def test_a_job_outlives_the_death_of_its_agent(world: World) -> None:
    name = world.name("agent-killed-job")
    await world.create(world.job(name, pods=3, does=LONG_ENOUGH))

    async def placed() -> str | None:
        for worker in WORKERS:
            job = await world.get(worker, JOB, name)
            if job is not None and job.get("status", {}).get("active") == 3:
                return worker
        return None

    worker = await world.until(placed, f"Job {name} runs on a worker")
    agent = world.installation.daemons[f"agent-{worker}"]
    world.installation.kill(agent)
    await world.installation.restart(agent)
    await world.condition(name, "Finished", kind="Job")
    job = await world.get("mgmt", JOB, name)
    assert job is not None
    assert job["status"]["succeeded"] == 3
    await world.nothing_left(name)


async def test_a_manager_that_is_killed_and_restarted_relaunches_and_loses_nothing(world: World) -> None:
    running, finished = world.name("manager-killed"), world.name("manager-away")
    await world.create(world.pod(running, does=Behaviour()))
    worker = await world.running_on(running)
    await world.create(world.pod(finished, does=LONG_ENOUGH))
    other = await world.running_on(finished)
    before = await world.get(worker, POD, running)
    manager = world.installation.daemons["manager"]
    world.installation.kill(manager)

    async def ended() -> bool:
        pod = await world.get(other, POD, finished)
        return pod is not None and pod["status"].get("phase") == "Succeeded"

    await world.until(ended, f"pod {finished} ends while the manager is away")
    await world.installation.restart(manager)
    await world.phase(finished, "Succeeded")
    await world.condition(finished, "Finished")
    after = await world.get(worker, POD, running)
    assert before is not None
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    workload = await world.workload_of(running)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    await world.remove(POD, running)
    await world.nothing_left(finished)


async def test_what_a_user_deletes_while_its_worker_is_cut_off_is_removed_on_its_return(world: World) -> None:
    name = world.name("cut-off")
    await world.create(world.job(name, pods=2, does=Behaviour()))

    async def placed() -> str | None:
        for worker in WORKERS:
            job = await world.get(worker, JOB, name)
            if job is not None and job.get("status", {}).get("active") == 2:
                return worker
        return None

    worker = await world.until(placed, f"Job {name} runs on a worker")
    proxy = world.installation.proxies[worker]
    proxy.cut()
    try:
        await world.delete(JOB, name)
        await world.gone("mgmt", JOB, name)
        workload = await world.workload_of(name, "Job")
        assert workload is not None, "a deleted workload on an unreachable cluster stays charged and shown"
        remote = await world.get(worker, JOB, name)
        assert remote is not None
        assert remote["status"]["active"] == 2, "running work is left alone while nobody can be asked"
    finally:
        proxy.mend()
    await world.nothing_left(name)
    await world.no_workload(name, "Job")
    await world.installation.wait_connected(*WORKERS)


async def test_a_short_cut_changes_nothing_for_what_runs(world: World) -> None:
    name = world.name("short-cut")
    await world.create(world.pod(name, does=LONG_ENOUGH))
    worker = await world.running_on(name)
    before = await world.get("mgmt", WORKER_CLUSTER, worker)
    assert before is not None
    proxy = world.installation.proxies[worker]
    proxy.cut()
    proxy.mend()

    async def anew() -> bool:
        after = await world.get("mgmt", WORKER_CLUSTER, worker)
        return after is not None and bool(after["status"]["session"] > before["status"]["session"])

    await world.until(anew, "a new stream is a new session")
    await world.phase(name, "Succeeded")
    workload = await world.condition(name, "Finished")
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    await world.nothing_left(name)


async def test_a_drained_nodes_pod_is_held_up_no_longer_than_a_minute_while_the_manager_is_away(world: World) -> None:
    name = world.name("drained")
    await world.create(world.pod(name, does=Behaviour()))
    worker = await world.running_on(name)
    manager = world.installation.daemons["manager"]
    world.installation.kill(manager)
    try:
        async with world.draining(worker, name) as began:
            await world.gone(worker, POD, name, seconds=DRAIN_SECONDS)
            took = time.monotonic() - began
    finally:
        await world.installation.restart(manager)
    assert took <= DRAIN_SECONDS
    await world.installation.wait_connected(*WORKERS)

    async def told() -> bool:
        workload = await world.workload_of(name)
        if workload is None:
            return True
        conditions = {each["type"]: each["status"] for each in workload.get("status", {}).get("conditions", [])}
        ended = "True" in {conditions.get("Evicted"), conditions.get("Finished")}
        return ended or workload["metadata"]["annotations"]["gatelift.dev/epoch"] != "1"

    await world.until(told, f"the end of pod {name} reaches the manager from the agent's records")
    await world.remove(POD, name)


async def test_no_two_epochs_of_a_workload_ran_at_the_same_time_in_spite_of_crashes(world: World) -> None:
    assert world.overlaps() == []


async def test_hd_8_nothing_ran_that_nobody_was_charged_for_in_spite_of_crashes(books: Books) -> None:
    assert books.wrong == []
    assert books.account.checks, "they were kept"
