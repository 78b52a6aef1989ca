"""HD-104, HD-105, HD-134: parallelism of a worker's Job, lowered by hand, or raised with a mark that is made to fit."""

from __future__ import annotations

import msgspec
import pytest

from gatelift_kube.values.resources import JOB
from support.sim.history import History


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


def _runs_at(history: History, cluster: str) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in history.objects(cluster))


def test_hd_134_what_a_person_made_smaller_on_a_cluster_that_is_cut_off_stays_so_until_it_may_start() -> None:
    history = History(shown=False)
    history.job("one", pods=2)
    cluster = history.until_runs("one", "Job")
    history.cut(cluster)
    history.until_lost(cluster)
    history.edit(cluster, JOB, "one", {"spec": {"parallelism": 0}})
    history.passes(120.0)
    assert _runs_at(history, cluster) == 0, "nobody has let it start"
    history.mend(cluster)
    history.until_connected(cluster)
    history.until("it is put back, once", lambda: history.containers("one", "Job") == 2)


def test_hd_134_an_agent_that_comes_back_cut_off_starts_nothing_of_what_was_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A person stopped it there by hand, saw that nothing runs, and said so: it runs elsewhere.

    For the outside check a Job that is not suspended may run, and the word is untrue; here its pods alone count.
    """
    history = History(shown=False)
    monkeypatch.setattr(history.world.truth, "_check", lambda _work: None)
    monkeypatch.setattr(history.world.truth, "_check_overlap", lambda _work: None)
    history.job("one")
    cluster = history.until_runs("one", "Job")
    history.cut(cluster)
    history.until_lost(cluster)
    history.kill_agent(cluster, again=False)
    history.edit(cluster, JOB, "one", {"spec": {"parallelism": 0}})
    history.until("nothing runs there", lambda: _runs_at(history, cluster) == 0)
    history.say_fenced(cluster)
    history.until("it runs elsewhere", lambda: history.containers("one", "Job") == 1)
    history.world.start_agent(cluster)
    history.passes(120.0)
    assert _runs_at(history, cluster) == 0
    assert history.containers("one", "Job") == 1
    history.mend(cluster)
    history.until_connected(cluster)
    history.until("it is cleaned up there", lambda: history.objects(cluster, JOB) == [])
    assert history.containers("one", "Job") == 1
