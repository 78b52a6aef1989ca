"""One pass over one Workload: deletion, then finished, then eviction, then everything else. From state alone.

A pass looks at the record (the Workload), the attempt (what the clusters said) and the ledger, and takes at most one
write. What it asked for comes back as an event that marks the key again. Neighbours: `dispatch` finds the cluster,
`placing` talks to it, `endings` brings an attempt to its end.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.conclusions import held, higher_terms, raising, reports
from gatelift.core.dispatching import credit, dispatch, endings, placing, verdicts
from gatelift.core.records import record
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState, Internal, Wire
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.record import Record
from gatelift.core.rules import (
    deactivation,
    ends,
    execution_time,
    in_use,
    kept_out,
    kept_owner,
    kept_record,
    outgrown,
    priorities,
    readiness,
    retention,
    seeking,
    targets,
    unrecorded,
)
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import pod_troubles
from gatelift.core.works import owners, reclaiming, requeueing
from gatelift_admission.values.model import Reserve
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


def workload(core: Core, key: ObjectKey, now: float) -> None:
    """Look at one Workload."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        return
    rec = core.knowledge.readings[key][1]
    if core.blocked(rec.ref, Key(Look.WORKLOAD, key), now):
        return
    if higher_terms.hold(core, rec, now):  # R3
        return
    case = case_of(core, known, now)
    if not rec.finished:
        settle_queueing(case)
    _due(case)
    kept_owner.write_back(core, known, now)  # last: nothing waits for it, and it may be refused for ever


def _due(case: Case) -> None:
    """Put the record back where it was changed, or else take the one step that is due, and show what holds it."""
    core, rec = case.core, case.rec
    if kept_record.write_back(case):
        return
    is_told = case.owner is not None or case.kind is None or seeking.is_gone(core, case.known, case.now)
    if raising.raise_epoch(core, case.known, rec, goes=is_told and _goes(case)):
        return
    reports.drop_raised(core, rec.uid, rec.highest_epoch)
    if is_told:
        _next_step(case)
    held.show(case)
    pod_troubles.show(case)


def _next_step(case: Case) -> None:
    """Take the one step that is due."""
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    if _over(case):
        endings.deleted(case)
    elif rec.finished:
        endings.finished(case)
    elif attempt.state is AttemptState.ENDED:
        endings.ended(case)
    elif _own_end(case):
        core.mark_attempt(attempt)
    elif deactivation.carry_out(core, known) or priorities.follow_value(core, known):
        pass  # the answer marks it again
    elif attempt.ending is not None or ends.is_evicted(rec):
        _evict(case)
    else:
        _onward(case)


def rebuild(core: Core, key: ObjectKey, now: float) -> None:
    """Make the attempt that a record tells of, after a start, and nothing else."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        return
    reports.doubt(core, known)
    case = case_of(core, known, now)
    kept_record.tell(core, known, case.attempt)
    if known.status.reclaimable_pods:  # until here its object may not have been known, and what is over counts by that
        core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    settle_queueing(case)


def _goes(case: Case) -> bool:
    """Say whether it is to go whatever anybody does: it or its object is deleted, or that is gone."""
    if ends.is_deleted(case.known.metadata):
        return True
    owner = case.owner
    return case.kind is not None and (owner is None or ends.is_deleted(owner.object.metadata))


def _over(case: Case) -> bool:
    """Say whether it is to go: it is deleted, its object is or has left its queue, or that has another Workload."""
    if _goes(case):
        return True
    known, owner = case.known, case.owner
    if owner is None:
        return False
    if ends.has_left(known, owner):
        return True
    return owners.workload_for(case.core, owner) is not known


def _own_end(case: Case) -> bool:
    """Notice that the user's object shows its end: before it is placed anywhere, or on `local` by the kubelet.

    What runs elsewhere has ended when its cluster says so: whoever may patch a status at home could show an end there.
    """
    owner, attempt = case.owner, case.attempt
    if owner is None:
        return False
    outcome = owner.kind.outcome(owner.object)
    if outcome is None:
        return False
    if attempt.state in NO_WINNER:
        endings.close(case.core, attempt, case.now)
        attempt.ended_as(endings.finished_as(outcome))
        return True
    if attempt.live and (attempt.cluster != LOCAL_CLUSTER or owner.kind.pods_are_children):
        return False  # its agent says when nothing of it runs; the pods of a Job that is over may run on
    attempt.seen_to_end()  # it is acknowledged when it is told: what runs is not forgotten, but ended
    return endings.end(case.core, attempt, Wire.FINISHED, endings.finished_as(outcome))


def case_of(core: Core, known: Workload, now: float) -> Case:
    """Return what a pass knows; the attempt of the record's epoch is made where this leader has none yet."""
    key = key_of(known.metadata)
    kind, rec = core.knowledge.readings[key]
    owner = core.knowledge.owner_of(known) if kind is not None else None
    attempt = core.attempts.get(rec.uid)
    begins = attempt is None or not _stands(attempt, rec)
    if attempt is not None and begins:
        endings.superseded(core, attempt, now)
    if attempt is None or begins:
        attempt = Attempt(uid=rec.uid, workload=key, epoch=rec.epoch)
        core.begin_attempt(attempt)
        core.mark_owners_waiting_for(key)  # one that was looked at before there was an attempt left all undone
    case = Case(core, known, rec, attempt, kind, owner, now)
    try:
        _catch_up(case)
    except Exception:
        if begins:
            core.end_attempt(rec.uid)  # half of one would be taken for one that is placed nowhere
        raise
    return case


_UNPLACED = frozenset({AttemptState.RESERVED, AttemptState.OFFERED})
"""It has quota and no winner."""


def _stands(attempt: Attempt, rec: Record) -> bool:
    """Say whether the record is about this attempt: an epoch that somebody raised is of the next one (H18).

    Nor is it where the reservation that was taken over has been given back: by a leader of before, with a write that
    landed late. That epoch is used, also if nothing was ever placed in it (R5).
    """
    if rec.epoch_used and attempt.state in _UNPLACED and rec.highest_epoch >= attempt.epoch:
        return False
    if attempt.epoch >= rec.epoch:
        return True
    if attempt.state is AttemptState.ENDED:
        return rec.epoch_used  # its end is not all written yet
    return attempt.live and not rec.written_epoch


def _reserve_of(known: Workload) -> Reserve | None:
    """Return the engine's decision as the object shows it."""
    admission = known.status.admission
    if admission is None:
        return None
    said = find(known.status.conditions, texts.QUOTA_RESERVED)
    return Reserve(
        uid=known.metadata.uid,
        key=ObjectKey(known.metadata.namespace, known.metadata.name),
        admission=admission,
        checks=verdicts.recorded(known),
        wait_seconds=0.0,
        flavors_considered="",
        message=said.message if said is not None else "",
        event="",
    )


def _catch_up(case: Case) -> None:
    """Take over what the record says: a winner is known from the moment it is written, whoever saw the answer."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if attempt.state is AttemptState.PENDING and rec.reserved and not rec.finished:
        reserve = _reserve_of(known)
        core.ledger.charge(rec.uid, attempt.epoch, now)
        attempt.recall_reserve(reserve, now)
        attempt.follow(Internal.RESERVE)
        if case.kind is None and rec.admitted:
            attempt.follow(Internal.ADMIT)
    if attempt.state in NO_WINNER and rec.reserved and rec.cluster and not rec.finished:
        core.ledger.charge(rec.uid, attempt.epoch, now)
        attempt.follow(Internal.WRITTEN)
        attempt.choose(rec.cluster, rec.policy)
        attempt.winner_is_written(core.next_revision())
        core.placements.put(rec.cluster, rec.uid, rec.ref.key.namespace)
        core.failures.forget(rec.uid)
        core.cluster_waiters.forget(rec.uid)
    view = core.view(attempt.cluster) if attempt.live else None
    if view is not None and view.state is LinkState.LOST and attempt.state is not AttemptState.LOST:
        placing.lose(core, attempt)
    if attempt.state is AttemptState.LOST:
        endings.fenced(core, attempt)
    beside = unrecorded.charge(core, known)
    core.ledger.engine.set_unreachable(rec.uid, unreachable=beside or attempt.state is AttemptState.LOST)


def settle_queueing(case: Case) -> None:
    """Let the engine queue the Workload, or keep it out: its epoch is used, or it waits for a better moment."""
    core, known, attempt = case.core, case.known, case.attempt
    until = core.failures.paused_until(attempt.uid)
    waits = until > case.now and attempt.state is AttemptState.PENDING
    if waits:
        core.agenda.wake(attempt.look, until)
    waits = waits or core.not_ready.is_held_back(attempt.uid) or core.caution.holds(attempt.uid)
    waits = waits or kept_out.why(core, known) is not None
    is_pending = attempt.state is AttemptState.PENDING
    waits = waits or (is_pending and (owners.changing(core, known) or credit.keeps_out(case)))
    if waits or attempt.state is AttemptState.ENDED or case.rec.epoch_used or attempt.epoch_spent:
        core.ledger.block(attempt.uid)
    else:
        core.ledger.unblock(attempt.uid)


def _evict(case: Case) -> None:
    """Bring an attempt to an end that its queue, its owner or a person wants."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    ending = attempt.ending
    if ending is None:
        ending = ends.as_written(known)
        attempt.end_for(ending)
    if not attempt.live:
        endings.end_before_placement(case)
        return
    if ending.evict and not rec.evicted and not kept_record.is_refused(core, rec, now):
        core.patch_workload(known, record.eviction_write(known, ending, core.wall.text(now)), Purpose.EVICT)
        return
    placing.stop(core, attempt, ending, now)


def _onward(case: Case) -> None:
    core, known, rec, attempt, owner = case.core, case.known, case.rec, case.attempt, case.owner
    if attempt.state is AttemptState.PENDING:
        if retention.after_deactivation(case):
            return
        if not (verdicts.disregard(core, known, case.now) or endings.evict_waiting(case)):
            requeueing.pending(case)
    elif attempt.live and kept_record.is_refused(core, rec, case.now):
        _without_record(case)
    elif rec.reserved and _given_up(case):
        pass  # a write is on its way, or its end is in the attempt
    elif attempt.state in NO_WINNER:
        _towards_admission(case)
    elif owner is not None and attempt.live:
        placing.converse(case, owner)
        if not core.inflight.busy(rec.ref) and attempt.state is AttemptState.RUNNING:
            reclaiming.reclaim(case)


def _without_record(case: Case) -> None:
    """Begin nothing more of a placement whose record cannot be put back; one that fits no more is queued anew."""
    if not kept_record.fits(case.known):
        case.attempt.end_for(outgrown.ENDING)
        case.core.mark_attempt(case.attempt)
    elif case.owner is not None:
        owners.ended_by_user(case, case.owner)


def _given_up(case: Case) -> bool:
    """Look whether its user, a check, the execution time or pods that do not get ready end what holds quota."""
    attempt, owner = case.attempt, case.owner
    if owner is not None and attempt.live and owners.ended_by_user(case, owner):
        return True
    if verdicts.against(case):
        return True
    if not case.rec.admitted:
        return False
    if execution_time.exceeded(case):
        return True
    return attempt.state is not AttemptState.LOST and readiness.watch(case)


def _towards_admission(case: Case) -> None:
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
    if core.caution.holds(rec.uid):
        attempt.wait_for((texts.EPOCH_AHEAD, reports.why_held(core, rec.uid, rec.highest_epoch)))
    attempt.wait_for(attempt.waiting or kept_out.why(core, known))
    if attempt.waiting is not None or attempt.epoch_spent:
        requeueing.hand_back(case)
        return
    if verdicts.keep_required(case) or (case.kind is not None and in_use.workload(core, known)):
        return
    reserve = attempt.reserve or reserve
    dispatching = targets.multikueue_check(core, reserve.checks)
    others = [name for name in reserve.checks if name != dispatching]
    if others and not _checks(case, others):
        return
    if case.kind is None:
        _admit_bare(case, reserve, dispatching)
        return
    if case.owner is None:
        return
    dispatch.step(case, case.owner)
    if not core.inflight.busy(rec.ref) and not rec.reserved and attempt.waiting is None:
        _show_reservation(case, at=attempt.reserved_at + core.settings.write_reservation_after)


def _checks(case: Case, others: list[str]) -> bool:
    """Say whether all checks of other controllers are Ready; they see the workload as soon as it is reserved."""
    if not case.rec.reserved:
        _show_reservation(case, at=case.now)
        return False
    states = {check.name: check for check in case.known.status.admission_checks}
    return all(name in states and states[name].state == texts.READY for name in others)


def _show_reservation(case: Case, *, at: float) -> None:
    """Write QuotaReserved=True alone when no winner was found by `at`, so that nobody waits unseen."""
    core, attempt = case.core, case.attempt
    reserve = attempt.reserve
    if reserve is None:
        return
    if case.now < at:
        core.agenda.wake(attempt.look, at)
        return
    body = record.reservation_write(case.known, reserve, attempt.epoch, core.wall.text(case.now))
    core.patch_workload(case.known, body, Purpose.RESERVE)


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
    body = record.admission_write(case.known, reserve, attempt.epoch, core.wall.text(now))
    core.patch_workload(case.known, body, Purpose.ADMIT)
