"""ClusterQueues and cohorts as nodes of the quota tree: what each is configured with, and what follows for its subtree.

Neighbours: `tree` joins nodes, charges them and asks what is available; nobody else changes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatelift_admission.values.amounts import UNLIMITED, add, sub
from gatelift_admission.values.model import Cell, Usage

Steps = tuple[tuple[Usage, int, int, int | None], ...]
"""From the root down: usage, quota of the subtree less what is local (at the root: all of it), local quota, limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One cell of a node; None means: no borrowing limit, everything may be lent."""

    nominal: int = 0
    borrowing: int | None = None
    lending: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNodeSpec:
    """A node as configured; an empty parent is a root."""

    name: str
    parent: str = ""
    quotas: Mapping[Cell, Quota] = field(default_factory=dict)
    weight: int = 10**9
    """Weight in fair sharing, in billionths."""


@dataclass(slots=True, eq=False)
class TreeNode:
    """A ClusterQueue or cohort in the tree. Only Tree changes it."""

    name: str
    is_queue: bool
    quotas: Mapping[Cell, Quota]
    parent: TreeNode | None = None
    root: str = ""
    children: list[TreeNode] = field(default_factory=list)
    subtree: Usage = field(default_factory=dict)
    local: Usage = field(default_factory=dict)
    usage: Usage = field(default_factory=dict)
    held: Usage = field(default_factory=dict)
    """What is charged to a cohort itself (`hold`); part of `usage`."""
    height: int = 0
    weight: int = 10**9
    known: dict[Cell, int] = field(default_factory=dict)
    """Answers of `available` since usage changed last."""
    known_of: int = -1
    """What the tree had seen for which they hold."""
    steps: dict[Cell, Steps] = field(default_factory=dict)
    potentials: dict[Cell, int] = field(default_factory=dict)

    def nominal(self, cell: Cell) -> int:
        """Return the node's own nominal quota of `cell`, 0 where it has none."""
        quota = self.quotas.get(cell)
        return quota.nominal if quota is not None else 0

    def borrowing_limit(self, cell: Cell) -> int | None:
        """Return how much of `cell` the node may borrow, None without a limit."""
        quota = self.quotas.get(cell)
        return quota.borrowing if quota is not None else None

    def local_available(self, cell: Cell) -> int:
        """Return what is left of the part that the parent never sees."""
        local = self.local.get(cell, 0)
        return max(0, sub(local, self.usage.get(cell, 0))) if local else 0

    def borrows_with(self, cell: Cell, amount: int) -> bool:
        """Return whether the node would use more than its own quota with `amount` added."""
        own = self.nominal(cell) if self.is_queue else self.subtree.get(cell, 0)
        return own < self.usage.get(cell, 0) + amount and own < UNLIMITED


def reaches_root(node: TreeNode, limit: int) -> bool:
    """Return whether one comes to a root from a node in at most `limit` steps: it is in no cycle, nor below one."""
    at: TreeNode | None = node
    for _ in range(limit + 1):
        at = at.parent if at is not None else None
        if at is None:
            return True
    return False


def measure(root: TreeNode) -> None:
    """Fill subtree quota, local quota and height of a tree, children first, without recursion on hostile depth."""
    order = [root]
    for node in order:
        order.extend(node.children)
    for node in reversed(order):
        node.subtree = {cell: quota.nominal for cell, quota in node.quotas.items()}
        for child in node.children:
            for cell, whole in child.subtree.items():
                lent = sub(whole, child.local.get(cell, 0))
                node.subtree[cell] = add(node.subtree.get(cell, 0), lent)
        for cell, quota in node.quotas.items():
            if quota.lending is not None:
                node.local[cell] = max(0, sub(node.subtree[cell], quota.lending))
        deeper = [child.height for child in node.children if not child.is_queue]
        if not node.is_queue:
            node.height = 1 + max(deeper) if deeper else min(len(node.children), 1)
