"""What a reservation says, read once for all that say the same, and what of it is due."""

from __future__ import annotations

import pytest

from gatelift_admission.demand import grants
from gatelift_admission.demand.grants import NOTHING, Grant
from gatelift_admission.values.amounts import QuantityError
from gatelift_admission.values.model import Usage
from gatelift_admission.values.transformations import Transformation
from gatelift_kube.objects.kueue import Admission, PodSetAssignment, ReclaimablePod, Workload
from support.twin.admission_objects import pod_set, reserved_status, workload

CPU = ("red", "cpu")


def assigned(count: int | None, cpu: str = "4", name: str = "main") -> PodSetAssignment:
    return PodSetAssignment(name, {"cpu": "red"}, {"cpu": cpu}, count)


def holding(*assignments: PodSetAssignment, count: int = 4, reclaimable: int = 0) -> Workload:
    status = reserved_status(Admission("cq", assignments))
    if reclaimable:
        status = reserved_status(Admission("cq", assignments), reclaimable_pods=(ReclaimablePod("main", reclaimable),))
    return workload("a", pod_set(count=count, requests={"cpu": "1"}), status=status)


def grant(*assignments: PodSetAssignment, count: int = 4) -> Grant:
    return grants.read(holding(*assignments, count=count), NOTHING)


def test_a_workload_without_a_reservation_has_nothing() -> None:
    assert grants.read(workload("a"), grant(assigned(4))) is NOTHING


def test_an_object_that_says_what_is_known_is_not_read_again() -> None:
    known = grant(assigned(4))
    assert grants.read(holding(assigned(4)), known) is known
    assert grants.read(holding(assigned(3, "3")), known).usage == {CPU: 3000}


def test_a_reservation_without_a_count_is_read_each_time_since_it_means_the_count_of_the_pod_set() -> None:
    known = grant(assigned(None))
    assert known.pod_sets[0].count == 4
    assert grants.read(holding(assigned(None), count=2), known).pod_sets[0].count == 2


def test_a_quantity_that_is_none_is_an_error() -> None:
    with pytest.raises(QuantityError, match="many"):
        grants.read(holding(assigned(4, "many")), NOTHING)


def test_all_that_was_granted_is_due_and_is_one_value() -> None:
    known = grant(assigned(4))
    assert known.due(holding(assigned(4))) is known.usage
    assert known.usage == {CPU: 4000}


@pytest.mark.parametrize(
    ("count", "reclaimable", "due"),
    [
        pytest.param(4, 1, {CPU: 3000}, id="one pod is done"),
        pytest.param(4, 4, {}, id="all pods are done"),
        pytest.param(2, 0, {CPU: 4000}, id="HD-5: a count that a person lowers"),
        pytest.param(2, 1, {CPU: 3000}, id="HD-5: a count that a person lowers when one pod is done"),
        pytest.param(8, 3, {CPU: 4000}, id="those that are done were left out when it was granted"),
    ],
)
def test_pods_that_need_no_quota_any_more_are_not_due(count: int, reclaimable: int, due: Usage) -> None:
    has = holding(assigned(4), count=count, reclaimable=reclaimable)
    assert grant(assigned(4)).due(has) == due


def test_two_pod_sets_on_one_flavor_make_one_cell() -> None:
    both = grant(assigned(2, "2"), assigned(1, "1", name="more"))
    assert both.usage == {CPU: 3000}
    assert set(both.cells) == {CPU}
    assert both.of_pods({"main": 1, "more": 7}) == {CPU: 2000}, "no more than was granted, by pod set"


def test_a_cell_of_which_nothing_is_used_was_granted_all_the_same() -> None:
    none = grant(assigned(4, "0"))
    assert none.usage == {}
    assert set(none.cells) == {CPU}


def test_hd_153_a_grant_of_less_than_the_pods_request_does_not_cover_them() -> None:
    """Its pods request 1 CPU each; a count that is lower than the pod set's is what was granted in part."""

    def covered(*assignments: PodSetAssignment, by: tuple[Transformation, ...] = ()) -> bool:
        held = holding(*assignments)
        return grants.covers(grants.read(held, NOTHING), held, by)

    assert covered(assigned(4, "4"))
    assert covered(assigned(2, "2"))
    assert covered(assigned(4, "5"))
    assert not covered(assigned(4, "3999m"))
    assert not covered(assigned(2, "1"))
    assert not covered(assigned(4, "4", "other"))


def test_hd_153_what_configuration_decides_is_not_compared() -> None:
    held = holding(PodSetAssignment("main", {"memory": "red"}, {"memory": "1Gi"}, 4))
    assert grants.covers(grants.read(held, NOTHING), held, ())
    less = holding(assigned(4, "1"))
    replaced = Transformation(input="cpu", outputs={"credits": "1"}, strategy="Replace")
    yielded = Transformation(input="gpu", outputs={"cpu": "1"})
    for one in (replaced, yielded):
        assert grants.covers(grants.read(less, NOTHING), less, (one,))
