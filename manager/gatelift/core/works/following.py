"""What a pass over a Workload begins with: the record is taken over as it stands, whoever wrote it. No writes.

A winner is known from the moment it is written, and an epoch that somebody raised is of the next attempt. Neighbours:
`reconcile` begins its passes here; `endings` ends what the record is no longer about.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.conclusions import reports
from gatelift.core.dispatching import credit, endings, placing, releasing, verdicts
from gatelift.core.records import chain, record
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState, Internal
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.record import Record
from gatelift.core.records.work import NOBODYS
from gatelift.core.rules import (
    kept_out,
    kept_record,
    shares,
    unrecorded,
)
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.works import asking, choosing, growing, looking_again
from gatelift_admission.values.model import Reserve
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


def rebuild(core: Core, key: ObjectKey, now: float) -> None:
    """Make the attempt that a record tells of, after a start, and nothing else."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        return
    reports.doubt(core, known)
    if choosing.is_past(core, known):
        return  # nothing of it is placed, whatever it shows
    case = case_of(core, known, now)
    kept_record.tell(core, known, case.attempt)
    if known.status.reclaimable_pods:  # until here its object may not have been known, and what is over counts by that
        core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    settle_queueing(case)


def case_of(core: Core, known: Workload, now: float) -> Case:
    """Return what a pass knows; the attempt of the record's epoch is made where this leader has none yet."""
    key = key_of(known.metadata)
    kind, rec = core.knowledge.readings[key]
    work = core.knowledge.work_of(known) if kind is not None else NOBODYS
    attempt = core.attempts.get(rec.uid)
    first = attempt is None
    begins = attempt is None or not _stands(attempt, rec)
    if attempt is not None and begins:
        endings.superseded(core, attempt, now)
    if attempt is None or begins:
        attempt = Attempt(uid=rec.uid, workload=key, epoch=rec.epoch, chain=core.knowledge.placed_uid(rec.uid))
        core.begin_attempt(attempt)
        if work.gathered is not None:  # who succeeded before is not charged again
            attempt.gives_back(shares.over(core, known, attempt, work.gathered))
            core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
        core.mark_owners_waiting_for(key)  # one that was looked at before there was an attempt left all undone
        if first and looking_again.is_placed(known):
            looking_again.at_each(core, work)
    case = Case(core, known, rec, attempt, kind, work, now)
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


def reserve_of(known: Workload) -> Reserve | None:
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
        reserve = reserve_of(known)
        if not chain.asks(known, rec):  # else it is the charge of its chain, which moves once that is written
            core.ledger.charge(rec.uid, attempt.epoch, now)
        attempt.recall_reserve(reserve, now)
        attempt.follow(Internal.RESERVE)
        if case.kind is None and rec.admitted:
            attempt.follow(Internal.ADMIT)
    if attempt.state in NO_WINNER and rec.reserved and rec.cluster and not rec.finished:
        core.ledger.charge(rec.uid, attempt.epoch, now)
        attempt.follow(Internal.WRITTEN)
        uid = core.caution.recovery.uid_of(rec.cluster)
        attempt.choose(rec.cluster, rec.policy, record.placed_session(known, uid), found=True)
        attempt.winner_is_written(core.next_revision())
        core.placements.put(rec.cluster, rec.uid, rec.ref.key.namespace)
        core.failures.forget(rec.uid)
        core.cluster_waiters.forget(rec.uid)
        if rec.evicted and rec.released and not core.rebuilt:  # as a leader before has left it
            attempt.may_be_released()
    view = core.view(attempt.cluster) if attempt.live else None
    if view is not None and view.state is LinkState.LOST and attempt.state is not AttemptState.LOST:
        placing.lose(core, attempt)
    if attempt.state is AttemptState.LOST:
        endings.fenced(core, attempt)
    releasing.take(case)
    beside = unrecorded.charge(core, known)
    core.ledger.engine.set_unreachable(rec.uid, unreachable=beside or attempt.state is AttemptState.LOST)


def _has_no_turn(case: Case) -> bool:
    """Say whether a Workload that waits is of an object that is not known, or is one too many: it never gets quota.

    Nor does one that nobody owns, as long as the objects for which its user made it are to become its owners.
    """
    if case.attempt.state is not AttemptState.PENDING:
        return False
    if case.kind is None:
        work = case.core.knowledge.works.gathered_at(key_of(case.known.metadata))
        return work is not None and work.gathered is not None and work.gathered.awaits(case.known)
    surplus = not case.work.objects or choosing.is_surplus(case.core, case.work, case.known)
    return surplus or growing.has_no_turn(case)


def settle_queueing(case: Case) -> None:
    """Let the engine queue the Workload, or keep it out: its epoch is used, or it waits for a better moment."""
    core, known, attempt = case.core, case.known, case.attempt
    until = core.failures.paused_until(attempt.uid)
    waits = until > case.now and attempt.state is AttemptState.PENDING
    if waits:
        core.agenda.wake(attempt.look, until)
    waits = waits or attempt.state is AttemptState.ENDED or case.rec.epoch_used or attempt.epoch_spent
    waits = waits or core.not_ready.is_held_back(attempt.uid) or core.caution.holds(attempt.key.uid)
    waits = waits or chain.asks(known, case.rec) or _has_no_turn(case) or kept_out.why(core, known) is not None
    is_pending = attempt.state is AttemptState.PENDING
    if waits or (is_pending and (asking.changing(core, known) or credit.keeps_out(case))):
        core.ledger.block(attempt.uid)
    else:
        core.ledger.unblock(attempt.uid)
