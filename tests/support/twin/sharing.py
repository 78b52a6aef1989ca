"""Fair sharing (2.9): dominant resource shares, the tournament of entries, and preemption by shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cmp_to_key

from support.twin.quota import (
    Cell,
    Node,
    Usage,
    add_usage,
    borrowing_with,
    over_subtree,
    path_up,
    potential,
    remove_usage,
    root_of,
    subtree,
    subtree_quota,
    used,
)
from support.twin.records import QueueView, Snapshot, Work
from support.twin.targets import (
    IN_QUEUE,
    RECLAIMED,
    Candidate,
    allowed,
    candidate_key,
    fill_back,
    fits,
    same_queue,
    uses,
)

FAIR = "InCohortFairSharing"
Share = tuple[int, Fraction]
"""(1 for a zero-weight borrower, value): compares as 2.9 says."""


def cells_of(node: Node) -> list[Cell]:
    """Return all cells that the nodes below `node` (and itself) define or use (2.2, last remark)."""
    return sorted({cell for one in subtree(node) for cell in (*one.nominal, *one.usage)})


def share(node: Node) -> Share:
    """Return the dominant resource share of a node (2.9)."""
    if node.parent is None:
        return (0, Fraction(0))
    borrowed: dict[str, int] = {}
    for cell in cells_of(node):
        over = max(0, used(node, cell) - subtree_quota(node, cell))
        borrowed[cell[1]] = borrowed.get(cell[1], 0) + over
    lendable: dict[str, int] = {}
    for cell in cells_of(root_of(node)):
        lendable[cell[1]] = lendable.get(cell[1], 0) + potential(node.parent, cell)
    ratios = [Fraction(over * 1000, lendable[name]) for name, over in borrowed.items() if lendable.get(name, 0) > 0]
    unweighted = max(ratios, default=Fraction(0))
    if unweighted == 0:
        return (0, Fraction(0))
    if node.weight == 0:
        return (1, unweighted)
    return (0, unweighted * 10**9 / node.weight)


def borrows(node: Node) -> bool:
    """Return the borrowing flag (2.9): any cell above S; kept apart because the ratio may be 0."""
    return node.parent is not None and any(over_subtree(node, cell) for cell in cells_of(node))


# -- order of entries -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Contestant:
    """An entry of the tournament: its queue, usage, rank; per node of its path the share and whether it borrows."""

    view: QueueView
    work: Work
    usage: Usage
    marks: dict[str, tuple[bool, Share]] = field(default_factory=dict)


def _mark(one: Contestant) -> None:
    """Record the shares along the path with the entry's usage added, and undo (2.7)."""
    add_usage(one.view.node, one.usage)
    for node in [one.view.node, *path_up(one.view.node)]:
        one.marks[node.name] = (any(over_subtree(node, cell) for cell in one.usage), share(node))
    remove_usage(one.view.node, one.usage)


def winner(contestants: list[Contestant]) -> Contestant:
    """Return the entry that goes next among those of one root (2.7): recomputed after every pop."""
    if len(contestants) == 1:
        return contestants[0]
    for one in contestants:
        _mark(one)
    found = _winner_below(root_of(contestants[0].view.node), contestants)
    assert found is not None
    return found


def _winner_below(node: Node, contestants: list[Contestant]) -> Contestant | None:
    if node.is_queue:
        return next((one for one in contestants if one.view.node is node), None)
    best: tuple[Contestant, str] | None = None
    for child in sorted(node.children, key=lambda one: (one.is_queue, one.name)):
        one = _winner_below(child, contestants)
        if one is not None and (best is None or _key(one, child.name) < _key(*best)):
            best = (one, child.name)
    return best[0] if best else None


def _key(one: Contestant, node: str) -> tuple[bool, Share, tuple[int, float, str]]:
    borrowing, drs = one.marks[node]
    return (borrowing, drs, one.work.rank())


# -- preemption -------------------------------------------------------------------------------------------------------


def _candidates(snapshot: Snapshot, view: QueueView, preemptor: Work, cells: set[Cell]) -> list[Candidate]:
    """Return own candidates per policy, and those of all queues of the tree above nominal (2.9)."""
    found = same_queue(snapshot, view, preemptor, cells)
    policy = view.spec.preemption.reclaim_within_cohort
    for node in [one for one in subtree(root_of(view.node)) if one.is_queue]:
        if node is view.node or not any(used(node, cell) > node.nominal.get(cell, 0) for cell in cells):
            continue
        held = snapshot.preemptable(snapshot.holders(node))
        found += [Candidate(one, FAIR) for one in held if uses(one, cells) and allowed(policy, preemptor, one)]
    return sorted(found, key=lambda one: candidate_key(view.name, one.work))


@dataclass(slots=True)
class Tour:
    """The target-queue iterator (2.9): which queues still have candidates, and what is pruned."""

    preemptor: QueueView
    left: dict[str, list[Candidate]]
    pruned: set[int] = field(default_factory=set)

    def next_queue(self) -> Node | None:
        """Return the next target queue, None when the root is pruned."""
        root = root_of(self.preemptor.node)
        if root.is_queue:
            return root if self.left.get(root.name) else None
        while id(root) not in self.pruned:
            found = self._below(root)
            if found is not None:
                return found
        return None

    def _below(self, cohort: Node) -> Node | None:
        ancestors = path_up(self.preemptor.node)
        open_children = []
        for child in sorted(cohort.children, key=lambda one: one.name):
            if id(child) in self.pruned:
                continue
            if child.is_queue:
                keep = bool(self.left.get(child.name)) and (child is self.preemptor.node or borrows(child))
            else:
                keep = child in ancestors or borrows(child)
            if keep:
                open_children.append(child)
            else:
                self.pruned.add(id(child))
        if not open_children:
            self.pruned.add(id(cohort))
            return None
        best = min(open_children, key=cmp_to_key(self._compare))
        return best if best.is_queue else self._below(best)

    def _compare(self, left: Node, right: Node) -> int:
        """Highest share first; a cohort before a queue; queues by their first candidate."""
        if share(left) != share(right):
            return -1 if share(left) > share(right) else 1
        if left.is_queue != right.is_queue:
            return 1 if left.is_queue else -1
        if left.is_queue:
            keys = [candidate_key(self.preemptor.name, self.left[one.name][0].work) for one in (left, right)]
            return -1 if keys[0] < keys[1] else 1
        return 0


def _sides(preemptor: Node, target: Node) -> tuple[Node, Node]:
    """Return the children of the lowest common ancestor on the preemptor's and on the target's side."""
    mine, theirs = [preemptor, *path_up(preemptor)], [target, *path_up(target)]
    common = next(one for one in mine if one in theirs)
    return mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]


def _less_or_equal_final(new: Share, _old: Share, after: Share) -> bool:
    return new <= after


def _less_than_initial(new: Share, old: Share, _after: Share) -> bool:
    return new < old


STRATEGIES: dict[str, Callable[[Share, Share, Share], bool]] = {
    "LessThanOrEqualToFinalShare": _less_or_equal_final,
    "LessThanInitialShare": _less_than_initial,
}


@dataclass(slots=True)
class FairSearch:
    """One search for targets: what was taken so far and what is left for the second strategy."""

    snapshot: Snapshot
    view: QueueView
    requests: Usage
    cells: set[Cell]
    taken: list[Candidate] = field(default_factory=list)
    retry: list[Candidate] = field(default_factory=list)

    def fits(self) -> bool:
        """Return whether the request fits, its own usage taken away for the test (2.9)."""
        remove_usage(self.view.node, self.requests)
        found = fits(self.view, self.requests)
        add_usage(self.view.node, self.requests)
        return found

    def take(self, one: Candidate, reason: str) -> bool:
        """Remove a target; return whether the request fits now."""
        one.reason = reason
        self.snapshot.take_out(one.work)
        self.taken.append(one)
        return self.fits()

    def _passes(self, strategy: str, target: Node, one: Candidate) -> bool:
        mine, theirs = _sides(self.view.node, target)
        new, old = share(mine), share(theirs)
        self.snapshot.take_out(one.work)
        after = share(theirs)
        self.snapshot.put_back(one.work)
        return STRATEGIES[strategy](new, old, after)

    def first(self, strategy: str, ordered: list[Candidate]) -> bool:
        """Run the first strategy (2.9); return whether the request fits."""
        tour = Tour(self.view, _by_queue(ordered))
        within_nominal = not any(borrowing_with(self.view.node, cell, 0) for cell in self.cells)
        while (target := tour.next_queue()) is not None:
            waiting = tour.left[target.name]
            if target is self.view.node:
                if self.take(waiting.pop(0), IN_QUEUE):
                    return True
            elif within_nominal:
                if self.take(waiting.pop(0), RECLAIMED):
                    return True
            else:
                while waiting:
                    one = waiting.pop(0)
                    if self._passes(strategy, target, one):
                        if self.take(one, FAIR):
                            return True
                        break
                    self.retry.append(one)
        return False

    def second(self, strategy: str) -> bool:
        """Run the second strategy over what was passed over, at most one per queue (2.9)."""
        tour = Tour(self.view, _by_queue(self.retry))
        while (target := tour.next_queue()) is not None:
            one = tour.left[target.name][0]
            tour.left[target.name] = []
            if self._passes(strategy, target, one) and self.take(one, FAIR):
                return True
        return False


def _by_queue(ordered: list[Candidate]) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for one in ordered:
        found.setdefault(one.work.queue, []).append(one)
    return found


def fair_targets(
    snapshot: Snapshot, view: QueueView, preemptor: Work, requests: Usage, cells: set[Cell]
) -> list[Candidate]:
    """Return the targets of fair-sharing preemption (2.9), empty if none help."""
    assert snapshot.fair is not None
    add_usage(view.node, requests)
    search = FairSearch(snapshot, view, requests, cells)
    strategies = snapshot.fair.strategies
    success = search.first(strategies[0], _candidates(snapshot, view, preemptor, cells))
    if not success and len(strategies) > 1:
        success = search.second(strategies[1])
    targets = fill_back(snapshot, search.taken, search.fits) if success else search.taken
    for one in targets:
        snapshot.put_back(one.work)
    remove_usage(view.node, requests)
    return targets if success else []
