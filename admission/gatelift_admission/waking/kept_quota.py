"""Nominal quota of a queue that was released a moment ago, and from which workloads it is kept until a successor comes.

A workload of the queue that follows the one which ended is entitled to that quota, and would preempt whoever took it
meanwhile. So for a *period* it is kept from lower priorities of the queue, and from workloads of other queues that have
no higher priority and would borrow it. Pure arithmetic, one queue at a time. Neighbours: `waking` says how long the
period is, `state` notes what is released and charged, `pending` asks before it wakes a class.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gatelift_admission.preemption.oracle import QueueRoom
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell, Usage

PARTS = 4
"""What one priority releases within this part of a period is one amount; all are looked at once in a part at most."""
AMOUNTS_MAX = 16
"""Amounts that are told apart for each queue: four priorities, each in all parts. More join the latest."""


@dataclass(slots=True)
class KeptAmount:
    """What a workload of priority `level` released at `at`, less what was charged to the queue since."""

    at: float
    level: int
    left: Usage


@dataclass(slots=True)
class KeptQuota:
    """What is kept, by root and queue, oldest first."""

    roots: dict[str, dict[TreeNode, deque[KeptAmount]]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget all."""
        self.roots.clear()

    def released(self, node: TreeNode, usage: Usage, level: int, now: float, period: float) -> None:
        """Note that a workload of priority `level` released quota that was charged to a queue."""
        amounts = self.roots.setdefault(node.root, {}).setdefault(node, deque())
        last = amounts[-1] if amounts else None
        if last is not None and (
            (last.level == level and now - last.at < period / PARTS) or len(amounts) >= AMOUNTS_MAX
        ):
            last.level = max(last.level, level)  # its time stays: else it would be kept for ever where ends are many
            for cell, amount in usage.items():
                last.left[cell] = last.left.get(cell, 0) + amount
        else:
            amounts.append(KeptAmount(now, level, dict(usage)))

    def charged(self, node: TreeNode, usage: Usage) -> None:
        """Note a charge of a queue: it takes what was released first."""
        amounts = self.roots.get(node.root, {}).get(node)
        if not amounts:
            return
        for cell, amount in usage.items():
            missing = amount
            for one in amounts:
                if not missing:
                    break
                part = min(missing, one.left.get(cell, 0))
                if part:
                    one.left[cell] -= part
                    missing -= part

    def recharged(self, tree: Tree | None, before: tuple[str, Usage], now: tuple[str, Usage]) -> Usage:
        """Note that a workload is charged `now` instead of what it was `before`, by queue; return what came free."""
        if now[1] is before[1]:
            return {}
        same = now[0] == before[0]
        node = tree.queues.get(now[0]) if tree is not None and self.roots else None
        if node is not None:
            self.charged(node, _less(now[1], before[1] if same else {}))
        return _less(before[1], now[1] if same else {})

    def expire(self, root: str, since: float) -> float | None:
        """Forget what was released at or before `since`; return when the oldest of the rest was."""
        queues = self.roots.get(root)
        if queues is None:
            return None
        oldest: float | None = None
        for node, amounts in list(queues.items()):
            while amounts and (amounts[0].at <= since or not any(amounts[0].left.values())):
                amounts.popleft()
            if not amounts:
                del queues[node]
            elif oldest is None or amounts[0].at < oldest:
                oldest = amounts[0].at
        if not queues:
            del self.roots[root]
        return oldest

    def above(self, root: str, priority: int) -> bool:
        """Return whether anything in a tree is kept for a higher priority than this."""
        return any(one.level > priority for amounts in self.roots.get(root, {}).values() for one in amounts)

    def own(self, node: TreeNode, cell: Cell, priority: int, since: float) -> int:
        """Return how much of a queue's own quota is kept from its workloads of this priority."""
        amounts = self.roots.get(node.root, {}).get(node)
        return _idle(node, cell, amounts, priority + 1, since) if amounts else 0

    def all(self, node: TreeNode, cell: Cell, priority: int, since: float) -> int:
        """Return how much in the tree of a queue is kept from its workloads of this priority that would borrow."""
        queues = self.roots.get(node.root)
        if not queues:
            return 0
        found = 0
        for other, amounts in queues.items():
            found += _idle(other, cell, amounts, priority + 1 if other is node else priority, since)
        return found


def _idle(node: TreeNode, cell: Cell, amounts: Iterable[KeptAmount], lowest: int, since: float) -> int:
    """Return what priorities from `lowest` up have released since, as far as the queue does not use it itself."""
    given = 0
    for one in amounts:
        if one.level >= lowest and one.at > since:
            given += one.left.get(cell, 0)
    return max(0, min(given, node.nominal(cell) - node.usage.get(cell, 0))) if given else 0


@dataclass(slots=True, eq=False, init=False)
class Kept:
    """What is kept from one queue now."""

    kept_quota: KeptQuota
    root: str
    since: float
    """Nothing that was released before is kept any more."""
    turns_below: float
    """Priorities below this have a turn to come in which they are offered what was released."""

    def __init__(self, kept_quota: KeptQuota, root: str, since: float, turns_below: float) -> None:
        """Look at what is kept in the tree of `root`."""
        self.kept_quota, self.root, self.since, self.turns_below = kept_quota, root, since, turns_below

    @property
    def anything(self) -> bool:
        """Say whether there is any."""
        return self.root in self.kept_quota.roots

    def leaves(self, option: Iterable[tuple[Cell, int]], room: QueueRoom, priority: int, *, within: bool) -> bool:
        """Return whether an option fits beside what is kept from this priority; `within`: into nominal quota alone.

        Where it would fit by preemption only, nothing is kept from it: the cycle decides whom it may preempt.
        """
        if not within and not self.anything:
            return True
        node, kept = room.node, self.kept_quota
        for cell, need in option:
            if not room.within(cell, need + kept.own(node, cell, priority, self.since)):
                break
        else:
            return True
        if within:
            return False
        for cell, need in option:
            free = room.free(cell)
            if need <= free < need + kept.all(node, cell, priority, self.since):
                return False
        return True


def _less(one: Usage, other: Usage) -> Usage:
    """Return by how much each amount of `one` is more than that of `other`; both are more than 0."""
    if not other:
        return one
    return {cell: amount - other.get(cell, 0) for cell, amount in one.items() if amount > other.get(cell, 0)}
