"""One pass over one Workload: deletion, then finished, then eviction, then everything else. From state alone.

A pass looks at the record (the Workload), the attempt (what the clusters said) and the ledger, and takes at most one
write. What it asked for comes back as an event that marks the key again. Neighbours: `dispatch` finds the cluster,
`placing` talks to it, `endings` brings an attempt to its end.
"""

from __future__ import annotations

from typing import Any

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.conclusions import held, higher_terms, raising, reports
from gatelift.core.dispatching import dispatch, endings, placing, verdicts
from gatelift.core.records import reclaimed, record
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState, Internal, Wire
from gatelift.core.records.attempts import Attempt, Ending
from gatelift.core.records.knowledge import Owner
from gatelift.core.records.record import Record
from gatelift.core.rules import (
    deactivation,
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
from gatelift.core.state.core import Core, ref_of
from gatelift.core.told import pod_troubles
from gatelift.core.works import owners, requeueing
from gatelift_admission.values.model import Reserve
from gatelift_kinds.kind import Kind
from gatelift_kube.objects.conditions import find, is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


def workload(core: Core, key: ObjectKey, now: float) -> None:
    """Look at one Workload."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        return
    kind, rec = core.knowledge.readings[key]
    if core.blocked(rec.ref, Key(Look.WORKLOAD, key), now):
        return
    if higher_terms.hold(core, known, rec, now):  # R3
        return
    attempt = attempt_for(core, known, rec, kind, now)
    if not rec.finished:
        settle_queueing(core, known, rec, attempt, now)
    _due(core, known, rec, attempt, kind, now)
    kept_owner.write_back(core, known, now)  # last: nothing waits for it, and it may be refused for ever


def _due(core: Core, known: Workload, rec: Record, attempt: Attempt, kind: Kind[Any] | None, now: float) -> None:
    """Put the record back where it was changed, or else take the one step that is due, and show what holds it."""
    if kept_record.write_back(core, known, rec, attempt, now):
        return
    owner = core.knowledge.owner_of(known) if kind is not None else None
    is_told = owner is not None or kind is None or seeking.is_gone(core, known, now)
    if raising.raise_epoch(core, known, rec, goes=is_told and _goes(known, owner, kind)):
        return
    reports.drop_raised(core, rec.uid, rec.highest_epoch, now)
    if is_told:
        _next_step(core, known, rec, attempt, kind, owner, now)
    held.show(core, known, rec, attempt.look, now)
    pod_troubles.show(core, known, rec, attempt, now)


def _next_step(
    core: Core, known: Workload, rec: Record, attempt: Attempt, kind: Kind[Any] | None, owner: Owner | None, now: float
) -> None:
    """Take the one step that is due."""
    if _over(core, known, owner, kind):
        endings.deleted(core, known, rec, attempt, owner, now)
    elif rec.finished:
        endings.finished(core, known, rec, attempt, owner, now)
    elif attempt.state is AttemptState.ENDED:
        endings.ended(core, known, rec, attempt, owner, now)
    elif _own_end(core, attempt, owner, now):
        core.mark_attempt(attempt)
    elif deactivation.carry_out(core, known) or priorities.follow_value(core, known):
        pass  # the answer marks it again
    elif attempt.ending is not None or (rec.evicted and rec.reserved):
        _evict(core, known, rec, attempt, now)
    else:
        _onward(core, known, rec, attempt, kind, owner, now)


def rebuild(core: Core, key: ObjectKey, now: float) -> None:
    """Make the attempt that a record tells of, after a start, and nothing else."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        return
    kind, rec = core.knowledge.readings[key]
    reports.doubt(core, known)
    attempt = attempt_for(core, known, rec, kind, now)
    kept_record.tell(core, known, attempt)
    if known.status.reclaimable_pods:  # until here its object may not have been known, and what is over counts by that
        core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    settle_queueing(core, known, rec, attempt, now)


def _goes(known: Workload, owner: Owner | None, kind: Kind[Any] | None) -> bool:
    """Say whether it is to go whatever anybody does: it or its object is deleted, or that is gone."""
    if known.metadata.deletion_timestamp is not None:
        return True
    return kind is not None and (owner is None or owner.object.metadata.deletion_timestamp is not None)


def _over(core: Core, known: Workload, owner: Owner | None, kind: Kind[Any] | None) -> bool:
    """Say whether it is to go: it is deleted, its object is or has left its queue, or that has another Workload."""
    if _goes(known, owner, kind):
        return True
    if kind is None or owner is None:
        return False
    if not owner.managed and not is_true(known.status.conditions, texts.FINISHED):
        return True
    return owners.workload_for(core, owner) is not known


def _own_end(core: Core, attempt: Attempt, owner: Owner | None, now: float) -> bool:
    """Notice that the user's object shows its end: before it is placed anywhere, or on `local` by the kubelet.

    What runs elsewhere has ended when its cluster says so: whoever may patch a status at home could show an end there.
    """
    if owner is None:
        return False
    outcome = owner.kind.outcome(owner.object)
    if outcome is None:
        return False
    if attempt.state in NO_WINNER:
        endings.close(core, attempt, now)
        attempt.ended_as(endings.finished_as(outcome))
        return True
    if attempt.live and (attempt.cluster != LOCAL_CLUSTER or owner.kind.pods_are_children):
        return False  # its agent says when nothing of it runs; the pods of a Job that is over may run on
    attempt.seen_to_end()  # it is acknowledged when it is told: what runs is not forgotten, but ended
    return endings.end(core, attempt, Wire.FINISHED, endings.finished_as(outcome))


def attempt_for(core: Core, known: Workload, rec: Record, kind: Kind[Any] | None, now: float) -> Attempt:
    """Return the attempt of the record's epoch, made from the record where this leader has none yet."""
    attempt = core.attempts.get(rec.uid)
    if attempt is not None and _stands(attempt, rec):
        _catch_up(core, attempt, known, rec, kind, now)
        return attempt
    if attempt is not None:
        endings.superseded(core, attempt, now)
    attempt = Attempt(uid=rec.uid, workload=ObjectKey(known.metadata.namespace, known.metadata.name), epoch=rec.epoch)
    core.begin_attempt(attempt)
    core.mark_owners_waiting_for(attempt.workload)  # one that was looked at before there was an attempt left all undone
    _catch_up(core, attempt, known, rec, kind, now)
    return attempt


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


def _catch_up(core: Core, attempt: Attempt, known: Workload, rec: Record, kind: Kind[Any] | None, now: float) -> None:
    """Take over what the record says: a winner is known from the moment it is written, whoever saw the answer."""
    if attempt.state is AttemptState.PENDING and rec.reserved and not rec.finished:
        core.ledger.charge(rec.uid, attempt.epoch, now)
        attempt.recall_reserve(_reserve_of(known), now)
        attempt.follow(Internal.RESERVE)
        if kind is None and rec.admitted:
            attempt.follow(Internal.ADMIT)
    if attempt.state in NO_WINNER and rec.reserved and rec.cluster and not rec.finished:
        core.ledger.charge(rec.uid, attempt.epoch, now)
        attempt.follow(Internal.WRITTEN)
        attempt.choose(rec.cluster, rec.policy)
        attempt.winner_is_written(core.next_revision())
        core.placements.put(rec.cluster, rec.uid, rec.ref.key.namespace)
        core.failures.forget(rec.uid)
    view = core.view(attempt.cluster) if attempt.live else None
    if view is not None and view.state is LinkState.LOST and attempt.state is not AttemptState.LOST:
        placing.lose(core, attempt)
    if attempt.state is AttemptState.LOST:
        endings.fenced(core, attempt)
    beside = unrecorded.charge(core, known)
    core.ledger.engine.set_unreachable(rec.uid, unreachable=beside or attempt.state is AttemptState.LOST)


def settle_queueing(core: Core, known: Workload, rec: Record, attempt: Attempt, now: float) -> None:
    """Let the engine queue the Workload, or keep it out: its epoch is used, or it waits for a better moment."""
    until = core.failures.paused_until(attempt.uid)
    waits = until > now and attempt.state is AttemptState.PENDING
    if waits:
        core.agenda.wake(attempt.look, until)
    waits = waits or core.not_ready.is_held_back(attempt.uid) or core.caution.holds(attempt.uid)
    waits = waits or kept_out.why(core, known) is not None
    waits = waits or (attempt.state is AttemptState.PENDING and owners.changing(core, known))
    if waits or attempt.state is AttemptState.ENDED or rec.epoch_used or attempt.epoch_spent:
        core.ledger.block(attempt.uid)
    else:
        core.ledger.unblock(attempt.uid)


def _evict(core: Core, known: Workload, rec: Record, attempt: Attempt, now: float) -> None:
    """Bring an attempt to an end that its queue, its owner or a person wants."""
    ending = attempt.ending
    if ending is None:
        said = find(known.status.conditions, texts.EVICTED)
        ending = Ending(reason=said.reason if said else "", message=said.message if said else "")
        attempt.end_for(ending)
    if not attempt.live:
        endings.end_before_placement(core, rec, attempt, now)
        return
    if ending.evict and not rec.evicted and not kept_record.is_refused(core, rec, now):
        core.patch_workload(known, record.eviction_write(known, ending, core.wall.text(now)), Purpose.EVICT)
        return
    placing.stop(core, attempt, ending, now)


def _onward(
    core: Core, known: Workload, rec: Record, attempt: Attempt, kind: Kind[Any] | None, owner: Owner | None, now: float
) -> None:
    if attempt.state is AttemptState.PENDING:
        if retention.after_deactivation(core, known, owner, now):
            return
        if not (verdicts.disregard(core, known, now) or endings.evict_waiting(core, known, attempt, now)):
            requeueing.pending(core, known, rec, attempt, now)
    elif attempt.live and kept_record.is_refused(core, rec, now):
        _without_record(core, known, attempt, owner)
    elif rec.reserved and _given_up(core, known, rec, attempt, owner, now):
        pass  # a write is on its way, or its end is in the attempt
    elif attempt.state in NO_WINNER:
        _towards_admission(core, known, rec, attempt, kind, owner, now)
    elif kind is not None and owner is not None and attempt.live:
        placing.converse(core, known, rec, attempt, owner, now)
        if not core.inflight.busy(rec.ref) and attempt.state is AttemptState.RUNNING:
            _reclaim(core, known, attempt, now)


def _without_record(core: Core, known: Workload, attempt: Attempt, owner: Owner | None) -> None:
    """Begin nothing more of a placement whose record cannot be put back; one that fits no more is queued anew."""
    if not kept_record.fits(known):
        attempt.end_for(outgrown.ENDING)
        core.mark_attempt(attempt)
    elif owner is not None:
        owners.ended_by_user(core, known, attempt, owner)


def _given_up(core: Core, known: Workload, rec: Record, attempt: Attempt, owner: Owner | None, now: float) -> bool:
    """Look whether its user, a check, the execution time or pods that do not get ready end what holds quota."""
    if owner is not None and attempt.live and owners.ended_by_user(core, known, attempt, owner):
        return True
    if verdicts.against(core, known, attempt, now):
        return True
    if not rec.admitted:
        return False
    if execution_time.exceeded(core, known, attempt, now):
        return True
    return attempt.state is not AttemptState.LOST and readiness.watch(core, known, attempt, owner, now)


def _towards_admission(
    core: Core, known: Workload, rec: Record, attempt: Attempt, kind: Kind[Any] | None, owner: Owner | None, now: float
) -> None:
    """Go from a reservation to an admission: other checks first, then a cluster, or none for a bare Workload."""
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
        requeueing.hand_back(core, rec, attempt, now)
        return
    if verdicts.keep_required(core, known, rec, attempt, now) or (kind is not None and in_use.workload(core, known)):
        return
    reserve = attempt.reserve or reserve
    dispatching = targets.multikueue_check(core, reserve.checks)
    others = [name for name in reserve.checks if name != dispatching]
    if others and not _checks(core, known, rec, attempt, others, now):
        return
    if kind is None:
        _admit_bare(core, known, rec, attempt, dispatching, now)
        return
    if owner is None:
        return
    dispatch.step(core, attempt, known, owner, now)
    if not core.inflight.busy(rec.ref) and not rec.reserved and attempt.waiting is None:
        _show_reservation(core, known, attempt, now, at=attempt.reserved_at + core.settings.write_reservation_after)


def _checks(core: Core, known: Workload, rec: Record, attempt: Attempt, others: list[str], now: float) -> bool:
    """Say whether all checks of other controllers are Ready; they see the workload as soon as it is reserved."""
    if not rec.reserved:
        _show_reservation(core, known, attempt, now, at=now)
        return False
    states = {check.name: check for check in known.status.admission_checks}
    return all(name in states and states[name].state == texts.READY for name in others)


def _show_reservation(core: Core, known: Workload, attempt: Attempt, now: float, *, at: float) -> None:
    """Write QuotaReserved=True alone when no winner was found by `at`, so that nobody waits unseen."""
    reserve = attempt.reserve
    if reserve is None:
        return
    if now < at:
        core.agenda.wake(attempt.look, at)
        return
    body = record.reservation_write(
        known, reserve.admission, reserve.checks, reserve.message, attempt.epoch, core.wall.text(now)
    )
    core.patch_workload(known, body, Purpose.RESERVE)


def _admit_bare(core: Core, known: Workload, rec: Record, attempt: Attempt, dispatching: str, now: float) -> None:
    """Admit a Workload without an owner: admitted means admitted, nothing of it is made anywhere."""
    reserve = attempt.reserve
    if reserve is None:
        return
    if rec.admitted:
        attempt.follow(Internal.ADMIT)
        return
    if dispatching:
        attempt.used_nowhere({dispatching: "a Workload without an owner has nothing to run on a worker"})
        attempt.wait_for((texts.MISCONFIGURED, "No multikueue adapter found"))
        most = core.settings.dispatch.give_up_max
        core.failures.gave_up(attempt.uid, now, most, most)
        core.mark_attempt(attempt)
        return
    body = record.admission_write(
        known, reserve.admission, reserve.checks, reserve.message, attempt.epoch, core.wall.text(now)
    )
    core.patch_workload(known, body, Purpose.ADMIT)


def _reclaim(core: Core, known: Workload, attempt: Attempt, now: float) -> None:
    """Write the pods that need quota no longer (KEP-78), by the word of the cluster where they run, of this epoch.

    Until the cluster has reported, what was written in this epoch stays (a release takes it away).
    """
    if attempt.counts is None or known.status.admission is None:
        return
    if core.resting.rests(ref_of(known), Purpose.RECLAIM, core.agenda, attempt.look, now):
        return
    due = reclaimed.due(known, attempt)
    if due != tuple((one.name, one.count) for one in known.status.reclaimable_pods if one.count):
        core.patch_workload(known, record.reclaim_write(known, due), Purpose.RECLAIM)
