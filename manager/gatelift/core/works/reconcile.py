"""One pass over one Workload: deletion, then finished, then eviction, then everything else. From state alone.

A pass looks at the record (the Workload), the attempt (what the clusters said) and the ledger, and takes at most one
write. What it asked for comes back as an event that marks the key again. Neighbours: `following` is how
a pass begins, `leaving` says what ends, `admitting` goes from a reservation to an admission, `placing` talks to the
cluster, `endings` brings an attempt to its end.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.conclusions import held, higher_terms, raising, reports
from gatelift.core.dispatching import compared, endings, membership, placing, resizing, verdicts
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState
from gatelift.core.rules import (
    deactivation,
    ends,
    kept_owner,
    kept_record,
    priorities,
    replacements,
    retention,
    seeking,
)
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import made_there, pod_troubles
from gatelift.core.works import (
    admitting,
    chain_activity,
    counting,
    following,
    growing,
    growth_checks,
    leaving,
    past_slices,
    reclaiming,
    requeueing,
    shrinking,
)
from gatelift_kube.values.resources import ObjectKey


def workload(core: Core, key: ObjectKey, now: float) -> None:
    """Look at one Workload."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        return
    rec = core.knowledge.readings[key][1]
    if api_requests.blocked(core, rec.ref, Key(Look.WORKLOAD, key), now):
        return
    if higher_terms.hold(core, rec, now) or past_slices.look(core, rec, now):  # R3
        return
    case = following.case_of(core, known, now)
    membership.settle(case.work, case.attempt, known)
    if counting.is_put_off(core, case.work, Key(Look.WORKLOAD, key), now):
        return
    compared.with_quota(core, case.work, case.attempt, known)
    if not rec.finished:
        following.settle_queueing(case)
    _due(case)
    growing.look_behind(case)
    kept_owner.write_back(core, known, case.work, now)  # last: nothing waits for it, and it may be refused for ever


def _due(case: Case) -> None:
    """Put the record back where it was changed, or else take the one step that is due, and show what holds it."""
    core, rec = case.core, case.rec
    if kept_record.write_back(case):
        return
    is_told = bool(case.work.objects) or case.kind is None or seeking.is_gone(core, case.known, case.now)
    goes = is_told and leaving.goes(case)
    if raising.raise_epoch(core, case.known, rec, goes=goes):
        return
    reports.drop_raised(core, case.attempt.key.uid, rec.highest_epoch)
    if is_told:
        _next_step(case, goes=goes)
    held.show(case)
    pod_troubles.show(case)
    made_there.show(case)


def _next_step(case: Case, *, goes: bool) -> None:
    """Take the one step that is due."""
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    if goes or leaving.is_over(case):
        endings.deleted(case)
        leaving.delete_surplus(case)
    elif rec.finished:
        endings.finished(case)
    elif attempt.state is AttemptState.ENDED:
        endings.ended(case)
    elif leaving.own_end(case):
        core.mark_attempt(attempt)
    elif (
        chain_activity.of_what_waits(case)
        or growth_checks.too_late(case)
        or deactivation.carry_out(core, known)
        or priorities.follow_value(core, known)
    ):
        pass  # the answer marks it again
    elif attempt.ending is not None or ends.is_evicted(rec):
        leaving.evict(case)
    else:
        _onward(case)


def _onward(case: Case) -> None:
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    if attempt.state is AttemptState.PENDING:
        if retention.after_deactivation(case):
            return
        evicted = verdicts.disregard(core, known, case.now) or endings.evict_waiting(case)
        if not (evicted or replacements.say(case)):
            requeueing.pending(case)
    elif attempt.live and kept_record.is_refused(core, rec, case.now):
        leaving.without_record(case)
    elif rec.reserved and leaving.is_given_up(case):
        pass  # a write is on its way, or its end is in the attempt
    elif attempt.state in NO_WINNER:
        admitting.towards_admission(case)
    elif attempt.live and shrinking.give_back(case):
        pass  # the answer marks it again
    elif attempt.live and (owner := case.work.stands_for_all) is not None:
        placing.converse(case, owner)
        resizing.tell(case, owner)
        membership.keep_unshown(case)
        several = (
            case.work.gathered is not None
        )  # some of them run, and are over, before the last one is let go (HD-390)
        runs = attempt.state is AttemptState.RUNNING or (several and attempt.state is AttemptState.PLACED)
        if runs and not (core.inflight.busy(rec.ref) or replacements.say(case)):
            reclaiming.reclaim(case)
