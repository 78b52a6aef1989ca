"""The index of what holds quota in each ClusterQueue, in the order in which preemption looks at it.

One sorted list per queue of what runs, one of what is on its way out, and their usage per priority, so that most
searches for victims end before they begin. Kept up to date by `note` after every charge; a search for room scans and
sorts nothing. Neighbours: `state` notes, `preemption` reads.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission.entries.entry import RESERVING, Entry, Phase, effective_priority
from gatelift_admission.entries.ordering import condition, queue_timestamp, unix_seconds
from gatelift_admission.entries.standings import FAULTY
from gatelift_admission.values.model import Cell, Usage

VictimKey = tuple[int, float, str]
"""(priority, minus the time of reservation, UID): lower goes first."""


@dataclass(slots=True, eq=False, init=False)
class Hold:
    """What one workload holds, as it stands in the index. Nobody changes it."""

    queue: str
    key: VictimKey
    evicted: bool
    timestamp: float
    """Queue timestamp, by which workloads of equal priority are newer or older."""
    usage: Usage
    cells: Collection[Cell]
    """Every cell that was granted, also where nothing of it is used: Kueue asks for flavors, not for amounts."""

    def __init__(self, entry: Entry, *, by_creation: bool, boost: bool) -> None:
        """Read what an entry is charged now; of one that is set aside its object is not read."""
        self.queue = entry.charged_queue
        self.usage, self.cells = entry.charged, entry.grant.cells
        if entry.standing is FAULTY:
            self.key = (entry.workload.spec.priority or 0, 0.0, entry.uid)
            self.evicted, self.timestamp = entry.evicted, 0.0
            return
        workload, at = entry.workload, entry.reserved_at
        reserved = condition(workload, "QuotaReserved") if entry.phase is not Phase.ASSUMED else None
        if reserved is not None and reserved.status == "True":
            at = unix_seconds(reserved.last_transition_time)
        self.key = (effective_priority(workload, boost=boost), -at, entry.uid)
        self.evicted = entry.evicted or entry.phase not in RESERVING
        self.timestamp = queue_timestamp(workload, by_creation=by_creation)
        if entry.of_chain is not None and entry.of_chain.since:  # it is no younger for having grown
            self.timestamp = min(self.timestamp, entry.of_chain.since)

    def counts_as(self, other: Hold) -> bool:
        """Say whether both are the same holding, of the same priority and as far on its way out."""
        return (
            self.queue == other.queue
            and self.key[0] == other.key[0]
            and self.evicted is other.evicted
            and (self.usage is other.usage or self.usage == other.usage)
        )


@dataclass(slots=True)
class QueueHolders:
    """All that hold quota of one ClusterQueue."""

    running: list[VictimKey] = field(default_factory=list)
    leaving: list[VictimKey] = field(default_factory=list)
    """Already evicted, not yet stopped."""
    entries: dict[str, Entry] = field(default_factory=dict)
    by_priority: dict[int, Usage] = field(default_factory=dict)

    def below(self, cell: Cell, priority: int, *, equal: bool = False) -> int:
        """Return how much of `cell` is held by priorities below `priority`, or at most `priority` if `equal`."""
        total = 0
        for one, usage in self.by_priority.items():
            if one < priority or (equal and one == priority):
                total += usage.get(cell, 0)
        return total

    def total(self, cell: Cell) -> int:
        """Return how much of `cell` all hold together."""
        return sum(usage.get(cell, 0) for usage in self.by_priority.values())


NOBODY: Final = QueueHolders()


@dataclass(slots=True)
class Holders:
    """The index over all queues."""

    by_creation: bool = False
    priority_boost: bool = False
    """Both as in `model.Settings`."""
    queues: dict[str, QueueHolders] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)

    def of(self, queue: str) -> QueueHolders:
        """Return what holds quota of `queue`; not to be changed."""
        return self.queues.get(queue, NOBODY)

    def recount(self, entries: Iterable[Entry]) -> list[tuple[Entry, Exception]]:
        """Make the index anew from what each entry is charged; return those that raise, which are left out of it.

        They are charged as ever, and are no victims: an entry is read before the index is changed.
        """
        fresh, left_out = Holders(self.by_creation, self.priority_boost), []
        for one in entries:
            try:
                fresh.note(one)
            except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else from being decided on)
                left_out.append((one, error))
        self.queues, self.holds = fresh.queues, fresh.holds
        return left_out

    def note(self, entry: Entry) -> bool:
        """Take note of what `entry` is charged now; True if its priority or its being evicted changed meanwhile."""
        old = self.holds.get(entry.uid)
        if not entry.charged and (entry.held_counts is not None or entry.phase not in RESERVING or entry.superseded):
            if old is not None:
                self._remove(entry.uid, old)
            return False
        new = Hold(entry, by_creation=self.by_creation, boost=self.priority_boost)
        if old is not None and old.counts_as(new):
            if old.key != new.key:
                self._move(old, new)
            self.holds[entry.uid] = new
            return False
        if old is not None:
            self._remove(entry.uid, old)
        self._add(entry, new)
        return old is not None and (old.key[0] != new.key[0] or old.evicted is not new.evicted)

    def _move(self, old: Hold, new: Hold) -> None:
        """Move a holding within the order: only the time of its reservation is another one."""
        known = self.queues[old.queue]
        keys = known.leaving if old.evicted else known.running
        del keys[bisect_left(keys, old.key)]
        insort(keys, new.key)

    def _add(self, entry: Entry, hold: Hold) -> None:
        self.holds[entry.uid] = hold
        known = self.queues.get(hold.queue)
        if known is None:
            known = self.queues[hold.queue] = QueueHolders()
        known.entries[entry.uid] = entry
        insort(known.leaving if hold.evicted else known.running, hold.key)
        if hold.usage:
            total = known.by_priority.setdefault(hold.key[0], {})
            for cell, amount in hold.usage.items():
                total[cell] = total.get(cell, 0) + amount

    def _remove(self, uid: str, hold: Hold) -> None:
        del self.holds[uid]
        known = self.queues[hold.queue]
        del known.entries[uid]
        keys = known.leaving if hold.evicted else known.running
        del keys[bisect_left(keys, hold.key)]
        if hold.usage:
            self._subtract(known.by_priority, hold)
        if not known.entries:
            del self.queues[hold.queue]

    @staticmethod
    def _subtract(by_priority: dict[int, Usage], hold: Hold) -> None:
        total = by_priority[hold.key[0]]
        for cell, amount in hold.usage.items():
            left = total[cell] - amount
            if left:
                total[cell] = left
            else:
                del total[cell]
        if not total:
            del by_priority[hold.key[0]]
