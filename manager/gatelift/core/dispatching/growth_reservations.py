"""Quota that is reserved to grow what runs, while checks of other controllers are asked about that (SL-33).

Nothing runs by it. So it is given back in its own epoch, by one write of the slice that waits: when a check wants to be
asked later, when another size is wanted, and before what runs ends. Which slice it is says `Slice.asks`. Neighbours:
`chain_ends` and `works.resizing` have it given back.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import verdicts
from gatelift.core.records import release_writes
from gatelift.core.records.attempt_states import CHOOSING
from gatelift.core.records.attempts import Ending
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.state.dispatch_values import backoff

ANOTHER_SIZE = Ending(reason=texts.PENDING_EVALUATION, message="another size is wanted by now", evict=False)
NO_MORE = "what runs cannot be grown just now"
LEAVES = Ending(reason=texts.PENDING_EVALUATION, message="what runs is being stopped, or has ended", evict=False)


def takes_back(core: Core, uid: str, why: Ending) -> bool:
    """See to it that what is reserved for a slice to grow by is given back; False where nothing is.

    The answer to that write looks at its whole chain again.
    """
    one = core.knowledge.slices.slice_of(uid)
    if one is None or not one.asks:
        return False
    attempt = core.attempts.get(uid)
    if attempt is not None and attempt.state in CHOOSING and attempt.ending is None:
        attempt.end_for(why)
    core.mark_workload(one.key)
    return True


def ended(case: Case) -> bool:
    """Write that a slice has no quota to grow by any more; False where it is another Workload that has ended."""
    core, known, attempt = case.core, case.known, case.attempt
    chain = core.knowledge.slices.of(case.rec.uid)
    if chain is None or chain.target is None or chain.target.uid != case.rec.uid:
        return False
    was_placed = case.rec.epoch_used or core.ledger.holds(attempt.uid)
    if was_placed or case.rec.reserved is not chain.target.asks:
        return False  # it ran, and waits behind one that has come back
    if not case.rec.reserved:
        core.end_attempt(attempt.uid)  # it waits again, in the same epoch
        core.mark_workload(attempt.workload)
        return True
    said = texts.PENDING_EVALUATION, NO_MORE
    if attempt.waiting is not None:
        said = attempt.waiting
    elif attempt.ending is not None:
        said = attempt.ending.reason, attempt.ending.message
    body = release_writes.growth_struck_write(known, said, not_before(case), core.wall.text(case.now))
    api_requests.patch_workload(core, known, body, Purpose.STRIKE_GROWTH)
    return True


def not_before(case: Case) -> str:
    """Return the wall time until which a check wants it to wait, "" where none does."""
    core, known, now = case.core, case.known, case.now
    later = verdicts.in_state(core, known, texts.RETRY)
    if not later:
        return ""
    named = verdicts.back_at(core, known)
    if named is not None:
        return core.wall.text(max(now, core.wall.moment(named)))
    asked = {name for name, _ in later}
    times = max((each.retry_count or 0) for each in known.status.admission_checks if each.name in asked)
    return core.wall.text(now + backoff(times + 1, core.settings.requeue_base, core.settings.requeue_max))
