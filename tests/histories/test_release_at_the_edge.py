"""Histories that meet a release at its edge: the deadline, a change of leader, a rule that changes under it."""

from __future__ import annotations

import pytest

from gatelift.adapters.metrics import ManagerMetrics
from gatelift.core.records import occupied
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB
from histories.test_release import GRACE, WHOLE, a_world, drains, lose_nodes, prioritised, workload
from histories.test_releases_attacked import (
    EARLY,
    FILE,
    HELD,
    QUEUES,
    another_leads,
    draining,
    is_held_until_it_stops,
    long_job,
    refuse_stops,
    said,
)
from support.sim.history import History
from support.sim.objects import is_released

BEFORE = [("stays", 1.0), ("stays", 0.01), ("stays", 0.001), ("travels", 1.0), ("travels", 0.03)]
"""Queue, and seconds before the deadline. At a worker a word takes its time, and only we let its Jobs go."""


@pytest.mark.parametrize(("queue", "before"), BEFORE)
def test_hd_341_what_is_let_go_again_just_before_its_deadline_is_not_freed_by_it(queue: str, before: float) -> None:
    """At home the user's own Job is read before it; the outside account: released is what was asked to leave."""
    history = a_world(queue, file=FILE)
    long_job(history, queue, 60)
    (cluster,) = history.runs("low", "Job")
    lose_nodes(history, cluster)
    prioritised(history, "high", 9, queue)
    history.until("it drains", lambda: history.shows("low", "gatelift.dev/Draining", "Job"), 10.0)
    core = history.leader.machine.core
    (attempt,) = [each for each in core.attempts.values() if each.leave is not None]
    assert attempt.leave is not None
    history.passes(max(attempt.leave.at, attempt.leave.stops_by) + 120.0 - before - history.world.time.now)
    refuse_stops(history, cluster, 40.0)
    history.edit(cluster if queue == "travels" else "home", JOB, "low", {"spec": {"suspend": False}})
    history.passes(before + 5.0)
    found = history.workload("low", "Job")
    assert found is not None
    assert not is_released(found)


@QUEUES
def test_hd_342_a_release_forged_during_the_drain_is_taken_off_and_not_believed_by_who_leads_next(queue: str) -> None:
    history, _ = draining(queue, HELD, stops=58.0)
    said(history, "gatelift.dev/Draining", "QuotaReleased")
    history.passes(2.0)
    assert not is_released(workload(history, "low"))
    assert drains(history), "it says again that its quota is held"
    another_leads(history)
    is_held_until_it_stops(history)


@QUEUES
def test_hd_343_a_rule_that_changes_while_something_drains_holds_at_once(queue: str) -> None:
    history, _ = draining(queue, HELD, stops=58.0)
    history.passes(2.0)
    history.edit("home", CLUSTER_QUEUE, queue, {"metadata": {"annotations": EARLY}})
    history.until("its successor is admitted", lambda: history.shows("high", "QuotaReserved"), 2.0)
    assert history.containers("low") == 1
    assert is_released(workload(history, "low"))
    history.until("its successor runs", lambda: history.containers("high") == 1, GRACE + 10.0)


def ghost_of(history: History, queue: str) -> dict[str, str]:
    """Return what the ClusterQueue says may still be occupied."""
    (found,) = [each for each in history.objects("home", CLUSTER_QUEUE) if each["metadata"]["name"] == queue]
    said = [each["message"] for each in found["status"]["conditions"] if each["type"] == occupied.CONDITION]
    return {one.resource: one.amount for each in said for one in occupied.read(each)}


def value(history: History, name: str, **labels: str) -> float | None:
    """Return a gauge of who leads."""
    metrics = ManagerMetrics()
    metrics.refresh(history.leader.machine, waiting=0, writes_held=0)
    return metrics.registry.get_sample_value(name, labels)


@QUEUES
def test_what_may_still_be_occupied_stands_at_the_queue_until_it_has_stopped(queue: str) -> None:
    """So `gatelift get queues` and `top` need not read all Workloads for it."""
    history, cluster = draining(queue, EARLY, stops=30.0)
    history.until("its successor is admitted", lambda: history.shows("high", "QuotaReserved"), 5.0)
    history.until("the queue says so", lambda: ghost_of(history, queue) == {"cpu": str(WHOLE[queue] // 1000)}, 3.0)
    cell = {"cluster": cluster, "cluster_queue": queue, "flavor": "default", "resource": "cpu"}
    assert value(history, "gatelift_ghost_resource_usage", **cell) == WHOLE[queue] / 1000
    assert value(history, "gatelift_draining_resource_reservation", **cell) is None
    assert value(history, "gatelift_draining_placements", quota="released") == 1
    history.until("it has stopped", lambda: history.containers("low") == 0, GRACE)
    history.until("the queue says nothing more", lambda: ghost_of(history, queue) == {}, 5.0)
    assert value(history, "gatelift_ghost_resource_usage", **cell) is None


@QUEUES
def test_quota_that_what_is_being_stopped_still_holds_is_a_figure(queue: str) -> None:
    history, cluster = draining(queue, HELD, stops=30.0)
    history.passes(10.0)
    cell = {"cluster": cluster, "cluster_queue": queue, "flavor": "default", "resource": "cpu"}
    assert value(history, "gatelift_draining_resource_reservation", **cell) == WHOLE[queue] / 1000
    assert value(history, "gatelift_ghost_resource_usage", **cell) is None
    oldest = value(history, "gatelift_oldest_drain_seconds")
    assert oldest is not None
    assert 10.0 <= oldest <= 15.0
