"""Status of ClusterQueues and LocalQueues, as people see it: counts, usage per flavor in spec order, condition Active.

Pure: from the state to values; the caller adds transition times and writes. Neighbour: `engine`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_admission.amounts import sub, to_text
from gatelift_admission.model import Counts, Usage
from gatelift_admission.queues import Active, cluster_queue_active, local_queue_active
from gatelift_admission.state import State
from gatelift_kube.objects.kueue import ClusterQueue, FlavorUsage, ResourceUsage
from gatelift_kube.resources import ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """The status of a queue without times."""

    active: Active
    pending_workloads: int
    reserving_workloads: int
    admitted_workloads: int
    flavors_reservation: tuple[FlavorUsage, ...]
    flavors_usage: tuple[FlavorUsage, ...]


def cluster_queue_status(state: State, name: str) -> QueueFigures | None:
    """Return the status of a ClusterQueue, None if there is none of that name."""
    queue = state.queues.get(name)
    if queue is None:
        return None
    active = cluster_queue_active(queue.object, state.flavors, state.checks)
    return _figures(state, active, state.ledger.queue(name), queue.object, borrows=bool(queue.spec.cohort_name))


def local_queue_status(state: State, key: ObjectKey) -> QueueFigures | None:
    """Return the status of a LocalQueue, None if there is none of that key."""
    local = state.local_queues.get(key)
    if local is None:
        return None
    queue = state.queues.get(local.object.spec.cluster_queue)
    active = local_queue_active(local.object, queue)
    return _figures(state, active, state.ledger.local_queue(key), queue.object if queue else None, borrows=None)


def _figures(
    state: State, active: Active, counts: Counts, queue: ClusterQueue | None, *, borrows: bool | None
) -> QueueFigures:
    nominal = state.nominal(queue) if borrows and queue is not None else {}
    return QueueFigures(
        active=active,
        pending_workloads=counts.pending,
        reserving_workloads=counts.reserving,
        admitted_workloads=counts.admitted,
        flavors_reservation=_usage(queue, counts.reserved_usage, nominal),
        flavors_usage=_usage(queue, counts.admitted_usage, nominal),
    )


def _usage(queue: ClusterQueue | None, usage: Usage, nominal: Usage) -> tuple[FlavorUsage, ...]:
    """Return usage per flavor in spec order, resources by name; `nominal` empty means nothing is borrowed."""
    if queue is None:
        return ()
    return tuple(
        FlavorUsage(
            flavor.name,
            tuple(
                ResourceUsage(name, to_text(total, name), to_text(max(0, sub(total, most)), name))
                for name in sorted(one.name for one in flavor.resources)
                for total in (usage.get((flavor.name, name), 0),)
                for most in (nominal.get((flavor.name, name), total),)
            ),
        )
        for group in queue.spec.resource_groups
        for flavor in group.flavors
    )
