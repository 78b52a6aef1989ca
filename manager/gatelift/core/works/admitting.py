"""The way from a reservation to an admission: what may still end it, other checks, then a cluster, or none.

One write at most in each look. Neighbours: `reconcile` asks for an attempt that has quota and no winner; `dispatch`
finds the cluster; `requeueing` gives the reservation back.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.conclusions import reports
from gatelift.core.dispatching import dispatch, verdicts
from gatelift.core.records import admission_writes
from gatelift.core.records.attempt_states import Internal
from gatelift.core.rules import (
    deactivation,
    in_use,
    kept_out,
    outgrown,
    targets,
)
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.works import awaited_checks, growing, requeueing
from gatelift_admission.values.model import Reserve


def towards_admission(case: Case) -> None:
    """Go from a reservation to an admission: other checks first, then a cluster, or none for a bare Workload."""
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    reserve = attempt.reserve
    if reserve is None:
        return
    if not known.spec.active:
        attempt.end_for(deactivation.ending(known))
        core.mark_attempt(attempt)
        return
    if outgrown.before_admission(core, known, attempt):
        attempt.end_for(outgrown.ENDING)
        core.mark_attempt(attempt)
        return
    if core.caution.holds(attempt.key.uid):
        attempt.wait_for((texts.EPOCH_AHEAD, reports.why_held(core, attempt.key.uid, rec.highest_epoch)))
    attempt.wait_for(attempt.waiting or kept_out.why(core, known))
    if attempt.waiting is not None or attempt.epoch_spent:
        requeueing.hand_back(case)
        return
    if verdicts.keep_required(case) or (case.kind is not None and in_use.workload(core, known)):
        return
    reserve = attempt.reserve or reserve
    if growing.is_target(case):
        growing.admit(case, reserve)
        return
    dispatching = targets.multikueue_check(core, reserve.checks)
    others = [name for name in reserve.checks if name != dispatching]
    if others and not awaited_checks.are_ready(case, others, attempt.epoch):
        return
    if case.kind is None:
        _admit_bare(case, reserve, dispatching)
        return
    owner = case.work.stands_for_all
    if owner is None:
        return
    dispatch.step(case, owner)
    if not core.inflight.busy(rec.ref) and not rec.reserved and attempt.waiting is None:
        at = attempt.reserved_at + core.settings.write_reservation_after
        awaited_checks.show_reservation(case, at=at, epoch=attempt.epoch)


def _admit_bare(case: Case, reserve: Reserve, dispatching: str) -> None:
    """Admit a Workload without an owner: admitted means admitted, nothing of it is made anywhere."""
    core, attempt, now = case.core, case.attempt, case.now
    if case.rec.admitted:
        attempt.follow(Internal.ADMIT)
        return
    if dispatching:
        attempt.used_nowhere({dispatching: "a Workload without an owner has nothing to run on a worker"})
        attempt.wait_for((texts.MISCONFIGURED, "No multikueue adapter found"))
        most = core.settings.dispatch.give_up_max
        core.failures.gave_up(attempt.uid, now, most, most)
        core.mark_attempt(attempt)
        return
    body = admission_writes.admission_write(case.known, reserve, attempt.epoch, core.wall.text(now))
    api_requests.patch_workload(core, case.known, body, Purpose.ADMIT)
