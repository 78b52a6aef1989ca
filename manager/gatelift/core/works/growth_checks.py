"""What checks of other controllers say against a growth: it costs what waits, and nothing that runs (SL-33).

Retry gives what is reserved back, and it is asked about again after a pause. Rejected ends the slice that waits; its
like is not made again before its user wants something else, as of what was rolled back (`deadlines`). Neighbours:
`verdicts` has the words of all checks, `leaving` asks.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.dispatching import endings, verdicts
from gatelift.core.records.chain import OUT_OF_SYNC
from gatelift.core.state.case import Case
from gatelift.core.told import slice_moments
from gatelift.core.works import past_slices

REJECTED = "Rejected to grow what runs. "
"""How the message of Finished begins on a slice that a check has rejected."""


def against(case: Case) -> bool:
    """Give up what a check says Rejected or Retry of; False if it may go on."""
    core, known, attempt = case.core, case.known, case.attempt
    no = verdicts.in_state(core, known, texts.REJECTED)
    if no:
        text = texts.rejected_by_checks(no)
        past_slices.finish(core, known, (OUT_OF_SYNC, REJECTED + text), case.now)
        slice_moments.rolled_back(core, known, text)
        return True
    later = verdicts.in_state(core, known, texts.RETRY)
    if not later:
        return False
    attempt.wait_for((texts.GROWTH_WAITS, texts.evicted_by_checks(later)))
    endings.end_before_placement(case)
    return True
