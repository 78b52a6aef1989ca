"""How an attempt comes to its end: what is written, released and forgotten, in an order that a crash cannot break.

Order of every end: nothing runs any more (the cluster's word) -> the record says so -> quota goes -> the cluster may
forget -> the epoch is raised -> the workload may be queued again.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.dispatching import chain_ends, giving_back, membership, placing, releasing, unexplained, verdicts
from gatelift.core.records import epochs, gone, metadata_patches, release_writes, slice_condition, status_writes
from gatelift.core.records.attempt_states import AttemptState, Internal, Wire
from gatelift.core.records.attempts import Attempt, Ending, Outcome
from gatelift.core.records.release_writes import Requeue
from gatelift.core.rules import (
    deactivation,
    ended_with,
    ends,
    execution_time,
    kept_record,
    readiness,
    replacements,
    retention,
    targets,
    unrecorded,
)
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.state.dispatch_values import backoff
from gatelift.core.told import pod_troubles, shown_end
from gatelift.core.told.refused_ends import SAID
from gatelift_kinds.shared import values as kinds
from gatelift_kinds.shared.made_for import is_orphan
from gatelift_kinds.shared.markers import RESOURCE_IN_USE
from gatelift_kube.objects.conditions import TRUE, find, is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload

BY_ITSELF = frozenset({texts.PREEMPTED, "NodeFailures", texts.SUSPENDED, texts.NO_MATCHING_WORKLOAD})
"""Reasons of eviction after which a workload is queued again at once (Kueue; the last two it does not know)."""


def requeue_for(core: Core, known: Workload, reason: str, now: float) -> Requeue | None:
    """Return how a workload evicted for `reason` comes back; None: when what stopped it ends.

    `requeueState.count` counts time-outs of PodsReady only, since `backoffLimitCount` is about those. What clusters
    and checks gave up is counted by the evictions.
    """
    if reason in BY_ITSELF:
        return Requeue()
    before = known.status.requeue_state
    count = before.count if before is not None else 0
    if reason == texts.PODS_READY_TIMEOUT:
        return readiness.requeue(core, known, count, now)
    if reason != texts.ADMISSION_CHECK:
        return None
    named = verdicts.back_at(core, known)
    if named is not None:
        return Requeue(count=count, at=core.wall.text(max(now, core.wall.moment(named))))
    wait = backoff(_gave_up(known) + 1, core.settings.requeue_base, core.settings.requeue_max)
    return Requeue(count=count, at=core.wall.text(now + wait))


def _gave_up(known: Workload) -> int:
    """Return how often a check or a cluster gave the workload up before."""
    stats = known.status.scheduling_stats
    counts = [one.count for one in (stats.evictions if stats else ()) if one.reason == texts.ADMISSION_CHECK]
    return max(0, sum(counts) - is_true(known.status.conditions, texts.EVICTED))


def finished_as(outcome: kinds.ObjectEnd) -> Outcome:
    """Return the end that the user's object shows."""
    return Outcome(how=Wire.FINISHED, reason=outcome.reason, message=outcome.message, succeeded=outcome.succeeded)


def end(core: Core, attempt: Attempt, event: Wire | Internal, outcome: Outcome) -> bool:
    """Note the cluster's (or a person's) word that nothing of a placement runs; False when that changes nothing."""
    if not attempt.follow(event):
        return False
    attempt.ended_as(outcome)
    placing.leave(core, attempt)
    _remember(core, attempt, outcome)
    core.mark_attempt(attempt)
    return True


FAILURES = frozenset({Wire.REFUSED, Wire.EVICTED, Wire.ABSENT})
"""Ends that count against a cluster when the next one is chosen."""


def _remember(core: Core, attempt: Attempt, outcome: Outcome) -> None:
    """Remember how it ended where it was, for whoever is placed next."""
    if outcome.how is Wire.FINISHED:
        core.failures.was_of_use(attempt.cluster, attempt.workload.namespace)
    elif attempt.ending is None:
        core.failures.was_in_vain(attempt.cluster, attempt.workload.namespace, core.now, attempt.admitted_at)
    if outcome.how in FAILURES:
        core.failures.failed(attempt.uid, attempt.cluster, core.now)
        if outcome.how is Wire.REFUSED:
            until = core.now + core.settings.dispatch.give_up_base
            core.failures.avoid(attempt.uid, attempt.cluster, until, outcome.message, outcome.reason)


def fenced(core: Core, attempt: Attempt) -> None:
    """End a placement on a lost cluster if a person said that nothing runs there that was told to by then (P1).

    Looked up each time in what the cluster's status says, so that each leader comes to it again until all have ended.
    """
    view = core.view(attempt.cluster)
    if view is None or not view.fenced_through:
        return
    if gone.known_session(attempt) > view.fenced_through:
        return
    if view.state is not LinkState.LOST and not unexplained.is_compared(core, view):
        return  # its inventory is to say first what it knows
    who = view.fenced_by
    core.fenced.remember(attempt.key, who)
    outcome = Outcome(how=Internal.FENCE, message=texts.fenced_by(attempt.cluster, who), cluster=attempt.cluster)
    end(core, attempt, Internal.FENCE, outcome)


def close(core: Core, attempt: Attempt, now: float) -> None:
    """End an attempt of which nothing was committed anywhere."""
    if attempt.state is AttemptState.ENDED:
        return
    giving_back.withdraw(core, attempt, now)
    core.cluster_waiters.wants_no_room(attempt.uid)
    attempt.follow(Internal.CLOSE)


def deleted(case: Case) -> None:
    """Take down what the user deleted or took out of its queue: stop, then let go of the objects.

    A lost cluster is remembered.
    """
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    left = case.work.is_out_of_queue
    for cluster, ahead in core.caution.named(attempt.key.uid):
        placing.drop_stray(core, cluster, ahead.key, over=ahead.over)
    if attempt.live:
        reason = texts.WORKLOAD_DELETED if known.metadata.deletion_timestamp is not None else texts.OWNER_DELETED
        message = texts.LEFT_QUEUE if left else ends.DELETED
        ending = Ending(reason=reason, message=message, evict=False)
        attempt.end_for(ending)
        placing.stop(core, attempt, ending, now)
        releasing.look(case)
        return
    if unrecorded.runs(core, known):
        return
    if left and known.metadata.deletion_timestamp is None:
        # Its quota is free once the record says that it goes.
        attempt.deletes_workload()
        api_requests.delete_workload(core, known, Purpose.DELETE_WORKLOAD)
        return
    if chain_ends.touches_target(case):
        return
    if attempt.state is not AttemptState.ENDED:
        unwritten = not case.rec.reserved
        close(core, attempt, now)
        if unwritten:
            core.ledger.undo(attempt.uid)
    if core.ledger.release(attempt.uid, now):
        core.note("quota released: the user deleted it", attempt, fields=(("uid", attempt.uid),))
    if ended_with.is_to_be_shown(case):
        shown_end.ask_for(case)
        return
    if membership.is_unshown(case):
        return
    placing.forget(core, attempt, now, gone=True)
    placing.forget_kept(case)
    core.mark_work(case.work)
    _let_go(case)


def _let_go(case: Case) -> None:
    """Let a Workload go of which nothing runs, once its object need not go before it."""
    core, known = case.core, case.known
    if ended_with.is_to_come(case):
        return
    if known.metadata.deletion_timestamp is not None:
        body = metadata_patches.finalizers_patch(known.metadata, RESOURCE_IN_USE)
        if body is not None:
            api_requests.patch_workload(core, known, body, Purpose.RELEASE_WORKLOAD, status=False)
    elif (not case.work.objects and is_orphan(known)) or ended_with.is_held_by_others(case):
        api_requests.delete_workload(core, known, Purpose.DELETE_WORKLOAD)


def finished(case: Case) -> None:
    """Clean up after a Workload whose record says Finished."""
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    if attempt.live:
        # Somebody else wrote Finished: what still runs is stopped first.
        attempt.end_for(ends.FINISHED)
        placing.stop(core, attempt, ends.FINISHED, now)
        return
    close(core, attempt, now)
    if core.ledger.holds(attempt.uid) or core.ledger.is_early(attempt.uid):
        core.ledger.engine.workload_changed(known, now)  # until here it was charged, see `kept_record`
    core.ledger.release(attempt.uid, now)
    placing.forget(core, attempt, now)
    core.mark_work(case.work)
    core.end_attempt(attempt.uid)
    core.failures.gone(attempt.uid)
    retention.after_finish(case)


def ended(case: Case) -> None:
    """Write down the end of an attempt."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if membership.is_unshown(case):
        return  # each that shows its end looks here again
    if chain_ends.goes_first(case):
        return
    outcome = _outcome(case)
    if outcome.how is Wire.FINISHED:
        _write_finished(case, outcome)
        return
    if rec.reserved:
        _write_released(case, outcome)
        return
    core.ledger.release(attempt.uid, now)
    placing.forget(core, attempt, now)
    if core.caution.runs_unrecorded(attempt.key.uid):
        core.end_attempt(attempt.uid)  # it waits, in the epoch that runs somewhere, until nothing of that does
        core.mark_workload(attempt.workload)
    elif rec.epoch_used or rec.epoch <= attempt.epoch:
        above = max(rec.highest_epoch, attempt.epoch) + 1
        api_requests.patch_workload(
            core, known, metadata_patches.epoch_patch(known, above), Purpose.RAISE_EPOCH, status=False
        )


def _outcome(case: Case) -> Outcome:
    """Return how an attempt ended: several objects, by what they show by now."""
    said = case.attempt.outcome or Outcome(how=Internal.CLOSE)
    gathered = case.work.gathered
    if gathered is None or said.how not in {Wire.STOPPED, Wire.EVICTED} or case.attempt.cluster in {"", LOCAL_CLUSTER}:
        return said
    outcome = gathered.outcome(case.known)
    return finished_as(outcome) if outcome is not None else said


def _write_finished(case: Case, outcome: Outcome) -> None:
    """Write Finished once the user's object shows the end, or is known not to."""
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    due = shown_end.waits_until(case)
    if due:
        core.agenda.wake(attempt.look, due)
        return
    reason = outcome.reason or (texts.SUCCEEDED if outcome.succeeded else texts.FAILED)
    message = outcome.message
    if attempt.end_unshown:
        message = texts.finished_unshown(message, attempt.end_unshown)
    if kept_record.is_refused(core, case.rec, now):
        known = kept_record.as_taken(known)
    ended = slice_condition.ended(known, reason)
    body = status_writes.finished_write(known, reason, message, core.wall.text(now), ended)
    api_requests.patch_workload(core, known, body, Purpose.FINISH)


def _write_released(case: Case, outcome: Outcome) -> None:
    """Write that the reservation is given back, and why, and when it comes back."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    said = find(known.status.conditions, texts.EVICTED)
    ending = attempt.ending
    check = targets.multikueue_check(core, (one.name for one in known.status.admission_checks))
    lost = texts.PENDING_EVALUATION
    evicted: Ending | None = None
    if rec.evicted and said is not None:
        reason, message = said.reason, said.message
    elif attempt.waiting is not None:
        lost, message = attempt.waiting
        reason = lost
    elif ending is not None and not ending.evict:
        lost, message = ending.reason, ending.message
        reason = lost
    elif ending is not None:
        evicted, reason, message = ending, ending.reason, ending.message
    else:
        message = texts.evicted_by_checks([(check, outcome.message)]) if check else outcome.message
        reason = texts.ADMISSION_CHECK
        evicted = Ending(reason=reason, message=message)
    by_check = verdicts.retries(core, known) or verdicts.taken_back(core, known)
    by_cluster = reason == texts.ADMISSION_CHECK and not by_check
    given_back = release_writes.GivenBack(
        evicted=evicted,
        reason=lost,
        message=message,
        requeue=requeue_for(core, known, reason, now),
        used=release_writes.Used(check=check, epoch=max(attempt.epoch, rec.highest_epoch), term=core.term),
        past_seconds=execution_time.past(core, known, reason, now),
        retried=message if by_cluster else "",
        besides=(*(pod_troubles.refused(known, outcome) if by_cluster else ()), *replacements.besides(case, evicted)),
    )
    body = release_writes.release_write(known, given_back, core.wall.text(now))
    api_requests.patch_workload(core, known, body, Purpose.RELEASE if evicted is None else Purpose.EVICT_AND_RELEASE)


def _says_evicted(case: Case) -> bool:
    """Say whether a deactivated Workload shows an eviction; of several objects, which are to be made again, that one.

    What they are told to be replaced for is the last reason (PC-095).
    """
    said = find(case.known.status.conditions, texts.EVICTED)
    if said is None or said.status != TRUE:
        return False
    return case.work.gathered is None or said.reason.startswith(texts.DEACTIVATED)


def evict_waiting(case: Case) -> bool:
    """Write the eviction of a workload that holds no quota (any more); True if a write was asked for.

    Deactivated, or given up by a check that spoke late: nothing is left to stop, but people have to see why it does not
    come back, and it must come back when it may. A late rejection is announced first.
    """
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    inactive = not known.spec.active
    if deactivation.announced(known) is not None:
        if not inactive:
            return False
        ending = deactivation.ending(known)
    elif inactive and not _says_evicted(case):
        ending = deactivation.ending(known)
    else:
        said = verdicts.given_by(core, known, now)
        if said is None:
            return False
        if not said and not inactive:
            return True  # it has just been announced
        ending = deactivation.ending(known) if inactive else Ending(reason=texts.ADMISSION_CHECK, message=said)
    check = targets.multikueue_check(core, (one.name for one in known.status.admission_checks))
    given_back = release_writes.GivenBack(
        evicted=ending,
        reason=texts.DEACTIVATED if inactive else texts.PENDING_EVALUATION,
        message=texts.WORKLOAD_DEACTIVATED if inactive else ending.message,
        requeue=requeue_for(core, known, ending.reason, now),
        used=release_writes.Used(check=check, epoch=max(attempt.epoch, epochs.annotated(known)), term=core.term),
        past_seconds=execution_time.past(core, known, ending.reason, now),
        besides=replacements.besides(case, ending),
    )
    body = release_writes.release_write(known, given_back, core.wall.text(now))
    api_requests.patch_workload(core, known, body, Purpose.EVICT_AND_RELEASE)
    return True


def end_before_placement(case: Case) -> None:
    """Take back a reservation, or an admission without placement, of which nothing runs anywhere.

    What was written is ended like any attempt, and its epoch is used; what was not written is struck.
    """
    core, attempt = case.core, case.attempt
    if attempt.state is AttemptState.RUNNING or case.rec.reserved:
        close(core, attempt, case.now)
        attempt.ended_as(Outcome(how=Internal.CLOSE))
    elif attempt.state is not AttemptState.PENDING:
        strike(core, attempt, case.now)
    if attempt.state is AttemptState.PENDING:
        attempt.end_for(None)
    core.mark_attempt(attempt)


def strike(core: Core, attempt: Attempt, now: float) -> None:
    """Strike a reservation of which nothing was written: the attempt waits for quota again."""
    giving_back.withdraw(core, attempt, now)
    core.cluster_waiters.wants_no_room(attempt.uid)
    if attempt.state is AttemptState.OFFERED:
        attempt.follow(Internal.UNOFFER)
    attempt.follow(Internal.UNRESERVE)
    core.ledger.undo(attempt.uid)
    attempt.give_back_reserve()


def superseded(core: Core, attempt: Attempt, now: float) -> None:
    """Close the books of an attempt whose epoch is no longer the record's: somebody raised that of the next one."""
    placing.leave(core, attempt)
    if attempt.state in {AttemptState.RESERVED, AttemptState.OFFERED}:
        strike(core, attempt, now)
    elif attempt.state is AttemptState.ENDED:
        core.ledger.release(attempt.uid, now)
        placing.forget(core, attempt, now)


def vanished(core: Core, attempt: Attempt) -> None:
    """Answer the end of an attempt whose Workload is gone before that was written: no record asks for it any more.

    What its cluster did not tell itself (a person said so, or a list did not show it) is to stop, should it be there;
    what ended at the user's own object is answered when it is told.
    """
    if attempt.state is not AttemptState.ENDED or not attempt.cluster or attempt.forgotten or attempt.unreported:
        return
    told = attempt.outcome is not None and attempt.outcome.how in SAID
    placing.drop_stray(core, attempt.cluster, attempt.key, over=told, gone=True)
