"""The engine says which queues have other figures now, whatever was done; a queue is active when its object is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import Inadmissible
from gatelift_kube.objects.kueue import WorkloadStatus
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import ObjectKey
from support.twin.admission_objects import cluster_queue, group, local_queue, pod_set, rest, simple_engine, workload

LQ, OTHER = ObjectKey("ns", "lq"), ObjectKey("ns", "other")
ONE, HUGE = pod_set(requests={"cpu": "1"}), pod_set(requests={"cpu": "11"})


def kept_out_and_back(engine: Engine) -> None:
    engine.block("waits")
    rest(engine)
    engine.unblock("waits")


DOINGS: dict[str, Callable[[Engine], object]] = {
    "one is kept out": lambda engine: engine.block("waits"),
    "one that was kept out may queue": kept_out_and_back,
    "quota is released while the object says otherwise": lambda engine: engine.release("holds"),
    "pods need no quota any more": lambda engine: engine.set_usage("holds", {"main": 0}),
    "a reservation is undone": lambda engine: engine.forget("holds"),
    "a workload is gone": lambda engine: engine.workload_removed("holds"),
    "a waiting workload is gone": lambda engine: engine.workload_removed("waits"),
    "a LocalQueue is gone": lambda engine: engine.local_queue_removed(LQ),
    "a workload moves": lambda engine: engine.workload_changed(workload("waits", HUGE, queue="other", version=2), 0.0),
    "a workload arrives": lambda engine: engine.workload_changed(workload("new", ONE), 0.0),
}


def figures(engine: Engine) -> dict[str | ObjectKey, object]:
    return {
        "cq": engine.cluster_queue_status("cq"),
        LQ: engine.local_queue_status(LQ),
        OTHER: engine.local_queue_status(OTHER),
    }


@pytest.mark.parametrize("doing", DOINGS.values(), ids=DOINGS.keys())
def test_every_change_of_a_queues_figures_is_said_whatever_it_came_from(doing: Callable[[Engine], object]) -> None:
    engine = simple_engine(local_queue("other", "cq"), workload("holds", ONE), workload("waits", HUGE, created=1))
    rest(engine)
    engine.take_changed()
    before = figures(engine)
    doing(engine)
    rest(engine)
    after = figures(engine)
    names, keys = engine.take_changed()
    differing = {name for name, one in after.items() if one != before[name] and one is not None}
    assert {*names, *keys} >= differing
    assert names or keys
    assert engine.take_changed() == ([], [])


def test_a_workload_is_counted_in_the_local_queue_that_it_was_submitted_to_last() -> None:
    engine = simple_engine(local_queue("other", "cq"), workload("waits", HUGE))
    rest(engine)
    engine.workload_changed(workload("waits", HUGE, queue="other", version=2), 0.0)
    rest(engine)
    first, second = engine.local_queue_status(LQ), engine.local_queue_status(OTHER)
    assert first is not None
    assert second is not None
    assert (first.pending_workloads, second.pending_workloads) == (0, 1)


def test_a_local_queue_is_active_with_its_cluster_queue_before_any_cycle() -> None:
    engine = simple_engine()
    for stop, active in (("Hold", False), ("None", True)):
        engine.cluster_queue_changed(cluster_queue("cq", group(default={"cpu": 10}), stop_policy=stop))
        found = engine.local_queue_status(LQ)
        assert found is not None
        assert found.active.status is active


def says(message: str) -> WorkloadStatus:
    return WorkloadStatus(conditions=(Condition("QuotaReserved", "False", "ExceedsMaxQuota", message),))


def test_what_an_object_says_otherwise_is_said_again_and_only_then() -> None:
    engine = simple_engine(workload("waits", HUGE))
    (told,) = rest(engine)
    assert isinstance(told, Inadmissible)
    engine.workload_changed(workload("waits", HUGE, version=2, status=says(told.message)), 0.0)
    assert rest(engine) == []
    engine.workload_changed(workload("waits", HUGE, version=3, status=says("something older")), 0.0)
    assert [one.message for one in rest(engine) if isinstance(one, Inadmissible)] == [told.message]
