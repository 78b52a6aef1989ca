"""KEP-78 on real API servers with the real Job controller: what a Job gives back while it runs, at home and at workers.

Who waits is let in by that, or is not, while the rest of the Job runs: the kubelets' records say what ran beside what.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.admission import manager_with, queue, runs, set_up
from support.e2e.world import MODULE_SECONDS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

FOR_EVER = Behaviour()
SMALL = "small-flavor"
"""Of which each worker has one cpu."""
AT_WORKERS, AT_HOME = "rec-away", "rec-home"
TAIL_SECONDS = 20.0
"""For so long a Job's last pod runs alone: what waits has that time to be admitted, placed, and to run."""
FAILS = Behaviour(run_seconds=1.0, exit_code=1)
PLACES = pytest.mark.parametrize("queue_name", [AT_HOME, AT_WORKERS])


def small(pair: list[Json]) -> list[Json]:
    """Return a queue whose quota is of the small flavor."""
    [group] = pair[0]["spec"]["resourceGroups"]
    group["flavors"][0]["name"] = SMALL
    return pair


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def queues(world: World) -> AsyncIterator[None]:
    await set_up(world, [small(queue(AT_WORKERS, "2"))])
    home = small(queue(AT_HOME, "1"))
    del home[0]["spec"]["admissionChecksStrategy"]
    await applying.apply(world.clients["mgmt"], home)
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


def a_job(world: World, name: str, queue_name: str, does: Behaviour, **spec: Any) -> Json:
    """Return a Job of two pods at once that fills what one place has of the small flavor."""
    job = world.job(name, pods=2, queue=queue_name, cpu="500m", does=does)
    job["spec"] |= spec
    return job


async def full(world: World, name: str, queue_name: str, does: Behaviour, **spec: Any) -> tuple[str, ...]:
    """Let a Job run, and at workers another one for ever on the other worker: nobody has room for one pod more."""
    policy = spec.pop("restart_policy", "Never")
    beside: tuple[str, ...] = ()
    if queue_name == AT_WORKERS:
        beside = (world.name("beside"),)
        await world.create(a_job(world, beside[0], queue_name, FOR_EVER))
        await world.condition(beside[0], "Admitted", kind="Job")
    job = a_job(world, name, queue_name, does, **spec)
    job["spec"]["template"]["spec"]["restartPolicy"] = policy
    await world.create(job)
    await world.condition(name, "Admitted", kind="Job")
    return beside


async def waits(world: World, base: str, queue_name: str) -> str:
    """Create a pod that nobody has room for."""
    name = world.name(base)
    await world.create(world.pod(name, queue=queue_name, cpu="500m", does=FOR_EVER))
    await world.condition(name, "QuotaReserved", status="False")
    return name


async def runs_now(world: World, name: str) -> None:
    """Wait until a container of this pod has started."""

    async def look() -> bool:
        return bool(runs(world, name))

    await world.until(look, f"{name} runs")


def is_given_back(workload: Json) -> bool:
    """Say whether a version of a Workload shows pods as needing no quota."""
    return bool(workload.get("status", {}).get("reclaimablePods"))


def gave_back(world: World, name: str) -> Json | None:
    """Return the first version of a Job's Workload that shows pods as needing no quota."""
    return world.history.first("Job", name, is_given_back, None)


async def tidy(world: World, job: str, beside: tuple[str, ...], pod: str) -> None:
    await world.remove(POD, pod)
    await world.remove(JOB, job, *beside)


@PLACES
async def test_re_9_what_waits_runs_beside_the_tail_of_a_job_in_the_place_that_was_full(
    world: World, queue_name: str
) -> None:
    """RE-9: at workers on the same one, whose own quota was full. RE-3, RE-4: three to do, two at once."""
    name = world.name("tail")
    beside = await full(world, name, queue_name, Behaviour(run_seconds=TAIL_SECONDS), completions=3)
    waiting = await waits(world, "waits", queue_name)
    await runs_now(world, waiting)
    [other], of_job = runs(world, waiting), runs(world, name)
    assert len(of_job) == 3
    assert of_job[2].stopped is None or other.started < of_job[2].stopped, "its last pod ran on"
    assert all(one.stopped is not None and one.stopped <= other.started for one in of_job[:2]), "two were done"
    shown = await world.showed(name, is_given_back, "it is shown", kind="Job")
    assert shown["status"]["reclaimablePods"] == [{"name": "main", "count": 1}]
    if queue_name == AT_WORKERS:
        placed = await world.condition(waiting, "Admitted")
        assert placed["status"]["clusterName"] == shown["status"]["clusterName"]
    await tidy(world, name, beside, waiting)


async def nothing_before_its_end(world: World, name: str, waiting: str, reason: str) -> None:
    """Check that what waits was let in by the end of a Job that failed so, and that nothing was given back before."""
    await runs_now(world, waiting)
    [other], of_job = runs(world, waiting), runs(world, name)
    assert all(one.stopped is not None and one.stopped <= other.started for one in of_job), "nothing of it ran any more"
    assert gave_back(world, name) is None
    job = await world.get("mgmt", JOB, name)
    assert job is not None
    failed = [one for one in job["status"]["conditions"] if one["type"] == "Failed"]
    assert [one["reason"] for one in failed] == [reason]


@PLACES
async def test_re_6_pods_that_fail_and_are_made_again_keep_their_quota_up_to_the_backoff_limit(
    world: World, queue_name: str
) -> None:
    name = world.name("retried")
    beside = await full(world, name, queue_name, FAILS, backoffLimit=2)
    waiting = await waits(world, "waits", queue_name)
    await nothing_before_its_end(world, name, waiting, "BackoffLimitExceeded")
    assert len(runs(world, name)) >= 3, "some were made again"
    await tidy(world, name, beside, waiting)


@PLACES
async def test_re_7_containers_that_are_restarted_in_their_pods_keep_their_quota(world: World, queue_name: str) -> None:
    name = world.name("restarted")
    beside = await full(world, name, queue_name, FAILS, backoffLimit=2, restart_policy="OnFailure")
    waiting = await waits(world, "waits", queue_name)
    await nothing_before_its_end(world, name, waiting, "BackoffLimitExceeded")
    await tidy(world, name, beside, waiting)


@PLACES
async def test_re_8_a_job_gives_all_back_when_its_deadline_has_ended_it(world: World, queue_name: str) -> None:
    name = world.name("late")
    beside = await full(world, name, queue_name, FOR_EVER, activeDeadlineSeconds=6)
    waiting = await waits(world, "waits", queue_name)
    await nothing_before_its_end(world, name, waiting, "DeadlineExceeded")
    await tidy(world, name, beside, waiting)


async def test_re_12_without_the_gate_the_tail_of_a_job_keeps_the_room_of_its_worker(world: World) -> None:
    """RE-12: neither in the manager's books nor at the worker is anything given back before the end."""
    async with manager_with(world, {"featureGates": {"ReclaimablePods": False}}):
        name = world.name("kept")
        beside = await full(world, name, AT_WORKERS, Behaviour(run_seconds=4.0), completions=3)
        waiting = await waits(world, "waits", AT_WORKERS)
        await runs_now(world, waiting)
        [other], of_job = runs(world, waiting), runs(world, name)
        assert [one.stopped is not None and one.stopped <= other.started for one in of_job] == [True] * 3
        assert gave_back(world, name) is None
        await tidy(world, name, beside, waiting)
