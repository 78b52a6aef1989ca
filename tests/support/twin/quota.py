"""The quota tree of one snapshot (2.2), evaluated afresh for each question.

Nodes are ClusterQueues and cohorts; a cell is (flavor, resource). Neighbours: `engine` builds it from objects,
`flavors`, `targets`, `sharing` and `entries` ask and change it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from support.twin.arithmetic import minus, plus

Cell = tuple[str, str]
Usage = dict[Cell, int]


@dataclass(slots=True, eq=False)
class Node:
    """A ClusterQueue or a cohort: nominal quota, limits (absent = none) and usage per cell; `weight` in billionths."""

    name: str
    is_queue: bool
    nominal: Usage = field(default_factory=dict)
    borrowing: Usage = field(default_factory=dict)
    lending: Usage = field(default_factory=dict)
    usage: Usage = field(default_factory=dict)
    weight: int = 10**9
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)


def subtree_quota(node: Node, cell: Cell) -> int:
    """Return S (2.2): own nominal, for a cohort plus what each child does not keep to itself."""
    total = node.nominal.get(cell, 0)
    for child in node.children:
        total = plus(total, minus(subtree_quota(child, cell), local_quota(child, cell)))
    return total


def local_quota(node: Node, cell: Cell) -> int:
    """Return local (2.2): the part of S that the parent never sees."""
    if cell not in node.lending:
        return 0
    return max(0, minus(subtree_quota(node, cell), node.lending[cell]))


def used(node: Node, cell: Cell) -> int:
    """Return U."""
    return node.usage.get(cell, 0)


def local_available(node: Node, cell: Cell) -> int:
    """Return localAvail (2.2)."""
    return max(0, minus(local_quota(node, cell), used(node, cell)))


def available_unclamped(node: Node, cell: Cell) -> int:
    """Return available (2.2), below zero where more than allowed is used."""
    quota, local = subtree_quota(node, cell), local_quota(node, cell)
    if node.parent is None:
        return minus(quota, used(node, cell))
    from_parent = available_unclamped(node.parent, cell)
    if cell in node.borrowing:
        kept = minus(minus(quota, local), max(0, minus(used(node, cell), local)))
        from_parent = min(from_parent, plus(kept, node.borrowing[cell]))
    return plus(local_available(node, cell), from_parent)


def available(node: Node, cell: Cell) -> int:
    """Return what the scheduler may still give (2.2): available, never below zero."""
    return max(0, available_unclamped(node, cell))


def potential(node: Node, cell: Cell) -> int:
    """Return potential (2.2): what would be available if nobody used anything."""
    quota = subtree_quota(node, cell)
    if node.parent is None:
        return quota
    found = plus(local_quota(node, cell), potential(node.parent, cell))
    if cell in node.borrowing:
        found = min(found, plus(quota, node.borrowing[cell]))
    return found


def add_cell(node: Node, cell: Cell, amount: int) -> None:
    """Charge `amount` (2.2, addUsage)."""
    stays = local_available(node, cell)
    node.usage[cell] = plus(used(node, cell), amount)
    if node.parent is not None and amount > stays:
        add_cell(node.parent, cell, minus(amount, stays))


def remove_cell(node: Node, cell: Cell, amount: int) -> None:
    """Give `amount` back (2.2, removeUsage)."""
    stored = minus(used(node, cell), local_quota(node, cell))
    node.usage[cell] = minus(used(node, cell), amount)
    if node.parent is not None and stored > 0:
        remove_cell(node.parent, cell, min(amount, stored))


def add_usage(node: Node, usage: Usage) -> None:
    """Charge all cells of `usage`."""
    for cell, amount in usage.items():
        add_cell(node, cell, amount)


def remove_usage(node: Node, usage: Usage) -> None:
    """Give all cells of `usage` back."""
    for cell, amount in usage.items():
        remove_cell(node, cell, amount)


def borrowing_with(node: Node, cell: Cell, amount: int) -> bool:
    """Return borrowingWith (2.2): a queue is measured by its nominal quota, a cohort by its subtree quota."""
    own = node.nominal.get(cell, 0) if node.is_queue else subtree_quota(node, cell)
    return own < plus(used(node, cell), amount)


def over_subtree(node: Node, cell: Cell) -> bool:
    """Return whether U > S: the node borrows this cell (2.8, 2.9)."""
    return used(node, cell) > subtree_quota(node, cell)


def height(node: Node) -> int:
    """Return the height of a node (2.5): a queue 0, a cohort of queues 1 (childless 0), else one above the highest."""
    cohorts = [child for child in node.children if not child.is_queue]
    if not cohorts:
        return min(len(node.children), 1)
    return 1 + max(height(child) for child in cohorts)


def path_up(node: Node) -> list[Node]:
    """Return the ancestors of `node`, its parent first."""
    return [] if node.parent is None else [node.parent, *path_up(node.parent)]


def root_of(node: Node) -> Node:
    """Return the top of the tree of `node`."""
    return [node, *path_up(node)][-1]


def subtree(node: Node) -> list[Node]:
    """Return `node` and all below it."""
    return [node] + [one for child in node.children for one in subtree(child)]


def lowest_fitting(node: Node, cell: Cell, amount: int) -> tuple[int, bool]:
    """Return (borrowing level, whether the level lies below the root) of a queue (2.5, FindHeightOfLowest...)."""
    if node.parent is None or not borrowing_with(node, cell, amount):
        return 0, node.parent is not None
    remaining = minus(amount, local_available(node, cell))
    for ancestor in path_up(node):
        if not borrowing_with(ancestor, cell, remaining):
            return height(ancestor), ancestor.parent is not None
        remaining = minus(remaining, local_available(ancestor, cell))
    return height(root_of(node)), False
