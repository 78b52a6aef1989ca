"""What keeps pods from being created, whatever the quota: requests above their limits, LimitRange constraints.

Both are looked at after defaults, as the API server would. Of several LimitRanges the strictest bound counts.
Neighbours: `requests` knows the defaults; `state` asks once for each version of a workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gatelift_admission.amounts import AMOUNT_MAX, nano
from gatelift_admission.model import Amounts
from gatelift_admission.requests import NO_DEFAULTS, Defaults, Pair, amounts_of, container_pairs, pod_requests
from gatelift_kube.objects.core import LimitRange, PodSpec

BILLION = 10**9
ABOVE_MAX = "requests must not be above the limitRange max"
BELOW_MIN = "requests must not be below the limitRange min"
ABOVE_RATIO = "limits must not exceed requests by more than the limitRange ratio"


def limit_errors(spec: PodSpec, defaults: Defaults = NO_DEFAULTS) -> list[str]:
    """Return, per container, the path whose requests exceed its limits (after defaults), in container order."""
    found: list[str] = []
    if not defaults.limit_ranges and not any(one.resources.limits for one in (*spec.init_containers, *spec.containers)):
        return found
    for path, pair in container_pairs(spec, defaults):
        over = _greater(pair.requests, pair.limits)
        if over:
            found.append(_at(path, over))
    return found


def range_errors(spec: PodSpec, defaults: Defaults) -> list[str]:
    """Return which constraints of LimitRanges the containers, or the pod as a whole, break; each as path: rule."""
    ranges = defaults.limit_ranges
    if not ranges:
        return []
    high, low, ratio = _bounds(ranges, "Container")
    found = []
    for path, pair in container_pairs(spec, defaults):
        found += _broken(path, _largest(pair), _smallest(pair), high, low)
        steep = sorted(
            name
            for name, most in ratio.items()
            if name in pair.limits and pair.limits[name] * BILLION > most * pair.requests.get(name, pair.limits[name])
        )
        if steep:
            found.append(f"{_at(path, steep)}: {ABOVE_RATIO}")
    high, low, _ = _bounds(ranges, "Pod")
    if high or low:
        total = pod_requests(spec, defaults)
        found += _broken("pod", total, total, high, low)
    return found


def _broken(path: str, largest: Amounts, smallest: Amounts, high: Amounts, low: Amounts) -> list[str]:
    above, below = _greater(largest, high), _greater(low, smallest)
    texts = [f"{_at(path, above)}: {ABOVE_MAX}"] if above else []
    return texts + ([f"{_at(path, below)}: {BELOW_MIN}"] if below else [])


def _at(path: str, names: Iterable[str]) -> str:
    return f"{path}[{', '.join(names)}]"


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
