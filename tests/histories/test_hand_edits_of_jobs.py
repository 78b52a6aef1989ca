"""HD-104, HD-105: parallelism of a worker's Job, lowered by hand, or raised with a mark that is made to fit."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_kube.resources import JOB
from support.history import History


@pytest.mark.parametrize("lowered", [0, 1])
def test_hd_104_a_job_that_a_person_makes_smaller_never_runs_more_than_is_charged(lowered: int) -> None:
    """It is put back when the pods that the edit ended have stopped; the account is compared after each write."""
    history = History(shown=False)
    history.job("one", pods=2, stops_in=25.0)
    cluster = history.until_runs("one", "Job")
    history.until("both run", lambda: history.containers("one", "Job") == 2)
    history.edit(cluster, JOB, "one", {"spec": {"parallelism": lowered}})
    history.passes(15.0)
    (job,) = history.objects(cluster, JOB)
    assert job["spec"]["parallelism"] == lowered
    history.passes(45.0)
    assert history.containers("one", "Job") == 2


@pytest.mark.parametrize("charged", [{}, {"parallelism": 4}], ids=["as it was", "as it is made"])
@pytest.mark.parametrize("restarts", [False, True])
def test_hd_105_a_forged_mark_makes_nothing_right(restarts: bool, charged: dict[str, int]) -> None:
    """`gatelift.dev/made` is changed together with parallelism, to the generation that this change will have."""
    history = History(shown=False)
    history.job("one", pods=1, completions=5)
    cluster = history.until_runs("one", "Job")
    if restarts:
        history.kill_agent(cluster)
        history.until_connected(cluster)
    history.passes(30.0)
    (job,) = history.objects(cluster, JOB)
    made = msgspec.json.decode(job["metadata"]["annotations"]["gatelift.dev/made"])
    made["generation"] = job["metadata"]["generation"] + 1
    made["charged"] |= charged
    mark = {"gatelift.dev/made": msgspec.json.encode(made).decode()}
    history.edit(cluster, JOB, "one", {"metadata": {"annotations": mark}, "spec": {"parallelism": 4}})
    history.passes(60.0)
    assert history.containers("one", "Job") * 500 == history.leader.charges("travels")
