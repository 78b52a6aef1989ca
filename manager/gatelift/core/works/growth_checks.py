"""What checks of other controllers say against a growth: it costs what waits, and nothing that runs (SL-33).

Retry gives what is reserved back, and it is asked about again after a pause. Rejected ends the slice that waits; its
like is not made again before its user wants something else, as of what was rolled back (`deadlines`). Neighbours:
`verdicts` has the words of all checks, `leaving` asks.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import endings, growth_reservations, verdicts
from gatelift.core.records import release_writes
from gatelift.core.records.chain import OUT_OF_SYNC
from gatelift.core.rules import deactivation, targets
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.told import slice_moments
from gatelift.core.works import growing, past_slices

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


def too_late(case: Case) -> bool:
    """Put back what is said of a slice that waits to grow what runs, and counts for nothing; True on a write (HD-700).

    What a check says of it without quota is about a reservation that was given back, perhaps of another size: it is
    asked again, after the pause that it wants. And no such slice is announced to be deactivated: nothing of it runs.
    """
    core, known = case.core, case.known
    if not growing.is_target(case):
        return False
    late = () if case.rec.reserved else _spoken(case)
    if not late and deactivation.announced(known) is None:
        return False
    later = growth_reservations.not_before(case) if late else ""
    body = release_writes.unsaid_write(known, late, later, core.wall.text(case.now))
    api_requests.patch_workload(core, known, body, Purpose.CHECKS)
    return True


def _spoken(case: Case) -> tuple[str, ...]:
    """Return the checks of other controllers that have said something of it."""
    names = tuple(check.name for check in case.known.status.admission_checks if check.state != texts.PENDING)
    return targets.others(case.core, names)
