"""Frees quota while pods stop (KEP-6143): what an end that is under way says of itself, and what follows from that.

The record says it first, then the quota is free: so it happens once, whoever leads. Only of what was evicted, whose
cluster says in the present session that all of it leaves, and never while that cluster is lost. Neighbours: `endings`
and `works.leaving` ask here for what they stop, `rules.release` is the rule, `following` frees what is written.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.dispatching import placing
from gatelift.core.records import drains, status_writes
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.drains import AllLeave
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import release
from gatelift.core.rules.release import Due
from gatelift.core.state import api_requests, ghosts
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import draining_texts
from gatelift_kube.objects.conditions import TRUE, find, put
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_wire.values.messages import CountsReport
from gatelift_wire.values.release import ReleaseRule

SETTLE_SECONDS = 1.0
"""That quota is held until the stop is written after this: most pods have stopped by then."""
SILENT_SECONDS = 5.0
"""How often it is looked whether a cluster is heard again, of which all leaves by what it said before."""


def heard(core: Core, attempt: Attempt, said: CountsReport, now: float) -> None:
    """Take whether all of a placement leaves, as its cluster says now."""
    word = said.leaving
    if word is None:
        attempt.all_leave(None)
        return
    since = now - word.since_seconds
    attempt.all_leave(
        AllLeave(
            at=now,
            stops_by=since + word.grace_seconds,
            running_stops_by=since + word.running_grace_seconds,
            holds=word.holds,
        )
    )
    core.ledger.all_leave(attempt.uid, now)


def look(case: Case) -> None:
    """Take the step that is due of what is being stopped: say that it drains, that its quota is free, or wait."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    leave = attempt.leave
    if leave is None or attempt.state is not AttemptState.ENDING or not (rec.evicted and rec.reserved):
        return
    if core.caution.halted:
        return
    if core.ledger.is_early(attempt.uid):
        said = find(known.status.conditions, drains.CONDITION) if rec.released else None
        again = _runs_again(case)
        if said is not None and said.message.endswith(draining_texts.AGAIN) and not again:
            _say(case, said.reason, said.message.removesuffix(draining_texts.AGAIN))  # it was deleted meanwhile
        elif not rec.released:  # somebody took that off the record, by which the next leader charges
            by = release.rule_of(core, known, attempt)
            left = ghosts.text(ghosts.occupied(core, attempt, known))
            _say(case, drains.RELEASED, draining_texts.released(attempt.cluster, by, left, again=again))
        return
    view = placing.open_view(core, attempt.cluster)
    if view is None or view.state is not LinkState.CONNECTED:  # what a silent one said may be over, and no time counts
        core.agenda.wake(attempt.look, now + SILENT_SECONDS)
        return
    by = release.rule_of(core, known, attempt)
    due = release.due(by, leave, core.settings.release.deadline)
    if now >= due.at:
        _release(case, by, due)
    else:
        core.agenda.wake(attempt.look, due.at)
        _hold(case, by, leave, due)


def _release(case: Case, by: ReleaseRule, due: Due) -> None:
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    attempt.may_be_released()
    if rec.released:  # the write of a leader before has landed late: what it says is so
        core.mark_attempt(attempt)
        return
    reason = drains.RELEASED_BY_DEADLINE if due.by_deadline else drains.RELEASED
    left = ghosts.text(ghosts.occupied(core, attempt, known))
    _say(case, reason, draining_texts.released(attempt.cluster, by, left, again=_runs_again(case)))


def _runs_again(case: Case) -> bool:
    """Say whether what drains comes back into its queue: not what is deleted or switched off, nor a pod's own end."""
    owners = case.work.objects
    if not owners or any(one.object.metadata.deletion_timestamp is not None for one in owners):
        return False
    if case.known.metadata.deletion_timestamp is not None or not case.known.spec.active:
        return False
    return case.attempt.cluster != LOCAL_CLUSTER or all(one.kind.pods_are_children for one in owners)


def _hold(case: Case, by: ReleaseRule, leave: AllLeave, due: Due) -> None:
    """Say that it drains and keeps its quota, where that lasts."""
    core, attempt, now = case.core, case.attempt, case.now
    if find(case.known.status.conditions, drains.CONDITION) is not None:
        return
    if now < leave.at + SETTLE_SECONDS:
        core.agenda.wake(attempt.look, min(due.at, leave.at + SETTLE_SECONDS))
        return
    _say(case, drains.HELD, draining_texts.held(attempt.cluster, by, core.wall.text(due.at)))


def _say(case: Case, reason: str, message: str) -> None:
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if core.inflight.busy(rec.ref) or core.resting.rests(rec.ref, Purpose.DRAIN, core.agenda, attempt.look, now):
        return
    said = status_writes.condition(known, drains.CONDITION, TRUE, reason, message)
    conditions = put(known.status.conditions, said, core.wall.text(now))
    api_requests.patch_workload(core, known, status_writes.status_write(known, conditions=conditions), Purpose.DRAIN)


def take(case: Case) -> None:
    """Free the quota of what its record says to be released: once, and never of what only somebody else says so."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if not (rec.released and rec.reserved and attempt.live and attempt.released):
        return
    if not core.ledger.release_early(attempt.uid, now):
        return
    said = find(known.status.conditions, drains.CONDITION)
    reason, message = (said.reason, said.message) if said is not None else ("", "")
    core.placements.note(attempt.cluster)
    core.note(f"quota released while its pods stop: {reason}", attempt, fields=(("uid", attempt.uid),))
    if reason == drains.RELEASED_BY_DEADLINE and core.rebuilt:
        core.event(ref_of(known), attempt.uid, texts.QUOTA_RELEASED_BY_DEADLINE, message, warning=True)
