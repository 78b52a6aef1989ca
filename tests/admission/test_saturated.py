"""What is used beyond the largest amount there is, as statuses show it: a quantity, and said to be no sum (IS-36)."""

from __future__ import annotations

from gatelift_admission.told.statuses import QueueFigures
from gatelift_admission.values.amounts import parse
from gatelift_admission.values.model import EngineSettings, Reserve
from support.twin.admission_objects import (
    LQ,
    cluster_queue,
    engine_with,
    flavor,
    group,
    local_queue,
    pod_set,
    rest,
    simple_engine,
    workload,
)
from support.twin.cohort_engine import COHORT, cohort_engine

LARGEST = "9223372036854775807m"


def figures(*cpu: str) -> tuple[QueueFigures, QueueFigures]:
    """Return what is shown of a queue without bounds, and of its LocalQueue, when workloads of so much run."""
    engine = simple_engine(cpu="1e30")
    for number, amount in enumerate(cpu):
        asked = pod_set(requests={"cpu": amount})
        engine.workload_changed(workload(f"w{number}", asked), 0.0)
    rest(engine)
    found = engine.cluster_queue_status("cq"), engine.local_queue_status(LQ)
    assert found[0] is not None
    assert found[1] is not None
    return found[0], found[1]


def test_is_36_more_than_the_largest_amount_is_shown_as_that_and_named() -> None:
    for shown in figures("1e30", "1e30"):
        (cell,) = shown.flavors_reservation[0].resources
        assert cell.total == LARGEST
        assert parse(cell.total, "cpu") == parse(LARGEST, "cpu")
        assert shown.saturated == ("cpu in flavor default",)


def test_is_36_what_can_be_summed_is_no_matter() -> None:
    for shown in figures("1", "2"):
        assert shown.flavors_reservation[0].resources[0].total == "3"
        assert shown.saturated == ()


def test_is_36_only_what_is_beyond_is_named() -> None:
    engine = engine_with(
        flavor("default"), cluster_queue("cq", group(default={"cpu": "1e30", "memory": 8})), local_queue("lq", "cq")
    )
    engine.workload_changed(workload("w", pod_set(requests={"cpu": "1e30", "memory": 2})), 0.0)
    rest(engine)
    shown = engine.cluster_queue_status("cq")
    assert shown is not None
    assert shown.saturated == ("cpu in flavor default",)
    assert [one.total for one in shown.flavors_reservation[0].resources] == [LARGEST, "2"]


def test_is_36_what_is_borrowed_and_what_a_workload_holds_are_quantities_too() -> None:
    engine = cohort_engine(EngineSettings(), "a", cpu="4")
    engine.cluster_queue_changed(cluster_queue("b", group(default={"cpu": "1e30"}), cohort_name=COHORT))
    engine.workload_changed(workload("w", pod_set(requests={"cpu": "1e30"}), queue="a"), 0.0)
    (held,) = (one for one in rest(engine) if isinstance(one, Reserve))
    assert held.admission.pod_set_assignments[0].resource_usage == {"cpu": LARGEST}
    shown = engine.cluster_queue_status("a")
    assert shown is not None
    (cell,) = shown.flavors_reservation[0].resources
    assert (cell.total, cell.borrowed) == (LARGEST, LARGEST)


def test_is_36_so_is_what_a_workload_that_waits_asks_for() -> None:
    engine = simple_engine(cpu="4")
    engine.workload_changed(workload("w", pod_set(requests={"cpu": "1e30"})), 0.0)
    rest(engine)
    assert engine.requests("w")[0].resources == {"cpu": LARGEST}
