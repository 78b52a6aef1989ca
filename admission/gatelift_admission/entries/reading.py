"""What a pending workload's object says about its place: priority, time, what its pods request, what is wrong with it.

Neighbours: `requests` counts, `limits` objects, `places` puts into queues by what is read here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift_admission import texts
from gatelift_admission.demand.limits import limit_errors, range_errors
from gatelift_admission.demand.requests import CountingRules, Defaults, is_plain, pod_set_requests
from gatelift_admission.entries.entry import Shape, effective_priority
from gatelift_admission.entries.ordering import queue_timestamp
from gatelift_admission.values.amounts import QuantityError
from gatelift_admission.values.model import EngineSettings, PodSetDemand
from gatelift_kube.objects.kueue import Workload

KNOWN_MAX = 4096
"""Shapes that are remembered: more than a cluster has at a time, and less than a megabyte each thousand."""


class Reading(NamedTuple):
    """What a pending workload's object says; `invalid` is why its resources cannot be read."""

    priority: int
    timestamp: float
    pod_sets: tuple[PodSetDemand, ...]
    shape: Shape
    invalid: str = ""
    obstacle: str = ""


@dataclass(slots=True)
class WorkloadReader:
    """Reads workloads; those of one plain container that ask for the same are worked out once."""

    settings: EngineSettings
    _known: dict[Shape, tuple[tuple[PodSetDemand, ...], Shape]] = field(default_factory=dict)

    def read(self, workload: Workload, defaults: Defaults) -> Reading:
        """Return what `workload` says, in a namespace that adds `defaults` to its pods."""
        settings = self.settings
        priority = effective_priority(workload, boost=settings.priority_boost)
        timestamp = queue_timestamp(workload, by_creation=settings.by_creation)
        try:
            key = _plain_key(workload, defaults, priority)
            if key is None:
                pod_sets = self._count(workload, defaults)
                return Reading(
                    priority, timestamp, pod_sets, shape_of(priority, pod_sets), "", _obstacle(workload, defaults)
                )
            known = self._known.get(key)
            if known is None:
                if len(self._known) >= KNOWN_MAX:
                    self._known.clear()
                pod_sets = self._count(workload, defaults)
                known = self._known[key] = pod_sets, shape_of(priority, pod_sets)
        except QuantityError as error:
            return Reading(priority, timestamp, (), (), str(error))
        return Reading(priority, timestamp, *known)

    def _count(self, workload: Workload, defaults: Defaults) -> tuple[PodSetDemand, ...]:
        settings = self.settings
        rules = CountingRules(excluded=settings.excluded_prefixes, transformations=settings.transformations)
        return pod_set_requests(workload, defaults, rules)


def _plain_key(workload: Workload, defaults: Defaults, priority: int) -> Shape | None:
    """Return all that a workload's shape can depend on, if that is one pod set of one plain container."""
    pod_sets = workload.spec.pod_sets
    if len(pod_sets) != 1 or workload.status.reclaimable_pods:
        return None
    one = pod_sets[0]
    spec = one.template.spec
    if not is_plain(spec, defaults) or spec.node_selector or spec.affinity or spec.tolerations:
        return None
    return priority, one.name, one.count, one.min_count, *spec.containers[0].resources.requests.items()


def _obstacle(workload: Workload, defaults: Defaults) -> str:
    """Return why no cycle can admit the workload, whatever the quota; empty if nothing is wrong."""
    specs = [
        (f"spec.podSets[{index}].template.spec", pod_set.template.spec)
        for index, pod_set in enumerate(workload.spec.pod_sets)
    ]
    claiming = next((one.name for one in workload.spec.pod_sets if one.template.spec.resource_claims), None)
    if claiming is not None:
        return texts.claims_devices(claiming)
    over = [text for at, spec in specs for text in limit_errors(at, spec, defaults)]
    if over:
        return texts.invalid_resources(texts.aggregate(over))
    broken = [text for at, spec in specs for text in range_errors(at, spec, defaults)]
    return texts.outside_limit_ranges(broken) if broken else ""


def shape_of(priority: int, pod_sets: tuple[PodSetDemand, ...]) -> Shape:
    """Return what makes two waiting workloads equivalent: priority and all that flavor assignment looks at."""
    return (
        priority,
        *(
            (
                one.name,
                one.count,
                one.min_count,
                tuple(one.per_pod.items()),
                tuple(sorted(one.node_selector.items())) if one.node_selector else (),
                repr(one.affinity) if one.affinity else "",
                one.tolerations,
                one.group,
            )
            for one in pod_sets
        ),
    )
