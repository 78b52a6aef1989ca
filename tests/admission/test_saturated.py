"""What is used beyond the largest amount there is, as statuses show it: a quantity, and said to be no sum (IS-36)."""

from __future__ import annotations

from gatelift_admission.amounts import parse
from gatelift_admission.statuses import QueueFigures
from support.admission_objects import LQ, pod_set, rest, simple_engine, workload

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
