"""What a pod requests: the Kubernetes rule with init containers, sidecars, defaults and overhead."""

from __future__ import annotations

import pytest

from gatelift_admission import texts
from gatelift_admission.demand.limits import ABOVE_MAX, ABOVE_RATIO, BELOW_MIN, limit_errors, range_errors
from gatelift_admission.demand.requests import CountingRules, Defaults, pod_requests, pod_set_requests
from gatelift_admission.values.amounts import QuantityError
from gatelift_admission.values.transformations import REPLACE, Transformation, transformed
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
from support.twin.admission_objects import pod_set, workload


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


def test_hd_152_a_limit_of_its_own_stands_in_before_the_default_request_of_a_limit_range() -> None:
    item = LimitRangeItem("Container", default={"cpu": "8", "memory": "4Mi"}, default_request={"cpu": "100m"})
    defaults = Defaults(limit_ranges=(LimitRange(ObjectMeta(name="a"), LimitRangeSpec((item,))),))
    assert pod_requests(PodSpec((box("2", "3"),)), defaults)["cpu"] == 2000
    assert pod_requests(PodSpec((box(limit="3"),)), defaults)["cpu"] == 3000
    assert pod_requests(PodSpec((box(),)), defaults) == {"cpu": 100, "memory": 4 * 2**20}
    init = PodSpec((box(),), (box(limit="5"),))
    assert pod_requests(init, defaults)["cpu"] == 5000


def test_pod_sets_are_less_their_reclaimable_pods_and_never_negative() -> None:
    status = WorkloadStatus(reclaimable_pods=(ReclaimablePod("main", 2), ReclaimablePod("more", 9)))
    sets = (pod_set("main", 5, {"cpu": "1"}), pod_set("more", 3, {"cpu": "-1", "memory": 7}))
    main, more = pod_set_requests(workload("a", *sets, status=status))
    assert (main.count, main.totals()) == (3, {"cpu": 3000})
    assert (more.count, more.per_pod) == (0, {"cpu": 0, "memory": 7})


def test_resources_with_an_excluded_prefix_are_not_counted() -> None:
    sets = pod_set(requests={"cpu": "1", "networking.example.com/vpc": "1"})
    (one,) = pod_set_requests(workload("a", sets), rules=CountingRules(excluded=("networking.",)))
    assert one.per_pod == {"cpu": 1000}


def test_a_malformed_quantity_is_named() -> None:
    with pytest.raises(QuantityError, match="1e3Mi"):
        pod_requests(PodSpec((box("1e3Mi"),)))


AT = "spec.podSets[0].template.spec"


def test_is_34_requests_above_limits_are_found_by_container_in_the_words_of_kueue() -> None:
    spec = PodSpec((box("1", "2"), box("3", "2")), (box("3", "1"),))
    assert limit_errors(AT, spec) == [
        f'{AT}.initContainers[0]: Invalid value: ["cpu"]: requests must not exceed its limits',
        f'{AT}.containers[1]: Invalid value: ["cpu"]: requests must not exceed its limits',
    ]
    assert texts.invalid_resources(texts.aggregate(limit_errors(AT, spec))) == (
        f'resources validation failed: [{AT}.initContainers[0]: Invalid value: ["cpu"]: requests must not exceed its '
        f'limits, {AT}.containers[1]: Invalid value: ["cpu"]: requests must not exceed its limits]'
    )


def test_is_34_requests_of_the_pod_as_a_whole_are_held_to_its_limits() -> None:
    whole = ResourceRequirements(requests={"memory": "2Gi", "cpu": "3"}, limits={"cpu": "1", "memory": "1Gi"})
    spec = PodSpec((box("1"),), resources=whole)
    assert limit_errors(AT, spec) == [
        f'{AT}.resources: Invalid value: ["cpu","memory"]: requests must not exceed its limits'
    ]


def made_of(input_: str, outputs: dict[str, str], strategy: str = "Retain", by: str = "") -> Transformation:
    return Transformation(input=input_, outputs=outputs, strategy=strategy, multiply_by=by)


def test_a_transformation_adds_what_it_yields_and_keeps_its_input_unless_it_replaces_it() -> None:
    kept = made_of("example.com/slice", {"example.com/memory": "5Ki", "credits": "10"})
    assert transformed({"example.com/slice": 2}, [kept]) == {
        "example.com/slice": 2,
        "example.com/memory": 10240,
        "credits": 20,
    }
    gone = made_of("example.com/slice", {"credits": "10"}, REPLACE)
    assert transformed({"example.com/slice": 2, "cpu": 500}, [gone]) == {"cpu": 500, "credits": 20}


def test_what_several_transformations_yield_for_one_resource_adds_up_with_what_was_requested() -> None:
    rules = [made_of("a", {"credits": "1"}, REPLACE), made_of("b", {"credits": "3"}, REPLACE)]
    assert transformed({"a": 4, "b": 2, "credits": 5}, rules) == {"credits": 15}


def test_what_is_generated_below_zero_counts_as_nothing_before_it_is_added() -> None:
    rules = [made_of("a", {"credits": "-2"}), made_of("b", {"credits": "1"})]
    assert transformed({"a": 4, "b": 2, "credits": 5}, rules) == {"a": 4, "b": 2, "credits": 5}
    assert transformed({"a": 1, "b": 3, "credits": 5}, rules) == {"a": 1, "b": 3, "credits": 6}


def test_a_transformation_may_multiply_by_another_resource_of_the_pod() -> None:
    rule = made_of("example.com/cores", {"share": "1"}, REPLACE, "gpu")
    assert transformed({"example.com/cores": 30, "gpu": 4}, [rule]) == {"gpu": 4, "share": 120}
    assert transformed({"example.com/cores": 30}, [rule]) == {"share": 30}


def test_processors_count_in_whole_ones_rounded_up_and_factors_may_be_fractions() -> None:
    assert transformed({"cpu": 1500}, [made_of("cpu", {"credits": "2"}, REPLACE)]) == {"credits": 4}
    assert transformed({"a": 3}, [made_of("a", {"credits": "0.5", "cpu": "250m"}, REPLACE)]) == {
        "credits": 2,
        "cpu": 750,
    }


def test_transformations_apply_to_what_is_left_after_excluded_prefixes_and_before_counts() -> None:
    sets = pod_set(requests={"a": "2", "net.io/x": "1"}, count=3)
    rules = CountingRules(
        excluded=("net.io/",), transformations=(made_of("a", {"b": "10"}, REPLACE), made_of("net.io/x", {"c": "1"}))
    )
    (one,) = pod_set_requests(workload("w", sets), rules=rules)
    assert one.totals() == {"b": 60}


def within(kind: str, **bounds: dict[str, Quantity]) -> Defaults:
    item = LimitRangeItem(kind, **bounds)
    return Defaults(limit_ranges=(LimitRange(ObjectMeta(name="r"), LimitRangeSpec((item,))),))


def test_a_container_above_the_maximum_or_below_the_minimum_of_a_limit_range_is_named() -> None:
    spec = PodSpec((box("1", "3"), box("2"), box("5")))
    assert range_errors(AT, spec, within("Container", max={"cpu": "2"})) == [
        f'{AT}.containers[0]: Invalid value: ["cpu"]: {ABOVE_MAX}',
        f'{AT}.containers[2]: Invalid value: ["cpu"]: {ABOVE_MAX}',
    ]
    assert range_errors(AT, spec, within("Container", min={"cpu": "1500m"})) == [
        f'{AT}.containers[0]: Invalid value: ["cpu"]: {BELOW_MIN}'
    ]
    assert range_errors(AT, spec, within("Container", max={"memory": "1Gi"})) == []


def test_a_limit_too_far_above_its_request_is_named() -> None:
    spec = PodSpec((box("1", "2"),), (box("1", "3"),))
    found = range_errors(AT, spec, within("Container", max_limit_request_ratio={"cpu": "2.5"}))
    assert found == [f'{AT}.initContainers[0]: Invalid value: ["cpu"]: {ABOVE_RATIO}']


def test_a_pod_as_a_whole_is_held_to_limit_ranges_of_pods() -> None:
    spec = PodSpec((box("1"), box("2")))
    assert range_errors(AT, spec, within("Pod", max={"cpu": "2500m"})) == [f'{AT}: Invalid value: ["cpu"]: {ABOVE_MAX}']
    assert range_errors(AT, spec, within("Pod", min={"cpu": "3"})) == []


def test_of_several_limit_ranges_the_strictest_bound_counts() -> None:
    ranges = [*within("Container", max={"cpu": "4"}).limit_ranges, *within("Container", max={"cpu": "2"}).limit_ranges]
    assert range_errors(AT, PodSpec((box("3"),)), Defaults(limit_ranges=tuple(ranges))) == [
        f'{AT}.containers[0]: Invalid value: ["cpu"]: {ABOVE_MAX}'
    ]
