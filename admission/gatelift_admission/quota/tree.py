"""The quota tree: cohorts, ClusterQueues below them, per cell nominal quota, limits and usage, and an undo log.

Formulas are those of Kueue's hierarchical cohorts (KEP-79; lending KEP-1224): a node keeps `local` quota that its
parent never sees, lends the rest, and may borrow up to its limit. One mutable tree serves all cycles; a simulation
takes `mark()`, changes usage, looks, and calls `undo(mark)`. Quotas saturate at int64; usage is kept exact, so that
charging and releasing stay inverse at any size. Neighbours: `nodes` are what it consists of, `flavors` asks, `ledger`
and `cycle` charge.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_admission.quota.nodes import Steps, TreeNode, TreeNodeSpec, measure, reaches_root
from gatelift_admission.values.amounts import add, sub
from gatelift_admission.values.model import Cell, Usage


class Tree:
    """All trees of all cohorts. Names of queues and cohorts are separate name spaces."""

    __slots__ = (
        "_lendable",
        "_log",
        "_marks",
        "_seen",
        "changes",
        "cohorts",
        "cyclic",
        "members",
        "queues",
        "simulated",
    )

    def __init__(self, queues: Iterable[TreeNodeSpec] = (), cohorts: Iterable[TreeNodeSpec] = ()) -> None:
        """Build the trees; a cohort that is only named exists without quota and without parent."""
        self.queues: dict[str, TreeNode] = {
            spec.name: TreeNode(spec.name, True, spec.quotas, weight=spec.weight) for spec in queues
        }
        specs = {spec.name: spec for spec in cohorts}
        parents = {spec.name: spec.parent for spec in queues}
        self.cohorts: dict[str, TreeNode] = {
            spec.name: TreeNode(spec.name, False, spec.quotas, weight=spec.weight) for spec in specs.values()
        }
        for parent in [*parents.values(), *(spec.parent for spec in specs.values())]:
            if parent and parent not in self.cohorts:
                self.cohorts[parent] = TreeNode(parent, False, {})
        for name, spec in sorted(specs.items()):
            self._join(self.cohorts[name], spec.parent)
        for name, parent in sorted(parents.items()):
            self._join(self.queues[name], parent)
        self.cyclic: frozenset[str] = self._cut_cycles()
        self.members: dict[str, list[TreeNode]] = {}
        self._seen = 0
        """Raised by each change of usage: what nodes know of what is available is void then."""
        self._lendable: dict[TreeNode, dict[str, int]] = {}
        self._log: list[tuple[Usage, Cell, int]] = []
        self._marks = 0
        self.changes = 0
        """Raised by each change of usage that is not part of a simulation."""
        self.simulated = 0
        """Raised by each change that is: what searches have cost so far."""
        for node in self.queues.values():
            node.root = self._root_name(node)
            if node.name not in self.cyclic:
                self.members.setdefault(node.root, []).append(node)
        for node in self.nodes():
            if node.parent is None:
                measure(node)

    def _cut_cycles(self) -> frozenset[str]:
        """Part all that is in or below a cycle of cohorts from each other, or a charge would go round for ever.

        Returns the queues among them: each stands alone, and admits nothing.
        """
        lost = [one for one in self.nodes() if not reaches_root(one, len(self.cohorts))]
        for node in lost:
            node.parent = None
            node.children.clear()  # all that is below one is in `lost` itself
        return frozenset(node.name for node in lost if node.is_queue)

    def nodes(self) -> list[TreeNode]:
        """Return all queues and cohorts."""
        return [*self.queues.values(), *self.cohorts.values()]

    def _join(self, node: TreeNode, parent: str) -> None:
        if parent:
            node.parent = self.cohorts[parent]
            node.parent.children.append(node)

    def _root_name(self, node: TreeNode) -> str:
        """Return the name of the node's root, prefixed so that a queue and a cohort of one name differ."""
        if node.name in self.cyclic:
            return ""
        while node.parent is not None:
            node = node.parent
        return f"queue/{node.name}" if node.is_queue else f"cohort/{node.name}"

    def available(self, node: TreeNode, cell: Cell) -> int:
        """Return what the node may still take of `cell`; below zero after over-admission."""
        found = node.known.get(cell) if node.known_of == self._seen else None
        return self._available(node, cell) if found is None else found

    def _available(self, node: TreeNode, cell: Cell) -> int:
        """Work out what is available, and let the node know."""
        if node.known_of != self._seen:
            node.known_of = self._seen
            node.known.clear()
        found = node.known[cell] = self._summed(node, cell)
        return found

    def _summed(self, node: TreeNode, cell: Cell) -> int:
        steps = node.steps.get(cell)
        if steps is None:
            steps = node.steps[cell] = _steps(node, cell)
        if not steps:
            return self._saturating(node, cell)
        usage, whole, _, _ = steps[0]
        left = whole - usage.get(cell, 0)
        for usage, own, local, limit in steps[1:]:
            used = usage.get(cell, 0)
            if limit is not None:
                most = own + limit if used <= local else own - used + local + limit
                left = min(left, most)
            if used < local:
                left += local - used
        return left if -_PLAIN_MAX < left < _PLAIN_MAX else self._saturating(node, cell)

    def _saturating(self, node: TreeNode, cell: Cell) -> int:
        path = []
        at = node
        while at.parent is not None:
            path.append(at)
            at = at.parent
        left = sub(at.subtree.get(cell, 0), at.usage.get(cell, 0))
        for one in reversed(path):
            local, used = one.local.get(cell, 0), one.usage.get(cell, 0)
            limit = one.borrowing_limit(cell)
            if limit is not None:
                own = sub(sub(one.subtree.get(cell, 0), local), max(0, sub(used, local)))
                left = min(left, add(own, limit))
            if local > used:
                left = add(sub(local, used), left)
        return left

    def free(self, node: TreeNode, cell: Cell) -> int:
        """Return what the node may still take of `cell`, at least 0."""
        found = node.known.get(cell) if node.known_of == self._seen else None
        if found is None:
            found = self._available(node, cell)
        return found if found > 0 else 0  # noqa: FURB136 - the hottest line, and max() costs more than all of it

    def potential(self, node: TreeNode, cell: Cell) -> int:
        """Return the most the node could ever have of `cell`, with everything else idle."""
        found = node.potentials.get(cell)
        if found is None:
            found = node.potentials[cell] = self._potential(node, cell)
        return found

    def _potential(self, node: TreeNode, cell: Cell) -> int:
        path = []
        at = node
        while at.parent is not None:
            path.append(at)
            at = at.parent
        most = at.subtree.get(cell, 0)
        for one in reversed(path):
            most = add(one.local.get(cell, 0), most)
            limit = one.borrowing_limit(cell)
            if limit is not None:
                most = min(most, add(one.subtree.get(cell, 0), limit))
        return most

    def lendable(self, node: TreeNode, resource: str) -> int:
        """Return the most the node could have of a resource in all flavors of its tree together."""
        found = self._lendable.get(node)
        if found is None:
            found = self._lendable[node] = {}
            root = node
            while root.parent is not None:
                root = root.parent
            for cell in root.subtree:
                found[cell[1]] = add(found.get(cell[1], 0), self.potential(node, cell))
        return found.get(resource, 0)

    def lowest_fit(self, node: TreeNode, cell: Cell, amount: int) -> tuple[int, bool]:
        """Return the height of the lowest subtree that holds `amount` more, and whether that subtree has a parent.

        0 means without borrowing (Kueue's borrowing level).
        """
        parent = node.parent
        if parent is None or not node.borrows_with(cell, amount):
            return 0, parent is not None
        remaining = sub(amount, node.local_available(cell))
        at = parent
        while True:
            if not at.borrows_with(cell, remaining):
                return at.height, at.parent is not None
            if at.parent is None:
                return at.height, False
            remaining = sub(remaining, at.local_available(cell))
            at = at.parent

    def fits(self, node: TreeNode, usage: Usage) -> bool:
        """Return whether every cell of `usage` is available now."""
        for cell, amount in usage.items():  # noqa: SIM110 - a generator costs more than what it asks
            if amount > self.free(node, cell):
                return False
        return True

    def within_quota(self, node: TreeNode, cells: Iterable[Cell]) -> bool:
        """Return whether the node uses, in each of `cells`, no more than the quota of its subtree."""
        usage, subtree = node.usage, node.subtree
        for cell in cells:  # noqa: SIM110 - a generator costs more than what it asks
            if usage.get(cell, 0) > subtree.get(cell, 0):
                return False
        return True

    def add_usage(self, node: TreeNode, usage: Usage) -> None:
        """Charge `usage` to the node; what exceeds its local quota reaches its ancestors."""
        for cell, amount in usage.items():
            at: TreeNode | None = node
            rest = amount
            while at is not None and rest > 0:
                used = at.usage.get(cell, 0)
                self._set(at.usage, cell, used, used + rest)
                local = at.local.get(cell, 0)
                if local:
                    rest = sub(rest, max(0, sub(local, used)))
                at = at.parent
        self._seen += 1

    def remove_usage(self, node: TreeNode, usage: Usage) -> None:
        """Take back what `add_usage` charged; any order of charges and releases gives the same tree."""
        for cell, amount in usage.items():
            at: TreeNode | None = node
            rest = amount
            while at is not None and rest > 0:
                used = at.usage.get(cell, 0)
                self._set(at.usage, cell, used, used - rest)
                local = at.local.get(cell, 0)
                rest = min(rest, sub(used, local)) if local else used if used < rest else rest  # noqa: FURB136 - hot
                at = at.parent
        self._seen += 1

    def hold(self, cohort: TreeNode, usage: Usage) -> None:
        """Charge to a cohort itself what none of its queues is charged, as long as the tree stands."""
        for cell, amount in usage.items():
            cohort.held[cell] = cohort.held.get(cell, 0) + amount
        self.add_usage(cohort, usage)

    def shift(self, node: TreeNode, cell: Cell, amount: int) -> None:
        """Count `amount` more, or less, at the node alone; whoever does so takes it back and calls `recount`."""
        used = node.usage.get(cell, 0)
        self._set(node.usage, cell, used, used + amount)
        self._seen += 1

    def recount(self, node: TreeNode, cell: Cell) -> None:
        """Count anew what the ancestors of a node use of `cell`: what their children use beyond their local quota."""
        at = node.parent
        while at is not None:
            beyond = (max(0, sub(one.usage.get(cell, 0), one.local.get(cell, 0))) for one in at.children)
            self._set(at.usage, cell, at.usage.get(cell, 0), sum(beyond) + at.held.get(cell, 0))
            at = at.parent
        self._seen += 1

    def _set(self, usage: Usage, cell: Cell, before: int, value: int) -> None:
        if self._marks:
            self._log.append((usage, cell, before))
            self.simulated += 1
        else:
            self.changes += 1
        if value:
            usage[cell] = value
        else:
            usage.pop(cell, None)

    def mark(self) -> int:
        """Start a simulation; marks nest."""
        self._marks += 1
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Restore exactly the usage at the time of `mark`."""
        while len(self._log) > mark:
            usage, cell, before = self._log.pop()
            if before:
                usage[cell] = before
            else:
                usage.pop(cell, None)
        self._marks -= 1
        self._seen += 1


_PLAIN_MAX = 2**58
"""Quotas up to here are summed without a look at int64: no path is long enough to reach its end."""


def _steps(node: TreeNode, cell: Cell) -> Steps:
    """Return what `available` needs of each node on the way to `node`; empty if its sums might saturate."""
    steps: list[tuple[Usage, int, int, int | None]] = []
    at: TreeNode | None = node
    while at is not None:
        whole, local = at.subtree.get(cell, 0), at.local.get(cell, 0) if at.parent is not None else 0
        limit = at.borrowing_limit(cell) if at.parent is not None else None
        if whole > _PLAIN_MAX or (limit is not None and limit > _PLAIN_MAX):
            return ()
        steps.append((at.usage, whole - local, local, limit))
        at = at.parent
    return tuple(reversed(steps))
