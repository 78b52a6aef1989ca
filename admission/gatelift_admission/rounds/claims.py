"""What a round has promised: victims that were claimed, and room that is kept until the round ends.

Both exist only while a round is processed. Room is charged to the tree like usage, so that later entries see it, and is
given back at the end; victims count as gone when an entry is asked whether it fits. Neighbour: `cycle`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gatelift_admission.flavors.assignment import Assignment
from gatelift_admission.preemption.candidates import Target
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Cell, Usage


@dataclass(slots=True, eq=False, init=False)
class Claims:
    """The promises of one round."""

    victims: dict[str, Target]
    kept: list[tuple[TreeNode, Usage]]
    lowered: list[tuple[TreeNode, Cell, int]]
    """Room below zero, of queues that use more than their limits let them since these were lowered."""

    def __init__(self) -> None:
        """Begin with none."""
        self.victims, self.kept, self.lowered = {}, [], []

    def overlap(self, targets: Iterable[Target]) -> bool:
        """Return whether somebody of `targets` was claimed already."""
        return bool(self.victims) and any(target.entry.uid in self.victims for target in targets)

    def without_victims(self, tree: Tree, more: Iterable[Target] = ()) -> int:
        """Take all victims, and `more`, out of the tree; returns the mark to undo that."""
        mark = tree.mark()
        gone = {**self.victims, **{target.entry.uid: target for target in more}}
        for target in gone.values():
            tree.remove_usage(target.node, target.entry.charged)
        return mark

    def fits(self, tree: Tree, node: TreeNode, usage: Usage, targets: Iterable[Target]) -> bool:
        """Return whether `usage` fits once all claimed victims and `targets` have left."""
        if not self.victims and not targets:
            return tree.fits(node, usage)
        mark = self.without_victims(tree, targets)
        found = tree.fits(node, usage)
        tree.undo(mark)
        return found

    def keep(self, tree: Tree, node: TreeNode, usage: Usage) -> None:
        """Charge `usage` until the round ends; a queue without cohort takes it from nobody."""
        if node.parent is not None:
            tree.add_usage(node, usage)
            self.kept.append((node, usage))

    def keep_room(self, tree: Tree, node: TreeNode, assignment: Assignment) -> None:
        """Keep what a head may claim of its own quota, or of what it may borrow, that others hold (reserve rule).

        Where a borrowing limit was lowered below what is in use, Kueue's rule gives less than zero: until the round
        ends the queue, not its cohort, counts as using less, so that less is to be had from it by preemption.
        """
        room: Usage = {}
        for cell, amount in assignment.usage.items():
            used, nominal, limit = node.usage.get(cell, 0), node.nominal(cell), node.borrowing_limit(cell)
            if assignment.borrowing == 0:
                room[cell] = max(0, min(amount, amounts.sub(nominal, used)))
            elif limit is None:
                room[cell] = amount
            else:
                room[cell] = min(amount, amounts.sub(amounts.add(nominal, limit), used))
        below = {cell: amount for cell, amount in room.items() if amount < 0} if node.parent is not None else {}
        for cell, amount in below.items():
            tree.shift(node, cell, amount)
            self.lowered.append((node, cell, amount))
        self.keep(tree, node, {cell: amount for cell, amount in room.items() if cell not in below})

    def give_back(self, tree: Tree) -> set[Cell]:
        """Give all kept room back; returns its cells."""
        if not self.kept and not self.lowered:
            return set()
        for node, room in self.kept:
            tree.remove_usage(node, room)
        for node, cell, amount in self.lowered:
            tree.shift(node, cell, -amount)
        for node, cell, _ in self.lowered:  # what came or went meanwhile may have reached the cohort in part only
            tree.recount(node, cell)
        return {cell for _, room in self.kept for cell in room} | {cell for _, cell, _ in self.lowered}
