"""What a queue had lent when it left its cohort: not its own to use or to lend elsewhere until it was given back.

A ClusterQueue (or all below a cohort) that is put into another cohort takes its quota along, while others of the cohort
run on what it had lent. Until that tree uses no more than it has, what is missing there is charged to the one that
left: else the same quota would be used twice. The other direction is `debts`.

Neighbours: `state` notes before it replaces a tree, charges the new one, and asks whose ends matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_admission.charges.debts import parent_of, root_of, title
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Usage


@dataclass(slots=True)
class Loans:
    """What is still lent, by who left and the root cohort that he left: at most one for two nodes."""

    known: dict[tuple[str, str], Usage] = field(default_factory=dict)
    roots: set[str] = field(default_factory=set)
    """Roots of the trees that have to give something back, as the tree was built last."""

    def note(self, old: Tree, new: Tree) -> None:
        """Note what each node that has another parent now may have lent below its root."""
        for node in old.nodes():
            if node.parent is None or parent_of(new, node) == node.parent.name:
                continue
            lent = _idle(node)
            if lent:
                known = self.known.setdefault((title(node), root_of(node).name), {})
                known.update({cell: max(amount, known.get(cell, 0)) for cell, amount in lent.items()})

    def charge(self, tree: Tree) -> None:
        """Charge a fresh tree, which has all other charges; what was given back is forgotten."""
        nodes = {title(node): node for node in tree.nodes()} if self.known else {}
        self.roots.clear()
        for (name, cohort), lent in list(self.known.items()):
            left, lender = tree.cohorts.get(cohort), nodes.get(name)
            root = root_of(left) if left is not None else None
            missing = _overdraft(root, lent) if root is not None else {}
            if root is None or not missing or (lender is not None and root_of(lender) is root):
                del self.known[name, cohort]
                continue
            self.known[name, cohort] = missing
            self.roots.add(title(root))
            if lender is not None:
                tree.hold(lender, missing)


def _idle(node: TreeNode) -> Usage:
    """Return how much of what a node may lend it does not use itself."""
    found: Usage = {}
    for cell, whole in node.subtree.items():
        local = node.local.get(cell, 0)
        idle = whole - max(local, node.usage.get(cell, 0))
        if idle > 0:
            found[cell] = idle
    return found


def _overdraft(root: TreeNode, lent: Usage) -> Usage:
    """Return by how much a tree uses more than it has, of what was lent to it."""
    beyond = {cell: root.usage.get(cell, 0) - root.subtree.get(cell, 0) for cell in lent}
    return {cell: min(amount, beyond[cell]) for cell, amount in lent.items() if beyond[cell] > 0}
