"""What people and machines are told of a transition that is written: Kubernetes events, log lines, figures.

Reasons and texts are Kueue's where Kueue has them. What `adapters.metrics` counts is a `Transition`: they are the only
place where times leave the core. Nothing is decided here. Neighbour: `answers` calls after each successful write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from gatelift.core import texts
from gatelift.core.api.commands import Happened, Span, Transition
from gatelift.core.api.inflight import Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import release_writes
from gatelift.core.records.attempt_states import Internal, Wire
from gatelift.core.records.attempts import Attempt, Ending
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state.core import Core
from gatelift.core.told import event_texts, failed_containers, pod_moments, slice_moments
from gatelift_admission.values.model import Inadmissible, Preempt
from gatelift_kinds.shared.pod_trouble import START_REFUSED
from gatelift_kube.deciding.writes import WriteError, WriteFailed
from gatelift_kube.objects.conditions import TRUE, find
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectRef

WINNER = frozenset({Purpose.WINNER, Purpose.ADMIT})
EVICTS = frozenset({Purpose.EVICT, Purpose.EVICT_AND_RELEASE})
RELEASES = frozenset({Purpose.RELEASE, Purpose.EVICT_AND_RELEASE})
_NOT_TAKEN = frozenset(
    {
        WriteError.DENIED,
        WriteError.QUOTA,
        WriteError.FORBIDDEN,
        WriteError.INVALID,
        WriteError.TOO_LARGE,
        WriteError.NAMESPACE_MISSING,
    }
)
"""Refusals that last until somebody has changed something."""
_OF_WORKLOADS = {
    Purpose.CREATE_WORKLOAD: (event_texts.CREATED_WORKLOAD, event_texts.created_workload),
    Purpose.DELETE_WORKLOAD: (event_texts.DELETED_WORKLOAD, event_texts.deleted_workload),
}


def written(core: Core, outstanding: Outstanding) -> None:
    """Tell of a write that has succeeded: to a Workload, or one that suspends or deletes a user's object."""
    if outstanding.purpose is Purpose.SUSPEND:
        _suspended(core, outstanding)
    if outstanding.purpose is Purpose.DELETE_SURPLUS:
        _too_many(core, outstanding)
    known = core.knowledge.workloads.get(outstanding.ref.key)
    if outstanding.ref.resource != WORKLOAD or known is None:
        return
    attempt = core.attempts.get(known.metadata.uid)
    purpose = outstanding.purpose
    if purpose in _OF_WORKLOADS:
        reason, text = _OF_WORKLOADS[purpose]
        _owner(core, known, reason, text(str(outstanding.ref.key)))
    if purpose is Purpose.ADD_OWNERS:
        added = event_texts.owners_added(len(known.metadata.owner_references))
        _workload(core, known, event_texts.OWNERS_ADDED, added)
    if attempt is not None and purpose not in _OF_WORKLOADS:
        _of_attempt(core, known, attempt, purpose)
    slice_moments.written(core, known, purpose)


def refused(core: Core, outstanding: Outstanding, event: WriteFailed) -> None:
    """Tell who waits for a Workload that the API server does not take for what it is (HD-505)."""
    if outstanding.purpose is not Purpose.CREATE_WORKLOAD or event.error not in _NOT_TAKEN:
        return
    ref = core.creations.owner_of(outstanding.ref.key)
    owner = core.knowledge.owners.get(ref) if ref is not None else None
    if owner is not None:
        text = event_texts.not_created(event.message or event.error.value)
        core.event(owner.ref, owner.object.metadata.uid, event_texts.NOT_COMPOSED, text, warning=True)


def _of_attempt(core: Core, known: Workload, attempt: Attempt, purpose: Purpose) -> None:
    """Tell of a write that takes an attempt on its way."""
    if purpose is Purpose.RESERVE or (purpose in WINNER and not attempt.reservation_told):
        _reserved(core, known, attempt)
    if purpose in WINNER:
        _admitted(core, known, attempt)
    if purpose is Purpose.GROW:
        _grown(core, known, attempt)
    if purpose in EVICTS:
        _evicted(core, known, attempt)
    if purpose in RELEASES:
        _released(core, known, attempt)
    if purpose is Purpose.PODS_READY:
        _ready(core, known, attempt)
    if purpose is Purpose.FINISH:
        _finished(core, known, attempt)


def _suspended(core: Core, outstanding: Outstanding) -> None:
    owner = core.knowledge.owners.get(outstanding.ref)
    if owner is not None:
        core.event(owner.ref, owner.object.metadata.uid, event_texts.STOPPED, event_texts.NOT_ADMITTED)
        core.note(f"running {owner.kind.name} {owner.ref.key} is not admitted by a cluster queue: suspended")


def _too_many(core: Core, outstanding: Outstanding) -> None:
    owner = core.knowledge.owners.get(outstanding.ref)
    if owner is not None:
        core.event(owner.ref, owner.object.metadata.uid, event_texts.EXCESS_DELETED, event_texts.EXCESS)
        pod_moments.rejected(core, owner, event_texts.EXCESS_DELETED)


def _reserved(core: Core, known: Workload, attempt: Attempt) -> None:
    attempt.reservation_is_told()
    if attempt.reserve is None:
        return
    _workload(core, known, texts.QUOTA_RESERVED, attempt.reserve.event or attempt.reserve.message)
    seconds = {Span.QUEUED: attempt.reserve.wait_seconds}
    _note(core, known, attempt, Happened.RESERVED, _Story("quota reserved", seconds))


def _admitted(core: Core, known: Workload, attempt: Attempt) -> None:
    attempt.admitted(core.now)
    waited = max(0.0, core.now - attempt.reserved_at)
    queued = attempt.reserve.wait_seconds if attempt.reserve is not None else 0.0
    _workload(core, known, texts.ADMITTED, event_texts.admitted_event(queue_of(core, known, attempt), waited))
    if known.status.cluster_name:
        _workload(core, known, event_texts.MULTIKUEUE, texts.admitted_on(known.status.cluster_name))
        _owner(core, known, event_texts.DISPATCHED, event_texts.dispatched(known.status.cluster_name))
    _note(core, known, attempt, Happened.ADMITTED, _Story("admitted", {Span.QUEUED: queued, Span.CHECKS: waited}))


def _grown(core: Core, known: Workload, attempt: Attempt) -> None:
    """Tell of a slice that has become the record: of it people see what they see of any that is admitted."""
    if attempt.reserve is not None:
        _workload(core, known, texts.QUOTA_RESERVED, attempt.reserve.event or attempt.reserve.message)
    _workload(core, known, texts.ADMITTED, event_texts.admitted_event(queue_of(core, known, attempt), 0.0))


def _evicted(core: Core, known: Workload, attempt: Attempt) -> None:
    said = find(known.status.conditions, texts.EVICTED)
    if said is None:
        return
    _workload(core, known, event_texts.EVICTED_DUE_TO + said.reason, said.message)
    if attempt.outcome is not None and attempt.outcome.how in BY_CLUSTER:
        _owner(core, known, event_texts.STOPPED, said.message)
    elif attempt.outcome is not None and attempt.outcome.how is Wire.REFUSED:
        _owner(core, known, START_REFUSED, attempt.outcome.message, warning=True)
    ready = find(known.status.conditions, texts.PODS_READY)
    seconds = {}
    if ready is not None and ready.status == TRUE:
        seconds[Span.READY] = _since(core, ready.last_transition_time)
    stats = known.status.scheduling_stats
    reason, cause = release_writes.counted_as(said.reason, attempt.ending.cause if attempt.ending is not None else "")
    count = sum(one.count for one in (stats.evictions if stats else ()) if one.reason == reason)
    why = _Why(reason, cause, is_first=count == 1)
    _note(core, known, attempt, Happened.EVICTED, _Story(f"evicted: {said.message}", seconds, why))


def _ready(core: Core, known: Workload, attempt: Attempt) -> None:
    """Tell of the first time that all pods of an admission are ready."""
    types = (texts.PODS_READY, texts.ADMITTED, texts.REQUEUED)
    said, admitted, requeued = (find(known.status.conditions, type_) for type_ in types)
    if said is None or said.reason != texts.STARTED or admitted is None:
        return
    queued = requeued.last_transition_time if requeued is not None else known.metadata.creation_timestamp
    seconds = {
        Span.QUEUED: _since(core, queued),
        Span.ADMITTED: _since(core, admitted.last_transition_time),
    }
    _note(core, known, attempt, Happened.READY, _Story("pods ready", seconds))


def _since(core: Core, text: str | None) -> float:
    return max(0.0, core.now - core.wall.at(text, core.now))


def preempted(core: Core, decision: Preempt, attempt: Attempt) -> None:
    """Tell victim and preemptor of a preemption that was decided."""
    core.event(ObjectRef(WORKLOAD, decision.key), decision.uid, texts.PREEMPTED, decision.event)
    preemptor = ObjectRef(WORKLOAD, decision.preemptor)
    core.event(preemptor, decision.preemptor_uid, event_texts.PREEMPTED_WORKLOAD, decision.preemptor_message)
    victim = core.knowledge.workloads.get(decision.key)
    if victim is not None:
        _owner(core, victim, texts.PREEMPTED, decision.event)
    by = core.knowledge.workloads.get(decision.preemptor)
    queue = core.knowledge.cluster_queue_of(by) if by is not None else ""
    said = (("preempting_cluster_queue", queue), ("reason", decision.reason))
    line = _transition(attempt, Happened.PREEMPTED, f"preempted: {decision.message}", queue, said)
    core.command(replace(line, reason=decision.reason))


def waits(core: Core, decision: Inadmissible) -> None:
    """Tell at a Workload and the user's object why it waits; the caller knows whether that was told before."""
    known = core.knowledge.workloads.get(decision.key)
    if known is not None and known.metadata.uid == decision.uid:
        _both(core, known, decision.reason, decision.message)


def checks(core: Core, known: Workload, attempt: Attempt, awaited: Iterable[str]) -> None:
    """Tell at the user's object what the checks say that are waited for, in one event, once it is something new."""
    said = [
        (each.name, each.message)
        for each in known.status.admission_checks
        if each.name in awaited and each.state == texts.PENDING and each.message
    ]
    text = event_texts.checks_say(said)
    if not text or text == attempt.checks_told:
        return
    attempt.checks_are_told(text)
    _owner(core, known, event_texts.UPDATED_ADMISSION_CHECK, text)


def halted(core: Core, known: Workload) -> None:
    """Tell at a Workload and the user's object that nothing at all is placed now, and why."""
    _both(core, known, texts.DISPATCH_HALTED, core.caution.halted)


def unreachable(core: Core, attempt: Attempt, text: str) -> None:
    """Tell at the Workload and the user's object that nobody hears of the cluster where it is placed."""
    known = core.knowledge.workloads.get(attempt.workload)
    if known is not None:
        _both(core, known, event_texts.CLUSTER_UNREACHABLE, text)
        core.mark_work(core.knowledge.work_of(known))  # whose object shows it


def _both(core: Core, known: Workload, reason: str, message: str) -> None:
    owner = core.knowledge.work_of(known).speaker
    core.event(ref_of(known), known.metadata.uid, reason, message, warning=True)
    if owner is not None:
        core.event(owner.ref, owner.object.metadata.uid, reason, message, warning=True)


def no_cluster(core: Core, attempt: Attempt, said: tuple[str, str]) -> None:
    """Tell, once for each reason, at the Workload and the user's object that no cluster takes the work."""
    known = core.knowledge.workloads.get(attempt.workload)
    shown = find(known.status.conditions, texts.QUOTA_RESERVED) if known is not None else None
    if known is None or (shown is not None and (shown.reason, shown.message) == said):
        return
    _both(core, known, *said)


BY_CLUSTER = frozenset({Wire.STOPPED, Wire.EVICTED, Wire.ABSENT, Internal.FENCE})
"""Ends of what may have run that nobody here had asked for."""


def stopped(core: Core, attempt: Attempt, ending: Ending) -> None:
    """Tell at the user's object that what ran is stopped, as Kueue does when it stops a job; not when its user did."""
    known = core.knowledge.workloads.get(attempt.workload)
    if known is None or not (ending.evict or ending.reason == texts.WORKLOAD_DELETED):
        return
    _owner(core, known, event_texts.STOPPED, ending.message if ending.evict else event_texts.WORKLOAD_IS_DELETED)


def _released(core: Core, known: Workload, attempt: Attempt) -> None:
    since = core.ledger.draining_since(attempt.uid)
    seconds = {Span.DRAINED: max(0.0, core.now - since)} if since is not None else {}
    said = find(known.status.conditions, texts.EVICTED)
    why = _Why(said.reason if said is not None else "")
    _note(core, known, attempt, Happened.RELEASED, _Story("quota released", seconds, why))


def freed(core: Core, known: Workload, attempt: Attempt, reason: str) -> None:
    """Tell that the quota of what is being stopped is free before it has stopped, and by what."""
    since = core.ledger.draining_since(attempt.uid)
    seconds = {Span.DRAINED: max(0.0, core.now - since)} if since is not None else {}
    story = _Story(f"quota released while its pods stop: {reason}", seconds, _Why(reason))
    _note(core, known, attempt, Happened.FREED, story)


def _finished(core: Core, known: Workload, attempt: Attempt) -> None:
    text = event_texts.finished_workload(f"{known.metadata.namespace}/{known.metadata.name}")
    if not _owner(core, known, event_texts.FINISHED_WORKLOAD, text):
        _workload(core, known, event_texts.FINISHED_WORKLOAD, text)
    failed_containers.tell(core, known, attempt)
    said, admitted = (find(known.status.conditions, type_) for type_ in (texts.FINISHED, texts.ADMITTED))
    ran = _since(core, admitted.last_transition_time if admitted is not None else None)
    why = _Why(said.reason if said is not None else "")
    _note(core, known, attempt, Happened.FINISHED, _Story("finished", {Span.RAN: ran}, why))


def queue_of(core: Core, known: Workload, attempt: Attempt) -> str:
    """Return the ClusterQueue that an attempt is charged to."""
    if attempt.reserve is not None:
        return attempt.reserve.admission.cluster_queue
    admission = known.status.admission
    return admission.cluster_queue if admission is not None else core.knowledge.cluster_queue_of(known)


class _Why(NamedTuple):
    """Why something has happened. `cause` and `is_first` are of evictions."""

    reason: str = ""
    cause: str = ""
    is_first: bool = False


class _Story(NamedTuple):
    """What is said of a transition: in words, how long what came to its end has lasted, and why, where that is said."""

    text: str
    seconds: Mapping[Span, float]
    why: _Why | None = None


def _note(core: Core, known: Workload, attempt: Attempt, happened: Happened, story: _Story) -> None:
    """Leave a line for the log, which says besides workload, epoch and cluster what metrics count."""
    ref = known.spec.priority_class_ref
    queue, rank = queue_of(core, known, attempt), ref.name if ref is not None else ""
    about = (("cluster_queue", queue), ("queue", known.spec.queue_name), ("priority_class", rank), ("uid", attempt.uid))
    lasted = tuple((span.value, f"{value:.3f}") for span, value in story.seconds.items())
    line = _transition(attempt, happened, story.text, queue, (*about, *lasted, *_said(happened, story.why)))
    why = story.why or _Why()
    core.command(
        replace(
            line,
            local_queue=known.spec.queue_name,
            priority_class=rank,
            reason=why.reason,
            cause=why.cause,
            is_first=why.is_first,
            seconds=story.seconds,
        )
    )


def _transition(
    attempt: Attempt, happened: Happened, text: str, queue: str, said: tuple[tuple[str, str], ...]
) -> Transition:
    """Return the line of what has happened to an attempt; `queue`: the one that metrics count it at."""
    return Transition(
        level="info",
        text=text,
        workload=str(attempt.workload),
        epoch=attempt.epoch,
        cluster=attempt.cluster,
        fields=(("transition", happened.value), *said),
        happened=happened,
        cluster_queue=queue,
    )


def _said(happened: Happened, why: _Why | None) -> tuple[tuple[str, str], ...]:
    if why is None:
        return ()
    more = (("cause", why.cause), ("first", "yes" if why.is_first else ""))
    return (("reason", why.reason), *(more if happened is Happened.EVICTED else ()))


def _workload(core: Core, known: Workload, reason: str, message: str) -> None:
    core.event(ref_of(known), known.metadata.uid, reason, message)


def _owner(core: Core, known: Workload, reason: str, message: str, *, warning: bool = False) -> bool:
    """Tell of it at the user's object; False when there is none."""
    owner = core.knowledge.work_of(known).speaker
    if owner is not None:
        core.event(owner.ref, owner.object.metadata.uid, reason, message, warning=warning)
    return owner is not None


def lifted(core: Core, attempt: Attempt, now: float) -> None:
    """Tell that a placement was let go. On `local` that is the user's own object; elsewhere it stays a mirror."""
    known = core.knowledge.workloads.get(attempt.workload)
    if known is None:
        return
    if attempt.cluster == LOCAL_CLUSTER:
        _owner(core, known, texts.STARTED, event_texts.started(queue_of(core, known, attempt)))
    pod_moments.let_go_elsewhere(core, known, attempt)
    seconds = {Span.LIFT: max(0.0, now - attempt.admitted_at)} if attempt.admitted_at is not None else {}
    _note(core, known, attempt, Happened.LIFTED, _Story("let go", seconds))
