"""Classical preemption: the smallest set, in order, that has to leave so that a workload fits (KEP-1337, KEP-79).

Own queue by priority; other queues of the cohort tree as far as they use more than their quota. A subtree within whose
own quota the seeker stays has the advantage over the rest of the tree, whatever the priorities. Candidates are removed
one by one until the seeker fits, then whoever turns out not to matter is put back. Everything happens on the one tree
under its undo log. Neighbours: `candidates` for order and policy, `oracle` asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gatelift_admission.preemption.candidates import (
    NEVER,
    Candidate,
    CandidateStream,
    Reason,
    Scene,
    Seeker,
    Target,
    any_of,
    enough,
    merged,
)
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.values.amounts import add, sub
from gatelift_admission.values.model import Usage


@dataclass(slots=True)
class _Pools:
    """The streams of one search: with hierarchical advantage, by priority alone, and the own queue's."""

    hierarchy: list[CandidateStream] = field(default_factory=list)
    priority: list[CandidateStream] = field(default_factory=list)
    own: list[CandidateStream] = field(default_factory=list)

    def all(self) -> list[CandidateStream]:
        return [*self.hierarchy, *self.priority, *self.own]


def find(scene: Scene, seeker: Seeker) -> tuple[Target, ...]:
    """Return who has to leave so that the seeker fits, nobody if that cannot be had."""
    pools = _collect(scene, seeker)
    if not enough(scene, seeker, pools.all()):
        return ()
    for allow_borrowing in _attempts(scene, seeker, pools):
        found = _attempt(scene, seeker, pools, allow_borrowing=allow_borrowing)
        if found:
            return found
    return ()


def _collect(scene: Scene, seeker: Seeker) -> _Pools:
    pools = _Pools()
    if seeker.policy.within_cluster_queue != NEVER:
        pools.own.append(CandidateStream(seeker.node, seeker.policy.within_cluster_queue))
    policy = seeker.policy.reclaim_within_cohort
    if policy == NEVER or seeker.node.parent is None:
        return pools
    advantage, remaining = _fits_quota(seeker.node, seeker.usage)
    before, at = seeker.node, seeker.node.parent
    while True:
        pool = pools.hierarchy if advantage else pools.priority
        pool += [CandidateStream(node, policy, at, advantage) for node in _exceeding(scene, seeker, at, before)]
        fits, remaining = _fits_quota(at, remaining)
        advantage = advantage or fits
        if at.parent is None:
            return pools
        before, at = at, at.parent


def _fits_quota(node: TreeNode, usage: Usage) -> tuple[bool, Usage]:
    """Return whether `usage` more stays within the node's own quota, and what of it would reach its parent."""
    fits = all(node.subtree.get(cell, 0) >= add(node.usage.get(cell, 0), amount) for cell, amount in usage.items())
    return fits, {cell: max(0, sub(amount, node.local_available(cell))) for cell, amount in usage.items()}


def _exceeding(scene: Scene, seeker: Seeker, top: TreeNode, without: TreeNode) -> Iterator[TreeNode]:
    """Yield the queues below `top` that exceed their quota, through cohorts that do; none below `without`."""
    stack = [top]
    while stack:
        for child in stack.pop().children:
            if child is without or child is seeker.node or scene.tree.within_quota(child, seeker.needs):
                continue
            if child.is_queue:
                yield child
            else:
                stack.append(child)


def _attempts(scene: Scene, seeker: Seeker, pools: _Pools) -> tuple[bool, ...]:
    """Return in which order to try with and without borrowing."""
    forbidden = seeker.policy.borrow_within_cohort.policy == NEVER
    foreign = any_of(scene, seeker, [*pools.hierarchy, *pools.priority])
    below = all(seeker.node.nominal(cell) > seeker.node.usage.get(cell, 0) for cell in seeker.needs)
    if not foreign or (forbidden and not below):
        return (True,)
    if forbidden and not any_of(scene, seeker, pools.hierarchy):
        return (False, True)
    return (True, False)


def _in_order(scene: Scene, seeker: Seeker, pools: _Pools) -> Iterator[Candidate]:
    for leaving in (True, False):
        for streams in (pools.hierarchy, pools.priority, pools.own):
            if streams:
                yield from merged(scene, seeker, streams, leaving=leaving)


def _attempt(scene: Scene, seeker: Seeker, pools: _Pools, *, allow_borrowing: bool) -> tuple[Target, ...]:
    tree = scene.tree
    mark = tree.mark()
    try:
        targets: list[Target] = []
        lacks = Lacks(scene, seeker, allow_borrowing=allow_borrowing)
        for one in _in_order(scene, seeker, pools):
            reason = _reason(seeker, one)
            if not _valid(scene, seeker, one, reason, allow_borrowing=allow_borrowing):
                continue
            node, charged = one.stream.node, one.entry.charged
            targets.append(Target(one.entry, node, reason))
            tree.remove_usage(node, charged)
            if not lacks.after(node, charged) and fits(scene, seeker, allow_borrowing=allow_borrowing):
                return fill_back(scene, seeker, targets, allow_borrowing=allow_borrowing)
        return ()
    finally:
        tree.undo(mark)


def _reason(seeker: Seeker, one: Candidate) -> Reason:
    if one.stream.lca is None:
        return Reason.IN_QUEUE
    if one.stream.advantage or not _may_borrow_against(seeker, one):
        return Reason.RECLAIM
    return Reason.RECLAIM_WHILE_BORROWING


def _may_borrow_against(seeker: Seeker, one: Candidate) -> bool:
    """Return whether borrowWithinCohort lets the seeker borrow what this candidate frees."""
    policy = seeker.policy.borrow_within_cohort
    if policy.policy == NEVER or one.key[0] >= seeker.priority:
        return False
    return policy.max_priority_threshold is None or one.key[0] <= policy.max_priority_threshold


def _valid(scene: Scene, seeker: Seeker, one: Candidate, reason: Reason, *, allow_borrowing: bool) -> bool:
    """Return whether a candidate still counts, now that others have been removed."""
    lca = one.stream.lca
    if lca is None:
        return True
    if allow_borrowing and reason is Reason.RECLAIM and not one.stream.advantage:
        return False
    at: TreeNode | None = one.stream.node
    while at is not None and at is not lca:
        if scene.tree.within_quota(at, seeker.needs):
            return False
        at = at.parent
    return True


class Lacks:
    """What a seeker still lacks for certain, by sums: what is freed anywhere helps it by at most as much.

    So the tree need not be asked while something is lacking here.
    """

    __slots__ = ("_free", "_node", "_own")

    def __init__(self, scene: Scene, seeker: Seeker, *, allow_borrowing: bool) -> None:
        """Read the tree as it stands."""
        tree, node = scene.tree, seeker.node
        self._node = node
        self._free = {
            cell: missing
            for cell, amount in seeker.usage.items()
            if amount > 0 and (missing := amount - tree.available(node, cell)) > 0
        }
        """Of which cells too little is available."""
        self._own: Usage = {}
        """Of which cells the queue itself would use too much."""
        if not allow_borrowing:
            for cell, amount in seeker.usage.items():
                if node.borrows_with(cell, amount):
                    self._own[cell] = node.usage.get(cell, 0) + amount - node.nominal(cell)

    def after(self, node: TreeNode, freed: Usage) -> bool:
        """Return whether something is lacking for certain after `freed` has left `node` as well."""
        if node is self._node and self._own:
            _subtract(self._own, freed)
        if self._free:
            _subtract(self._free, freed)
        return bool(self._free or self._own)


def _subtract(lacking: Usage, freed: Usage) -> None:
    for cell, amount in freed.items():
        if cell in lacking:
            left = lacking[cell] - amount
            if left > 0:
                lacking[cell] = left
            else:
                del lacking[cell]


def fits(scene: Scene, seeker: Seeker, *, allow_borrowing: bool) -> bool:
    """Return whether the seeker fits into the tree as it stands."""
    for cell, amount in seeker.usage.items():
        if not allow_borrowing and seeker.node.borrows_with(cell, amount):
            return False
        if amount > scene.tree.free(seeker.node, cell):
            return False
    return True


def fill_back(scene: Scene, seeker: Seeker, targets: list[Target], *, allow_borrowing: bool) -> tuple[Target, ...]:
    """Put back whoever need not leave, from the last but one to the first; the order of the rest may change.

    Somebody of another queue takes from the seeker at most what it holds: while that is to spare, nothing is asked.
    """
    tree = scene.tree
    spare: Usage = {}
    for index in range(len(targets) - 2, -1, -1):
        node, charged = targets[index].node, targets[index].entry.charged
        tree.add_usage(node, charged)
        if node is seeker.node or not _spared(spare, charged):
            if not fits(scene, seeker, allow_borrowing=allow_borrowing):
                tree.remove_usage(node, charged)
                continue
            spare = {cell: tree.free(seeker.node, cell) - amount for cell, amount in seeker.usage.items()}
        targets[index] = targets[-1]
        targets.pop()
    return tuple(targets)


def _spared(spare: Usage, charged: Usage) -> bool:
    """Take `charged` from what is to spare; False, and the rest of no more use, if there is too little of it."""
    if not spare:
        return False
    for cell, amount in charged.items():
        if cell in spare:
            if amount > spare[cell]:
                return False
            spare[cell] -= amount
    return True
