"""Questions about preemption, asked by the cycle and by flavor assignment, and what may be had at most.

`Oracle` answers for one workload: who has to leave (`targets`), and what a flavor could become in one cell (`ask`).
`QueueRoom` answers for a queue, by sums alone and therefore sometimes too hopefully: is it worth evaluating again?
Neighbours: `flavors` only sees `ask`, `pending` only sees `QueueRoom`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gatelift_admission.charges.holders import Holders
from gatelift_admission.flavors.assignment import Mode
from gatelift_admission.preemption import classical, fair
from gatelift_admission.preemption.candidates import ANY, LOWER_OR_NEWER, NEVER, Scene, Seeker, Target
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell, Usage
from gatelift_kube.objects.kueue import Preemption


def preempts(policy: Preemption) -> bool:
    """Return whether a queue may ever preempt anybody."""
    return policy.within_cluster_queue != NEVER or policy.reclaim_within_cohort != NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """Answers for one workload of one queue, on the tree as it stands: one is made for each nomination.

    What flavors are assigned by is mostly asked again for the whole (one pod set, one resource), so it is kept.
    """

    scene: Scene
    node: TreeNode
    policy: Preemption
    priority: int
    timestamp: float
    strategies: tuple[str, ...] = ()
    """Of fair sharing; empty: classical preemption."""
    _found: dict[tuple[frozenset[tuple[Cell, int]], frozenset[Cell]], tuple[Target, ...]] = field(default_factory=dict)

    def targets(self, usage: Usage, needs: frozenset[Cell]) -> tuple[Target, ...]:
        """Return who has to leave so that `usage` fits, nobody if that cannot be had."""
        if not preempts(self.policy):
            return ()
        question = (frozenset(usage.items()), needs)
        found = self._found.get(question)
        if found is None:
            found = self._found[question] = self._search(usage, needs)
        return found

    def out_of_reach(self, usage: Usage, needs: frozenset[Cell]) -> int:
        """Return how many would have to leave who cannot be stopped now, where nobody else does; 0 if that is no help.

        They are the last choice, and are not asked: it is said that they are waited for.
        """
        if not self.scene.unreachable or not preempts(self.policy):
            return 0
        found = self._search(usage, needs, everybody=True)
        return sum(one.entry.uid in self.scene.unreachable for one in found)

    def _search(self, usage: Usage, needs: frozenset[Cell], *, everybody: bool = False) -> tuple[Target, ...]:
        scene = self.scene
        if everybody:
            scene = Scene(
                tree=scene.tree,
                holders=scene.holders,
                claimed=scene.claimed,
                closed=scene.closed,
                spared=scene.spared,
                outside=scene.outside,
                chain=scene.chain,
            )
        seeker = Seeker(
            node=self.node,
            policy=self.policy,
            priority=self.priority,
            timestamp=self.timestamp,
            usage=usage,
            needs=needs,
        )
        if self.strategies:
            return fair.find(scene, seeker, self.strategies)
        return classical.find(scene, seeker)

    def ask(self, cell: Cell, amount: int) -> tuple[Mode, int]:
        """Return what preemption could make of `amount` in one cell, and at which borrowing level it would fit then."""
        found = self.targets({cell: amount}, frozenset((cell,)))
        tree = self.scene.tree
        if not found:
            return Mode.NO_CANDIDATES, tree.lowest_fit(self.node, cell, amount)[0]
        mark = tree.mark()
        for one in found:
            tree.remove_usage(one.node, one.entry.charged)
        level, _ = tree.lowest_fit(self.node, cell, amount)
        tree.undo(mark)
        own = any(one.node is self.node for one in found)
        return (Mode.PREEMPT if own else Mode.RECLAIM), level


@dataclass(slots=True)
class Foreign:
    """The queues that use more than their quota, per tree; found again when the usage has changed."""

    changes: int = -1
    by_root: dict[str, dict[str, bool]] | None = None

    def exceeding(self, tree: Tree, root: str) -> dict[str, bool]:
        """Return the queues of a tree that exceed their quota in some cell."""
        if self.by_root is None or self.changes != tree.changes:
            self.by_root, self.changes = {}, tree.changes
        found = self.by_root.get(root)
        if found is None:
            found = {
                node.name: True
                for node in tree.members.get(root, ())
                if any(amount > node.subtree.get(cell, 0) for cell, amount in node.usage.items())
            }
            self.by_root[root] = found
        return found


@dataclass(frozen=True, slots=True)
class QueueRoom:
    """What a queue has, or might get by preemption, in each cell."""

    tree: Tree
    node: TreeNode
    policy: Preemption
    holders: Holders
    foreign: Foreign
    preempts: bool
    fair_sharing: bool = False

    def free(self, cell: Cell) -> int:
        """Return what is available now, at least 0."""
        return self.tree.free(self.node, cell)

    def within(self, cell: Cell, need: int) -> bool:
        """Return whether `need` stays within the queue's own nominal quota."""
        return self.node.usage.get(cell, 0) + need <= self.node.nominal(cell)

    def covers(self, cell: Cell, priority: int, need: int) -> bool:
        """Return whether `need` is available, or could be after preemption, by sums; never False when it could."""
        free = self.tree.free(self.node, cell)
        if need <= free:
            return True
        if not self.preempts:
            return False
        within = self.policy.within_cluster_queue
        own = 0
        if within != NEVER:
            own = self.holders.of(self.node.name).below(cell, priority, equal=within == LOWER_OR_NEWER)
            if need <= free + own:
                return True
        return self._reclaims(cell, need, own) and need <= free + own + self._foreign(cell, priority, need - free - own)

    def reserves(self, option: Iterable[tuple[Cell, int]]) -> bool:
        """Return whether a head that lacks some of `option` might keep room of its own from others."""
        policy = self.policy
        if policy.reclaim_within_cohort == ANY or self.node.parent is None:
            return False
        if policy.borrow_within_cohort.policy != NEVER or (self.fair_sharing and policy.reclaim_within_cohort != NEVER):
            return True
        return all(
            self.node.nominal(cell) >= need or self.tree.lowest_fit(self.node, cell, need)[1] or need <= self.free(cell)
            for cell, need in option
        )

    def _reclaims(self, cell: Cell, need: int, own: int) -> bool:
        """Return whether others of the cohort may have to leave: within its own quota, unless it may borrow."""
        parent = self.node.parent
        if parent is None or self.policy.reclaim_within_cohort == NEVER:
            return False
        if self.fair_sharing or self.policy.borrow_within_cohort.policy != NEVER or parent.parent is not None:
            return True
        return self.node.usage.get(cell, 0) + need - own <= self.node.nominal(cell)

    def _foreign(self, cell: Cell, priority: int, missing: int) -> int:
        """Return what others could have to give of `cell`; not counted beyond `missing`."""
        everybody = self.policy.reclaim_within_cohort == ANY
        found = 0
        for name in self.foreign.exceeding(self.tree, self.node.root):
            if name == self.node.name:
                continue
            known = self.holders.of(name)
            found += known.total(cell) if everybody else known.below(cell, priority)
            if found >= missing:
                break
        return found
