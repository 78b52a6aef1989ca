"""Quota of pods that are over is given back while the others run (KEP-78): what is written of it, and when.

For people, and for the next leader: this one charges by its books (`rules.reclaim_books`), whatever becomes of the
write. Neighbours: `reconcile` calls, `reclaimed` says how many are over.
"""

from __future__ import annotations

from gatelift.core.api.inflight import ClusterWord
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import reclaimed, status_writes
from gatelift.core.rules import reclaim_books
from gatelift.core.state import api_requests, word_writes
from gatelift.core.state.case import Case


def reclaim(case: Case) -> None:
    """Write the pods that need quota no longer (KEP-78), by the word of the cluster where they run, of this epoch.

    Until the cluster has reported, what was written in this epoch stays (a release takes it away), but where nothing is
    given back at all. The first time at once, then at pauses that grow: a Job or a group of many short pods changes
    that all the time.
    """
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    reclaim_books.book(core, attempt, now)
    several = case.work.gathered is not None
    silent = not several and (attempt.counts is None and reclaim_books.gives_back(core, attempt))
    if known.status.admission is None or silent:
        return
    word = ClusterWord(attempt.cluster, again=True)
    due = reclaimed.asked(known, attempt.given_back) if several else reclaimed.due(known, attempt)
    if due == reclaimed.written(known):
        core.words.leave(attempt.cluster, attempt.look, Purpose.RECLAIM)
    elif now < (again_at := attempt.given_back_at + attempt.given_back_pause):
        core.agenda.wake(attempt.look, again_at)
    elif not core.resting.rests(
        case.rec.ref, Purpose.RECLAIM, core.agenda, attempt.look, now
    ) and word_writes.may_write(core, word, attempt.look, now, Purpose.RECLAIM):
        attempt.shows_given_back(now)
        api_requests.patch_workload(core, known, status_writes.reclaim_write(known, due), Purpose.RECLAIM)
