"""Which preemptions are postponed, and until when. Neighbours: `postponed` holds the notes, `cycle` asks."""

from __future__ import annotations

from gatelift_admission.entries.entry import Entry
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.rounds.nomination import demand
from gatelift_admission.state import wakeups
from gatelift_admission.state.known import State


def may_wait(state: State, entry: Entry, queue: QueueModel, plan: Plan) -> bool:
    """Return whether the preemptions of a plan are postponed: its victims may end without them."""
    postponed, moment = state.postponed, state.settings.preemption_patience
    if moment <= 0 or any(state.holders.holds[one.entry.uid].evicted for one in plan.targets):
        return False
    if entry.uid in postponed.waiting:
        if postponed.of(entry, state.now) is None:
            return False
    else:
        tree, node = state.ensure(), state.node(queue.name)
        lacking = [cell for cell, need in plan.assignment.usage.items() if need > tree.free(node, cell)]
        if not postponed.expects(node.root, lacking, state.now, moment):
            return False
    known = postponed.begin(entry.uid, state.now + moment)
    known.plan, known.built = plan if demand(state, entry, queue) is not None else None, state.built
    return True


def plan_of(state: State, entry: Entry, queue: QueueModel) -> Plan | None:
    """Return the plan of a preemptor while it is postponed, less victims that have ended; None if it is searched anew.

    Victims are not searched for again meanwhile: a search costs more than all else of a round.
    """
    known = state.postponed.of(entry, state.now)
    if known is None or known.plan is None or known.built != state.built:
        return None
    if state.ensure().fits(state.node(queue.name), known.plan.assignment.usage):
        return None
    left = known.plan.of_those_left(state.holders.holds)
    return left if left.targets else None


def end(state: State) -> None:
    """Evaluate preemptors again whose moment is over."""
    for uid in state.postponed.over(state.now):
        entry = state.entries.get(uid)
        queue = state.queues.get(entry.queue) if entry is not None else None
        if queue is not None and queue.pending.blocked is entry:
            queue.pending.unblock()
            state.offer(queue)
            # It may find no victims any more: then those are evaluated which waited behind the room that it reserved.
            wakeups.touch(state, queue.root)
            wakeups.wake_for_anything(state, queue.root)
