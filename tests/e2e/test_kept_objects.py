"""IS-46: a Job that failed is there at its worker to be looked at, costs no quota, and goes with its user's object.

Here since a real API server and a real Job controller say what a Job that is over may still be.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import queue, said, set_up
from support.e2e.world import MODULE_SECONDS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
FAILS = Behaviour(run_seconds=0.5, exit_code=3)
WORKS = Behaviour(run_seconds=0.5)
QUEUE, ALL_OF_IT = "kept", "1"
"""It has room for one Job at a time."""
REPORT = "gatelift.dev/report"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def a_small_queue(world: World) -> None:
    await set_up(world, [queue(QUEUE, ALL_OF_IT)])


@pytest_asyncio.fixture(loop_scope="session")
async def one_run_at_a_time(world: World) -> AsyncIterator[None]:
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


async def ended(world: World, name: str, does: Behaviour) -> tuple[str, str]:
    """Let a user's Job of a pod end; return its worker, and how its Workload says that it ended."""
    await world.create(world.job(name, pods=1, queue=QUEUE, cpu=ALL_OF_IT, does=does))
    workload = await world.condition(name, "Finished", kind="Job")
    finished = said(workload, "Finished")
    assert finished is not None
    return workload["status"]["clusterName"], finished[1]


async def kept_at(world: World, worker: str, name: str) -> dict[str, Any]:
    """Wait until a Job bears our finalizer no more, as once its worker was told that its end is written; return it."""

    async def look() -> dict[str, Any] | None:
        job = await world.get(worker, JOB, name)
        assert job is not None, f"Job {name} is there on {worker}"
        return None if REPORT in job["metadata"].get("finalizers", []) else job

    found: dict[str, Any] = await world.until(look, f"Job {name} on {worker} bears our finalizer no more")
    assert found["metadata"].get("deletionTimestamp") is None
    assert [one["type"] for one in found["status"]["conditions"] if one["status"] == "True"][-1] == "Failed"
    return found


async def exit_codes(world: World, worker: str, job: str) -> list[int]:
    """Return with what the containers of a Job's pods at a worker have ended."""
    every = await world.every(worker, POD)
    own = [pod for pod in every if any(one["name"] == job for one in pod["metadata"].get("ownerReferences", []))]
    return [one["state"]["terminated"]["exitCode"] for pod in own for one in pod["status"]["containerStatuses"]]


@pytest.mark.usefixtures("one_run_at_a_time")
async def test_is_46_a_job_that_failed_is_there_with_its_pod_its_quota_free_until_its_user_deletes_it(
    world: World,
) -> None:
    name, other = world.name("kept"), world.name("after")
    worker, how = await ended(world, name, FAILS)
    assert how == "Failed"
    await kept_at(world, worker, name)
    assert await exit_codes(world, worker, name) == [3]
    assert (await ended(world, other, WORKS))[1] == "Succeeded", "all of the quota was free for it"
    await world.nothing_left(other)
    assert await exit_codes(world, worker, name) == [3]
    await world.remove(JOB, name)
    await world.remove(JOB, other)


@pytest.mark.usefixtures("one_run_at_a_time")
async def test_is_46_what_failed_stays_over_a_restart_of_its_agent_and_goes_with_its_user_all_the_same(
    world: World,
) -> None:
    name = world.name("restarted")
    worker, _ = await ended(world, name, FAILS)
    before = await kept_at(world, worker, name)
    await world.installation.restart(world.installation.daemons[f"agent-{worker}"])
    await world.installation.wait_connected(worker)
    after = await kept_at(world, worker, name)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert await exit_codes(world, worker, name) == [3]
    await world.remove(JOB, name)
