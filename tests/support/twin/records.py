"""What the twin keeps of a workload, and the copy of the world a cycle works on (1.4, 2.1, 2.4).

Neighbours: `engine` makes both, everything else reads them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gatelift_admission.values.model import PodSetDemand
from gatelift_kube.objects.kueue import ClusterQueueSpec, Cohort, ResourceFlavor
from support.twin.quota import Node, Usage, add_usage, remove_usage

Cursor = dict[tuple[int, str], int]
"""(index of the pod set, resource) -> index of the last flavor tried, -1 if the last of the group was reached."""


@dataclass(slots=True)
class Granted:
    """One pod set of a reservation: flavor per resource, usage in total for `count` pods, and pods still in use."""

    name: str
    flavors: dict[str, str]
    usage: dict[str, int]
    count: int
    in_use: int

    def charge(self) -> Usage:
        """Return what the pods in use are charged (2.1): integer division by the count, then multiplication."""
        found = {}
        for resource, flavor in self.flavors.items():
            total = self.usage.get(resource, 0)
            found[flavor, resource] = total if self.in_use >= self.count else total // self.count * self.in_use
        return found


@dataclass(slots=True, eq=False)
class Work:
    """A workload: as its object says, and where it stands."""

    uid: str
    name: str
    namespace: str
    local_queue: str
    priority: int
    timestamp: float
    pod_sets: tuple[PodSetDemand, ...]
    shape: Any
    active: bool = True
    failed_checks: bool = False
    withheld: bool = False
    requeue_at: float | None = None
    queue: str = ""
    granted: list[Granted] = field(default_factory=list)
    reserved: bool = False
    admitted: bool = False
    evicted: bool = False
    finished: bool = False
    unreachable: bool = False
    """It cannot be stopped now, so it is nobody's candidate."""
    spares: frozenset[str] = frozenset()
    """Whom it does not preempt until something happens from outside: it lost to them (decision 14)."""
    spared: bool = False
    """It was preempted and let in again, and nothing has happened from outside since (decision 14)."""
    chain: str = ""
    """Of which elastic workload it is a slice, "" for none; with its number, and whether it may grow by parts."""
    number: int = 0
    by_parts: bool = False
    unwritten: bool = False
    """It is a slice, and nobody has written its reservation yet: it is nobody's candidate."""
    record: Work | None = None
    """The slice of its chain that holds quota, if another one does, as `World.link` found it."""
    held: dict[str, Granted] | None = None
    """What that is charged, by pod set."""
    reserved_at: float = 0.0
    cursor: Cursor = field(default_factory=dict)
    cursor_generation: int = 0
    cursor_cycle: int = -10
    cursor_shape: Any = None

    def charge(self) -> Usage:
        """Return what this workload is charged, all its pod sets together."""
        total: Usage = {}
        for one in self.granted:
            for cell, amount in one.charge().items():
                total[cell] = total.get(cell, 0) + amount
        return total

    def backed_off(self, now: float) -> bool:
        """Return whether the backoff is not over (2.3): Requeued is False, or requeueAt lies ahead."""
        return self.withheld or (self.requeue_at is not None and now < self.requeue_at)

    def rank(self) -> tuple[int, float, str]:
        """Return the order of waiting workloads (2.3): higher priority, earlier queue timestamp, UID."""
        return (-self.priority, self.timestamp, self.uid)


@dataclass(slots=True)
class QueueView:
    """One active ClusterQueue of a snapshot and the workloads that hold quota in it."""

    name: str
    spec: ClusterQueueSpec
    node: Node
    holders: dict[str, Work] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Fair:
    """Fair sharing is on, with these strategies in order (1.6, 2.9)."""

    strategies: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")


@dataclass(slots=True)
class Snapshot:
    """A copy of all active queues, their cohorts, flavors and holders (2.4 step 2)."""

    queues: dict[str, QueueView]
    cohorts: dict[str, Node]
    flavors: dict[str, ResourceFlavor]
    now: float
    fair: Fair | None = None
    everybody: bool = False
    """Candidates are also those that cannot be stopped now."""
    ignore_undeclared: bool = False
    as_kueue: bool = False
    """Flavors are searched as Kueue does, where decision 14 has chosen otherwise."""

    def take_out(self, work: Work) -> None:
        """Remove a holder and its charge."""
        view = self.queues[work.queue]
        del view.holders[work.uid]
        remove_usage(view.node, work.charge())

    def put_back(self, work: Work) -> None:
        """Add a holder and its charge."""
        view = self.queues[work.queue]
        view.holders[work.uid] = work
        add_usage(view.node, work.charge())

    def preemptable(self, works: Iterable[Work]) -> list[Work]:
        """Return who of these can be stopped now, or everybody."""
        return [one for one in works if self.everybody or not one.unreachable]

    def holders(self, node: Node) -> list[Work]:
        """Return the workloads that hold quota in the queue `node`; none if it is inactive, so not copied."""
        return list(self.queues[node.name].holders.values()) if node.name in self.queues else []


def cohort_spec_weight(cohort: Cohort | None) -> Any:
    """Return the weight of a cohort: 0 if implicit (1.2), 1 unless its object says otherwise."""
    if cohort is None:
        return 0
    return 1 if cohort.spec.fair_sharing is None else cohort.spec.fair_sharing.weight
