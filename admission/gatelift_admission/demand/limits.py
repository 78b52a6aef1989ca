"""What keeps pods from being created, whatever the quota: requests above their limits, LimitRange constraints.

Both are looked at after defaults, as the API server would. Of several LimitRanges the strictest bound counts.
Neighbours: `requests` knows the defaults; `state` asks once for each version of a workload.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gatelift_admission import texts
from gatelift_admission.demand.requests import NO_DEFAULTS, Defaults, Pair, amounts_of, container_pairs, pod_requests
from gatelift_admission.values.amounts import AMOUNT_MAX, nano
from gatelift_admission.values.model import Amounts
from gatelift_kube.objects.core import LIMITS_A_CONTAINER, LIMITS_A_POD, LimitRange, PodSpec

BILLION: Final = 10**9
ABOVE_LIMITS: Final = "requests must not exceed its limits"
ABOVE_MAX: Final = "requests must not be above the limitRange max"
BELOW_MIN: Final = "requests must not be below the limitRange min"
ABOVE_RATIO: Final = "limits must not exceed requests by more than the limitRange ratio"


def limit_errors(at: str, spec: PodSpec, defaults: Defaults = NO_DEFAULTS) -> list[str]:
    """Return, per container, whose requests exceed its limits (after defaults), in container order; then the pod.

    `at`: the path of the pod's spec.
    """
    found: list[str] = []
    if defaults.limit_ranges or any(one.resources.limits for one in (*spec.init_containers, *spec.containers)):
        for path, pair in container_pairs(spec, defaults):
            over = _greater(pair.requests, pair.limits)
            if over:
                found.append(texts.invalid_value(f"{at}.{path}", over, ABOVE_LIMITS))
    if spec.resources is not None:
        over = _greater(amounts_of(spec.resources.requests), amounts_of(spec.resources.limits))
        if over:
            found.append(texts.invalid_value(f"{at}.resources", over, ABOVE_LIMITS))
    return found


def range_errors(at: str, spec: PodSpec, defaults: Defaults) -> list[str]:
    """Return which constraints of LimitRanges the containers, or the pod as a whole, break; each as path: rule.

    `at`: the path of the pod's spec.
    """
    ranges = defaults.limit_ranges
    if not ranges:
        return []
    high, low, ratio = _bounds(ranges, LIMITS_A_CONTAINER)
    found = []
    for path, pair in container_pairs(spec, defaults):
        found += _broken(f"{at}.{path}", _largest(pair), _smallest(pair), high, low)
        steep = sorted(
            name
            for name, most in ratio.items()
            if name in pair.limits and pair.limits[name] * BILLION > most * pair.requests.get(name, pair.limits[name])
        )
        if steep:
            found.append(texts.invalid_value(f"{at}.{path}", steep, ABOVE_RATIO))
    high, low, _ = _bounds(ranges, LIMITS_A_POD)
    if high or low:
        total = pod_requests(spec, defaults)
        found += _broken(at, total, total, high, low)
    return found


def _broken(path: str, largest: Amounts, smallest: Amounts, high: Amounts, low: Amounts) -> list[str]:
    above, below = _greater(largest, high), _greater(low, smallest)
    found = [texts.invalid_value(path, above, ABOVE_MAX)] if above else []
    return found + ([texts.invalid_value(path, below, BELOW_MIN)] if below else [])


def _greater(left: Mapping[str, int], right: Mapping[str, int]) -> list[str]:
    """Return the names of what is greater on the left, among those that both have."""
    return sorted(name for name, amount in left.items() if name in right and amount > right[name])


def _largest(pair: Pair) -> Amounts:
    return {name: max(pair.requests.get(name, 0), pair.limits.get(name, 0)) for name in {*pair.requests, *pair.limits}}


def _smallest(pair: Pair) -> Amounts:
    return {
        name: min(side[name] for side in (pair.requests, pair.limits) if name in side)
        for name in {*pair.requests, *pair.limits}
    }


def _bounds(ranges: Sequence[LimitRange], kind: str) -> tuple[Amounts, Amounts, Amounts]:
    """Return the strictest maximum, minimum and (in billionths) ratio of limit to request for items of `kind`."""
    highest: Amounts = {}
    lowest: Amounts = {}
    ratio: Amounts = {}
    for item in (item for one in ranges for item in one.spec.limits if item.type == kind):
        for name, amount in amounts_of(item.max).items():
            highest[name] = min(amount, highest.get(name, amount))
        for name, amount in amounts_of(item.min).items():
            lowest[name] = max(amount, lowest.get(name, amount))
        for name, quantity in item.max_limit_request_ratio.items():
            ratio[name] = min(nano(quantity), ratio.get(name, AMOUNT_MAX))
    return highest, lowest, ratio
