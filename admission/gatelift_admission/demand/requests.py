"""From a pod template to what its pods request: the Kubernetes pod-request rule, defaults first, then totals.

Order: RuntimeClass overhead if missing, limits copied to missing requests, LimitRange defaults, the pod rule
(containers + sidecars, the init phase, pod-level resources, overhead), excluded prefixes, transformations. It is the
API server's, which decodes a Pod before LimitRanger sees it; Kueue takes a LimitRange's request first (decision 14).
Amounts as in `amounts`. Neighbours: `state` calls `pod_set_requests` once per Workload, `limits` shares defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, PodSetDemand
from gatelift_admission.values.transformations import Transformation, transformed
from gatelift_kube.objects.core import (
    LIMITS_A_CONTAINER,
    LIMITS_A_POD,
    Container,
    LimitRange,
    PodSpec,
    Quantity,
    ResourceRequirements,
    RuntimeClass,
)
from gatelift_kube.objects.kueue import PodSet, Workload

_POD_LEVEL: Final = ("cpu", "memory")
_SIDECAR: Final = "Always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What a namespace adds to its pods: LimitRanges in name order, and all RuntimeClasses by name."""

    limit_ranges: tuple[LimitRange, ...] = ()
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)


NO_DEFAULTS: Final = Defaults()


@dataclass(frozen=True, slots=True, kw_only=True)
class CountingRules:
    """What is counted of what pods request: not resources whose name starts so, and transformations of the rest."""

    excluded: tuple[str, ...] = ()
    transformations: tuple[Transformation, ...] = ()


COUNT_ALL: Final = CountingRules()


@dataclass(frozen=True, slots=True)
class Pair:
    """Requests and limits of a container, defaults included."""

    requests: Amounts
    limits: Amounts


def amounts_of(quantities: Mapping[str, Quantity]) -> Amounts:
    """Parse a resource list; raises `amounts.QuantityError`."""
    return {name: amounts.parse(quantity, name) for name, quantity in quantities.items()}


def _plus(into: Amounts, more: Mapping[str, int]) -> Amounts:
    for name, amount in more.items():
        into[name] = amounts.add(into.get(name, 0), amount)
    return into


def _most(into: Amounts, other: Mapping[str, int]) -> Amounts:
    for name, amount in other.items():
        if amount > into.get(name, 0) or name not in into:
            into[name] = amount
    return into


def _defaulted(resources: ResourceRequirements, default_limits: Amounts, default_requests: Amounts) -> Pair:
    """Return what a Pod runs with: of its own first the request, then the limit, of defaults the same.

    A Pod's own limit is its request from when it is decoded on; a template says neither, and its pods run so.
    """
    own = amounts_of(resources.limits)
    requests = {**default_limits, **default_requests, **own, **amounts_of(resources.requests)}
    return Pair(requests, {**default_limits, **own})


def _range_defaults(ranges: Sequence[LimitRange], kind: str) -> tuple[Amounts, Amounts]:
    """Return default limits and requests; the first LimitRange that names a resource wins."""
    limits: Amounts = {}
    requests: Amounts = {}
    for limit_range in ranges:
        for item in limit_range.spec.limits:
            if item.type == kind:
                limits = {**amounts_of(item.default), **limits}
                requests = {**amounts_of(item.default_request), **requests}
    return limits, requests


def _containers(containers: Iterable[Container], limits: Amounts, requests: Amounts) -> list[tuple[Container, Pair]]:
    return [(container, _defaulted(container.resources, limits, requests)) for container in containers]


def container_pairs(spec: PodSpec, defaults: Defaults = NO_DEFAULTS) -> list[tuple[str, Pair]]:
    """Return the path of each container, init containers first, and what it requests and is limited to."""
    ranges = defaults.limit_ranges
    limits, requests = _range_defaults(ranges, LIMITS_A_CONTAINER) if ranges else ({}, {})
    return [
        (f"{name}[{index}]", pair)
        for name, containers in (("initContainers", spec.init_containers), ("containers", spec.containers))
        for index, (_, pair) in enumerate(_containers(containers, limits, requests))
    ]


def pod_requests(spec: PodSpec, defaults: Defaults = NO_DEFAULTS) -> Amounts:
    """Return what one pod of `spec` requests. Raises `amounts.QuantityError` on a malformed quantity."""
    if is_plain(spec, defaults):
        return amounts_of(spec.containers[0].resources.requests)
    limits, requests = _range_defaults(defaults.limit_ranges, LIMITS_A_CONTAINER) if defaults.limit_ranges else ({}, {})
    main = _containers(spec.containers, limits, requests)
    total: Amounts = {}
    for _, pair in main:
        _plus(total, pair.requests)
    if spec.init_containers:
        total = _with_init(total, _containers(spec.init_containers, limits, requests))
    ranges = defaults.limit_ranges
    pod_limits, pod_defaults = _range_defaults(ranges, LIMITS_A_POD) if ranges else ({}, {})
    if spec.resources is not None:
        pod = _defaulted(spec.resources, pod_limits, pod_defaults).requests
        total.update({name: amount for name, amount in pod.items() if _is_pod_level(name)})
    return _plus(total, _overhead(spec, defaults))


def is_plain(spec: PodSpec, defaults: Defaults) -> bool:
    """Return whether one container's requests are all there is to count."""
    if len(spec.containers) != 1 or spec.init_containers or spec.overhead or spec.resources is not None:
        return False
    if spec.resource_claims:
        return False
    return not (spec.containers[0].resources.limits or defaults.limit_ranges or spec.runtime_class_name)


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _with_init(main: Amounts, init: list[tuple[Container, Pair]]) -> Amounts:
    """Return the larger of the main phase with all sidecars and each step of the init phase."""
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container, pair in init:
        if container.restart_policy == _SIDECAR:
            _plus(sidecars, pair.requests)
            _most(peak, sidecars)
        else:
            _most(peak, _plus(dict(sidecars), pair.requests))
    return _most(_plus(main, sidecars), peak)


def _overhead(spec: PodSpec, defaults: Defaults) -> Amounts:
    if spec.overhead:
        return amounts_of(spec.overhead)
    runtime = defaults.runtime_classes.get(spec.runtime_class_name or "")
    return amounts_of(runtime.overhead.pod_fixed) if runtime is not None and runtime.overhead is not None else {}


def pod_set_request(
    pod_set: PodSet, reclaimable: int, defaults: Defaults = NO_DEFAULTS, rules: CountingRules = COUNT_ALL
) -> PodSetDemand:
    """Return how one pod set waits: counts are less the reclaimable pods, amounts never below zero."""
    counted = pod_requests(pod_set.template.spec, defaults)
    if rules.excluded:
        counted = {name: amount for name, amount in counted.items() if not name.startswith(rules.excluded)}
    if rules.transformations:
        counted = transformed(counted, rules.transformations)
    per_pod = {name: max(0, amount) for name, amount in sorted(counted.items())}
    spec = pod_set.template.spec
    return PodSetDemand(
        name=pod_set.name,
        count=pod_set.count - min(reclaimable, pod_set.count),
        min_count=pod_set.min_count,
        per_pod=per_pod,
        node_selector=spec.node_selector,
        affinity=spec.affinity,
        tolerations=spec.tolerations,
        group=pod_set.topology_request.pod_set_group_name if pod_set.topology_request is not None else "",
    )


def pod_set_requests(
    workload: Workload, defaults: Defaults = NO_DEFAULTS, rules: CountingRules = COUNT_ALL
) -> tuple[PodSetDemand, ...]:
    """Return all pod sets of `workload` as they wait. Raises `amounts.QuantityError` on a malformed quantity."""
    reclaimable = reclaimable_counts(workload)
    return tuple(
        pod_set_request(pod_set, reclaimable.get(pod_set.name, 0), defaults, rules)
        for pod_set in workload.spec.pod_sets
    )


def reclaimable_counts(workload: Workload) -> dict[str, int]:
    """Return the pods per pod set that no longer need quota (KEP-78)."""
    return {pods.name: max(0, pods.count) for pods in workload.status.reclaimable_pods}
