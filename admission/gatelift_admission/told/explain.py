"""Why is it not running: where a workload stands, and what it lacks in each flavor. Looks, never changes.

Neighbours: `engine` offers it; `flavors` is asked as a cycle would ask it.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.flavors.assigner import assign
from gatelift_admission.state.known import State
from gatelift_kube.values.resources import ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorVerdict:
    """One flavor looked at for one pod set."""

    pod_set: str
    flavor: str
    fits: bool
    borrows: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Where a workload stands. `position` counts from 0 within its ClusterQueue; None if it is in no queue."""

    uid: str
    key: ObjectKey
    phase: Phase
    cluster_queue: str
    position: int | None
    waiting: int
    reason: str
    message: str
    verdicts: tuple[FlavorVerdict, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """One waiting workload and its place in its ClusterQueue and its LocalQueue, both from 0."""

    uid: str
    key: ObjectKey
    local_queue: str
    priority: int
    in_cluster_queue: int
    in_local_queue: int


def explain(state: State, uid: str) -> Explanation | None:
    """Return where a workload stands and what it lacks now, None if it is not known."""
    entry = state.entries.get(uid)
    if entry is None:
        return None
    queue = state.queues.get(entry.queue)
    position, waiting = None, 0
    if queue is not None:
        order = [one.uid for one in queue.pending.in_order()]
        position, waiting = order.index(uid), len(order)
    reason, message = entry.want or entry.told or ("", "")
    return Explanation(
        uid=uid,
        key=entry.key,
        phase=entry.phase,
        cluster_queue=entry.queue or entry.grant.queue,
        position=position,
        waiting=waiting,
        reason=reason,
        message=message,
        verdicts=_verdicts(state, entry),
    )


def _verdicts(state: State, entry: Entry) -> tuple[FlavorVerdict, ...]:
    queue = state.queues.get(entry.queue)
    if queue is None or not queue.admits:
        return ()
    assignment = assign(state.market(queue, held=state.chains.held(entry)), entry.pod_sets)
    return tuple(
        FlavorVerdict(
            pod_set=one.name,
            flavor=attempt.flavor,
            fits=not attempt.reason,
            borrows=attempt.level > 0,
            reasons=attempt.reasons,
        )
        for one in assignment.pod_sets
        for attempt in one.attempts
    )


def pending_positions(state: State, name: str, limit: int) -> list[Position]:
    """Return the first `limit` waiting workloads of a ClusterQueue in order; those set aside come last."""
    queue = state.queues.get(name)
    if queue is None:
        return []
    seen: dict[ObjectKey, int] = {}
    found = []
    for place, entry in enumerate(queue.pending.in_order()):
        if place >= limit:
            break
        local = entry.local_queue
        found.append(
            Position(
                uid=entry.uid,
                key=entry.key,
                local_queue=local.name,
                priority=entry.priority,
                in_cluster_queue=place,
                in_local_queue=seen.get(local, 0),
            )
        )
        seen[local] = seen.get(local, 0) + 1
    return found
