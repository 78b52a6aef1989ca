"""An end of a placement that the API server does not take: written without its cluster's words, else set aside. Pure.

Until it is written its quota stays charged, so an end must not hang on somebody's words. Neighbours: `write_failures`
calls, `endings` writes the end, `shown_end` does the same for the user's object.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.inflight import Outstanding
from gatelift.core.records.attempt_states import Wire
from gatelift.core.records.attempts import Attempt
from gatelift.core.state.core import Core
from gatelift.core.told.shown_end import FOR_GOOD
from gatelift_kube.deciding.writes import WriteError, WriteFailed

SAID = frozenset({Wire.FINISHED, Wire.STOPPED, Wire.REFUSED, Wire.EVICTED})
"""Ends that a cluster told in its own words."""
SET_ASIDE_SECONDS = 600.0
"""An end of ours that is refused is no matter of moments: tried again after this, or when the Workload changes."""


def refused(core: Core, outstanding: Outstanding, event: WriteFailed, now: float) -> bool:
    """Take that a write was refused; True when it was an end's, and what becomes of it is decided here."""
    if not outstanding.purpose.ends or event.error not in FOR_GOOD:
        return False
    attempt = core.attempts.get(outstanding.uid)
    if attempt is not None and _leave_words_out(attempt):
        core.mark_attempt(attempt)
        return True
    why = event.message or event.error.value
    core.event(outstanding.ref, outstanding.uid, texts.END_NOT_WRITTEN, texts.end_not_written(why), warning=True)
    if event.error is WriteError.DENIED:
        return False  # a webhook or a policy may think otherwise in a minute
    core.inflight.set_aside(outstanding.ref, outstanding.decided_on, now + SET_ASIDE_SECONDS)
    return True


def _leave_words_out(attempt: Attempt) -> bool:
    """Take a cluster's words out of an end; False when it has none, or they are out already."""
    outcome = attempt.outcome
    if outcome is None or outcome.how not in SAID:
        return False
    return attempt.leave_words_out(texts.words_left_out(outcome.cluster))
