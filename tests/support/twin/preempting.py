"""The two searches for targets behind one door, and the oracle that asks them (2.6, 2.8)."""

from __future__ import annotations

from support.twin.flavors import NO_CANDIDATES, PREEMPT, RECLAIM, Oracle
from support.twin.quota import Cell, Usage, lowest_fitting
from support.twin.records import QueueView, Snapshot, Work
from support.twin.sharing import fair_targets
from support.twin.targets import Candidate, classical


def find_targets(
    snapshot: Snapshot, view: QueueView, preemptor: Work, requests: Usage, cells: set[Cell]
) -> list[Candidate]:
    """Return the targets under the algorithm that is switched on (2.6)."""
    if snapshot.fair is not None:
        return fair_targets(snapshot, view, preemptor, requests, cells)
    return classical(snapshot, view, preemptor, requests, cells)


def oracle_for(snapshot: Snapshot, view: QueueView, preemptor: Work) -> Oracle:
    """Return the oracle (2.8): the same search for one cell alone."""

    def ask(cell: Cell, amount: int) -> tuple[int, int]:
        targets = find_targets(snapshot, view, preemptor, {cell: amount}, {cell})
        if not targets:
            return NO_CANDIDATES, lowest_fitting(view.node, cell, amount)[0]
        for one in targets:
            snapshot.take_out(one.work)
        level = lowest_fitting(view.node, cell, amount)[0]
        for one in targets:
            snapshot.put_back(one.work)
        own = any(one.work.queue == view.name for one in targets)
        return (PREEMPT if own else RECLAIM), level

    return ask
