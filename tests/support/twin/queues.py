"""The queue of one ClusterQueue (2.3): heap, inadmissible set, one workload in flight. Neighbour: `engine`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.twin.records import Work

GENERIC = ""
FAILED_AFTER_NOMINATION = "FailedAfterNomination"
NAMESPACE_MISMATCH = "NamespaceMismatch"
PENDING_PREEMPTION = "PendingPreemption"
NO_FIT = "NoFit"
NO_CANDIDATES = "PreemptionNoCandidates"
AT_ONCE = (FAILED_AFTER_NOMINATION, PENDING_PREEMPTION, "PendingMigration", "PreemptionFailed")
"""Requeue reasons that are immediate under BestEffortFIFO."""
STRICT = "StrictFIFO"


@dataclass(slots=True)
class TwinQueue:
    """Waiting workloads of one ClusterQueue, by UID."""

    name: str
    strategy: str
    heap: dict[str, Work] = field(default_factory=dict)
    inadmissible: dict[str, Work] = field(default_factory=dict)
    inflight: Work | None = None
    pop_cycle: int = 0
    inadmissible_cycle: int = -1
    failed: dict[Any, str] = field(default_factory=dict)
    preemptor: str = ""
    bypassed: dict[str, str] = field(default_factory=dict)

    def order(self) -> list[Work]:
        """Return the heap in order (2.3): the sticky one, then higher priority, earlier timestamp, UID."""
        sticky = self.preemptor if self.strategy != STRICT else ""
        return sorted(self.heap.values(), key=lambda one: (one.uid != sticky, one.rank()))

    def push(self, work: Work, now: float) -> None:
        """Take a new or changed workload in (2.3)."""
        self.inadmissible.pop(work.uid, None)
        self.heap.pop(work.uid, None)
        if work.backed_off(now):
            self.inadmissible[work.uid] = work
        elif self.strategy != STRICT and work.shape in self.failed:
            self.inadmissible[work.uid] = work
            self.bypassed[work.uid] = self.failed[work.shape]
        else:
            self.heap[work.uid] = work

    def remove(self, uid: str) -> None:
        """Forget a workload."""
        self.heap.pop(uid, None)
        self.inadmissible.pop(uid, None)
        if self.preemptor == uid:
            self.preemptor = ""

    def pop(self) -> Work | None:
        """Take the head (2.3, Heads)."""
        order = self.order()
        if not order:
            return None
        self.pop_cycle += 1
        self.inflight = order[0]
        return self.heap.pop(order[0].uid)

    def requeue(self, work: Work, reason: str, now: float) -> None:
        """Put the workload in flight back (2.3, table of immediate reasons)."""
        self.inflight = None
        if reason == PENDING_PREEMPTION:
            self.preemptor = work.uid
        at_once = reason != NAMESPACE_MISMATCH if self.strategy == STRICT else reason in AT_ONCE
        flushed = self.inadmissible_cycle >= self.pop_cycle
        pending_flavors = any(index != -1 for index in work.cursor.values())
        if not work.backed_off(now) and (at_once or flushed or pending_flavors):
            self.heap[work.uid] = work
            return
        self.inadmissible[work.uid] = work
        self.bypassed.pop(work.uid, None)

    def condemn(self, work: Work, fine_reason: str) -> list[Work]:
        """Record a failed class and set its other members aside unevaluated (2.3, equivalence hashing)."""
        if self.strategy == STRICT or work.uid not in self.inadmissible:
            return []
        self.failed[work.shape] = fine_reason
        members = [one for one in self.order() if one.shape == work.shape]
        for one in members:
            self.inadmissible[one.uid] = self.heap.pop(one.uid)
            self.bypassed[one.uid] = fine_reason
        return members

    def flush(self, selects: Callable[[Work], bool], now: float) -> None:
        """Move every inadmissible workload whose namespace matches and whose backoff is over to the heap (2.3)."""
        self.inadmissible_cycle = self.pop_cycle
        self.failed.clear()
        for uid, work in list(self.inadmissible.items()):
            if selects(work) and not work.backed_off(now):
                self.heap[uid] = self.inadmissible.pop(uid)
                self.bypassed.pop(uid, None)

    def wake(self, work: Work) -> None:
        """Flush the class of one workload only: what a wake-up index does in place of a flush of everything."""
        if work.shape in self.failed:
            del self.failed[work.shape]
            for uid in [uid for uid, one in self.inadmissible.items() if one.shape == work.shape]:
                self.heap[uid] = self.inadmissible.pop(uid)
                self.bypassed.pop(uid, None)
        elif work.uid in self.inadmissible:
            self.heap[work.uid] = self.inadmissible.pop(work.uid)
