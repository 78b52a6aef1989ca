"""Maximum execution time: how long a workload may be admitted, over all its admissions (`spec`, label of the job).

Time counts while Admitted is True, to the second as its transition is written; what earlier admissions took is in
`status.accumulatedPastExecutionTimeSeconds`. `reconcile` asks for each admitted workload,
`endings` adds up.
"""

from __future__ import annotations

import math

from gatelift.core import texts
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import deactivation
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kube.objects.conditions import TRUE, find
from gatelift_kube.objects.kueue import Workload


def exceeded(case: Case) -> bool:
    """Announce the deactivation of a workload whose time is up; True if that is so. Else see that it is looked at."""
    core, known, now = case.core, case.known, case.now
    most = known.spec.maximum_execution_time_seconds
    admitted = _admitted_for(core, known, now)
    if most is None or admitted is None:
        return False
    left = _left(known, most, admitted)
    if left > 0:
        core.agenda.wake(case.attempt.look, now + left)
        return False
    if known.spec.active and deactivation.announced(known) is None:
        deactivation.announce(core, known, texts.MAXIMUM_EXECUTION_TIME_EXCEEDED, texts.RUNS_TOO_LONG, now)
        reason = texts.MAXIMUM_EXECUTION_TIME_EXCEEDED
        core.event(ref_of(known), known.metadata.uid, reason, texts.RUNS_TOO_LONG, warning=True)
    return True


def is_over(core: Core, known: Workload, now: float) -> bool:
    """Say whether the time of an admitted workload is up, and do nothing about it."""
    most, admitted = known.spec.maximum_execution_time_seconds, _admitted_for(core, known, now)
    return most is not None and admitted is not None and _left(known, most, admitted) <= 0


def _left(known: Workload, most: int, admitted: float) -> float:
    return most - (known.status.accumulated_past_execution_time_seconds or 0) - admitted


def past(core: Core, known: Workload, reason: str, now: float) -> int | None:
    """Return the time of all admissions when this one ends for `reason`; None: none, or it counts from zero again."""
    if reason == texts.DEACTIVATED_DUE_TO + texts.MAXIMUM_EXECUTION_TIME_EXCEEDED:
        return None
    before = known.status.accumulated_past_execution_time_seconds
    admitted = _admitted_for(core, known, now)
    return before if admitted is None else (before or 0) + math.trunc(admitted)


def _admitted_for(core: Core, known: Workload, now: float) -> float | None:
    """Return the seconds since the workload was admitted, None when it is not."""
    admitted = find(known.status.conditions, texts.ADMITTED)
    if admitted is None or admitted.status != TRUE:
        return None
    return max(0.0, now - core.wall.at(admitted.last_transition_time, now))
