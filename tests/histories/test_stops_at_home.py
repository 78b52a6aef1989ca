"""What is held back at home and bears our stop of its own attempt: it is queued anew, whoever wrote that."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import JOB, POD, Resource
from support.sim.history import History

QUEUE = "kueue.x-k8s.io/queue-name"
STOPPING = "gatelift.dev/stopping"
KINDS = (pytest.param(JOB, id="Job"), pytest.param(POD, id="Pod"))


def queue(history: History, name: str | None) -> None:
    """Let somebody write the queue's name of the Job, or take it off."""
    history.edit("home", JOB, "one", {"metadata": {"labels": {QUEUE: name}}})


def forge(history: History, kind: Resource, epoch: int) -> None:
    """Let somebody write our stop of an attempt on the user's object."""
    workload = history.workload("one", kind.kind)
    assert workload is not None
    mark = f"{workload['metadata']['uid']}.{epoch}"
    history.edit("home", kind, "one", {"metadata": {"labels": {STOPPING: mark}}})


def made(history: History, kind: Resource) -> None:
    """Let a user create what waits for home, and wait for its Workload."""
    (history.job if kind == JOB else history.pod)("one", queue="stays")
    history.until("a Workload", lambda: history.workload("one", kind.kind) is not None)


def charged(history: History) -> tuple[int, int]:
    """Return what is charged, and what runs, in the queue at home."""
    return history.leader.charges("stays"), 500 * history.containers("one", "Job")


@pytest.mark.parametrize("after", [0.5, 5.0, 15.0])
def test_hd_144_what_was_stopped_for_its_queue_runs_again_there_whichever_leader_stopped_it(after: float) -> None:
    history = History(shown=False)
    history.job("one", queue="stays", pods=2, completions=4, stops_in=20.0)
    history.until("both run", lambda: history.containers("one", "Job") == 2)
    queue(history, None)
    history.passes(after)
    history.kill_leader()
    queue(history, "stays")
    for _ in range(90):
        history.passes(1.0)
        if history.leads():
            asked, used = charged(history)
            assert used <= asked, "charged until its pods have stopped"
    history.until("both run again", lambda: history.containers("one", "Job") == 2)
    assert charged(history) == (1000, 1000)


@pytest.mark.parametrize("epoch", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_hd_144_a_stop_that_somebody_forges_on_what_waits_costs_one_attempt_at_most(kind: Resource, epoch: int) -> None:
    history = History(shown=False)
    made(history, kind)
    forge(history, kind, epoch)
    history.until("it runs", lambda: history.containers("one", kind.kind) == 1, 120.0)
    assert history.leader.charges("stays") == 500


@pytest.mark.parametrize("kind", KINDS)
def test_hd_144_a_stop_that_somebody_forges_on_what_runs_ends_nothing(kind: Resource) -> None:
    history = History(shown=False)
    made(history, kind)
    history.until_runs("one", kind.kind)
    forge(history, kind, 1)
    for _ in range(60):
        history.passes(1.0)
        assert history.containers("one", kind.kind) == 1


def test_hd_144_a_job_that_runs_with_a_forged_stop_and_is_suspended_is_queued_anew() -> None:
    history = History(shown=False)
    made(history, JOB)
    history.until_runs("one", "Job")
    forge(history, JOB, 1)
    history.edit("home", JOB, "one", {"spec": {"suspend": True}})
    history.until("it has stopped", lambda: history.containers("one", "Job") == 0)
    history.until_runs("one", "Job")
    assert history.leader.charges("stays") == 500
