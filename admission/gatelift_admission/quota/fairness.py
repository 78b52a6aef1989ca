"""Dominant resource share: how much a queue or cohort borrows, weighed, so that shares can be compared (KEP-1714).

For each resource what a node uses beyond its own quota, over all flavors, per thousand of what its parent could have at
most; the largest of these counts, divided by the node's weight. Fractions are exact, so that equal shares are equal.
Neighbours: `tree` for usage, `tournament` and `preemption.fair` compare.
"""

from __future__ import annotations

from fractions import Fraction

from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.amounts import AMOUNT_MAX

Share = tuple[int, Fraction]
"""Ordered: (0, share), or (1, unweighted share) of a borrower without weight, which is above all others."""
ZERO: Share = (0, Fraction(0))
PER_THOUSAND = 1000
WEIGHT_ONE = 10**9
"""Weights are counted in billionths."""


def share(tree: Tree, node: TreeNode) -> Share:
    """Return the share of a node as the tree stands; zero at a root, from which nothing can be borrowed."""
    parent = node.parent
    if parent is None:
        return ZERO
    borrowed: dict[str, int] = {}
    for cell, used in node.usage.items():
        over = used - node.subtree.get(cell, 0)
        if over > 0:
            borrowed[cell[1]] = borrowed.get(cell[1], 0) + over
    ratio = ZERO[1]
    for resource, amount in borrowed.items():
        lendable = tree.lendable(parent, resource)
        if lendable > 0:
            ratio = max(ratio, Fraction(amount * PER_THOUSAND, lendable))
    if not ratio:
        return ZERO
    if node.weight == 0:
        return 1, ratio
    return 0, ratio * WEIGHT_ONE / node.weight


def published(value: Share) -> int:
    """Return a share as statuses show it: rounded up, the largest int64 for a borrower without weight."""
    return AMOUNT_MAX if value[0] else min(AMOUNT_MAX, -(-value[1].numerator // value[1].denominator))
