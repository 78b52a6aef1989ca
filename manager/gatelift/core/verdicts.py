"""What the checks of other controllers say of a workload that holds quota: go on, come back later, never (KEP-993).

Our own check (MultiKueue's) is written by this manager only and says Ready or Pending. Neighbours: `reconcile` asks in
each pass over a workload with quota, `deactivation` carries out a rejection.
"""

from __future__ import annotations

from gatelift.core import deactivation, texts
from gatelift.core.attempts import Attempt, Ending
from gatelift.core.state import Core
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.timestamps import to_seconds


def against(core: Core, known: Workload, attempt: Attempt, now: float) -> bool:
    """Give up what a check says Rejected or Retry of, whether admitted or not; False if all may go on."""
    no = _in_state(known, texts.REJECTED)
    if no:
        if known.spec.active and deactivation.announced(known) is None:
            deactivation.rejected(core, known, texts.rejected_by_checks(no), now)
        return True
    later = _in_state(known, texts.RETRY)
    if not later:
        return False
    attempt.ending = Ending(reason=texts.ADMISSION_CHECK, message=texts.evicted_by_checks(later))
    core.mark_attempt(attempt)
    return True


def _in_state(known: Workload, state: str) -> list[tuple[str, str]]:
    return [(check.name, check.message) for check in known.status.admission_checks if check.state == state]


def retries(known: Workload) -> bool:
    """Say whether a check of another controller is in state Retry."""
    return any(check.state == texts.RETRY for check in known.status.admission_checks)


def back_at(known: Workload) -> float | None:
    """Return the Unix time at which all checks in state Retry allow another try; None where none names a time."""
    times = []
    for check in known.status.admission_checks:
        if check.state != texts.RETRY or check.requeue_after_seconds is None or not check.last_transition_time:
            continue
        try:
            times.append(to_seconds(check.last_transition_time) + check.requeue_after_seconds)
        except ValueError:
            continue  # a time that cannot be read allows it at once
    return max(times, default=None)
