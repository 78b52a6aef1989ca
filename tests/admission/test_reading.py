"""What a waiting workload's object says; what is alike is worked out once."""

from __future__ import annotations

import pytest

from gatelift_admission.demand.requests import NO_DEFAULTS, Defaults
from gatelift_admission.entries import reading
from gatelift_admission.entries.entry import Shape
from gatelift_admission.entries.reading import WorkloadReader
from gatelift_admission.values.model import EngineSettings
from gatelift_kube.objects.core import LimitRange, LimitRangeItem, LimitRangeSpec
from gatelift_kube.objects.kueue import PodSet, ReclaimablePod, Workload, WorkloadStatus
from support.twin.admission_objects import pod_set, workload

DONE = (ReclaimablePod("main", 2),)


def shape(reader: WorkloadReader, *sets: PodSet) -> Shape:
    return reader.read(workload("a", *sets), NO_DEFAULTS).shape


def test_plain_workloads_that_ask_for_the_same_are_worked_out_once() -> None:
    reader = WorkloadReader(EngineSettings())
    first = reader.read(workload("a", pod_set(requests={"cpu": "1"})), NO_DEFAULTS)
    second = reader.read(workload("b", pod_set(requests={"cpu": "1"}), created=5), NO_DEFAULTS)
    assert second.pod_sets is first.pod_sets
    assert second.shape is first.shape
    assert second.timestamp > first.timestamp


@pytest.mark.parametrize(
    "other",
    [
        workload("b", pod_set(requests={"cpu": "2"})),
        workload("b", pod_set(requests={"cpu": "1", "memory": "1Gi"})),
        workload("b", pod_set(count=2, requests={"cpu": "1"})),
        workload("b", pod_set(name="other", requests={"cpu": "1"})),
        workload("b", pod_set(requests={"cpu": "1"}), priority=3),
        workload("b", pod_set(requests={"cpu": "1"}), pod_set(name="more", requests={"cpu": "1"})),
        workload("b", pod_set(count=2, requests={"cpu": "1"}), status=WorkloadStatus(reclaimable_pods=DONE)),
    ],
)
def test_whoever_asks_for_something_else_has_another_shape(other: Workload) -> None:
    reader = WorkloadReader(EngineSettings())
    known = shape(reader, pod_set(requests={"cpu": "1"}))
    assert reader.read(other, NO_DEFAULTS).shape != known


def test_defaults_of_the_namespace_are_seen_whatever_was_read_before() -> None:
    reader = WorkloadReader(EngineSettings())
    asks = workload("a", pod_set(requests={"cpu": "1"}))
    assert not reader.read(asks, NO_DEFAULTS).obstacle
    least = LimitRange(spec=LimitRangeSpec(limits=(LimitRangeItem(type="Container", min={"cpu": "2"}),)))
    assert reader.read(asks, Defaults(limit_ranges=(least,))).obstacle


def test_a_quantity_that_is_none_says_so_each_time() -> None:
    reader = WorkloadReader(EngineSettings())
    for _ in range(2):
        assert "some" in reader.read(workload("a", pod_set(requests={"cpu": "some"})), NO_DEFAULTS).invalid


def test_no_more_shapes_are_remembered_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "KNOWN_MAX", 3)
    reader = WorkloadReader(EngineSettings())
    for cpu in range(10):
        shape(reader, pod_set(requests={"cpu": str(cpu)}))
        assert len(reader._known) <= 3
