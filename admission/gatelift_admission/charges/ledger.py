"""What every workload is charged: totals per ClusterQueue and LocalQueue, mirrored into the quota tree.

A charge is set, never adjusted: `Ledger.settle` takes what was charged before, puts what is due now, and returns the
cells of which some came free. So charging twice is charging once, and a release cannot happen twice. What an entry is
charged stands on the entry; the totals follow from the entries, and can be made anew from them (`Ledger.recount`).
Neighbours: `state` says what is due, `statuses` reads the totals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gatelift_admission.entries.entry import RESERVING, Entry, Phase
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell, Counts, Usage
from gatelift_kube.values.resources import ObjectKey


@dataclass(slots=True)
class Ledger:
    """Totals of all charges. `tree` is None while the tree waits to be rebuilt from these totals."""

    tree: Tree | None = None
    queues: dict[str, Counts] = field(default_factory=dict)
    local_queues: dict[ObjectKey, Counts] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    changed_local: dict[ObjectKey, None] = field(default_factory=dict)
    """Queues whose counts were changed since somebody asked (`take_changed`), in the order in which they were."""

    def queue(self, name: str) -> Counts:
        """Return the counts of a ClusterQueue, which need not exist as an object."""
        found = self.queues.get(name)
        if found is None:
            found = self.queues[name] = Counts()
        return found

    def local_queue(self, key: ObjectKey) -> Counts:
        """Return the counts of a LocalQueue, which need not exist as an object."""
        found = self.local_queues.get(key)
        if found is None:
            found = self.local_queues[key] = Counts()
        return found

    def wait(self, name: str, key: ObjectKey, more: int) -> None:
        """Count one that waits more (1) or less (-1)."""
        for counts in self._both(name, key):
            counts.pending += more

    def take_changed(self) -> tuple[list[str], list[ObjectKey]]:
        """Return the ClusterQueues and LocalQueues whose counts were changed since this was asked last."""
        if not self.changed:  # one of both kinds is never changed alone
            return [], []
        changed = list(self.changed), list(self.changed_local)
        self.changed.clear()
        self.changed_local.clear()
        return changed

    def _both(self, name: str, key: ObjectKey) -> tuple[Counts, Counts]:
        """Return the counts of both queues of an entry, to be changed."""
        self.changed[name] = self.changed_local[key] = None
        return self.queue(name), self.local_queue(key)

    def settle(self, entry: Entry) -> list[Cell]:
        """Charge `entry` what is due to it now; return the cells of its old queue that came free.

        What can raise because of the entry is worked out first. It is changed before the totals are: they follow it.
        """
        due = due_of(entry)
        counted = entry.phase if entry.phase in RESERVING and not entry.superseded else None
        queue = entry.grant.queue if due or counted is not None else ""
        before, before_queue = entry.charged, entry.charged_queue
        same = queue == before_queue and (due is before or due == before)
        if same and counted is entry.counted:
            return []
        local, was = entry.charged_local, entry.counted
        if same and local == entry.local_queue:
            entry.counted = counted
            if queue and local is not None:
                self._reclassify(self._both(queue, local), before, was, counted)
            return []
        freed = [cell for cell, amount in before.items() if queue != before_queue or due.get(cell, 0) < amount]
        entry.charged, entry.charged_queue, entry.charged_local = due, queue, entry.local_queue
        entry.counted = counted
        self._count(before_queue, local, before, was, -1)
        self._count(queue, entry.local_queue, due, counted, 1)
        if not same:
            self._into_tree(before_queue, before, queue, due)
        return freed

    def _into_tree(self, before_queue: str, before: Usage, queue: str, due: Usage) -> None:
        if self.tree is None:
            return
        node = self.tree.queues.get(before_queue)
        if node is not None and before:
            self.tree.remove_usage(node, before)
        node = self.tree.queues.get(queue)
        if node is not None and due:
            self.tree.add_usage(node, due)

    @staticmethod
    def _reclassify(both: tuple[Counts, Counts], usage: Usage, before: Phase | None, counted: Phase | None) -> None:
        """Move a charge, which stays as it is, to another class of life."""
        sign = (counted is Phase.ADMITTED) - (before is Phase.ADMITTED)
        for counts in both:
            counts.reserving += (counted is not None) - (before is not None)
            if sign:
                counts.admitted += sign
                _change(counts.admitted_usage, usage, sign)

    def _count(self, queue: str, local: ObjectKey | None, usage: Usage, counted: Phase | None, sign: int) -> None:
        if not queue or local is None:
            return
        for counts in self._both(queue, local):
            if counted is not None:
                counts.reserving += sign
            if counted is Phase.ADMITTED:
                counts.admitted += sign
                _change(counts.admitted_usage, usage, sign)
            _change(counts.reserved_usage, usage, sign)

    def recount(self, entries: Iterable[Entry]) -> None:
        """Make all totals anew from what each entry is charged and where it waits; the tree is built after that."""
        fresh = Ledger()
        for one in entries:
            fresh._count(one.charged_queue, one.charged_local, one.charged, one.counted, 1)
            if one.queue and one.queued_local is not None:
                fresh.wait(one.queue, one.queued_local, 1)
        self.changed.update(dict.fromkeys((*self.queues, *fresh.queues)))
        self.changed_local.update(dict.fromkeys((*self.local_queues, *fresh.local_queues)))
        self.queues, self.local_queues = fresh.queues, fresh.local_queues

    def rebuild(self, tree: Tree) -> None:
        """Charge a fresh tree with all totals and mirror into it from now on."""
        for name, counts in self.queues.items():
            node = tree.queues.get(name)
            if node is not None:
                tree.add_usage(node, counts.reserved_usage)
        self.tree = tree


def due_of(entry: Entry) -> Usage:
    """Return what `entry` has to be charged: the ledger's word if it has spoken, else what the object says."""
    if entry.superseded:
        return {}
    if entry.held_counts is not None:
        return entry.grant.of_pods(entry.held_counts)
    if entry.phase is Phase.ASSUMED:
        return entry.grant.usage
    return entry.grant.due(entry.workload) if entry.phase in RESERVING else {}


def _change(total: Usage, usage: Usage, sign: int) -> None:
    for cell, amount in usage.items():
        value = total.get(cell, 0) + sign * amount
        if value:
            total[cell] = value
        else:
            total.pop(cell, None)
