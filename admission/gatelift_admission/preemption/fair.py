"""Preemption under fair sharing: whoever has the largest share gives first, as far as that makes shares more equal.

The seeker's usage is in the tree while victims are looked for, so shares are what they would be. From the root down the
child with the largest share is chosen until a queue is reached; one of its workloads leaves if the rule of the strategy
holds between the two sides below the lowest common cohort. Neighbours: `candidates` for order and policy, `classical`
for fitting and filling back, `fairness` for shares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission.preemption.candidates import (
    NEVER,
    Candidate,
    CandidateStream,
    Reason,
    Scene,
    Seeker,
    Target,
    enough,
    read,
)
from gatelift_admission.preemption.classical import fill_back, fits
from gatelift_admission.quota.fairness import Share, share
from gatelift_admission.quota.nodes import TreeNode

FINAL_SHARE: Final = "LessThanOrEqualToFinalShare"
INITIAL_SHARE: Final = "LessThanInitialShare"


@dataclass(slots=True)
class _Search:
    """One search under way."""

    scene: Scene
    seeker: Seeker
    left: dict[TreeNode, deque[Candidate]]
    """Candidates per queue, in order."""
    root: TreeNode
    own_path: frozenset[TreeNode]
    pruned: set[TreeNode] = field(default_factory=set)
    targets: list[Target] = field(default_factory=list)

    def take(self, node: TreeNode, reason: Reason) -> bool:
        """Remove the next candidate of a queue; True if the seeker fits now."""
        one = self.left[node].popleft()
        self.targets.append(Target(one.entry, node, reason))
        tree, seeker = self.scene.tree, self.seeker
        tree.remove_usage(node, one.entry.charged)
        tree.remove_usage(seeker.node, seeker.usage)
        found = fits(self.scene, seeker, allow_borrowing=True)
        tree.add_usage(seeker.node, seeker.usage)
        return found


def find(scene: Scene, seeker: Seeker, strategies: tuple[str, ...]) -> tuple[Target, ...]:
    """Return who has to leave so that the seeker fits, nobody if that cannot be had."""
    streams = list(_streams(scene, seeker))
    if not streams or not enough(scene, seeker, streams):
        return ()
    left = {stream.node: deque(_ordered(scene, seeker, stream)) for stream in streams}
    path = [seeker.node]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    search = _Search(scene, seeker, left, path[-1], frozenset(path))
    tree = scene.tree
    mark = tree.mark()
    try:
        tree.add_usage(seeker.node, seeker.usage)
        if not _run(search, strategies):
            return ()
        tree.remove_usage(seeker.node, seeker.usage)
        return fill_back(scene, seeker, search.targets, allow_borrowing=True)
    finally:
        tree.undo(mark)


def _run(search: _Search, strategies: tuple[str, ...]) -> bool:
    fitting, again = _first(search, strategies[0])
    if fitting or len(strategies) == 1:
        return fitting
    search.left, search.pruned = again, set()
    return _second(search)


def _streams(scene: Scene, seeker: Seeker) -> Iterator[CandidateStream]:
    if seeker.policy.within_cluster_queue != NEVER:
        yield CandidateStream(seeker.node, seeker.policy.within_cluster_queue)
    policy = seeker.policy.reclaim_within_cohort
    if policy == NEVER or seeker.node.parent is None:
        return
    for node in scene.tree.members.get(seeker.node.root, ()):
        if node is not seeker.node and not scene.tree.within_quota(node, seeker.needs):
            yield CandidateStream(node, policy, node.parent)


def _ordered(scene: Scene, seeker: Seeker, stream: CandidateStream) -> Iterator[Candidate]:
    for leaving in (True, False):
        yield from read(scene, seeker, stream, leaving=leaving)


def _first(search: _Search, strategy: str) -> tuple[bool, dict[TreeNode, deque[Candidate]]]:
    """Run the first strategy; returns whether the seeker fits, and the candidates that were turned down."""
    again: dict[TreeNode, deque[Candidate]] = {}
    # Asked once, with everything still held: own workloads that leave give no right to reclaim.
    entitled = search.scene.tree.within_quota(search.seeker.node, search.seeker.needs)
    while (node := _next_queue(search)) is not None:
        if node is search.seeker.node:
            fitting = search.take(node, Reason.IN_QUEUE)
        elif entitled:
            fitting = search.take(node, Reason.RECLAIM)
        else:
            fitting = _take_fair(search, node, strategy, again)
        if fitting:
            return True, again
    return False, again


def _take_fair(search: _Search, node: TreeNode, strategy: str, again: dict[TreeNode, deque[Candidate]]) -> bool:
    """Take the first candidate of a queue that the strategy allows, and set aside those before it."""
    mine, theirs = _sides(search, node)
    tree = search.scene.tree
    new, old = share(tree, mine), share(tree, theirs)
    queue = search.left[node]
    while queue:
        if (new < old) if strategy == INITIAL_SHARE else (new <= _share_without(search, theirs, queue[0])):
            return search.take(node, Reason.FAIR_SHARING)
        again.setdefault(node, deque()).append(queue.popleft())
    return False


def _share_without(search: _Search, side: TreeNode, one: Candidate) -> Share:
    """Return the share of a side once a candidate has left."""
    tree = search.scene.tree
    mark = tree.mark()
    tree.remove_usage(one.stream.node, one.entry.charged)
    final = share(tree, side)
    tree.undo(mark)
    return final


def _second(search: _Search) -> bool:
    """Run the second strategy, LessThanInitialShare, over those turned down before; at most one for each queue."""
    while (node := _next_queue(search)) is not None:
        mine, theirs = _sides(search, node)
        tree = search.scene.tree
        if share(tree, mine) < share(tree, theirs) and search.take(node, Reason.FAIR_SHARING):
            return True
        search.left[node].clear()
    return False


def _sides(search: _Search, node: TreeNode) -> tuple[TreeNode, TreeNode]:
    """Return the seeker's and the other side, just below the lowest cohort that is above both."""
    theirs = node
    while theirs.parent is not None and theirs.parent not in search.own_path:
        theirs = theirs.parent
    mine = search.seeker.node
    while mine.parent is not None and mine.parent is not theirs.parent:
        mine = mine.parent
    return mine, theirs


def _next_queue(search: _Search) -> TreeNode | None:
    """Return the queue that has to give next, None if none is left."""
    if search.root.is_queue:
        return search.root if search.left.get(search.root) else None
    while search.root not in search.pruned:
        at: TreeNode | None = search.root
        while at is not None and not at.is_queue:
            at = _best_child(search, at)
        if at is not None:
            return at
    return None


def _best_child(search: _Search, cohort: TreeNode) -> TreeNode | None:
    """Return the child with the largest share, a cohort before a queue; prune the cohort if none is left."""
    tree = search.scene.tree
    queue: tuple[Share, TreeNode] | None = None
    below: tuple[Share, TreeNode] | None = None
    for child in cohort.children:
        if child in search.pruned or _gives_nothing(search, child):
            search.pruned.add(child)
            continue
        value = share(tree, child)
        if not child.is_queue:
            if below is None or value > below[0]:
                below = (value, child)
        elif queue is None or value > queue[0] or (value == queue[0] and _before(search, child, queue[1])):
            queue = (value, child)
    if queue is not None and (below is None or queue[0] > below[0]):
        return queue[1]
    if below is None:
        search.pruned.add(cohort)
        return None
    return below[1]


def _gives_nothing(search: _Search, node: TreeNode) -> bool:
    if node.is_queue and not search.left.get(node):
        return True
    return node not in search.own_path and search.scene.tree.within_quota(node, node.usage)


def _before(search: _Search, left: TreeNode, right: TreeNode) -> bool:
    """Return whether the first candidate of one queue goes before that of another."""
    return _place(search, left) < _place(search, right)


def _place(search: _Search, node: TreeNode) -> tuple[bool, bool, tuple[int, float, str]]:
    one = search.left[node][0]
    return not search.scene.holders.holds[one.entry.uid].evicted, node is search.seeker.node, one.key
