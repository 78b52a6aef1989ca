"""What waits in a tree of cohorts is looked at again: at once, in turns, or as soon as anything at all comes free.

Neighbours: `known` holds the queues of each tree, `timing` says when and in which turns, `keeping` what is kept from
whom, `charging` calls this when a charge ends.
"""

from __future__ import annotations

from collections.abc import Collection

from gatelift_admission.entries.entry import Entry
from gatelift_admission.state.known import State
from gatelift_admission.values.model import Cell
from gatelift_admission.waking.keeping import Kept
from gatelift_admission.waking.timing import Band


def kept_in(state: State, root: str) -> Kept:
    """Return what is kept in a tree now."""
    wakes = state.wakes
    return Kept(wakes.keeping, root, wakes.since(root, state.now, state.settings), wakes.turns_below(root))


def period_of(state: State, root: str) -> float:
    """Return for how many seconds wake-ups in a tree are collected now; 0 where nobody could be preempted."""
    period = state.wakes.period(root, state.settings)
    if period <= 0:
        return 0.0
    peaceful = state.peaceful.get(root)
    if peaceful is None:
        peaceful = state.peaceful[root] = not any(one.room.preempts for one in state.members.get(root, ()))
    return 0.0 if peaceful else period


def preempted(state: State, root: str, victim: Entry) -> None:
    """Note that `victim` has to leave for somebody; keep what comes free for longer if it was let in just now."""
    settings = state.settings
    if 0 < settings.wake_period_max >= state.now + state.unix_offset - victim.reserved_at:
        state.wakes.preempted_soon(root, settings)


def next_turn(state: State) -> bool:
    """Wake whose turn it is in the trees that had a release; False if that was nobody and all had their turn."""
    waiting: dict[str, set[int]] = {}  # priorities; nobody comes or goes meanwhile
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
    """Wake all in a tree (and `band`) for whom it may matter that something of `cells` came free."""
    everything = bool(state.settings.fair_sharing)  # shares are of all flavors and resources together
    kept = kept_in(state, root)
    for queue, _, room in state.members.get(root, ()):
        if queue.pending.watches.nobody():
            continue
        concerned = everything or not queue.cells.isdisjoint(cells)
        woken = concerned and queue.pending.release_anything(band)
        if queue.pending.release(cells, room, kept, band=band) or woken:
            state.offer(queue)


def wake_for_anything(state: State, root: str) -> None:
    """Wake all in a tree for whom any release may matter."""
    for queue, _, _ in state.members.get(root, ()):
        if queue.pending.release_anything():
            state.offer(queue)


def resettle(state: State, root: str, cells: Collection[Cell], *, wake: bool) -> None:
    """Wake what waits in the tree of `root` and lacks nothing any more, looking at `cells` only.

    Without `wake` it waits on, for any release.
    """
    kept = kept_in(state, root)
    for queue, _, room in state.members.get(root, ()):
        if queue.pending.release(cells, room, kept, wake=wake):
            state.offer(queue)


def touch(state: State, root: str) -> None:
    """Note that something in the tree of `root` changed: heads that had lost are tried again."""
    state.versions[root] = state.versions.get(root, 0) + 1
    if state.settings.text_refresh > 0:
        state.stale.happened(root, state.now)
    for name in state.stalled.pop(root, {}):
        state.offer(state.queues[name])
