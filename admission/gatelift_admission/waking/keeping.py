"""What came free of a queue's own quota a moment ago, and from whom it is kept until the next one comes for it.

Whoever follows the workload that left is entitled to its quota and would preempt who took it meanwhile. So for a
*period* it is kept from lower priorities, and from those of other queues that are worth no more and would borrow it.
Pure arithmetic, one queue at a time. Neighbours: `waking` says how long the period is, `state` notes what is given back
and taken, `pending` asks before it wakes somebody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission.preemption.oracle import QueueRoom
from gatelift_admission.quota.tree import Tree, TreeNode
from gatelift_admission.values.model import Cell, Usage

PARTS: Final = 4
"""What one priority gives back within this part of a period is one amount; all are looked at once in a part at most."""
AMOUNTS_MAX: Final = 16
"""Amounts that are told apart for each queue: four priorities, each in all parts. More join the latest."""


@dataclass(slots=True)
class Gift:
    """What somebody of priority `level` gave back at `at`, less what was taken since."""

    at: float
    level: int
    left: Usage


@dataclass(slots=True)
class Keeping:
    """What is kept, by root and queue, oldest first."""

    roots: dict[str, dict[TreeNode, deque[Gift]]] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget all."""
        self.roots.clear()

    def gave(self, node: TreeNode, usage: Usage, level: int, now: float, period: float) -> None:
        """Note that somebody of priority `level` gave back quota that was charged to a queue."""
        gifts = self.roots.setdefault(node.root, {}).setdefault(node, deque())
        last = gifts[-1] if gifts else None
        if last is not None and ((last.level == level and now - last.at < period / PARTS) or len(gifts) >= AMOUNTS_MAX):
            last.level = max(last.level, level)  # its time stays: else it would be kept for ever where ends are many
            for cell, amount in usage.items():
                last.left[cell] = last.left.get(cell, 0) + amount
        else:
            gifts.append(Gift(now, level, dict(usage)))

    def took(self, node: TreeNode, usage: Usage) -> None:
        """Note that something is charged to a queue: it is what was given back first."""
        gifts = self.roots.get(node.root, {}).get(node)
        if not gifts:
            return
        for cell, amount in usage.items():
            missing = amount
            for gift in gifts:
                if not missing:
                    break
                part = min(missing, gift.left.get(cell, 0))
                if part:
                    gift.left[cell] -= part
                    missing -= part

    def recharged(self, tree: Tree | None, before: tuple[str, Usage], now: tuple[str, Usage]) -> Usage:
        """Note that a workload is charged `now` instead of what it was `before`, by queue; return what came free."""
        if now[1] is before[1]:
            return {}
        same = now[0] == before[0]
        node = tree.queues.get(now[0]) if tree is not None and self.roots else None
        if node is not None:
            self.took(node, _less(now[1], before[1] if same else {}))
        return _less(before[1], now[1] if same else {})

    def expire(self, root: str, since: float) -> float | None:
        """Forget what was given back at or before `since`; return when the oldest of the rest was."""
        queues = self.roots.get(root)
        if queues is None:
            return None
        oldest: float | None = None
        for node, gifts in list(queues.items()):
            while gifts and (gifts[0].at <= since or not any(gifts[0].left.values())):
                gifts.popleft()
            if not gifts:
                del queues[node]
            elif oldest is None or gifts[0].at < oldest:
                oldest = gifts[0].at
        if not queues:
            del self.roots[root]
        return oldest

    def above(self, root: str, priority: int) -> bool:
        """Return whether anything in a tree is kept for somebody of more than `priority`."""
        return any(gift.level > priority for gifts in self.roots.get(root, {}).values() for gift in gifts)

    def own(self, node: TreeNode, cell: Cell, priority: int, since: float) -> int:
        """Return how much of a queue's own quota is kept from those of its workloads that are worth `priority`."""
        gifts = self.roots.get(node.root, {}).get(node)
        return _idle(node, cell, gifts, priority + 1, since) if gifts else 0

    def all(self, node: TreeNode, cell: Cell, priority: int, since: float) -> int:
        """Return how much in the tree of a queue is kept from those of its workloads that would have to borrow."""
        queues = self.roots.get(node.root)
        if not queues:
            return 0
        found = 0
        for other, gifts in queues.items():
            found += _idle(other, cell, gifts, priority + 1 if other is node else priority, since)
        return found


def _idle(node: TreeNode, cell: Cell, gifts: Iterable[Gift], lowest: int, since: float) -> int:
    """Return what was given back since by priorities from `lowest` on, as far as the queue does not use it itself."""
    given = 0
    for gift in gifts:
        if gift.level >= lowest and gift.at > since:
            given += gift.left.get(cell, 0)
    return max(0, min(given, node.nominal(cell) - node.usage.get(cell, 0))) if given else 0


@dataclass(slots=True, eq=False, init=False)
class Kept:
    """What is kept from one queue now."""

    keeping: Keeping
    root: str
    since: float
    """Nothing that was given back before is kept any more."""
    turns_below: float
    """Priorities below this have a turn to come in which they are offered what came free."""

    def __init__(self, keeping: Keeping, root: str, since: float, turns_below: float) -> None:
        """Look at what is kept in the tree of `root`."""
        self.keeping, self.root, self.since, self.turns_below = keeping, root, since, turns_below

    @property
    def anything(self) -> bool:
        """Say whether there is any."""
        return self.root in self.keeping.roots

    def leaves(self, option: Iterable[tuple[Cell, int]], room: QueueRoom, priority: int, *, within: bool) -> bool:
        """Return whether enough is left for somebody of `priority`; `within`: of the quota of its own queue.

        Where others would have to leave anyway, nothing is kept: whom it concerns is the cycle's to say.
        """
        if not within and not self.anything:
            return True
        node, keeping = room.node, self.keeping
        for cell, need in option:
            if not room.within(cell, need + keeping.own(node, cell, priority, self.since)):
                break
        else:
            return True
        if within:
            return False
        for cell, need in option:
            free = room.free(cell)
            if need <= free < need + keeping.all(node, cell, priority, self.since):
                return False
        return True


def _less(one: Usage, other: Usage) -> Usage:
    """Return by how much each amount of `one` is more than that of `other`; both are more than 0."""
    if not other:
        return one
    return {cell: amount - other.get(cell, 0) for cell, amount in one.items() if amount > other.get(cell, 0)}
