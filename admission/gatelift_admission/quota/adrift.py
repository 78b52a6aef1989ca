"""What runs, and nobody can tell in which ClusterQueue it was charged: kept free wherever that may have been.

Its LocalQueue is gone, or the ClusterQueue that it was charged in. So its amount is held in every tree, in each flavor
of the resource: once at the root, for what it may have had of the quota that all there share, and at each node of what
that keeps to itself. That leaves quota idle that it does not use; the other reading would lend what is in use.

Neighbours: `ghosts` says what is adrift, `state` charges each fresh tree.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, Usage


def charge(tree: Tree, adrift: Iterable[Amounts]) -> None:
    """Hold in a fresh tree, which has all other charges, what is adrift, by resource."""
    total: dict[str, int] = {}
    for one in adrift:
        for name, amount in one.items():
            total[name] = amounts.add(total.get(name, 0), amount)
    if not total:
        return
    for node in tree.nodes():
        held = _held_at(node, total)
        if held:
            tree.hold(node, held)


def _held_at(node: TreeNode, total: Amounts) -> Usage:
    held: Usage = {}
    for cell, whole in node.subtree.items():
        own = whole if node.parent is None else node.local.get(cell, 0)
        amount = min(own, total.get(cell[1], 0))  # whatever is used now: others end, and it runs on
        if amount > 0:
            held[cell] = amount
    return held
