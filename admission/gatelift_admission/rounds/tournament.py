"""Fair sharing's order among the heads of one cohort tree: who would have the lowest share goes first.

The order is found anew after each entry, because each changes the shares. In every cohort the winners of its children
meet; the one whose child does not borrow what it requests wins, then the one with the lower share if it had its way,
then priority, age and UID. Neighbours: `fairness` measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gatelift_admission.quota.fairness import Share, share
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A head, by its place in the order, and what it would use."""

    node: TreeNode
    usage: Usage
    priority: int
    timestamp: float
    uid: str


@dataclass(frozen=True, slots=True)
class _Standing:
    """A contender and how each node on its way to the root would stand: (borrows what it requests, share)."""

    contender: Contender
    by_node: Mapping[TreeNode, tuple[bool, Share]]


def winner(tree: Tree, contenders: list[Contender]) -> Contender:
    """Return who goes first; all contenders are in one tree, one for each queue."""
    found = {one.node: _standing(tree, one) for one in contenders}
    ways: dict[TreeNode, dict[TreeNode, _Standing]] = {}
    waves = sorted(found.items(), key=lambda item: -_depth(item[0]))
    for node, standing in waves:
        if node.parent is None:
            return standing.contender
        ways.setdefault(node.parent, {})[node] = standing
    while True:
        deepest = max(ways, key=_depth)
        best = min(ways.pop(deepest).items(), key=lambda item: _key(*item))[1]
        if deepest.parent is None:
            return best.contender
        ways.setdefault(deepest.parent, {})[deepest] = best


def _depth(node: TreeNode) -> int:
    depth = 0
    at = node.parent
    while at is not None:
        depth += 1
        at = at.parent
    return depth


def _standing(tree: Tree, one: Contender) -> _Standing:
    mark = tree.mark()
    tree.add_usage(one.node, one.usage)
    by_node = {}
    at = one.node
    while at.parent is not None:
        by_node[at] = (not tree.within_quota(at, one.usage), share(tree, at))
        at = at.parent
    tree.undo(mark)
    return _Standing(one, by_node)


def _key(node: TreeNode, standing: _Standing) -> tuple[bool, Share, int, float, str]:
    borrows, value = standing.by_node[node]
    one = standing.contender
    return borrows, value, -one.priority, one.timestamp, one.uid
