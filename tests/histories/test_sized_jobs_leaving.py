"""SL-34: a chain of slices leaves as one, whatever makes it leave, and what waits behind it waits on (KEP-77).

All of its pods drain, then the quota goes; it is queued with the size that it had, and grows after that.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, WORKLOAD, WORKLOAD_PRIORITY_CLASS
from support.manager.builders import a_job
from support.sim.cluster import TEAM, Doc
from support.sim.objects import holds
from support.sim.sized_history import SizedHistory, number
from support.sim.world import QUEUES as QUEUE_SIZES
from support.sim.world import RUN_SECONDS

QUEUES = pytest.mark.parametrize("queue", ["travels", "stays"])
STEPS = pytest.mark.parametrize("step", range(0, 26, 5))
WAITS = 20
"""More pods than the queue has room for: the slice that asks for them waits."""
PREEMPTS = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}


def with_a_growth_that_waits(
    monkeypatch: pytest.MonkeyPatch, queue: str = "travels", *, labels: Doc | None = None
) -> SizedHistory:
    """Return a history of three pods that run, behind which a slice waits that has no room; they take 5 s to stop."""
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3, stops_in=5.0, labels=labels)
    history.account.first = set()
    history.resize(WAITS)
    history.until("it waits", lambda: len(history.slices()) == 2, 10.0)
    history.passes(2.0)
    assert history.slices() == [(1, 3, 3, ""), (2, WAITS, None, "")]
    return history


def record(history: SizedHistory) -> Doc:
    """Return the first slice that is not finished."""
    return min((one for one in history.account.workloads.values() if not holds(one, "Finished")), key=number)


def active(history: SizedHistory, workload: Doc, *, active: bool) -> None:
    """Let a person deactivate a slice, or activate it again."""
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": active}})


def drains(history: SizedHistory) -> None:
    """Look that quota stays as long as pods do: the account does at each write, and in the end there is neither."""
    history.until("all is stopped", lambda: history.account.may_run() == 0, 120.0)
    history.until("nothing is charged", lambda: history.account.charged() == 0, 60.0)


@pytest.fixture
def urgent() -> Doc:
    """Return a Job of a higher class, which needs room that the three have."""
    job = a_job("urgent", cpu="200m")
    job["metadata"]["namespace"] = TEAM
    job["metadata"]["labels"] |= {"kueue.x-k8s.io/priority-class": "p9"}
    job["spec"]["template"]["metadata"]["annotations"] = {RUN_SECONDS: "60"}
    del job["status"]
    return job


def preempts(history: SizedHistory, urgent: Doc, queue: str) -> None:
    """Let the urgent Job come into the queue."""
    history.edit("home", CLUSTER_QUEUE, queue, PREEMPTS)
    history.home.create(WORKLOAD_PRIORITY_CLASS, {"metadata": {"name": "p9"}, "value": 9})
    urgent["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    urgent["spec"]["parallelism"] = urgent["spec"]["completions"] = QUEUE_SIZES[queue] // 200 - 1
    if queue == "stays":
        del urgent["spec"]["managedBy"]
    history.home.create(JOB, urgent)


@QUEUES
def test_sl_34_ej_017_a_preempted_chain_drains_and_comes_back_with_its_size(
    monkeypatch: pytest.MonkeyPatch, queue: str, urgent: Doc
) -> None:
    """EJ-017 put right, EJ-001 (Kueue's #15399, #15661): what runs is stopped, and both slices wait in their order."""
    history = with_a_growth_that_waits(monkeypatch, queue)
    preempts(history, urgent, queue)
    drains(history)
    history.until("who preempts runs", lambda: history.shows("urgent", "Admitted", "Job"), 60.0)
    assert history.slices() == [(1, 3, None, ""), (2, WAITS, None, "")]
    history.delete("home", JOB, "urgent")
    history.until("it runs again as it did", lambda: (history.running(), history.account.charged()) == (3, 3), 300.0)
    assert history.slices() == [(1, 3, 3, ""), (2, WAITS, None, "")]
    history.resize(8)
    history.rests(8)


@QUEUES
@STEPS
def test_sl_34_ej_017_it_is_preempted_at_each_step_of_a_growth(
    monkeypatch: pytest.MonkeyPatch, queue: str, step: int, urgent: Doc
) -> None:
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3, stops_in=5.0)
    history.account.first = set()
    history.resize(10)
    history.passes(step / 100)
    preempts(history, urgent, queue)
    drains(history)
    history.until("who preempts runs", lambda: history.shows("urgent", "Admitted", "Job"), 60.0)
    history.delete("home", JOB, "urgent")
    history.rests(10, 400.0)


@QUEUES
def test_sl_34_a_queue_that_is_drained(monkeypatch: pytest.MonkeyPatch, queue: str) -> None:
    """EJ-020, EJ-001: held and drained with a slice that waits, then resumed."""
    history = with_a_growth_that_waits(monkeypatch, queue)
    history.edit("home", CLUSTER_QUEUE, queue, {"spec": {"stopPolicy": "HoldAndDrain"}})
    drains(history)
    history.passes(30.0)
    assert history.slices() == [(1, 3, None, ""), (2, WAITS, None, "")]
    history.edit("home", CLUSTER_QUEUE, queue, {"spec": {"stopPolicy": "None"}})
    history.until("it runs again as it did", lambda: (history.running(), history.account.charged()) == (3, 3), 300.0)
    history.resize(3)
    history.rests(3)


@QUEUES
def test_sl_34_a_chain_that_is_deactivated(monkeypatch: pytest.MonkeyPatch, queue: str) -> None:
    """The slice that waits does not come in its place; activated again, it goes on as it was."""
    history = with_a_growth_that_waits(monkeypatch, queue)
    active(history, record(history), active=False)
    drains(history)
    history.resize(8)
    history.passes(60.0)
    assert [one[2] for one in history.slices() if not one[3]] == [None, None]
    active(history, record(history), active=True)
    history.rests(8, 300.0)


@QUEUES
def test_sl_34_hd_631_a_slice_that_waits_is_deactivated_and_its_chain_is(
    monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """HD-631: activated again it waited for ever, for the end of what ran."""
    history = with_a_growth_that_waits(monkeypatch, queue)
    history.account.first = set()
    waits = max(history.account.workloads.values(), key=number)
    active(history, waits, active=False)
    drains(history)
    history.passes(60.0)
    assert [one[2] for one in history.slices() if not one[3]] == [None, None]
    history.resize(8)
    active(history, min(history.account.workloads.values(), key=number), active=True)
    history.rests(8)


@QUEUES
@pytest.mark.parametrize("wanted", [10, WAITS])
def test_sl_34_its_execution_time_runs_on_over_its_slices(
    monkeypatch: pytest.MonkeyPatch, queue: str, wanted: int
) -> None:
    """It began 60 s ago, whether it has grown since or not; then all of it is deactivated, what waits included."""
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3, labels={"kueue.x-k8s.io/max-exec-time-seconds": "60"})
    history.passes(30.0)
    history.resize(wanted)
    history.passes(25.0)
    assert history.running() == (10 if wanted == 10 else 3)
    history.account.first = set()
    history.passes(10.0)
    drains(history)
    history.passes(60.0)
    assert record(history)["spec"]["active"] is False
    assert [one[2] for one in history.slices() if not one[3]] == [None] * (1 if wanted == 10 else 2)
