"""HD-256: of a Job that was granted fewer pods than it asked for, a lowered count frees nothing for the next leader."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, WORKLOAD
from gatelift_sandbox.behaviour import RUN_SECONDS
from support.manager.builders import a_job
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.world import QUEUES


def nearly_done() -> tuple[History, str]:
    """Return a Job of three pods of which two were granted and one runs, beside another pod, and where it runs."""
    history = History(shown=False)
    history.pod("big", "travels", "2")
    history.until_runs("big")
    job = a_job("work", parallelism=3, completions=3, cpu="500m")
    job["metadata"]["namespace"] = TEAM
    job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "travels"
    job["metadata"]["annotations"]["kueue.x-k8s.io/job-min-parallelism"] = "1"
    job["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: "400"}
    del job["status"]
    history.home.create(JOB, job)
    cluster = history.until_runs("work", "Job")

    def is_reclaimed() -> bool:
        return bool((history.workload("work", "Job") or {})["status"].get("reclaimablePods"))

    history.until("two are done, the third runs alone", is_reclaimed, 600.0)
    history.passes(5.0)
    assert history.leader.charges("travels") == 2500
    return history, cluster


@pytest.mark.parametrize("lowered", [True, False], ids=["lowered", "left"])
def test_hd_256_a_count_that_is_lowered_frees_nothing_of_what_runs_for_the_next_leader(*, lowered: bool) -> None:
    """HD-256: those that were asked for and not granted come off first, and by the lowered count there were none."""
    history, cluster = nearly_done()
    history.cut(cluster)
    history.until_lost(cluster)
    if lowered:  # the CRD lets it through while quota is reserved: counts may only shrink
        workload = history.workload("work", "Job") or {}
        sets = [{**one, "count": 2} for one in workload["spec"]["podSets"]]
        history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"podSets": sets}})
    history.pod("more", "travels", "1")
    history.passes(5.0)
    assert history.containers("more") == 0, "there is no room for it"
    history.kill_leader()
    history.until("another one leads", history.leads, 60.0)
    for _ in range(30):
        history.passes(1.0)
        runs = 2000 * history.containers("big") + 500 * history.containers("work", "Job")
        runs += 1000 * history.containers("more")
        assert runs <= QUEUES["travels"], f"{runs}m run in a queue of {QUEUES['travels']}m"
        assert history.leader.charges("travels") >= runs


def test_hd_256_what_is_charged_in_full_until_its_cluster_was_heard_is_written_anew_then() -> None:
    """Who counts what is shown for ever takes that for what it is: a moment of the next leader (drawn seed 9400643)."""
    history = History()
    history.job("work", pods=2, completions=3, seconds=60.0)
    cluster = history.until_runs("work", "Job")
    history.until("one is left", lambda: "reclaimablePods" in (history.workload("work", "Job") or {})["status"], 200.0)
    workload = history.workload("work", "Job") or {}
    history.cut(cluster)
    sets = [{**one, "count": 1} for one in workload["spec"]["podSets"]]
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"podSets": sets}})
    history.kill_leader()
    history.until("another one leads", history.leads, 60.0)
    history.passes(5.0)
    assert history.leader.charges("travels") == 1000, "what was found is not believed"
    history.mend(cluster)
    history.until("its cluster was heard", lambda: history.leader.charges("travels") == 500, 60.0)
