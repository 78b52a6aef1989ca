"""Order and processing of the entries of one cycle (2.7). Neighbours: `engine` nominates before and requeues after."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from support.twin import queues
from support.twin.arithmetic import minus, plus
from support.twin.flavors import Assignment
from support.twin.partial import assignment_and_targets
from support.twin.quota import Usage, add_usage, root_of, used
from support.twin.records import QueueView, Snapshot, Work
from support.twin.sharing import Contestant, winner
from support.twin.slices import BEHIND
from support.twin.targets import Candidate, fits

LOST = "Workload no longer fits after processing another workload"
OVERLAP = "Workload has overlapping preemption targets with another workload"
DEFERRED = f"{OVERLAP}, but will fit after these preemptions complete"


@dataclass(slots=True, eq=False)
class Entry:
    """A nominated head, and what became of it."""

    work: Work
    view: QueueView
    assignment: Assignment
    targets: list[Candidate] = field(default_factory=list)
    admitted: bool = False
    preempting: bool = False
    requeue: str = queues.GENERIC
    reason: str = ""
    message: str = ""
    keep_cursor: bool = True


def classical_order(entries: list[Entry]) -> list[Entry]:
    """Return lower borrowing level, higher priority, earlier timestamp first; UID decides full ties (2.7)."""
    return sorted(entries, key=lambda one: (one.assignment.borrowing(), one.work.rank()))


def next_fair(entries: list[Entry]) -> Entry:
    """Return the entry that goes next under fair sharing, recomputed after every pop (2.7)."""
    first = min(entries, key=lambda one: one.view.name)
    root = root_of(first.view.node)
    rivals = [one for one in entries if root_of(one.view.node) is root]
    won = winner([Contestant(one.view, one.work, one.assignment.usage()) for one in rivals])
    return next(one for one in rivals if one.work is won.work)


@dataclass(slots=True)
class Round:
    """The processing of all entries of a cycle against its snapshot."""

    snapshot: Snapshot
    claimed: dict[str, Work] = field(default_factory=dict)
    replaced: set[str] = field(default_factory=set)
    """Slices whose place others of their chain have taken."""

    def process_all(self, entries: list[Entry], last: Container[str] = ()) -> list[Entry]:
        """Process entries in order and return them in it (2.7); those of `last` that cannot fit come at the end."""
        hopeless = [one for one in entries if one.work.uid in last and one.assignment.mode() == "NoFit"]
        if hopeless:
            return self.process_all([one for one in entries if one not in hopeless]) + self.process_all(hopeless)
        done: list[Entry] = []
        if self.snapshot.fair is None:
            for one in classical_order(entries):
                self.process(one)
                done.append(one)
            return done
        rest = list(entries)
        while rest:
            one = next_fair(rest)
            rest.remove(one)
            self.process(one)
            done.append(one)
        return done

    def _fits(self, one: Entry) -> bool:
        """Return whether the usage fits with all claimed workloads and own targets out of the way (step 1)."""
        gone = {**self.claimed, **{target.work.uid: target.work for target in one.targets}}
        for work in gone.values():
            self.snapshot.take_out(work)
        found = fits(one.view, one.assignment.usage())
        for work in gone.values():
            self.snapshot.put_back(work)
        return found

    def _overlaps(self, one: Entry) -> bool:
        return any(target.work.uid in self.claimed for target in one.targets)

    def _recompute(self, one: Entry) -> None:
        """Assign again with the claimed victims really gone and the flavors pinned (step 2)."""
        for work in self.claimed.values():
            self.snapshot.take_out(work)
        one.assignment, one.targets = assignment_and_targets(
            self.snapshot, one.view, one.work, {}, one.assignment.pins()
        )
        for work in self.claimed.values():
            self.snapshot.put_back(work)
        one.assignment.deferred = True
        one.keep_cursor = False

    def process(self, one: Entry) -> None:
        """Process one entry (steps 1-11), unless its chain leaves for another one, or a victim has grown meanwhile."""
        record = one.work.record
        if record is not None and record.uid in self.claimed:
            one.requeue, (one.reason, one.message) = queues.GENERIC, BEHIND
            return
        if any(target.work.uid in self.replaced for target in one.targets):
            one.requeue, one.reason, one.message = queues.FAILED_AFTER_NOMINATION, "WaitingForQuota", LOST
            return
        fitting = self._fits(one)
        if self._overlaps(one):
            self._recompute(one)
            fitting = self._fits(one)
        mode = one.assignment.mode()
        if mode == "NoFit":
            one.requeue, one.reason, one.message = queues.NO_FIT, one.assignment.reason(), one.assignment.message()
        elif mode == "Preempt" and not one.targets:
            one.requeue = queues.NO_CANDIDATES
            one.reason, one.message = one.assignment.reason(), one.assignment.message()
            if one.view.spec.preemption.reclaim_within_cohort != "Any":
                add_usage(one.view.node, reserved_capacity(one))
        elif mode == "DeferredFit":
            one.requeue, one.keep_cursor = queues.PENDING_PREEMPTION, False
            one.reason, one.message = "WaitingForPreemptedWorkloads", DEFERRED
            add_usage(one.view.node, one.assignment.usage())
        elif self._overlaps(one):
            one.requeue, one.reason, one.message = queues.FAILED_AFTER_NOMINATION, "WaitingForQuota", OVERLAP
        elif not fitting:
            one.requeue, one.reason, one.message = queues.FAILED_AFTER_NOMINATION, "WaitingForQuota", LOST
        else:
            self._succeed(one, mode)

    def _succeed(self, one: Entry, mode: str) -> None:
        """Claim targets and usage; preempt or admit (steps 9-11)."""
        self.claimed.update({target.work.uid: target.work for target in one.targets})
        add_usage(one.view.node, one.assignment.usage())
        if mode == "Fit":
            one.admitted = True
            if one.work.record is not None:
                self.replaced.add(one.work.record.uid)
                del one.view.holders[one.work.record.uid]  # what it holds is held by the other one
            return
        one.preempting, one.keep_cursor = True, False
        one.requeue, one.reason = queues.PENDING_PREEMPTION, "WaitingForPreemptedWorkloads"
        one.message = f"{one.assignment.message()}. Pending the preemption of {len(one.targets)} workload(s)"


def reserved_capacity(one: Entry) -> Usage:
    """Return what an entry without targets keeps for itself, so that borrowers cannot overtake it (step 4)."""
    found: Usage = {}
    node = one.view.node
    for cell, request in one.assignment.usage().items():
        nominal, now = node.nominal.get(cell, 0), used(node, cell)
        if one.assignment.borrowing() == 0:
            found[cell] = max(0, min(request, minus(nominal, now)))
        elif cell not in node.borrowing:
            found[cell] = request
        else:
            found[cell] = min(request, minus(plus(nominal, node.borrowing[cell]), now))
    return found
