"""SL-84: elastic Jobs (KEP-77) on real API servers with the real Job controller, and all daemons that serve them.

At home and on one of two workers; the pods that ran before a resize are looked at by their UIDs and restart counts, and
the outside account (SL-08) is kept of what runs and what is charged through all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB
from support.e2e.admission import said
from support.e2e.books import Books
from support.e2e.elastic import (
    AT_HOME,
    HOME,
    ElasticJob,
    charged,
    finished,
    no_finish,
    no_lift,
    no_size,
    refusing,
    sliced_world,
    untouched,
    wanted,
)
from support.e2e.resize_chaos import Chaos
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
AWAY = "multi"
CHAOS_SECONDS = 60.0


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sliced(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One installation that serves elastic Jobs, for all of this module."""
    async with sliced_world(Path(tmp_path_factory.mktemp("sliced"))) as made:
        yield made
        assert made.overlaps() == [], "no two epochs of a workload ran at the same time"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def books(sliced: World) -> AsyncIterator[Books]:
    """Keep books of what runs and what is charged through all of this module."""
    async with Books(sliced.clients, NAMESPACE, HOME).kept() as kept:
        yield kept


async def test_sl_10_sl_15_at_home_a_job_grows_and_the_pods_that_ran_are_untouched(sliced: World) -> None:
    """SL-10, SL-11, SL-15, SL-20, SL-23: story 1 and 2 of KEP-77 at home, then to zero and up again."""
    job = ElasticJob(sliced, "home", AT_HOME)
    await job.create(3)
    first = await job.runs(HOME, 3)
    origin = await job.settled(3)
    await job.resize(5)
    grown = await job.runs(HOME, 5)
    assert untouched(first, grown)
    current = await job.settled(5)
    assert current["metadata"]["uid"] != origin["metadata"]["uid"], "a growth is a slice of its own"
    past = (await job.slices())[0]
    assert (said(past, "Finished") or ())[:2] == ("True", "WorkloadSliceReplaced")
    await job.resize(2)
    shrunk = await job.runs(HOME, 2)
    assert untouched(shrunk, grown), "who is left is who ran"
    assert (await job.settled(2))["metadata"]["uid"] == current["metadata"]["uid"], "a shrink makes no slice"
    await job.resize(0)
    await job.runs(HOME, 0)
    await job.settled(0)
    await job.resize(2)
    await job.runs(HOME, 2)
    await job.settled(2)
    await job.remove()


async def test_sl_50_a_job_grows_and_shrinks_at_one_of_two_workers(sliced: World) -> None:
    """SL-50: 3 -> 10 -> 4, and the other worker stays empty."""
    job = ElasticJob(sliced, "away", AWAY)
    await job.create(3)
    worker = await job.worker()
    (other,) = set(WORKERS) - {worker}
    first = await job.runs(worker, 3)
    await job.settled(3)
    await job.resize(10)
    grown = await job.runs(worker, 10)
    assert untouched(first, grown)
    assert await sliced.get(other, JOB, job.name) is None
    await job.settled(10)
    await job.resize(4)
    shrunk = await job.runs(worker, 4)
    assert untouched(shrunk, grown), "who is left is who ran"
    await job.settled(4)
    assert await sliced.get(other, JOB, job.name) is None
    await job.remove()


async def test_sl_22_sl_72_a_growth_without_quota_waits_and_says_so_while_what_runs_goes_on(sliced: World) -> None:
    """SL-22, SL-72: what another Job gives back lets it go on. SL-07: its pods wait at the gate meanwhile."""
    waits, beside = ElasticJob(sliced, "waits", AT_HOME, "1"), ElasticJob(sliced, "beside", AT_HOME, "1")
    await beside.create(2)
    others = await beside.runs(HOME, 2)
    await waits.create(2)
    first = await waits.runs(HOME, 2)
    await waits.resize(3)
    current, target = await waits.waits(3)
    assert untouched(first, await waits.runs(HOME, 2, waiting=1))
    said_of_it = (said(target, "QuotaReserved") or ("", "", ""))[1:]
    assert said_of_it[0] == "WaitingForQuota"
    assert "It grows what runs from 2 pods to 3 pods" in said_of_it[1]
    listed = await sliced.installation.verb("get", "workloads", "-n", NAMESPACE)
    assert all("2 -> 3" in line for line in listed.splitlines() if f"job-{waits.name}-" in line)
    told = await sliced.installation.verb("explain", f"job/{waits.name}", "-n", NAMESPACE)
    assert f"team-a/{current['metadata']['name']}: Admitted" in told
    assert f"growth    Workload {target['metadata']['name']} waits: WaitingForQuota" in told
    await beside.resize(1)
    assert untouched(await beside.runs(HOME, 1), others)
    assert untouched(first, await waits.runs(HOME, 3))
    await waits.settled(3)
    await beside.remove()
    await waits.remove()


async def test_sl_16_sl_17_ten_past_slices_are_kept_and_all_go_with_the_job(sliced: World) -> None:
    job = ElasticJob(sliced, "often", AT_HOME, "10m")
    await job.create(1)
    first = await job.runs(HOME, 1)
    for size in range(2, 14):
        await job.resize(size)
        await job.settled(size)
    assert untouched(first, await job.runs(HOME, 13))

    async def kept() -> bool:
        return [charged(one) for one in await job.slices() if finished(one)] == list(range(3, 13))

    await sliced.until(kept, "the latest ten past slices are there, and no other")
    await job.remove()
    assert await job.slices() == []


async def test_sl_12_a_manager_that_dies_before_the_old_slice_is_finished_leaves_one_record(sliced: World) -> None:
    """SL-12, SL-54: two slices hold quota of one chain, the manager is killed; its successor finishes the lower one."""
    job = ElasticJob(sliced, "swapped", AWAY)
    await job.create(3)
    worker = await job.worker()
    first = await job.runs(worker, 3)
    manager = sliced.installation.daemons["manager"]
    async with refusing(sliced, HOME, *no_finish(job)):
        await job.resize(5)

        async def both() -> bool:
            return [charged(one) for one in await job.slices() if not finished(one)] == [3, 5]

        await sliced.until(both, "both slices hold quota")
        sliced.installation.kill(manager)
    await sliced.installation.restart(manager)
    await sliced.installation.wait_connected(*WORKERS)
    assert untouched(first, await job.runs(worker, 5))
    await job.settled(5)
    await job.remove()


async def test_sl_59_a_job_that_is_deleted_while_it_grows_leaves_nothing(sliced: World) -> None:
    """SL-59: while quota is waited for, and while none of the new pods is let go yet."""
    waits = ElasticJob(sliced, "deleted", AT_HOME, "1")
    await waits.create(2)
    await waits.runs(HOME, 2)
    await waits.resize(5)
    await waits.waits(5)
    await waits.runs(HOME, 2, waiting=3)
    await waits.remove()
    grows = ElasticJob(sliced, "deleted", AWAY)
    await grows.create(3)
    worker = await grows.worker()
    await grows.runs(worker, 3)
    async with refusing(sliced, worker, *no_lift(grows)):
        await grows.resize(10)
        await grows.runs(worker, 3, waiting=7)
        await grows.remove()


async def test_sl_53_sl_54_what_is_resized_as_the_agents_die_is_done_on_their_return(sliced: World) -> None:
    """SL-53: a shrink lowers what is wanted and not what is charged, a growth waits and says for what.

    SL-54: of one growth the quota is written, and its Job at the worker is not set to it yet.
    """
    jobs = fewer, more, written = [ElasticJob(sliced, base, AWAY) for base in ("fewer", "more", "written")]
    for job in jobs:
        await job.create(3)
    workers = [await job.worker() for job in jobs]
    first = [await job.runs(worker, 3) for job, worker in zip(jobs, workers, strict=True)]
    async with refusing(sliced, workers[2], *no_size(written)):
        await written.resize(10)
        await written.settled(10)
        agents = [sliced.installation.daemons[f"agent-{worker}"] for worker in set(workers)]
        for agent in agents:
            sliced.installation.kill(agent)
        assert untouched(first[2], await written.runs(workers[2], 3)), "its Job was not set to the new size"
    await fewer.resize(1)
    await more.resize(5)

    async def lowered() -> bool:
        (one,) = await fewer.slices()
        return (wanted(one), charged(one)) == (1, 3)

    await sliced.until(lowered, "one is wanted, and three are charged")
    _, target = await more.waits(5)
    assert (said(target, "QuotaReserved") or ("", "", ""))[1] == "GrowthWaits"
    await asyncio.gather(*(sliced.installation.restart(agent) for agent in agents))
    await sliced.installation.wait_connected(*set(workers))
    assert untouched(await fewer.runs(workers[0], 1), first[0])
    assert untouched(first[1], await more.runs(workers[1], 5))
    assert untouched(first[2], await written.runs(workers[2], 10))
    for job, count in zip(jobs, (1, 5, 10), strict=True):
        await job.settled(count)
        await job.remove()


@pytest.mark.timeout(2 * MODULE_SECONDS)
async def test_sl_85_a_minute_of_wishes_kills_and_cuts_restarts_no_pod_and_overlaps_nowhere(sliced: World) -> None:
    """SL-85: five minutes of it are `python -m support.e2e.resize_chaos`. SL-08: the books are kept through it."""
    chaos = Chaos(sliced, seed=1)
    await chaos.lives(CHAOS_SECONDS)
    assert chaos.wrong() == [], chaos.done
    for job in chaos.jobs:
        await job.remove()


async def test_sl_08_nothing_ran_that_nobody_was_charged_for(books: Books) -> None:
    """SL-08, SL-84: of all that is above."""
    assert books.wrong == []
    assert books.account.checks, "they were kept"
