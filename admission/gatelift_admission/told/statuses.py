"""Status of ClusterQueues, LocalQueues and Cohorts, as people see it: counts, usage in spec order, Active, shares.

Pure: from the state to values; the caller adds transition times and writes. Neighbour: `answers`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_admission.entries.standings import AWAKE
from gatelift_admission.queues.models import Active, cluster_queue_active, local_queue_active
from gatelift_admission.quota.fairness import published, share
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.state.known import State
from gatelift_admission.values.amounts import UNLIMITED, clamp, sub, to_quantity
from gatelift_admission.values.model import Counts, Usage, cell_of
from gatelift_kube.objects.kueue import ClusterQueue, FlavorUsage, ResourceUsage
from gatelift_kube.values.resources import ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """The status of a queue without times."""

    active: Active
    pending_workloads: int
    reserving_workloads: int
    admitted_workloads: int
    flavors_reservation: tuple[FlavorUsage, ...]
    flavors_usage: tuple[FlavorUsage, ...]
    weighted_share: int | None = None
    """Only of a ClusterQueue, and only where fair sharing is on (KEP-1714)."""
    saturated: tuple[str, ...] = ()
    """What is used beyond the largest amount there is, as `<resource> in flavor <flavor>`: shown as that amount."""


def cluster_queue_status(state: State, name: str) -> QueueFigures | None:
    """Return the status of a ClusterQueue, None if there is none of that name."""
    queue = state.queues.get(name)
    if queue is None:
        return None
    active = cluster_queue_active(queue.object, state.flavors, state.checks, state.cohorts)
    nominal = state.nominal(queue.object) if queue.spec.cohort_name else {}
    fair = bool(state.settings.fair_sharing)
    weighted = _published(state, state.ensure().queues.get(name)) if fair else None
    return _figures(active, state.ledger.queue(name), queue.object, nominal, weighted)


def queue_is_used(state: State, name: str) -> bool:
    """Say whether anything is reserved or charged in a ClusterQueue, which need not exist as an object."""
    counts = state.ledger.queues.get(name)
    return counts is not None and bool(counts.reserving or counts.reserved_usage)


def flavor_is_used(state: State, name: str) -> bool:
    """Say whether a ClusterQueue names a ResourceFlavor, or anything is charged in it."""
    groups = (group for queue in state.queues.values() for group in queue.spec.resource_groups)
    named = any(one.name == name for group in groups for one in group.flavors)
    return named or any(flavor == name for one in state.ledger.queues.values() for flavor, _ in one.reserved_usage)


def most(state: State, name: str) -> Usage:
    """Return what a ClusterQueue could ever have, its own and what it may borrow, with everything else idle."""
    tree, queue = state.ensure(), state.queues.get(name)
    node = tree.queues.get(name)
    if node is None or queue is None:
        return {}
    groups = (group for group in queue.spec.resource_groups)
    cells = (cell_of(flavor.name, one.name) for group in groups for flavor in group.flavors for one in flavor.resources)
    return {cell: tree.potential(node, cell) for cell in cells}


def cohort_share(state: State, name: str) -> int | None:
    """Return the weighted share of a cohort; None where there is no fair sharing or no cohort of that name."""
    return _published(state, state.ensure().cohorts.get(name)) if state.settings.fair_sharing else None


def _published(state: State, node: TreeNode | None) -> int | None:
    return None if node is None else published(share(state.ensure(), node))


def pending_split(state: State, name: str) -> tuple[int, int]:
    """Return how many wait in a ClusterQueue for their turn, and how many for something to change, as Kueue counts.

    Where the queue does not admit, nobody waits for a turn.
    """
    queue = state.queues.get(name)
    if queue is None:
        return 0, 0
    total = state.ledger.queue(name).pending
    if not queue.admits:
        return 0, total
    parked = sum(len(one.members) for one in queue.pending.classes.values() if one.standing not in AWAKE)
    idle = min(total, parked + len(queue.pending.aside))
    return total - idle, idle


def idle_by_local_queue(state: State) -> dict[ObjectKey, int]:
    """Return how many of each LocalQueue's waiting workloads wait for something to change, if any."""
    idle: dict[ObjectKey, int] = {}
    for queue in state.queues.values():
        parts = [one.members for one in queue.pending.classes.values() if one.standing not in AWAKE or not queue.admits]
        for waiting in (*parts, queue.pending.aside):
            for entry in waiting.values():
                idle[entry.local_queue] = idle.get(entry.local_queue, 0) + 1
    return idle


def local_queue_status(state: State, key: ObjectKey) -> QueueFigures | None:
    """Return the status of a LocalQueue, None if there is none of that key."""
    local = state.local_queues.get(key)
    if local is None:
        return None
    queue = state.queues.get(local.object.spec.cluster_queue)
    found = queue.object if queue is not None else None
    # Not `queue.active`, which is brought up to date with the tree: a standby does that no sooner than it leads.
    above = cluster_queue_active(found, state.flavors, state.checks, state.cohorts) if found is not None else None
    active = local_queue_active(local.object, above)
    return _figures(active, state.ledger.local_queue(key), found, {})


def _figures(
    active: Active, counts: Counts, queue: ClusterQueue | None, nominal: Usage, weighted_share: int | None = None
) -> QueueFigures:
    """Return what is shown of a queue; `nominal` empty means nothing is borrowed."""
    return QueueFigures(
        active=active,
        pending_workloads=counts.pending,
        reserving_workloads=counts.reserving,
        admitted_workloads=counts.admitted,
        flavors_reservation=_usage(queue, counts.reserved_usage, nominal),
        flavors_usage=_usage(queue, counts.admitted_usage, nominal),
        weighted_share=weighted_share,
        saturated=_saturated(queue, counts.reserved_usage),
    )


def _saturated(queue: ClusterQueue | None, usage: Usage) -> tuple[str, ...]:
    """Return which of what is used is too much for an amount, in spec order."""
    if queue is None or not usage or max(usage.values()) < UNLIMITED:
        return ()
    return tuple(
        f"{one.name} in flavor {flavor.name}"
        for group in queue.spec.resource_groups
        for flavor in group.flavors
        for one in flavor.resources
        if usage.get((flavor.name, one.name), 0) >= UNLIMITED
    )


def _usage(queue: ClusterQueue | None, usage: Usage, nominal: Usage) -> tuple[FlavorUsage, ...]:
    """Return usage per flavor in spec order, resources by name; `nominal` empty means nothing is borrowed."""
    if queue is None:
        return ()
    return tuple(
        FlavorUsage(
            flavor.name,
            tuple(
                ResourceUsage(name, to_quantity(total, name), to_quantity(max(0, sub(total, most)), name))
                for name in sorted(one.name for one in flavor.resources)
                for total in (clamp(usage.get((flavor.name, name), 0)),)
                for most in (nominal.get((flavor.name, name), total),)
            ),
        )
        for group in queue.spec.resource_groups
        for flavor in group.flavors
    )
