"""Classical preemption: which workloads would have to go (2.8). Neighbour: `preempting`, which asks."""

from __future__ import annotations

from dataclasses import dataclass

from support.twin.arithmetic import minus
from support.twin.quota import (
    Cell,
    Node,
    Usage,
    available,
    borrowing_with,
    local_available,
    over_subtree,
    path_up,
    subtree_quota,
    used,
)
from support.twin.records import QueueView, Snapshot, Work

IN_QUEUE = "InClusterQueue"
RECLAIMED = "InCohortReclamation"
WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


@dataclass(slots=True, eq=False)
class Candidate:
    """A workload that may be preempted: why, from below which ancestor, and whether the preemptor may borrow then."""

    work: Work
    reason: str
    common: Node | None = None
    without_borrowing: bool = False
    advantage: bool = False


def allowed(policy: str, preemptor: Work, candidate: Work) -> bool:
    """Return the policy test (2.8), but for those who are spared (decision 14)."""
    if candidate.unwritten or (candidate.chain and candidate.chain == preemptor.chain):
        return False
    if candidate.uid in preemptor.spares or (candidate.spared and not candidate.evicted):
        return False
    if policy == "Any":
        return True
    if policy == "LowerPriority":
        return preemptor.priority > candidate.priority
    if policy == "LowerOrNewerEqualPriority":
        newer = preemptor.priority == candidate.priority and preemptor.timestamp < candidate.timestamp
        return preemptor.priority > candidate.priority or newer
    return False


def uses(work: Work, cells: set[Cell]) -> bool:
    """Return whether a candidate uses one of the cells in need (2.8)."""
    return any(cell in cells for cell in work.charge())


def candidate_key(preemptor_queue: str, work: Work) -> tuple[bool, bool, int, float, str]:
    """Return the order of candidates (2.8): evicted, other queues, lower priority, reserved later, UID."""
    return (not work.evicted, work.queue == preemptor_queue, work.priority, -work.reserved_at, work.uid)


def fits(view: QueueView, requests: Usage, allow_borrowing: bool = True) -> bool:
    """Return whether every request is available, and within nominal if borrowing is not allowed (2.8)."""
    for cell, amount in requests.items():
        if amount > available(view.node, cell):
            return False
        if not allow_borrowing and borrowing_with(view.node, cell, amount):
            return False
    return True


def same_queue(snapshot: Snapshot, view: QueueView, preemptor: Work, cells: set[Cell]) -> list[Candidate]:
    """Return the pool of the own queue (2.8)."""
    policy = view.spec.preemption.within_cluster_queue
    held = [one for one in snapshot.preemptable(view.holders.values()) if uses(one, cells)]
    return [Candidate(one, IN_QUEUE) for one in held if allowed(policy, preemptor, one)]


def _other_queues(
    snapshot: Snapshot, view: QueueView, preemptor: Work, requests: Usage, cells: set[Cell]
) -> list[Candidate]:
    """Return the hierarchy and priority pools (2.8), walking up the ancestors."""
    policy = view.spec.preemption.reclaim_within_cohort
    if policy == "Never":
        return []
    found: list[Candidate] = []
    advantage, remaining = _advantage(view.node, requests)
    visited = view.node
    for ancestor in path_up(view.node):
        for queue in _borrowing_queues(ancestor, visited, cells):
            held = snapshot.preemptable(snapshot.holders(queue))
            held = [one for one in held if uses(one, cells) and allowed(policy, preemptor, one)]
            found += [_variant(view, preemptor, one, ancestor, advantage) for one in held]
        more, remaining = _advantage(ancestor, remaining)
        advantage = advantage or more
        visited = ancestor
    return found


def _advantage(node: Node, requests: Usage) -> tuple[bool, Usage]:
    """Return whether requests fit in the subtree quota, and what of them the parent would see (2.8)."""
    fit = all(subtree_quota(node, cell) >= used(node, cell) + amount for cell, amount in requests.items())
    return fit, {cell: max(0, minus(amount, local_available(node, cell))) for cell, amount in requests.items()}


def _borrowing_queues(ancestor: Node, visited: Node, cells: set[Cell]) -> list[Node]:
    """Return the queues below `ancestor` but not below `visited`, reached through nodes that borrow only (2.8)."""
    found: list[Node] = []
    for child in ancestor.children:
        if child is visited or not any(over_subtree(child, cell) for cell in cells):
            continue
        found += [child] if child.is_queue else _borrowing_queues(child, visited, cells)
    return found


def _variant(view: QueueView, preemptor: Work, one: Work, common: Node, advantage: bool) -> Candidate:
    """Return the variant of a candidate from another queue (2.8)."""
    if advantage:
        return Candidate(one, RECLAIMED, common, advantage=True)
    rule = view.spec.preemption.borrow_within_cohort
    above = rule.max_priority_threshold is not None and one.priority > rule.max_priority_threshold
    if rule.policy == "Never" or one.priority >= preemptor.priority or above:
        return Candidate(one, RECLAIMED, common, without_borrowing=True)
    return Candidate(one, WHILE_BORROWING, common)


def _in_sequence(view: QueueView, others: list[Candidate], same: list[Candidate]) -> list[Candidate]:
    """Return evicted (hierarchy, priority, same), then the rest (hierarchy, priority, same), each sorted (2.8)."""
    pools = [[one for one in others if one.advantage], [one for one in others if not one.advantage], same]
    ordered = [sorted(pool, key=lambda one: candidate_key(view.name, one.work)) for pool in pools]
    evicted = [one for pool in ordered for one in pool if one.work.evicted]
    return evicted + [one for pool in ordered for one in pool if not one.work.evicted]


def _attempts(view: QueueView, others: list[Candidate], cells: set[Cell]) -> list[bool]:
    """Return the values of allowBorrowing to try in order (2.8)."""
    forbidden = view.spec.preemption.borrow_within_cohort.policy == "Never"
    below = all(view.node.nominal.get(cell, 0) > used(view.node, cell) for cell in cells)
    if not others or (forbidden and not below):
        return [True]
    if forbidden and not any(one.advantage for one in others):
        return [False, True]
    return [True, False]


def _no_longer_borrows(snapshot: Snapshot, one: Candidate, cells: set[Cell]) -> bool:
    """Return whether its queue, or a cohort between it and the common ancestor, is within S by now (2.8)."""
    node = snapshot.queues[one.work.queue].node
    between = [node]
    for ancestor in path_up(node):
        if ancestor is one.common:
            break
        between.append(ancestor)
    return any(not any(over_subtree(each, cell) for cell in cells) for each in between)


def _attempt(
    snapshot: Snapshot, view: QueueView, ordered: list[Candidate], requests: Usage, cells: set[Cell], allow: bool
) -> list[Candidate]:
    """Return the targets of one attempt (2.8), empty if it does not succeed; the snapshot is as it was."""
    taken: list[Candidate] = []
    success = False
    for one in ordered:
        foreign = one.work.queue != view.name
        if foreign and ((allow and one.without_borrowing) or _no_longer_borrows(snapshot, one, cells)):
            continue
        snapshot.take_out(one.work)
        taken.append(one)
        if fits(view, requests, allow):
            success = True
            break
    targets = fill_back(snapshot, taken, lambda: fits(view, requests, allow)) if success else taken
    for one in targets:
        snapshot.put_back(one.work)
    return targets if success else []


def fill_back(snapshot: Snapshot, taken: list[Candidate], still: object) -> list[Candidate]:
    """Put back from the second-last to the first what is not needed after all (2.8)."""
    assert callable(still)
    targets = list(taken)
    for one in reversed(taken[:-1]):
        snapshot.put_back(one.work)
        if still():
            targets.remove(one)
        else:
            snapshot.take_out(one.work)
    return targets


def classical(
    snapshot: Snapshot, view: QueueView, preemptor: Work, requests: Usage, cells: set[Cell]
) -> list[Candidate]:
    """Return the targets of classical preemption (2.8), empty if there are none that help."""
    same = same_queue(snapshot, view, preemptor, cells)
    others = _other_queues(snapshot, view, preemptor, requests, cells)
    ordered = _in_sequence(view, others, same)
    for allow in _attempts(view, others, cells):
        found = _attempt(snapshot, view, ordered, requests, cells, allow)
        if found:
            return found
    return []
