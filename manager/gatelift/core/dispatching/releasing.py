"""Frees quota while pods stop (KEP-6143): what an end that is under way says of itself, and what follows from that.

The record says it first, then the quota is free: so it happens once, whoever leads. Only of what was evicted, whose
cluster says in the present session that all of it leaves, and never while that cluster is lost. Neighbours: `endings`
and `works.leaving` ask here for what they stop, `rules.release` is the rule, `following` frees what is written.
"""

from __future__ import annotations

from dataclasses import replace

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.dispatching import placing
from gatelift.core.records import drains, occupied, status_writes
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.drains import AllLeave
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import release
from gatelift.core.rules.release import Due
from gatelift.core.state import api_requests, ghosts
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import draining_texts, telling
from gatelift_kube.objects.conditions import TRUE, find, put, without
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import ClusterQueue
from gatelift_wire.values.keys import ANNOTATION_RELEASE
from gatelift_wire.values.messages import CountsReport
from gatelift_wire.values.release import ReleaseRule

SETTLE_SECONDS = 1.0
"""That quota is held until the stop is written after this: most pods have stopped by then."""
SILENT_SECONDS = 5.0
"""How often it is looked whether a cluster is heard again, of which all leaves by what it said before."""


def heard(core: Core, attempt: Attempt, said: CountsReport, now: float) -> None:
    """Take whether all of a placement leaves, as its cluster says now."""
    core.ledger.fewer_left(attempt.uid)
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


def rule_changed(core: Core, before: ClusterQueue, after: ClusterQueue) -> None:
    """Look at all that drains in a queue whose rule is another one now: it holds at once (HD-343)."""
    of = (each.metadata.annotations.get(ANNOTATION_RELEASE) for each in (before, after))
    if len({*of}) > 1:
        name = after.metadata.name
        core.mark_later(
            uid
            for uid, one in core.attempts.items()
            if one.leave is not None
            and (known := core.knowledge.workload_of(uid)) is not None
            and known.status.admission is not None
            and known.status.admission.cluster_queue == name
        )


def look(case: Case) -> None:
    """Take the step that is due of what is being stopped: say that it drains, that its quota is free, or wait."""
    rec = case.rec
    if case.core.caution.halted or not (rec.evicted and rec.reserved):
        return
    if not _is_due(case):
        _take_off(case)


def _is_due(case: Case) -> bool:
    """Take the step that is due; False where its quota is held, whatever its record says."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    leave = attempt.leave
    if leave is None or attempt.state is not AttemptState.ENDING:
        return attempt.released
    if core.ledger.is_early(attempt.uid):
        said = find(known.status.conditions, drains.CONDITION) if rec.released else None
        again = _runs_again(case)
        if said is not None and said.message.endswith(draining_texts.AGAIN) and not again:
            _say(case, said.reason, said.message.removesuffix(draining_texts.AGAIN))  # it was deleted meanwhile
        elif not rec.released:  # somebody took that off the record, by which the next leader charges
            by = release.rule_of(core, known, attempt)
            left = occupied.text(ghosts.occupied(core, attempt, known))
            _say(case, drains.RELEASED, draining_texts.released(attempt.cluster, by, left, again=again))
        ghosts.note(core, attempt, known)
        return True
    view = placing.open_view(core, attempt.cluster)
    if view is None or view.state is not LinkState.CONNECTED:  # what a silent one said may be over, and no time counts
        core.agenda.wake(attempt.look, now + SILENT_SECONDS)
        return attempt.released
    by = release.rule_of(core, known, attempt)
    due = release.due(by, leave, core.settings.release.deadline)
    if now >= due.at:
        if _is_too_much(case, due):
            return False
        if not (due.by_deadline and _goes_on_at_home(case, leave)):
            _release(case, by, due)
        return True
    core.agenda.wake(attempt.look, due.at)
    _hold(case, leave, due.at, draining_texts.held(attempt.cluster, by, core.wall.text(due.at)))
    return attempt.released


def _is_too_much(case: Case, due: Due) -> bool:
    """Say whether its quota stays, by no deadline, since pods whose quota is free occupy enough of its queue (HD-360).

    Else whoever may preempt himself had his whole quota once more with each pod that takes a day to stop.
    """
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    if due.by_deadline or attempt.released or case.rec.released or not ghosts.is_beyond(core, attempt, known):
        return False
    again = now + SILENT_SECONDS
    core.agenda.wake(attempt.look, again)
    queue = known.status.admission.cluster_queue if known.status.admission is not None else ""
    if attempt.leave is not None:
        _hold(case, attempt.leave, again, draining_texts.held_back(attempt.cluster, queue))
    return True


def _goes_on_at_home(case: Case, leave: AllLeave) -> bool:
    """Say whether the user's own object runs again, or may: a deadline frees by a word that may be ten minutes old.

    It is read once for each word of its agent, since whose watch is behind has not seen it let go (HD-341).
    """
    core, attempt, owner = case.core, case.attempt, case.work.stands_for_all
    if attempt.cluster != LOCAL_CLUSTER or owner is None or not owner.kind.pods_are_children:
        return False
    core.agenda.wake(attempt.look, case.now + SILENT_SECONDS)  # should nobody answer
    if api_requests.blocked(core, owner.ref, attempt.look, case.now):
        return True
    if not leave.asked:
        attempt.all_leave(replace(leave, asked=True))
        core.sought.wait(owner.ref, attempt.look)
        api_requests.read(core, owner.ref, Purpose.READ_BEFORE_END)
        return True
    return owner.kind.lifted(owner.object)


def _take_off(case: Case) -> None:
    """Take a release off the record that nobody has decided: who leads next would believe it (HD-342).

    What a leader before has written, and landed late, goes as well: it is written again as soon as it is due.
    """
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if not (rec.released and core.rebuilt) or core.inflight.busy(rec.ref):
        return
    if core.resting.rests(rec.ref, Purpose.DRAIN, core.agenda, attempt.look, now):
        return
    core.note("its record says that its quota is free, and nobody has freed it: taken off", attempt, warning=True)
    conditions = without(known.status.conditions, drains.CONDITION)
    api_requests.patch_workload(core, known, status_writes.status_write(known, conditions=conditions), Purpose.DRAIN)


def _release(case: Case, by: ReleaseRule, due: Due) -> None:
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    attempt.may_be_released()
    ghosts.note(core, attempt, known)
    if rec.released:  # the write of a leader before has landed late: what it says is so
        core.mark_attempt(attempt)
        return
    reason = drains.RELEASED_BY_DEADLINE if due.by_deadline else drains.RELEASED
    left = occupied.text(ghosts.occupied(core, attempt, known))
    _say(case, reason, draining_texts.released(attempt.cluster, by, left, again=_runs_again(case)))


def _runs_again(case: Case) -> bool:
    """Say whether what drains comes back into its queue: not what is deleted or switched off, nor a pod's own end."""
    owners = case.work.objects
    if not owners or any(one.object.metadata.deletion_timestamp is not None for one in owners):
        return False
    if case.known.metadata.deletion_timestamp is not None or not case.known.spec.active:
        return False
    return case.attempt.cluster != LOCAL_CLUSTER or all(one.kind.pods_are_children for one in owners)


def _hold(case: Case, leave: AllLeave, until: float, message: str) -> None:
    """Say that it drains and keeps its quota, where that lasts."""
    core, attempt, now = case.core, case.attempt, case.now
    if find(case.known.status.conditions, drains.CONDITION) is not None:
        return
    if now < leave.at + SETTLE_SECONDS:
        core.agenda.wake(attempt.look, min(until, leave.at + SETTLE_SECONDS))
        return
    _say(case, drains.HELD, message)


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
    queue = known.status.admission.cluster_queue if known.status.admission is not None else ""
    if not core.ledger.release_early(attempt.uid, queue, now):
        return
    ghosts.note(core, attempt, known)
    said = find(known.status.conditions, drains.CONDITION)
    reason, message = (said.reason, said.message) if said is not None else ("", "")
    core.placements.note(attempt.cluster)
    telling.freed(core, known, attempt, reason)
    if reason == drains.RELEASED_BY_DEADLINE and core.rebuilt:
        core.event(ref_of(known), attempt.uid, texts.QUOTA_RELEASED_BY_DEADLINE, message, warning=True)
