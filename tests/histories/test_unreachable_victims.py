"""HD-9: who cannot be stopped now is preempted by nobody, and whoever waits for such a one says so."""

from __future__ import annotations

import pytest

from gatelift.core.works import past_slices
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD_PRIORITY_CLASS
from support.manager.builders import a_pod
from support.on_purpose import Broken
from support.sim.cluster import TEAM
from support.sim.history import History

POLICY = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}


def a_world() -> History:
    """Return a history in which pods low-0 and low-1 fill the queue, each on a cluster of its own."""
    history = History(shown=False)
    history.edit("home", CLUSTER_QUEUE, "travels", POLICY)
    for value in (1, 9):
        history.home.create(WORKLOAD_PRIORITY_CLASS, {"metadata": {"name": f"p{value}"}, "value": value})
    for number in range(2):
        prioritised(history, f"low-{number}", 1)
        history.until_runs(f"low-{number}")
    assert history.runs("low-0") != history.runs("low-1")
    return history


def prioritised(history: History, name: str, priority: int) -> None:
    """Let a user create a pod of half the queue, of a priority class."""
    document = a_pod(name).asking(cpu="1500m").document()
    document["metadata"]["namespace"] = TEAM
    marks = {"kueue.x-k8s.io/queue-name": "travels", "kueue.x-k8s.io/priority-class": f"p{priority}"}
    document["metadata"]["labels"] |= marks
    del document["status"]
    history.home.create(POD, document)


def lose(history: History, name: str) -> str:
    """Cut the cluster off that a pod runs on, until it is shown as lost; return it."""
    (cluster,) = history.runs(name)
    history.cut(cluster)
    history.until_lost(cluster)
    return cluster


def why(history: History, name: str) -> str:
    """Return the message with which the Workload of a pod waits for quota."""
    found = (history.workload(name) or {}).get("status", {}).get("conditions", [])
    return next((each["message"] for each in found if each["type"] == "QuotaReserved"), "")


def test_hd_9_a_victim_is_looked_for_on_clusters_that_are_connected() -> None:
    history = a_world()
    lose(history, "low-1")  # reserved last, so it would be the first to go
    prioritised(history, "high", 9)
    history.until("it runs", lambda: history.containers("high") > 0)
    assert not history.shows("low-1", "Evicted")
    assert history.containers("low-0") == 0


def test_hd_9_who_waits_for_an_unreachable_one_alone_says_so_and_asks_nobody() -> None:
    history = a_world()
    history.delete("home", POD, "low-0")
    history.until("it is gone", lambda: history.home.look(POD, "low-0") is None)
    prioritised(history, "top", 9)
    history.until_runs("top")
    cluster = lose(history, "low-1")
    prioritised(history, "high", 9)
    history.until("it says why", lambda: "on clusters that are not connected" in why(history, "high"))
    history.passes(60.0)
    assert not history.shows("low-1", "Evicted")
    assert not history.shows("top", "Evicted")
    history.mend(cluster)
    history.until("the cluster is back, and it runs", lambda: history.containers("high") > 0)
    assert history.containers("low-1") == 0


def test_hd_9_who_waits_for_a_victim_whose_cluster_is_lost_takes_another_one() -> None:
    history = a_world()
    (cluster,) = history.runs("low-1")
    history.cut(cluster)
    prioritised(history, "high", 9)
    history.until("it was asked", lambda: history.shows("low-1", "Evicted"))
    history.until_lost(cluster)
    history.until("it runs", lambda: history.containers("high") > 0)
    assert history.containers("low-1") > 0


def test_hd_541_a_victim_whose_look_raises_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was waited for as long as that raised, and with whoever preempts it all who stand behind him."""
    history = a_world()
    monkeypatch.setattr(Contained, "surfaces", False)
    broken = Broken(monkeypatch, (past_slices, "look"), lambda _, rec, __: "low-1" in rec.ref.key.name)
    history.edit("home", POD, "low-1", {"metadata": {"labels": {"touched": "x"}}})
    history.passes(5.0)
    assert broken.raised
    prioritised(history, "high", 9)
    history.until("it runs", lambda: history.containers("high") == 1, 60.0)
    assert history.shows("low-0", "Evicted")
    assert history.containers("low-1") == 1
    broken.mend()
    history.passes(30.0)
    prioritised(history, "higher", 9)
    history.until("it is stopped again where that has to be", lambda: history.containers("higher") == 1, 400.0)
    assert history.containers("low-1") == 0
