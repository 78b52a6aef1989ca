"""The books follow what a cluster says of pods that are over (KEP-78): more at once, fewer once that has stood.

More are over: their quota is free before anything is written. Fewer (a pod that is stopped and has its replacement, a
word that was wrong): charged again, but only when it has been said for a while. By then others hold that quota, within
their own, and may be asked to leave for it; a cluster whose words go back and forth must not be able to cause that at
will (HD-276), so each fall of an attempt has to stand for twice as long as the one before (decision 84).
Neighbours: `conclusions.reports` calls for each word, `works.reclaiming` when a time has passed; `reclaimed` counts.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift.core.records import reclaimed, record
from gatelift.core.records.attempt_states import LIVE
from gatelift.core.records.attempts import Attempt
from gatelift.core.rules import kept_record, shares
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import Gathered

FALL_SECONDS = 60.0
"""For how long fewer must be said to be over before that counts, the first time: longer than a pod is stopped by
default (30 s), while which its replacement runs as well."""
DOUBLINGS_MAX = 8
"""A fall stands for four hours and a quarter at most."""


def book(core: Core, attempt: Attempt, now: float) -> bool:
    """Take the cluster's last word into the books; return whether they have changed.

    Nothing changes where nothing is given back before the end: of a kind that says so, or without the feature gate.
    """
    known = core.knowledge.workloads.get(attempt.workload)
    gathered = core.knowledge.work_of(known).gathered if known is not None else None
    if known is not None and gathered is not None:
        return _book_of_several(core, attempt, gathered)
    if known is None or attempt.state not in LIVE or not gives_back(core, attempt):
        return False
    kind = core.knowledge.readings[attempt.workload][0]
    if kind is not None and kind.gathers:
        return False  # of several objects none is left: what was given back stays so until its cluster says the end
    attempt.gives_more_back(reclaimed.still_over(known, attempt))
    attempt.size.gives_of(record.granted(known))
    over, before = reclaimed.said(known, attempt), attempt.given_back
    if not _is_fewer(over, before):
        attempt.gives_back(over)
    elif now >= (at := attempt.fewer_are_over(now) + FALL_SECONDS * 2 ** min(attempt.falls, DOUBLINGS_MAX)):
        attempt.takes_back(over)
    else:
        core.agenda.wake(attempt.look, at)
        attempt.gives_more_back({name: max(count, before.get(name, 0)) for name, count in over.items()})
    if attempt.given_back == before:
        return False
    core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    return True


def _book_of_several(core: Core, attempt: Attempt, gathered: Gathered) -> bool:
    """Take what a work's own objects say into the books, fewer at once as well: nobody else's word is behind it."""
    known = core.knowledge.workloads[attempt.workload]
    over = shares.over(core, known, attempt, gathered)
    if over == attempt.given_back:
        return False
    attempt.gives_back(over)
    core.ledger.engine.workload_changed(kept_record.charged(core, known), core.now)
    return True


def gives_back(core: Core, attempt: Attempt) -> bool:
    """Say whether pods of it that are over give their quota back while others run."""
    kind = core.knowledge.readings[attempt.workload][0]
    return kind is not None and kind.reclaims and core.settings.admission.reclaimable_pods


def _is_fewer(over: Mapping[str, int], before: Mapping[str, int]) -> bool:
    return any(over.get(name, 0) < count for name, count in before.items())
