"""Scripted histories (HD-91): a Job that is deleted ends, however it is deleted."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB
from support.sim.history import History

END_SECONDS = 200.0


@pytest.mark.parametrize("queue", ["stays", "travels"])
@pytest.mark.parametrize("propagation", ["Background", "Foreground", "Orphan"])
def test_hd_91_a_job_that_is_deleted_gives_its_quota_back_and_is_gone(propagation: str, queue: str) -> None:
    """HD-91: in the foreground the collector waits for the Workload, and the Workload for the Job's controller."""
    history = History()
    history.job("one", queue=queue, stops_in=5.0)
    history.until_runs("one", "Job")
    history.delete("home", JOB, "one", propagation=propagation)
    history.until("nothing of it runs", lambda: history.containers("one", "Job") == 0, END_SECONDS)
    history.until("its quota is free", lambda: history.leader.charges(queue) == 0, END_SECONDS)
    history.until("it is gone", lambda: history.home.look(JOB, "one") is None, END_SECONDS)
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, END_SECONDS)


def test_hd_91_a_job_that_is_deleted_keeps_its_quota_while_its_pods_stop() -> None:
    history = History()
    history.job("one", queue="stays", stops_in=25.0)
    history.until_runs("one", "Job")
    history.delete("home", JOB, "one", propagation="Foreground")
    history.passes(20.0)
    assert history.containers("one", "Job") == 1
    assert history.leader.charges("stays") == 500
