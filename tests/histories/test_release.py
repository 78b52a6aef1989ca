"""Quota of what is being stopped is free by a stated rule, once, and what still occupies nodes is known (KEP-6143)."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD_PRIORITY_CLASS
from support.manager.builders import a_pod
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.objects import is_released
from support.sim.world import STOP_SECONDS

POLICY = {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}}
STOPS = 50.0
GRACE = 60


def a_world(queue: str = "travels", annotations: dict[str, str] | None = None) -> History:
    """Return a history whose queue lets higher priorities in for lower ones."""
    history = History(shown=False)
    history.edit("home", CLUSTER_QUEUE, queue, {**POLICY, "metadata": {"annotations": annotations or {}}})
    for value in (1, 9):
        history.home.create(WORKLOAD_PRIORITY_CLASS, {"metadata": {"name": f"p{value}"}, "value": value})
    return history


def prioritised(history: History, name: str, priority: int, queue: str = "travels", cpu: str = "3") -> None:
    """Let a user create a pod of a priority class, which is the whole queue and takes long to stop."""
    document = a_pod(name).asking(cpu=cpu).document()
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"] |= {
        "kueue.x-k8s.io/queue-name": queue,
        "kueue.x-k8s.io/priority-class": f"p{priority}",
    }
    document["metadata"]["annotations"] = {STOP_SECONDS: f"{STOPS:g}"}
    document["spec"]["terminationGracePeriodSeconds"] = GRACE
    del document["status"]
    history.home.create(POD, document)


def workload(history: History, name: str) -> Doc:
    found = history.workload(name)
    assert found is not None
    return found


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_qr_1_who_preempts_is_admitted_within_a_second_and_the_victim_ends_in_peace(queue: str) -> None:
    """QR-1 at home, QR-8 at a worker."""
    history = a_world(queue)
    prioritised(history, "low", 1, queue)
    history.until_runs("low")
    prioritised(history, "high", 9, queue)
    history.until("it is being stopped", lambda: history.shows("low", "Evicted"), 5.0)
    history.until("its successor is admitted", lambda: history.shows("high", "QuotaReserved"), 1.0)
    assert history.containers("low") == 1
    assert is_released(workload(history, "low"))
    assert history.leader.charges(queue) == 3000
    history.until("it has stopped in its own time", lambda: history.containers("low") == 0, GRACE + 10.0)
    history.until("its successor runs", lambda: history.containers("high") == 1)
