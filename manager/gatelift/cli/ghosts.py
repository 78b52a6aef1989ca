"""What may still be occupied of a ClusterQueue's flavors after its quota was freed (KEP-6143), as the queue says it."""

from __future__ import annotations

from gatelift.core.records import occupied
from gatelift_kube.objects import conditions
from gatelift_kube.objects.kueue import ClusterQueue, LocalQueue


def ghost_of(queue: ClusterQueue | LocalQueue) -> list[dict[str, str]]:
    """Return what may be occupied of a queue, as `flavor`, `resource` and `total`: nothing, for nearly all."""
    said = conditions.find(queue.status.conditions, occupied.CONDITION)
    if said is None or said.status != conditions.TRUE:
        return []
    return [
        {"flavor": one.flavor, "resource": one.resource, "total": one.amount} for one in occupied.read(said.message)
    ]
