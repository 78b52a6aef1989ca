"""The engine through its door: what is reserved, in which order, and what is said of the rest."""

from __future__ import annotations

from gatelift_admission.model import Inadmissible, Reserve
from support.admission_objects import (
    pod_set,
    reserved,
    rest,
    simple_engine,
    workload,
)


def test_a_workload_that_fits_is_reserved_with_canonical_usage() -> None:
    engine = simple_engine(workload("a", pod_set(count=3, requests={"cpu": "500m"})))
    (decision,) = rest(engine)
    assert isinstance(decision, Reserve)
    assert decision.admission.cluster_queue == "cq"
    (granted,) = decision.admission.pod_set_assignments
    assert (granted.flavors, granted.resource_usage, granted.count) == ({"cpu": "default"}, {"cpu": "1500m"}, 3)
    assert decision.message == "Quota reserved in ClusterQueue cq"
    assert engine.charged("a") == {("default", "cpu"): 1500}


def test_a_workload_that_does_not_fit_says_how_much_is_missing() -> None:
    engine = simple_engine(
        workload("a", pod_set(requests={"cpu": "8"}), created=1),
        workload("b", pod_set(requests={"cpu": "5"}), created=2),
    )
    first, second = rest(engine)
    assert first.uid == "a"
    assert isinstance(second, Inadmissible)
    assert second.reason == "WaitingForQuota"
    assert second.message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 3 more needed"
    )
    assert rest(engine) == []


def test_a_release_wakes_what_waits_for_it() -> None:
    engine = simple_engine(
        workload("a", pod_set(requests={"cpu": "8"}), created=1),
        workload("b", pod_set(requests={"cpu": "5"}), created=2),
    )
    rest(engine)
    engine.release("a")
    assert reserved(rest(engine)) == ["b"]
    engine.release("a")
    assert engine.charged("b") == {("default", "cpu"): 5000}
    figures = engine.cluster_queue_status("cq")
    assert figures is not None
    assert figures.flavors_reservation[0].resources[0].total == "5"
