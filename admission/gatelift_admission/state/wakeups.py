"""Pending classes of a tree of cohorts are evaluated again: at once, in turns, or at any release.

Neighbours: `known` holds the queues of each tree, `timing` says when and in which turns, `kept_quota` what is kept from
which, `charging` calls this when a charge ends.
"""

from __future__ import annotations

from collections.abc import Collection

from gatelift_admission.entries.entry import Entry
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Cell
from gatelift_admission.waking.kept_quota import Kept
from gatelift_admission.waking.timing import Band


def kept_in(state: State, root: str) -> Kept:
    """Return the released quota that is kept in a tree now."""
    wakes = state.wakes
    return Kept(wakes.kept_quota, root, wakes.since(root, state.now, state.settings), wakes.turns_below(root))


def period_of(state: State, root: str) -> float:
    """Return for how many seconds wake-ups in a tree are collected now; 0 where no queue of it may preempt."""
    period = state.wakes.period(root, state.settings)
    if period <= 0:
        return 0.0
    peaceful = state.peaceful.get(root)
    if peaceful is None:
        peaceful = state.peaceful[root] = not any(one.room.preempts for one in state.members.get(root, ()))
    return 0.0 if peaceful else period


def preempted(state: State, root: str, victim: Entry) -> None:
    """Note that `victim` is preempted; released quota is kept for longer if it was admitted just now."""
    settings = state.settings
    if 0 < settings.wake_period_max >= state.now + state.unix_offset - victim.reserved_at:
        state.wakes.preempted_soon(root, settings)


def next_turn(state: State) -> bool:
    """Wake the next turn in the trees that had a release; False if nothing was woken and no turn is left."""
    waiting: dict[str, set[int]] = {}  # priorities; none is added or removed meanwhile
    while state.wakes.turns:
        for root in list(state.wakes.turns):
            if root not in waiting:
                waiting[root] = {one for queue, _, _ in state.members[root] for one in queue.pending.priorities}
            turn = state.wakes.turn(root, waiting[root])
            if turn is not None:
                band, cells = turn
                wake(state, root, cells, band)
        if state.ready:
            return True
    return False


def wake(state: State, root: str, cells: Collection[Cell], band: Band | None = None) -> None:
    """Wake all classes of a tree (in `band`) that a release in `cells` may let fit."""
    everything = bool(state.settings.fair_sharing)  # shares are of all flavors and resources together
    kept = kept_in(state, root)
    for queue, _, room in state.members.get(root, ()):
        if queue.pending.watches.is_empty():
            continue
        concerned = everything or not queue.cells.isdisjoint(cells)
        woken = concerned and queue.pending.release_anything(band)
        if queue.pending.release(cells, room, kept, band=band) or woken:
            state.offer(queue)


def wake_for_anything(state: State, root: str) -> None:
    """Wake all classes of a tree that any release may let fit."""
    for queue, _, _ in state.members.get(root, ()):
        if queue.pending.release_anything():
            state.offer(queue)


def resettle(state: State, root: str, cells: Collection[Cell], *, wake: bool) -> None:
    """Wake all classes of a tree that lack nothing any more, looking at `cells` only.

    Without `wake` they wait on, for any release.
    """
    kept = kept_in(state, root)
    for queue, _, room in state.members.get(root, ()):
        if queue.pending.release(cells, room, kept, wake=wake):
            state.offer(queue)


def touch(state: State, root: str) -> None:
    """Note a change in the tree of `root`: heads that lost to another one are evaluated again."""
    state.versions[root] = state.versions.get(root, 0) + 1
    if state.settings.text_refresh > 0:
        state.stale.happened(root, state.now)
    for name in state.stalled.pop(root, {}):
        state.offer(state.queues[name])
