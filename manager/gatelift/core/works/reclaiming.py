"""Quota of pods that are over is given back while the others run (KEP-78): what is written of it, and when.

Neighbours: `reconcile` calls, `reclaimed` says how many are over.
"""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift.core.records import reclaimed, record
from gatelift.core.rules import kept_record
from gatelift.core.state import word_writes
from gatelift.core.state.case import Case

RECLAIM_SECONDS = 1.0
"""From one change of what counts as over to the next: what others are admitted into is not taken back at any pace."""


def reclaim(case: Case) -> None:
    """Write the pods that need quota no longer (KEP-78), by the word of the cluster where they run, of this epoch.

    Until the cluster has reported, what was written in this epoch stays (a release takes it away). The first time at
    once, then once in `RECLAIM_SECONDS`; that fewer are over is charged at once, and written in that turn.
    """
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    if attempt.counts is None or known.status.admission is None:
        return
    due, over = reclaimed.due(known, attempt), reclaimed.over(known, attempt)
    is_written = due == tuple((one.name, one.count) for one in known.status.reclaimable_pods if one.count)
    if is_written and over == attempt.freed:
        core.words.leave(attempt.cluster, attempt.look)
    elif now < attempt.freed_at + RECLAIM_SECONDS:
        core.agenda.wake(attempt.look, attempt.freed_at + RECLAIM_SECONDS)
    elif is_written:  # what was taken back meanwhile is over after all
        attempt.frees(over, now)
        core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    elif not core.resting.rests(
        case.rec.ref, Purpose.RECLAIM, core.agenda, attempt.look, now
    ) and word_writes.may_write(core, attempt.cluster, attempt.look, now):
        attempt.frees(over, now)
        core.patch_workload(known, record.reclaim_write(known, due), Purpose.RECLAIM)
