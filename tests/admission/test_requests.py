"""What a pod requests: the Kubernetes rule with init containers, sidecars, defaults and overhead."""

from __future__ import annotations

import pytest

from gatelift_admission.amounts import QuantityError
from gatelift_admission.requests import Defaults, limit_errors, pod_requests, pod_set_requests
from gatelift_kube.objects.core import (
    Container,
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    Overhead,
    PodSpec,
    Quantity,
    ResourceRequirements,
    RuntimeClass,
)
from gatelift_kube.objects.kueue import ReclaimablePod, WorkloadStatus
from gatelift_kube.objects.meta import ObjectMeta
from support.admission_objects import pod_set, workload


def box(cpu: Quantity | None = None, limit: Quantity | None = None, *, sidecar: bool = False) -> Container:
    requests: dict[str, Quantity] = {} if cpu is None else {"cpu": cpu}
    limits: dict[str, Quantity] = {} if limit is None else {"cpu": limit}
    return Container("c", ResourceRequirements(requests, limits), restart_policy="Always" if sidecar else None)


def test_containers_add_up() -> None:
    assert pod_requests(PodSpec((box("1"), box("500m")))) == {"cpu": 1500}


def test_a_limit_stands_in_for_a_missing_request() -> None:
    assert pod_requests(PodSpec((box(limit="2"), box("1", "4")))) == {"cpu": 3000}


def test_the_largest_init_container_counts_if_it_needs_more_than_the_containers() -> None:
    assert pod_requests(PodSpec((box("1"),), (box("3"), box("2")))) == {"cpu": 3000}
    assert pod_requests(PodSpec((box("4"),), (box("3"),))) == {"cpu": 4000}


def test_sidecars_count_with_the_containers_and_with_later_init_containers() -> None:
    init = (box("1", sidecar=True), box("3"), box("1", sidecar=True))
    assert pod_requests(PodSpec((box("1"),), init)) == {"cpu": 4000}
    assert pod_requests(PodSpec((box("5"),), init)) == {"cpu": 7000}


def test_pod_level_resources_override_the_sum_for_cpu_and_memory_only() -> None:
    gpus = Container("c", ResourceRequirements({"cpu": "1", "gpu": "1"}))
    spec = PodSpec((gpus,), resources=ResourceRequirements({"cpu": "8", "gpu": "5"}, {"memory": "1Gi"}))
    assert pod_requests(spec) == {"cpu": 8000, "gpu": 1, "memory": 2**30}


def test_overhead_is_added_and_is_taken_from_the_runtime_class_if_missing() -> None:
    runtime = RuntimeClass(ObjectMeta(name="kata"), "kata", Overhead({"cpu": "250m", "memory": "1Mi"}))
    defaults = Defaults(runtime_classes={"kata": runtime})
    spec = PodSpec((box("1"),), runtime_class_name="kata")
    assert pod_requests(spec, defaults) == {"cpu": 1250, "memory": 2**20}
    named = PodSpec((box("1"),), runtime_class_name="kata", overhead={"cpu": "1"})
    assert pod_requests(named, defaults) == {"cpu": 2000}
    assert pod_requests(PodSpec((box("1"),), runtime_class_name="other"), defaults) == {"cpu": 1000}


def test_defaults_of_the_first_limit_range_count_before_limits_stand_in() -> None:
    first = LimitRangeItem("Container", default={"cpu": "2"}, default_request={"cpu": "1"})
    second = LimitRangeItem("Container", default_request={"cpu": "9", "memory": "1Mi"})
    ranges = tuple(
        LimitRange(ObjectMeta(name=name), LimitRangeSpec((one,)))
        for name, one in zip("ab", (first, second), strict=True)
    )
    defaults = Defaults(limit_ranges=ranges)
    assert pod_requests(PodSpec((box(),)), defaults) == {"cpu": 1000, "memory": 2**20}
    assert pod_requests(PodSpec((box("3"),)), defaults) == {"cpu": 3000, "memory": 2**20}


def test_pod_sets_are_less_their_reclaimable_pods_and_never_negative() -> None:
    status = WorkloadStatus(reclaimable_pods=(ReclaimablePod("main", 2), ReclaimablePod("more", 9)))
    sets = (pod_set("main", 5, {"cpu": "1"}), pod_set("more", 3, {"cpu": "-1", "memory": 7}))
    main, more = pod_set_requests(workload("a", *sets, status=status))
    assert (main.count, main.totals()) == (3, {"cpu": 3000})
    assert (more.count, more.per_pod) == (0, {"cpu": 0, "memory": 7})


def test_resources_with_an_excluded_prefix_are_not_counted() -> None:
    sets = pod_set(requests={"cpu": "1", "networking.example.com/vpc": "1"})
    (one,) = pod_set_requests(workload("a", sets), excluded=("networking.",))
    assert one.per_pod == {"cpu": 1000}


def test_a_malformed_quantity_is_named() -> None:
    with pytest.raises(QuantityError, match="1e3Mi"):
        pod_requests(PodSpec((box("1e3Mi"),)))


def test_requests_above_limits_are_found_by_container() -> None:
    spec = PodSpec((box("1", "2"), box("3", "2")), (box("3", "1"),))
    assert limit_errors(spec) == ["initContainers[0][cpu]", "containers[1][cpu]"]
