"""What may still be occupied of a ClusterQueue's flavors after its quota was freed (KEP-6143), by what Workloads say.

At most: what was granted, also where some pods have stopped by now. The metric is exact.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from gatelift.core.records import drains
from gatelift_admission.values import amounts
from gatelift_kube.objects.kueue import Workload


async def ghosts_by_queue(workloads: AsyncIterator[Workload]) -> dict[str, list[dict[str, str]]]:
    """Return what may be occupied by queue, as `resource` and `total`; queues without are left out."""
    total: dict[str, dict[str, int]] = {}
    async for workload in workloads:
        admission = workload.status.admission
        if admission is None or not drains.is_released(workload):
            continue
        queue = total.setdefault(admission.cluster_queue, {})
        for one in admission.pod_set_assignments:
            for resource, quantity in one.resource_usage.items():
                try:
                    queue[resource] = queue.get(resource, 0) + amounts.parse(quantity, resource)
                except amounts.QuantityError:
                    continue  # nobody but a person has written that, and the queue says so itself
    return {name: _typed(found) for name, found in total.items()}


def _typed(found: dict[str, int]) -> list[dict[str, str]]:
    return [
        {"resource": resource, "total": amounts.to_text(amount, resource)} for resource, amount in sorted(found.items())
    ]
