"""From a workload to its assignment and targets; fewer pods than asked for where that is allowed (2.6)."""

from __future__ import annotations

from support.twin.flavors import Assignment, Pins, Search, assign
from support.twin.preempting import find_targets, oracle_for
from support.twin.records import Cursor, QueueView, Snapshot, Work
from support.twin.targets import Candidate


def once(
    snapshot: Snapshot,
    view: QueueView,
    work: Work,
    cursor: Cursor,
    counts: list[int] | None = None,
    pins: Pins | None = None,
) -> tuple[Assignment, list[Candidate]]:
    """Assign once; a Preempt assignment gets its joint targets (2.6)."""
    search = Search(snapshot, view, oracle_for(snapshot, view, work), pins, held=work.held)
    found = assign(search, work, cursor, counts)
    if found.mode() != "Preempt":
        return found, []
    targets = find_targets(snapshot, view, work, found.usage(), found.cells_in_need())
    if not targets:
        snapshot.everybody = True
        all_of_them = find_targets(snapshot, view, work, found.usage(), found.cells_in_need())
        snapshot.everybody = False
        found.out_of_reach = sum(one.work.unreachable for one in all_of_them)
    return found, targets


def assignment_and_targets(
    snapshot: Snapshot, view: QueueView, work: Work, cursor: Cursor, pins: Pins | None = None
) -> tuple[Assignment, list[Candidate]]:
    """Return what a workload gets and whom it would preempt (2.6), with fewer pods if all of them do not fit."""
    full, targets = once(snapshot, view, work, cursor, None, pins)
    if full.mode() == "Fit" or targets:
        return full, targets
    if work.held is not None:
        return (_in_part(snapshot, view, work, cursor, pins) if work.by_parts else None) or (full, [])
    can_shrink = any(pods.min_count is not None and pods.min_count < pods.count for pods in work.pod_sets)
    smaller = _fewer(snapshot, view, work, cursor, pins) if can_shrink else None
    return smaller or (full, [])


def _fewer(
    snapshot: Snapshot, view: QueueView, work: Work, cursor: Cursor, pins: Pins | None
) -> tuple[Assignment, list[Candidate]] | None:
    """Search by halving for the smallest reduction that fits or has targets (2.6)."""
    counts = [pods.count for pods in work.pod_sets]
    give = [pods.count - (pods.count if pods.min_count is None else pods.min_count) for pods in work.pod_sets]
    total = sum(give)
    low, high = 0, total + 1
    best = None
    while low < high:
        middle = (low + high) // 2
        fewer = [count - one * middle // total for count, one in zip(counts, give, strict=True)]
        found, targets = once(snapshot, view, work, cursor, fewer, pins)
        if found.mode() == "Fit" or targets:
            best, high = (found, targets), middle
        else:
            low = middle + 1
    return best


def _in_part(
    snapshot: Snapshot, view: QueueView, work: Work, cursor: Cursor, pins: Pins | None
) -> tuple[Assignment, list[Candidate]] | None:
    """Let one pod set after the other grow as far as possible, each found by halving."""
    held = work.held or {}
    counts = [min(pods.count, held[pods.name].count) for pods in work.pod_sets]
    best = None
    for index, pods in enumerate(work.pod_sets):
        low, high = 0, pods.count - counts[index]
        while low < high:
            middle = (low + high) // 2
            listed = [*counts[:index], pods.count - middle, *counts[index + 1 :]]
            found, targets = once(snapshot, view, work, cursor, listed, pins)
            if found.mode() == "Fit" or targets:
                best, high = (found, targets), middle
            else:
                low = middle + 1
        if low < pods.count - counts[index]:
            counts[index] = pods.count - low
    return best
