"""SL-84: elastic Jobs (KEP-77) on real API servers with the real Job controller, and all daemons that serve them.

At home and on one of two workers; the pods that ran before a resize are looked at by their UIDs and restart counts, and
the outside account (SL-08) is kept of what runs and what is charged through all of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_kube.values.resources import JOB
from support.e2e.admission import said
from support.e2e.books import Books
from support.e2e.elastic import HOME, ElasticJob, sliced_world, untouched
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
AWAY, AT_HOME = "multi", "at-home"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sliced(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One installation that serves elastic Jobs, for all of this module."""
    async with (
        sliced_world(Path(tmp_path_factory.mktemp("sliced"))) as made,
        Books(made.clients, NAMESPACE, HOME).kept(),
    ):
        yield made
        assert made.overlaps() == [], "no two epochs of a workload ran at the same time"


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
