"""What has to be true of the fast engine whatever it decides (reference 5.2): quota, places, victims, order.

Each function returns what is broken in words, and nothing where all is well. Neighbour: `play`, which asks after
each cycle, at each nomination and at each reservation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.entries.ordering import pending_key
from gatelift_admission.entries.standings import OF_CLASSES, QueueStanding
from gatelift_admission.queues.pending import PendingQueue
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.rounds.progress import Nominee
from gatelift_admission.state.known import State
from gatelift_admission.values.amounts import UNLIMITED, add
from gatelift_admission.values.model import Usage


def broken(state: State) -> list[str]:
    """Return what is wrong between two rounds: usage that is no sum of its holders, workloads in two places or none."""
    tree = state.ensure()
    nodes = [*tree.queues.values(), *tree.cohorts.values()]
    found = [f"{one.name} uses {one.usage}" for one in nodes if any(amount < 0 for amount in one.usage.values())]
    for node in nodes:
        due = _of_holders(state, node) if node.is_queue else _of_children(node)
        if due != {cell: amount for cell, amount in node.usage.items() if amount}:
            found.append(f"{node.name} uses {node.usage}, its holders {due}")
    places = Counter(uid for queue in state.queues.values() for uid in _waiting(queue.pending))
    for uid, entry in state.entries.items():
        home = state.queues.get(entry.queue)
        waits = home is not None and uid in _waiting(home.pending)
        if places[uid] != waits or bool(entry.queue) != waits:
            found.append(f"{uid} waits in {places[uid]} places, it is said to in {entry.queue!r}")
        if waits and entry.phase is not Phase.PENDING:
            found.append(f"{uid} waits, and is {entry.phase.value}")
        if waits and entry.charged:
            found.append(f"{uid} waits, and is charged {entry.charged}")
    found += [f"{uid} waits, and is not known" for uid in places if uid not in state.entries]
    for name, queue in state.queues.items():
        if state.ledger.queue(name).pending != len(queue.pending):
            found.append(f"{name} counts {state.ledger.queue(name).pending} waiting, and has {len(queue.pending)}")
        found += misplaced(queue.pending)
    out = {uid: one.standing for uid, one in state.entries.items() if not one.queue}
    return found + [f"{uid} is in no queue, and stands {one.name}" for uid, one in out.items() if one not in _NOWHERE]


_NOWHERE = (QueueStanding.OUT, QueueStanding.FAULTY)
_HEADS = (QueueStanding.BLOCKED, QueueStanding.RESERVING, QueueStanding.BARRED)


def misplaced(pending: PendingQueue) -> list[str]:
    """Return who of a queue stands elsewhere than where the queue has it."""
    found = [
        f"{one.uid} is aside, and stands {one.standing.name}" for one in pending.aside.values() if not _is_aside(one)
    ]
    for known in pending.classes.values():
        if known.standing not in OF_CLASSES:
            found.append(f"a class stands {known.standing.name}")
        for one in known.members.values():
            right = (
                _HEADS
                if one is pending.blocked
                else (QueueStanding.LOST,)
                if one is pending.loser
                else (QueueStanding.QUEUED,)
            )
            if one.standing not in right:
                found.append(f"{one.uid} is in the order, and stands {one.standing.name}")
    return found


def _is_aside(entry: Entry) -> bool:
    return entry.standing is QueueStanding.INADMISSIBLE


def above_limits(node: TreeNode, usage: Usage) -> list[str]:
    """Return where a reservation of `usage` in a round in which nobody has to leave took a node above its limits."""
    found = []
    for cell, amount in usage.items():
        at: TreeNode | None = node
        more = amount
        while at is not None and more > 0:
            limit = at.borrowing_limit(cell) if at.parent is not None else 0
            most = UNLIMITED if limit is None else add(at.subtree.get(cell, 0), limit)
            used, local = at.usage.get(cell, 0), at.local.get(cell, 0)
            if used > most:
                found.append(f"{at.name} uses {used} of {cell}, it may {most}")
            more = max(0, used - local) - max(0, used - more - local)  # what of it reached the parent
            at = at.parent
    return found


def spared(tree: Tree, nominee: Nominee) -> list[str]:
    """Return the victims of a plan that need not leave, or the plan itself if it does not fit without them all."""
    plan, node = nominee.plan, tree.queues[nominee.queue.name]
    usage = plan.assignment.usage
    if not plan.targets:
        return []
    mark = tree.mark()
    for one in plan.targets:
        tree.remove_usage(one.node, one.entry.charged)
    uid, leaving = nominee.entry.uid, sorted(one.entry.uid for one in plan.targets)
    found = [] if tree.fits(node, usage) else [f"{uid} does not fit without {leaving}"]
    borrows = _borrows(node, usage)
    for one in plan.targets:
        inner = tree.mark()
        tree.add_usage(one.node, one.entry.charged)
        if tree.fits(node, usage) and (borrows or not _borrows(node, usage)):
            found.append(f"{uid} fits although {one.entry.uid} stays")
        tree.undo(inner)
    tree.undo(mark)
    return found


def overtaken(pending: PendingQueue, entry: Entry) -> list[str]:
    """Return who stands before `entry`, that is about to be let in, in a StrictFIFO queue."""
    if not pending.strict:
        return []
    rank = pending_key(entry.priority, entry.timestamp, entry.uid)
    members = [one for known in pending.classes.values() for one in known.members.values()]
    ahead = [one.uid for one in members if pending_key(one.priority, one.timestamp, one.uid) < rank]
    return [f"{entry.uid} overtakes {sorted(ahead)}"] if ahead else []


def _of_holders(state: State, node: TreeNode) -> Usage:
    return _sum(one.charged for one in state.entries.values() if one.charged_queue == node.name)


def _of_children(node: TreeNode) -> Usage:
    cells = {cell for child in node.children for cell in child.usage}
    beyond = {
        cell: sum(max(0, child.usage.get(cell, 0) - child.local.get(cell, 0)) for child in node.children)
        for cell in cells
    }
    return {cell: amount for cell, amount in beyond.items() if amount}


def _sum(usages: Iterable[Usage]) -> Usage:
    total: Usage = {}
    for usage in usages:
        for cell, amount in usage.items():
            total[cell] = total.get(cell, 0) + amount
    return {cell: amount for cell, amount in total.items() if amount}


def _waiting(pending: PendingQueue) -> list[str]:
    return [*pending.aside, *(uid for one in pending.classes.values() for uid in one.members)]


def _borrows(node: TreeNode, usage: Usage) -> bool:
    return any(node.borrows_with(cell, amount) for cell, amount in usage.items())
