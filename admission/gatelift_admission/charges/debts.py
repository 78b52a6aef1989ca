"""What a queue had borrowed when it left its cohort: charged where it was borrowed until it has ended (decision 42).

A ClusterQueue that is taken away under its work (finalizer and all), or put into another cohort, leaves what it had
borrowed behind: its charge is not in that tree any more, and the same quota would be lent a second time. So would what
all below a cohort had borrowed that gets another parent. Such a debt is known by lender and borrower, as the tree that
is replaced had them; it falls as those end who held quota then, and nobody new adds to it.

Who holds quota in a queue that is not there, and of whom nobody knows where it was borrowed (a leader that never saw
the queue), is charged in every cohort that could have lent it, until it has ended or the queue is there again.

Neighbours: `state` notes before it replaces a tree, charges the new one, and says who has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission.charges.holders import Holders
from gatelift_admission.entries.entry import Entry
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell, Usage
from gatelift_kube.objects.kueue import ClusterQueue

CHARGED_IN: Final = "gatelift.dev/charged-in"
"""Annotation of a ClusterQueue: the cohorts in which what it holds is charged. By it the next leader knows of debts."""
COHORTS_SAID_MAX: Final = 32
"""Cohorts that are named there, far more than any tree is deep; what is owed is named last, and kept."""
COHORT_CHARS_MAX: Final = 253


def said_cohorts(annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the cohorts that a ClusterQueue's annotation names; what can be no name is left out."""
    named = annotations.get(CHARGED_IN, "")[: COHORTS_SAID_MAX * (COHORT_CHARS_MAX + 1)].split(",")
    return tuple(name for name in named[:COHORTS_SAID_MAX] if 0 < len(name) <= COHORT_CHARS_MAX)


@dataclass(slots=True)
class Debt:
    """What was borrowed, and who held quota then, by UID."""

    borrowed: Usage = field(default_factory=dict)
    holders: dict[str, Entry] = field(default_factory=dict)


@dataclass(slots=True)
class Debts:
    """All debts by lender (a cohort) and borrower (a queue or cohort): at most one for two nodes."""

    known: dict[tuple[str, str], Debt] = field(default_factory=dict)
    debtors: dict[str, int] = field(default_factory=dict)
    """UID of each that holds quota of a debt -> of how many."""
    left: dict[str, tuple[Entry, str]] = field(default_factory=dict)
    """Who of them was charged less since the tree was built, or elsewhere: UID -> who, and in which queue before."""
    unrecalled: bool = False
    """What queues say that they owe could not be taken yet."""

    def note(self, old: Tree, new: Tree, holders: Holders) -> None:
        """Note what each node had borrowed from a parent that it has no more."""
        for node in old.nodes():
            parent = node.parent.name if node.parent is not None else ""
            gone = node.is_queue and node.name not in new.queues
            if not gone and parent_of(new, node) == parent:
                continue
            borrowed = {cell: used - node.subtree.get(cell, 0) for cell, used in node.usage.items()}
            beyond = {cell: amount for cell, amount in borrowed.items() if amount > 0 and parent}
            if beyond or gone:  # of one that is gone it is known that all else was its own
                self._owe(parent, title(node), beyond, self._held(node, holders))

    def charge(self, tree: Tree, holders: Holders, queues: Iterable[str]) -> None:
        """Charge a fresh tree; `queues` are the names of those that hold quota, whether they are there or not."""
        for (lender, _), debt in self.known.items():
            cohort = tree.cohorts.get(lender)
            if cohort is not None:
                tree.hold(cohort, _due(debt, tree, cohort))
        for name in queues:
            if name in tree.queues:
                continue
            unknown = [entry.charged for uid, entry in holders.of(name).entries.items() if uid not in self.debtors]
            usage = _sum(unknown)
            if usage:
                _hold_everywhere(tree, usage)

    def recall_begins(self) -> None:
        """Take that it is not known yet what queues say that they owe."""
        self.unrecalled = True

    def recall(self, tree: Tree, queues: Mapping[str, ClusterQueue], holders: Holders) -> None:
        """Take what queues say of where they were charged (`charged_in`), once; the tree has to be built anew for it.

        Who of them had borrowed it nobody can tell any more: all that a queue uses beyond its quota is owed there.
        """
        for name, queue in queues.items():
            node = tree.queues[name]
            beyond = {cell: used - node.subtree.get(cell, 0) for cell, used in node.usage.items()}
            borrowed = {cell: amount for cell, amount in beyond.items() if amount > 0}
            trees = {root_of(node).name}
            for lender in said_cohorts(queue.metadata.annotations) if borrowed else ():
                cohort = tree.cohorts.get(lender)
                root = root_of(cohort).name if cohort is not None else lender
                if root not in trees:  # the first one named is the lowest
                    trees.add(root)
                    self._owe(lender, title(node), borrowed, self._held(node, holders))
        self.unrecalled = False

    def charged_in(self, tree: Tree, queue: str) -> str:
        """Return in which cohorts a queue is charged, as it says so itself (CHARGED_IN): lowest first, "" for none."""
        names: dict[str, None] = {}
        at = tree.queues.get(queue)
        while at is not None and at.parent is not None:
            at = at.parent
            names[at.name] = None
        for (lender, _), debt in self.known.items():
            if lender and any(entry.charged_queue == queue for entry in debt.holders.values()):
                names[lender] = None
        return ",".join(list(names)[-COHORTS_SAID_MAX:])

    def lenders(self) -> list[str]:
        """Return the cohorts to which something is owed: they are there as long as that is so."""
        return list(dict.fromkeys(lender for lender, _ in self.known if lender))

    def changed(self, entry: Entry, before: str) -> bool:
        """Take that somebody's charge is another than before, in queue `before`; say whether it is part of a debt.

        Nothing is forgotten yet: what a record gives back may run beside it, and be charged on before anything is
        decided (`ghosts`).
        """
        if entry.uid not in self.debtors:
            return False
        self.left.setdefault(entry.uid, (entry, before))
        return True

    def forget_left(self) -> None:
        """Forget who owes nothing any more: charged nothing now, or in another queue. Before a tree is built."""
        for uid, (entry, queue) in self.left.items():
            if uid in self.debtors and (not entry.charged or entry.charged_queue != queue):
                self._forget(uid)
        self.left.clear()

    def _owe(self, lender: str, borrower: str, borrowed: Usage, held: Mapping[str, Entry]) -> None:
        if not held:
            return
        debt = self.known.setdefault((lender, borrower), Debt())
        for cell, amount in borrowed.items():
            debt.borrowed[cell] = max(amount, debt.borrowed.get(cell, 0))
        for uid, entry in held.items():
            if uid not in debt.holders:
                debt.holders[uid] = entry
                self.debtors[uid] = self.debtors.get(uid, 0) + 1

    def _forget(self, uid: str) -> None:
        del self.debtors[uid]
        for key, debt in list(self.known.items()):
            debt.holders.pop(uid, None)
            if not debt.holders:
                del self.known[key]

    def _held(self, node: TreeNode, holders: Holders) -> dict[str, Entry]:
        """Return who holds quota below a node, also by a debt to a cohort there."""
        found: dict[str, Entry] = {}
        for one in _below(node):
            if one.is_queue:
                found.update((uid, entry) for uid, entry in holders.of(one.name).entries.items() if entry.charged)
            else:
                for (lender, _), debt in self.known.items():
                    if lender == one.name:
                        found.update(debt.holders)
        return found


def title(node: TreeNode) -> str:
    """Return a name for a node: those of queues and cohorts are separate."""
    return f"{'queue' if node.is_queue else 'cohort'}/{node.name}"


def parent_of(tree: Tree, node: TreeNode) -> str:
    """Return the name of the parent that a node has in another tree, "" for none."""
    found = (tree.queues if node.is_queue else tree.cohorts).get(node.name)
    return found.parent.name if found is not None and found.parent is not None else ""


def _below(node: TreeNode) -> Iterator[TreeNode]:
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(one.children)


def _due(debt: Debt, tree: Tree, lender: TreeNode) -> Usage:
    """Return what is left of a debt: what those hold who held quota then, and are not charged in its tree anyway.

    What is charged in one place of a tree beyond its quota is nobody's in all of it.
    """
    held: list[Usage] = []
    for entry in debt.holders.values():
        queue = tree.queues.get(entry.charged_queue)
        if queue is None or root_of(queue) is not root_of(lender):
            held.append(entry.charged)
    left = _sum(held)
    return {cell: min(amount, left[cell]) for cell, amount in debt.borrowed.items() if cell in left}


def root_of(node: TreeNode) -> TreeNode:
    """Return the top of a node's tree."""
    while node.parent is not None:
        node = node.parent
    return node


def _hold_everywhere(tree: Tree, usage: Usage) -> None:
    """Charge usage in each tree where it may have been borrowed."""
    for cohort in tree.cohorts.values():
        if cohort.parent is None:
            tree.hold(cohort, {cell: amount for cell, amount in usage.items() if cell in cohort.subtree})


def _sum(usages: Iterable[Usage]) -> Usage:
    total: dict[Cell, int] = {}
    for usage in usages:
        for cell, amount in usage.items():
            total[cell] = total.get(cell, 0) + amount
    return total
