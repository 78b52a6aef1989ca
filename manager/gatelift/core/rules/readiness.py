"""The condition PodsReady, and what follows when pods do not get ready in time (waitForPodsReady of Kueue).

Whether pods are ready is read from the user's object: its own status at `local`, the mirrored one elsewhere, so that a
restarted manager knows as much as its predecessor. Neighbours: `leaving` asks for each admitted workload, `endings`
for the pause, `machine` before it takes a reservation over where all have to be ready first (blockAdmission).
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift.core import texts
from gatelift.core.api.inflight import ClusterWord
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import status_writes
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Ending
from gatelift.core.records.release_writes import Requeue
from gatelift.core.rules import deactivation, sizes_ready
from gatelift.core.state import api_requests, word_writes
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.state.dispatch_values import backoff
from gatelift.core.state.hearing import TOLD_SECONDS
from gatelift.core.told import mirror
from gatelift_kube.objects.conditions import FALSE, TRUE, find, is_true, put
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition

NEVER = float("-inf")
_NOT_AWAITED = frozenset({AttemptState.ENDING, AttemptState.ENDED, AttemptState.LOST})
"""States in which nobody waits for pods to get ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """Until when pods have to be ready, and what is behind it when they are not."""

    due: float
    cause: str


def watch(case: Case) -> bool:
    """Look after the pods of an admitted workload; True if a write or an end was asked for."""
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    if core.settings.readiness is None:
        return False
    owner, gathered = case.work.stands_for_all, case.work.gathered
    ready = owner is not None and sizes_ready.are_ready(case, owner)
    ready = gathered.pods_ready(known) if gathered is not None else ready
    if (not ready or sizes_ready.is_growing(case)) and _is_silent(case):
        return False
    if owner is not None and _show(case, ready=ready):
        return True
    if ready:
        sizes_ready.watch(case)
    limit = _limit(core, known, now)
    if limit is None or ready:
        return False
    due = limit.due if now < limit.due else _until_shown(case, limit.due)
    if now < due:
        core.agenda.wake(attempt.look, due)
        return False
    most = core.settings.readiness.backoff_limit
    state = known.status.requeue_state
    if most is not None and (state.count if state is not None else 0) >= most:
        if known.spec.active and deactivation.announced(known) is None:
            deactivation.announce(core, known, texts.REQUEUING_LIMIT_EXCEEDED, texts.REQUEUED_TOO_OFTEN, now)
        return True
    said = texts.not_ready_in_time(str(attempt.workload))
    attempt.end_for(Ending(reason=texts.PODS_READY_TIMEOUT, message=said, cause=limit.cause))
    core.mark_attempt(attempt)
    return True


def _is_silent(case: Case) -> bool:
    """Say whether its cluster has yet to tell how its pods are: what the user's object shows is of before (HD-263).

    Silence stops nothing that runs. Looked at again when the cluster is heard, tells, or had its time for that.
    """
    core, attempt, owner = case.core, case.attempt, case.work.stands_for_all
    if attempt.cluster in {"", LOCAL_CLUSTER}:
        return False
    view, hearing = core.view(attempt.cluster), core.sessions.heard(attempt.cluster)
    if hearing is None:
        return True
    told_at = attempt.admitted_at if attempt.admitted_at is not None else NEVER  # heard of from the beginning
    if owner is not None and attempt.reported_at > told_at and mirror.is_shown(owner, attempt):
        told_at = attempt.reported_at
    from_then = hearing.concluded_from(told_at)
    if case.now < from_then:
        core.agenda.wake(attempt.look, from_then)
        return True
    return view is None or not view.open


def _until_shown(case: Case, due: float) -> float:
    """Return until when what its cluster said is waited for, at most `TOLD_SECONDS`: it may stand in a line.

    Who is said to be ready is not late. Nor is who was said to be so between, though his word was not shown before he
    was not any more: he has the time of a recovery from then, as if it had been.
    """
    attempt, settings = case.attempt, case.core.settings.readiness
    unready = (owner for owner in case.work.objects if not owner.kind.pods_ready(owner.object))
    moments = [attempt.was_ready_until(owner.object.metadata.name, case.now) for owner in unready]
    said = [moment for moment in moments if moment is not None]
    if settings is None or attempt.cluster == LOCAL_CLUSTER or not said or len(said) < len(moments):
        return due
    return min(due + TOLD_SECONDS, min(said) + (settings.recovery_timeout or TOLD_SECONDS))


def _show(case: Case, *, ready: bool) -> bool:
    """Write PodsReady if it changed; True if a write was asked for.

    What flaps has its share: who is ready is not late meanwhile, and who is not has the time of a recovery from then.
    """
    core, known, look, now = case.core, case.known, case.attempt.look, case.now
    said = find(known.status.conditions, texts.PODS_READY)
    was = said is not None and said.status == TRUE
    if ready is was:
        core.words.leave(case.attempt.cluster, look, Purpose.PODS_READY)
        return False
    recovering = said is not None and said.reason == texts.WAIT_FOR_RECOVERY
    again = ClusterWord(case.attempt.cluster, again=True)
    if core.resting.rests(case.rec.ref, Purpose.PODS_READY, core.agenda, look, now) or (
        (was or recovering) and not word_writes.may_write(core, again, look, now, Purpose.PODS_READY)
    ):
        return False
    if ready:
        reason = texts.RECOVERED if recovering else texts.STARTED
        new = status_writes.condition(known, texts.PODS_READY, TRUE, reason, texts.PODS_ARE_READY)
    else:
        case.attempt.is_ready_no_more()
        new = status_writes.condition(known, texts.PODS_READY, FALSE, texts.WAIT_FOR_RECOVERY, texts.PODS_NOT_RECOVERED)
    conditions = put(known.status.conditions, new, core.wall.text(now))
    api_requests.patch_workload(
        core, known, status_writes.status_write(known, conditions=conditions), Purpose.PODS_READY
    )
    return True


def besides(core: Core, known: Workload) -> tuple[Condition, ...]:
    """Return what an admission says besides: that its pods are not ready yet, where somebody waits for that."""
    return () if core.settings.readiness is None else (status_writes.waits_for_start(known),)


def _limit(core: Core, known: Workload, now: float) -> _Limit | None:
    """Return until when the pods have to be ready; None when they are, or when nobody waits for them.

    The clock of the start runs from the admission, that of a recovery from the moment at which they were not ready any
    more; without a time-out of its own (0) a recovery is waited for without end.
    """
    settings = core.settings.readiness
    said = find(known.status.conditions, texts.PODS_READY)
    if settings is None or (said is not None and said.status == TRUE):
        return None
    if said is not None and said.reason == texts.WAIT_FOR_RECOVERY:
        if not settings.recovery_timeout:
            return None
        since = core.wall.at(said.last_transition_time, now)
        return _Limit(due=since + settings.recovery_timeout, cause=texts.WAIT_FOR_RECOVERY)
    admitted = find(known.status.conditions, texts.ADMITTED)
    since = core.wall.at(admitted.last_transition_time if admitted is not None else None, now)
    return _Limit(due=since + settings.timeout, cause=texts.WAIT_FOR_START)


def requeue(core: Core, known: Workload, count: int, now: float) -> Requeue:
    """Return when a workload comes back whose pods did not get ready, `count` times before."""
    settings = core.settings.readiness
    if settings is None:
        return Requeue(count=count + 1, at=core.wall.text(now))
    evicted = find(known.status.conditions, texts.EVICTED)
    began = evicted is not None and evicted.status == TRUE
    since = core.wall.at(evicted.last_transition_time if evicted is not None and began else None, now)
    pause = backoff(count + 1, settings.backoff_base, settings.backoff_max)
    return Requeue(count=count + 1, at=core.wall.text(max(now, since + pause)))


def hold_back(core: Core, uid: str) -> bool:
    """Take a reservation back that came while others are not ready (blockAdmission); False if it may go on."""
    settings = core.settings.readiness
    if settings is None or not settings.block_admission:
        return False
    if not _unready(core):
        core.not_ready.add(uid)
        return False
    core.ledger.block(uid)
    core.ledger.undo(uid)
    core.not_ready.hold_back(uid)
    core.waiting_reasons.say(uid, (texts.WAITING_FOR_PODS_READY, texts.OTHERS_NOT_READY))
    return True


def let_go(core: Core) -> None:
    """Let those queue again who were held back, once all others are ready."""
    if core.not_ready.holds_anybody() and not _unready(core):
        core.mark_later(core.not_ready.let_go())


def note(core: Core, known: Workload) -> None:
    """Remember one who holds quota by its object and is not ready."""
    settings = core.settings.readiness
    if settings is not None and settings.block_admission and not _over(known):
        core.not_ready.add(known.metadata.uid)


def _unready(core: Core) -> bool:
    """Say whether somebody who has quota is not ready; those of whom that is true no more are forgotten on the way.

    Who is being stopped does not get ready, and who is out of reach cannot be stopped: neither keeps anybody waiting.
    """
    over: list[str] = []
    waits = False
    for uid in core.not_ready.everybody():
        known, attempt = core.knowledge.workload_of(uid), core.attempts.get(uid)
        if known is None or not core.ledger.holds(uid) or _over(known, reserved=True):
            over.append(uid)
        elif attempt is None or attempt.state not in _NOT_AWAITED:
            waits = True
            break
    core.not_ready.leave(over)
    return waits


def _over(known: Workload, *, reserved: bool = False) -> bool:
    conditions = known.status.conditions
    if is_true(conditions, texts.FINISHED) or is_true(conditions, texts.PODS_READY):
        return True
    return not reserved and not is_true(conditions, texts.QUOTA_RESERVED)
