"""A Workload is charged what is due to it, and what its charge releases wakes the classes that it may let fit.

Neighbours: `ledger` charges, `known` holds what else depends on it, `wakeups` evaluates pending classes again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from gatelift_admission.entries.entry import RESERVING, Entry, Phase, effective_priority
from gatelift_admission.state import wakeups
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Cell, Usage


@dataclass(slots=True, eq=False)
class Release:
    """What a change of one charge releases in a queue."""

    queue: str
    cells: Collection[Cell]
    """Where pending classes may find more than before."""
    usage: Usage
    """How much was released; empty where a workload holds it still, and may be preempted from now on."""
    priority: int
    """Of the workload that held it."""
    outside: bool
    """No preemption has brought it about."""


def settle(state: State, entry: Entry) -> None:
    """Charge an entry what is due, and wake the classes that what it releases may let fit."""
    if entry.of_chain is not None:
        settle_chain(state, entry.of_chain.chain, entry.charged_queue)
        return
    before, root_of = entry.charged, entry.charged_queue
    if not root_of and entry.counted is None and entry.phase not in RESERVING and entry.held_counts is None:
        entry.came_back = entry.came_back or entry.preempted
        entry.evicted = entry.preempted = False
        return  # it had nothing, and nothing is due to it
    if root_of:
        state.generations[root_of] = state.generations.get(root_of, 0) + 1
    asked, preempted = entry.evicted, entry.preempted
    freed: Collection[Cell] = state.ledger.settle(entry)
    if entry.phase not in RESERVING:
        entry.came_back = preempted
        entry.evicted = entry.preempted = False
    usage: Usage = {}
    moved = entry.charged_queue != root_of
    if entry.charged is not before:
        now = entry.charged_queue, entry.charged
        usage = state.wakes.kept_quota.recharged(state.ledger.tree, (root_of, before), now)
        moved = moved or entry.charged != before
    if moved:
        if state.settings.text_refresh > 0:
            _grow_old(state, root_of, entry.charged_queue)
        if _off_the_tree(state, entry, root_of):
            state.restructure()
    if state.holders.note(entry):  # its priority, or that it is evicted: it may be a candidate now
        freed = entry.charged
    if freed and not asked and state.settings.preemption_patience > 0:
        state.postponed.ended(state.ledger.tree, root_of, usage, state.now)
    if freed:
        priority = effective_priority(entry.workload, boost=state.settings.priority_boost)
        _released(state, Release(root_of, freed, usage, priority, outside=not preempted))


def settle_chain(state: State, chain: str, charged_in: str = "") -> None:
    """Charge all slices of a chain what is due to them, as one: what goes from one to another is released by none.

    `charged_in`: the ClusterQueue in which that one is charged of which something has changed.
    """
    if charged_in:
        state.generations[charged_in] = state.generations.get(charged_in, 0) + 1
    change = _ChainCharge()
    for one in state.chains.review(chain):
        change.settle(state, one)
        if one.phase is Phase.PENDING:
            state.review[one.uid] = one  # what it asks for, or whether it may, depends on the others
    tree = state.ledger.tree
    for queue, before in change.before.items():
        now = change.now.get(queue, {})
        usage = state.wakes.kept_quota.recharged(tree, (queue, before), (queue, now))
        freed = {cell for cell, amount in before.items() if now.get(cell, 0) < amount}
        if freed and not change.asked and state.settings.preemption_patience > 0:
            state.postponed.ended(tree, queue, usage, state.now)
        freed |= change.candidates.get(queue, set())
        if freed:
            _released(state, Release(queue, freed, usage, change.priority, outside=not change.preempted))


@dataclass(slots=True, eq=False)
class _ChainCharge:
    """What a change of the charges of one chain comes to, by ClusterQueue."""

    before: dict[str, Usage] = field(default_factory=dict)
    now: dict[str, Usage] = field(default_factory=dict)
    candidates: dict[str, set[Cell]] = field(default_factory=dict)
    """What is held by one that may be preempted from now on, and could not before."""
    priority: int = 0
    asked: bool = False
    preempted: bool = False

    def settle(self, state: State, entry: Entry) -> None:
        """Charge one slice, and note what is another than it was."""
        before, queue, was = entry.charged, entry.charged_queue, entry.counted
        asked, preempted = entry.evicted, entry.preempted
        state.ledger.settle(entry)
        if entry.phase not in RESERVING:
            entry.came_back = preempted
            entry.evicted = entry.preempted = False
        changed = state.holders.note(entry) or (was is Phase.ASSUMED and entry.phase is not Phase.ASSUMED)
        if changed and entry.charged_queue:
            self.before.setdefault(entry.charged_queue, {})
            self.candidates.setdefault(entry.charged_queue, set()).update(entry.charged)
        if (queue, before) == (entry.charged_queue, entry.charged):
            return
        if queue:
            state.generations[queue] = state.generations.get(queue, 0) + 1
            _add(self.before.setdefault(queue, {}), before)
            self.asked, self.preempted = self.asked or asked, self.preempted or preempted
        if entry.charged_queue:
            _add(self.now.setdefault(entry.charged_queue, {}), entry.charged)
        self.before.setdefault(entry.charged_queue or queue, {})
        self.priority = effective_priority(entry.workload, boost=state.settings.priority_boost)
        if state.settings.text_refresh > 0:
            _grow_old(state, queue, entry.charged_queue)
        if _off_the_tree(state, entry, queue):
            state.restructure()


def _add(total: Usage, usage: Usage) -> None:
    for cell, amount in usage.items():
        total[cell] = total.get(cell, 0) + amount


def _off_the_tree(state: State, entry: Entry, before: str) -> bool:
    """Say whether a charge that changed is not only in the tree where its queue is: it is charged anew then."""
    tree = state.ledger.tree
    if tree is None:
        return False
    known, name = tree.queues, entry.charged_queue
    missing = (before and before not in known) or (name and name not in known)
    if state.debts.changed(entry, before) or missing:
        return True
    return bool(state.loans.roots) and bool(before) and known[before].root in state.loans.roots


def _released(state: State, release: Release) -> None:
    """Wake the classes in the tree of the queue that a release may let fit, or note it for their turns."""
    tree = state.ledger.tree
    if state.outdated or tree is None or release.queue not in tree.queues:
        return
    giver = tree.queues[release.queue]
    root = giver.root
    state.releases[root] = state.releases.get(root, 0) + 1
    if release.outside:
        state.happened(root)
    wakeups.touch(state, root)
    period = wakeups.period_of(state, root)
    if period <= 0:
        wakeups.wake(state, root, release.cells)
        return
    if release.usage:
        state.wakes.kept_quota.released(giver, release.usage, release.priority, state.now, period)
    state.wakes.released(root, release.cells, release.priority, state.now, period)
    for queue, node, room in state.members.get(root, ()):
        blocked = queue.pending.blocked
        if blocked is None or state.postponed.waits_on(blocked, tree, node, state.now):
            continue
        if queue.pending.wake_blocked(room):
            state.offer(queue)


def _grow_old(state: State, before: str, now: str) -> None:
    """Note that charges of one ClusterQueue, or of two, have changed: figures of their trees are others now."""
    for name in {before, now}:
        queue = state.queues.get(name) if name else None
        if queue is not None:
            state.stale.happened(queue.root, state.now)
