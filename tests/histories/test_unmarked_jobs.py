"""Scripted histories (HD-240): the user takes all marks of ours off a Job at home that was never let go."""

from __future__ import annotations

from gatelift_kube.values.resources import JOB, WORKLOAD
from support.sim.cluster import TEAM
from support.sim.history import History

WRITES = range(1, 7)
"""Of the first leader, to Workloads: it dies after each in its turn, one of them the write of the placement."""


def left_admitted(number: int) -> History | None:
    """Let a leader die after so many writes; None where the Job is not just then admitted at home and still held."""
    history = History(shown=False)
    leader = history.leader
    leader.dies_after_write(number, WORKLOAD)
    history.job("one", "stays")
    if not history.world.pass_seconds(20.0, lambda: leader.process.dead):
        return None
    job = history.home.look(JOB, "one", TEAM)
    held = job is not None and job["spec"]["suspend"] and "gatelift.dev/epoch" not in str(job)
    return history if held and history.shows("one", "Admitted", "Job") else None


def goes(history: History) -> None:
    """See that nothing is left of it."""
    history.until("its Workload is gone", lambda: history.workload("one", "Job") is None, 180.0)
    assert history.leader.charges("stays") == 0
    assert history.containers("one", "Job") == 0


def test_hd_240_what_bears_no_mark_any_more_is_stopped_without_a_write() -> None:
    """HD-240: the policy lets nothing of ours write to it, so nothing waits for that; its quota is free, it can go."""
    found = [history for number in WRITES if (history := left_admitted(number)) is not None]
    assert found, "in one of them the leader has written the placement and nothing else"
    for history in found:
        history.edit("home", JOB, "one", {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": None}}})
        goes(history)
