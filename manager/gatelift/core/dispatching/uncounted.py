"""What pods ask for and quota does not count: settings leave it out, turn it into something else, or let it pass. Pure.

It is granted by nobody, and taken at the worker all the same: an agent that takes its capacity from its nodes judges an
offer by it as well. By the pods' own templates; what a worker's LimitRange adds its agent sees in its pods.
Neighbours: `dispatch` and `requests` say it.
"""

from __future__ import annotations

from dataclasses import replace

from gatelift.core.state.core import Core
from gatelift_admission.demand.requests import pod_requests
from gatelift_admission.values.amounts import QuantityError
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_wire.values import limits
from gatelift_wire.values.messages import PodSetRequest


def with_uncounted(core: Core, pod_sets: tuple[PodSetRequest, ...], workload: Workload) -> tuple[PodSetRequest, ...]:
    """Return the pod sets with what their pods ask for beside what was granted."""
    settings = core.settings.admission
    if not (settings.excluded_prefixes or settings.transformations or settings.ignore_undeclared):
        return pod_sets  # without these, what no ClusterQueue covers is not granted
    by_name = {one.name: one for one in workload.spec.pod_sets}
    return tuple(
        replace(one, uncounted=_beside(one, by_name[one.name])) if one.name in by_name else one for one in pod_sets
    )


def _beside(granted: PodSetRequest, pod_set: PodSet) -> tuple[tuple[str, int], ...]:
    """Return what is asked for in total and is not granted; what the wire would not take is left out."""
    counted = {name for name, _ in granted.requests}
    try:
        asked = pod_requests(pod_set.template.spec)
    except QuantityError:
        return ()
    totals = [(name, amount * granted.count) for name, amount in sorted(asked.items()) if name not in counted]
    fits = [each for each in totals if 0 < each[1] <= limits.NUMBER_MAX and len(each[0].encode()) <= limits.WORD_MAX]
    return tuple(fits[: limits.PAIRS_MAX])
