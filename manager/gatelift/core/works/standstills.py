"""Several objects whose placement came to a standstill: what it was granted is given back, and they are queued anew.

A success keeps the slot that it had, as long as its placement lasts: it is counted, and what it gave back may be
somebody else's by now. So who comes in the place of one that vanished has none, nor has who comes in the place of one
that was over before and was not granted. While others run he waits: nobody is ended for him. Once nothing runs any more
a new epoch asks for those that wait, and only for them (decision 120). Neighbour: `leaving` asks.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.dispatching import placing
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Ending
from gatelift.core.state.case import Case

STANDS_SECONDS = 120.0
"""So long nothing runs before it ends: longer than a slot is doubted of what vanished (P10), whose turn then comes."""
ENDING = Ending(reason=texts.NO_MATCHING_WORKLOAD, message=texts.NO_SLOT_LEFT)
"""It is queued anew as it is now."""
_SETTLED = frozenset({AttemptState.PLACED, AttemptState.RUNNING})


def ends(case: Case) -> bool:
    """Note that a placement is to end in which nobody runs and who waits can get no slot."""
    core, attempt, gathered, now = case.core, case.attempt, case.work.gathered, case.now
    if gathered is None:
        return False
    is_heard = attempt.state in _SETTLED and placing.open_view(core, attempt.cluster) is not None
    still = is_heard and gathered.stands_still
    due = attempt.told.stands(now, still=still) + STANDS_SECONDS
    if still and now >= due:
        attempt.end_for(ENDING)
        core.mark_attempt(attempt)
        return True
    if still:
        core.agenda.wake(attempt.look, due)
    return False
