"""What the checks of other controllers say of what holds quota: go on, wait, come back later, never (KEP-993).

Only checks count that are asked for: of what waits those that its queue names, of what holds quota those by which it
was reserved, of what is admitted those by which it was admitted; and none that its queue asks for no longer. Whoever
may write a status can add states of others, which hold nobody up and end nothing. Our own check (MultiKueue's) is
written by this manager only, says Ready or Pending, and ends nothing. Neighbours: `reconcile` asks in each pass over a
workload with quota, `deactivation` carries out a rejection, `admitted_by` is what the record says.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import giving_back
from gatelift.core.records import admission_writes, admitted_by, status_writes
from gatelift.core.records.attempt_states import AttemptState, Internal
from gatelift.core.records.attempts import Ending
from gatelift.core.rules import deactivation, targets
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_admission.entries.checks import required, rules
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import Admission, Workload
from gatelift_kube.values.timestamps import to_seconds

NOT_ASKED = "The ClusterQueue does not ask for this check: what it says counts for nothing"
_AGAINST = frozenset({texts.RETRY, texts.REJECTED})


def against(case: Case) -> bool:
    """Give up what a check says Rejected or Retry of, whether admitted or not; False if all may go on."""
    core, known, attempt = case.core, case.known, case.attempt
    said = given_by(core, known, case.now)
    if said is None and taken_back(core, known):
        said = texts.evicted_by_pending_checks(taken_back(core, known))
    if said:
        attempt.end_for(Ending(reason=texts.ADMISSION_CHECK, message=said))
        core.mark_attempt(attempt)
    return said is not None


def demanded(core: Core, known: Workload) -> frozenset[str]:
    """Return the checks whose word counts: of what holds quota, those of others that gave it and are asked for still.

    Where it waits, all that its queue names. Of what is admitted the record says it, to each leader alike.
    """
    attempt = core.attempts.get(known.metadata.uid)
    reserve = attempt.reserve if attempt is not None else None
    if reserve is None:
        queue = core.knowledge.cluster_queues.get(core.knowledge.cluster_queue_of(known))
        return frozenset(rules(queue.spec)) if queue is not None else frozenset()
    queue = core.knowledge.cluster_queues.get(reserve.admission.cluster_queue)
    if queue is None:
        return frozenset()
    admitted = is_true(known.status.conditions, texts.ADMITTED)
    gave = frozenset(admitted_by.names(known) if admitted else reserve.checks)
    ours = targets.multikueue_check(core, reserve.checks)
    return gave.intersection(required(queue.spec, _flavors(reserve.admission))) - {ours}


def recorded(known: Workload) -> tuple[str, ...]:
    """Return the checks that a reservation found in a record was made by; of an admission, as far as it says.

    What is not admitted yet may show others' states beside: `keep_required` asks for what the queue asks before it is.
    """
    if is_true(known.status.conditions, texts.ADMITTED):
        return admitted_by.names(known)
    return tuple(check.name for check in known.status.admission_checks)


def disregard(core: Core, known: Workload, now: float) -> bool:
    """Put back to Pending what keeps a waiting workload out of its queue and that nobody asked; True on a write."""
    if not any(check.state in _AGAINST for check in known.status.admission_checks):
        return False
    if core.knowledge.cluster_queue_of(known) not in core.knowledge.cluster_queues:
        return False
    asked, wall = demanded(core, known), core.wall.text(now)
    states = tuple(
        msgspec.structs.replace(check, state=texts.PENDING, message=NOT_ASKED, last_transition_time=wall)
        if check.state in _AGAINST and check.name not in asked
        else check
        for check in known.status.admission_checks
    )
    if states == known.status.admission_checks:
        return False
    api_requests.patch_workload(core, known, status_writes.status_write(known, admission_checks=states), Purpose.CHECKS)
    return True


def given_by(core: Core, known: Workload, now: float) -> str | None:
    """Return the message of a Retry; "" after a Rejected, which is announced here; None if no check says either."""
    no = in_state(core, known, texts.REJECTED)
    if no:
        if known.spec.active and deactivation.announced(known) is None:
            deactivation.rejected(core, known, texts.rejected_by_checks(no), now)
        return ""
    later = in_state(core, known, texts.RETRY)
    return texts.evicted_by_checks(later) if later else None


def taken_back(core: Core, known: Workload) -> list[tuple[str, str]]:
    """Return the checks (name, message) that are Pending again on what was admitted by them.

    Kueue stops such work and keeps its quota. Here it is evicted: what has run has used its epoch, and only a returned
    reservation raises that.
    """
    if not is_true(known.status.conditions, texts.ADMITTED):
        return []
    return in_state(core, known, texts.PENDING)


def keep_required(case: Case) -> bool:
    """Ask for the checks that the queue requires now, if they changed since the reservation; True on a write.

    Checks that are required no longer are dropped, new ones are Pending; what others said of the rest stays. What was
    admitted keeps the checks that it was admitted by.
    """
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    reserve = attempt.reserve
    queue = core.knowledge.cluster_queues.get(reserve.admission.cluster_queue) if reserve is not None else None
    if reserve is None or queue is None:
        return False
    now_required = required(queue.spec, _flavors(reserve.admission))
    if set(now_required) == set(reserve.checks):
        return False
    if targets.multikueue_check(core, now_required) != targets.multikueue_check(core, reserve.checks):
        giving_back.withdraw(core, attempt, now)  # other clusters are to be asked
        if attempt.state is AttemptState.OFFERED:
            attempt.follow(Internal.UNOFFER)
    attempt.require(now_required)
    if rec.reserved:
        states = admission_writes.pending_checks(known, now_required, core.wall.text(now))
        api_requests.patch_workload(
            core, known, status_writes.status_write(known, admission_checks=states), Purpose.CHECKS
        )
    return rec.reserved


def _flavors(admission: Admission) -> set[str]:
    return {name for one in admission.pod_set_assignments for name in one.flavors.values()}


def in_state(core: Core, known: Workload, state: str) -> list[tuple[str, str]]:
    """Return the checks (name, message) whose word counts and that are in this state."""
    found = [check for check in known.status.admission_checks if check.state == state]
    if not found:
        return []
    asked = demanded(core, known)
    return [(check.name, check.message) for check in found if check.name in asked]


def retries(core: Core, known: Workload) -> bool:
    """Say whether a check of another controller is in state Retry."""
    return bool(in_state(core, known, texts.RETRY))


def back_at(core: Core, known: Workload) -> float | None:
    """Return the Unix time at which all checks in state Retry allow another try; None where none names a time."""
    times, asked = [], demanded(core, known)
    for check in known.status.admission_checks:
        if check.name not in asked or check.state != texts.RETRY:
            continue
        if check.requeue_after_seconds is None or not check.last_transition_time:
            continue
        try:
            times.append(to_seconds(check.last_transition_time) + check.requeue_after_seconds)
        except ValueError:
            continue  # a time that cannot be read allows it at once
    return max(times, default=None)
