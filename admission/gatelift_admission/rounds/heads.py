"""The entries that a round looks at: the next head of each ready queue, and the blocked heads that keep room.

Neighbours: `cycle` opens rounds with them; `pending` says who heads a queue.
"""

from __future__ import annotations

from collections.abc import Collection

from gatelift_admission.entries.entry import Entry
from gatelift_admission.feed import faults
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.state import wakeups
from gatelift_admission.state.known import Member, State
from gatelift_admission.waking.kept_quota import Kept


def heads_of(state: State, root: str, ready: Collection[str]) -> list[tuple[Entry, int, QueueModel]]:
    """Return the heads of the queues that are `ready` in a tree with their tickets, and the blocked that keep room.

    A loser that lacks something now is among them if it keeps room that another one may want; else the next one is.
    """
    heads: list[tuple[Entry, int, QueueModel]] = []
    entry: Entry | None
    idle: list[tuple[Entry, Member]] = []
    within, kept = state.wakes.within(root), wakeups.kept_in(state, root)
    for member in state.members.get(root, ()):
        queue = member.queue
        try:
            if queue.name in ready:
                entry = _head(state, member, kept, within=within)
            elif queue.pending.blocked is not None:
                queue.pending.idle = False
                entry = _keeper(state, member)
            else:
                continue
        except Exception as error:
            first = queue.pending.head() or queue.pending.blocked
            if first is None:
                raise
            faults.set_aside(state, first, error)
            continue
        if entry is None:
            continue
        if queue.pending.idle:
            idle.append((entry, member))
        else:
            heads.append((entry, entry.ticket, queue))
    somebody = bool(heads)
    for loser, member in idle:
        entry, pending = loser, member.queue.pending
        try:
            if not somebody or not pending.reserves(loser, member.room):
                pending.forget_loser()
                entry = _head(state, member, kept, within=within)
        except Exception as error:  # noqa: BLE001 (containment: one workload keeps nobody else from his turn)
            faults.set_aside(state, loser, error)
        if entry is not None:
            heads.append((entry, entry.ticket, member.queue))
    return heads


def _head(state: State, member: Member, kept: Kept, *, within: bool) -> Entry | None:
    """Return the next head of a queue, or a blocked one that keeps room."""
    if not member.queue.admits:
        return None
    entry = member.queue.pending.next_head(member.room, kept, within=within)
    return _keeper(state, member) if entry is None else entry


def _keeper(state: State, member: Member) -> Entry | None:
    """Return the blocked head of a queue if it keeps room."""
    queue = member.queue
    if queue.pending.blocked is None or not queue.admits:
        return None
    keeps = queue.pending.keeps_room() or queue.pending.might_reserve(state.ensure(), member.node)
    return queue.pending.blocked if keeps else None
