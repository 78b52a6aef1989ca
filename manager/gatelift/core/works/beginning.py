"""How a lead begins: with lists of every kind that is decided on, each begun after the Lease was taken (rule H14).

How far behind its watches are a standby cannot know: one may have stood still for longer than a Lease takes, and then
neither what its caches have is a fact, nor what they lack. So whoever takes the Lease lists all kinds anew, by quorum
reads, before it counts as leading: until then no agent is welcomed and nothing is decided or concluded.
Pure. Neighbours: `machine` (asks for the lists and hands in what comes back).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.events import LeadershipGained
from gatelift_kinds.registry import Registry
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LIMIT_RANGE,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    NAMESPACE,
    PRIORITY_CLASS,
    RESOURCE_FLAVOR,
    RUNTIME_CLASS,
    WORKER_CLUSTER,
    WORKLOAD,
    WORKLOAD_PRIORITY_CLASS,
    Resource,
)

AROUND: tuple[Resource, ...] = (
    NAMESPACE,
    PRIORITY_CLASS,
    RUNTIME_CLASS,
    LIMIT_RANGE,
    RESOURCE_FLAVOR,
    COHORT,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    WORKLOAD_PRIORITY_CLASS,
    ADMISSION_CHECK,
    MULTIKUEUE_CONFIG,
    WORKER_CLUSTER,
    WORKLOAD,
)
"""What is watched whatever kinds are served."""


def watched(kinds: Registry) -> tuple[Resource, ...]:
    """Return what is watched: of all of it a complete list must have been seen before anything is decided.

    (Inventories are answered only after that, or live work would be killed; requests, priorities and quotas
    are what all of them say.)
    """
    return (*AROUND, *reversed(kinds.travelling))


LIST_SECONDS_MAX = 300.0
"""A hundred thousand Workloads are listed in about a minute. Who has not listed all after five gives the Lease up: it
is of more use to a manager whose lists come, and only such a one runs for it."""


@dataclass(slots=True)
class Beginning:
    """Which kinds are still to be listed, and the lead that begins when all are."""

    watched: tuple[Resource, ...]
    _awaited: set[Resource] = field(init=False)
    _gained: LeadershipGained | None = None
    _until: float = 0.0

    def __post_init__(self) -> None:
        """Wait for the first list of each."""
        self._awaited = set(self.watched)

    @property
    def complete(self) -> bool:
        """Say whether all lists are there: the first one of each kind; of who took the Lease, those since then."""
        return not self._awaited

    @property
    def deadline(self) -> float | None:
        """Return when the Lease is given up for want of lists (monotonic seconds); None when nothing waits for any."""
        return self._until if self._gained is not None else None

    def gained(self, event: LeadershipGained, now: float) -> None:
        """Take that the Lease is ours: what was listed before counts no more."""
        self._awaited = set(self.watched)
        self._gained, self._until = event, now + LIST_SECONDS_MAX

    def listed(self, resource: Resource) -> LeadershipGained | None:
        """Take that a list has been told; return the lead that begins with it, None where none does."""
        self._awaited.discard(resource)
        if self._awaited:
            return None
        gained, self._gained = self._gained, None
        return gained

    def overdue(self, now: float) -> str:
        """Return the kinds for want of which the Lease is to be given up, "" as long as it is not."""
        if self._gained is None or now < self._until:
            return ""
        return ", ".join(sorted(kind.plural for kind in self._awaited))
