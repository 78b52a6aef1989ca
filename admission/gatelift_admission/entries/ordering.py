"""Who goes first: times of API objects, the queue timestamp, the order inside a queue and among entries of a cycle.

All orders are total and end in the UID, so that equal inputs give equal decisions. Neighbours: `entry` stores the key,
`classes` sorts by it, `cycle` sorts heads by `entry_key`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition

_EVICTION_TIMES = frozenset({"PodsReadyTimeout", "AdmissionCheck"})
"""Evictions after which a workload queues behind what came before the eviction (Kueue's timestamp Eviction)."""
_ALWAYS = frozenset({"AdmissionCheck"})
"""Of those the ones for which that is so with timestamp Creation, too."""


@lru_cache(maxsize=4096)
def unix_seconds(text: str | None) -> float:
    """Return the Unix time of an RFC 3339 text, 0 for none or for one that is malformed."""
    if not text:
        return 0.0
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()


def condition(workload: Workload, kind: str) -> Condition | None:
    """Return the condition of type `kind`, None if it was never written."""
    for one in workload.status.conditions:
        if one.type == kind:
            return one
    return None


def is_true(workload: Workload, kind: str) -> bool:
    """Return whether condition `kind` is True."""
    found = condition(workload, kind)
    return found is not None and found.status == "True"


def queue_timestamp(workload: Workload, *, by_creation: bool = False) -> float:
    """Return the Unix time by which a waiting workload is ordered among equals in priority.

    `by_creation`: whose pods were not ready in time keeps its place (`requeuingStrategy.timestamp: Creation`).
    """
    evicted = condition(workload, "Evicted")
    if (
        evicted is not None
        and evicted.status == "True"
        and evicted.reason in (_ALWAYS if by_creation else _EVICTION_TIMES)
    ):
        return unix_seconds(evicted.last_transition_time)
    return unix_seconds(workload.metadata.creation_timestamp)


def waiting_since(workload: Workload) -> float:
    """Return the Unix time since which the wait is counted: the last requeue, else creation."""
    requeued = condition(workload, "Requeued")
    if requeued is not None and requeued.last_transition_time:
        return unix_seconds(requeued.last_transition_time)
    return unix_seconds(workload.metadata.creation_timestamp)


def pending_key(priority: int, timestamp: float, uid: str) -> tuple[int, float, str]:
    """Return the order inside a queue: higher priority, earlier timestamp, UID."""
    return -priority, timestamp, uid


def entry_key(borrowing: int, priority: int, timestamp: float, uid: str) -> tuple[int, int, float, str]:
    """Return the order of a cycle's entries: less borrowing, higher priority, earlier timestamp, UID."""
    return borrowing, -priority, timestamp, uid
