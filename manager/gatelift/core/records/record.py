"""The placement record: what the Workload itself says about its attempt, and the status writes that write it.

Winner: `status.clusterName`. Term of the writer (R3), epoch and policy (P2) of the record: annotations in
`podSetUpdates[0]` of the MultiKueue check's state, which Kueue's CRDs keep. A `local` placement has neither: it is told
by Admitted=True on a Workload of a kind that travels. Which epoch stands where: `epochs`. Every write carries UID and
resourceVersion of the version it was decided on, and the whole status, what we do not know of it too (decision 16).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.api import documents
from gatelift.core.records import admitted_by, epochs, own_conditions
from gatelift.core.records.attempts import Ending
from gatelift_admission.values.model import Reserve
from gatelift_kinds.shared import pod_trouble
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.conditions import FALSE, TRUE, find, fitting, is_true, put, without
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheckState,
    EvictionCount,
    PodSetResources,
    PodSetUpdate,
    ReclaimablePod,
    RequeueState,
    SchedulingStats,
    Workload,
)
from gatelift_kube.objects.meta import Condition, ObjectMeta
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import ANNOTATION_DISCONNECT, ANNOTATION_EPOCH, ANNOTATION_TERM
from gatelift_wire.values.messages import DisconnectPolicy

_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the Workload says. `cluster` "" when no winner is written. `term` 0 for `local`, which needs none.

    `epoch` is that of the reservation that is written (`written_epoch`, 0 without one that names its own), else the one
    that the next will have. `highest_epoch` is the highest of all that it names: an end raises to one more.
    """

    uid: str
    ref: ObjectRef
    epoch: int
    written_epoch: int
    highest_epoch: int
    reserved: bool
    admitted: bool
    finished: bool
    evicted: bool
    cluster: str
    term: int
    policy: DisconnectPolicy
    admitted_by: tuple[str, ...]
    epoch_used: bool
    """It has no reservation and marks its epoch as used: that must be raised first."""


def read(workload: Workload, *, travels: bool) -> Record:
    """Read the record. `travels`: its kind is placed on clusters (false for a Workload without owner)."""
    conditions = workload.status.conditions
    marks = epochs.marks(workload)
    quota_reserved = is_true(conditions, texts.QUOTA_RESERVED)
    annotated, written, used = epochs.annotated(workload), epochs.written(workload), epochs.used(workload)
    admitted = is_true(conditions, texts.ADMITTED)
    cluster = workload.status.cluster_name or (LOCAL_CLUSTER if admitted and travels else "")
    return Record(
        uid=workload.metadata.uid,
        ref=ObjectRef(WORKLOAD, ObjectKey(workload.metadata.namespace, workload.metadata.name)),
        epoch=written or annotated,
        written_epoch=written,
        highest_epoch=max(annotated, used),
        reserved=quota_reserved and workload.status.admission is not None,
        admitted=admitted,
        finished=is_true(conditions, texts.FINISHED),
        evicted=is_true(conditions, texts.EVICTED),
        cluster=cluster,
        term=epochs.number(marks.get(ANNOTATION_TERM, "")),
        policy=policy_of(marks.get(ANNOTATION_DISCONNECT, "")) or DisconnectPolicy.WAIT,
        admitted_by=admitted_by.names(workload),
        epoch_used=not quota_reserved and used >= annotated,
    )


def granted(workload: Workload) -> dict[str, int]:
    """Return the pods per pod set that the record grants; empty without a reservation."""
    admission = workload.status.admission
    if admission is None:
        return {}
    asked = {pod_set.name: pod_set.count for pod_set in workload.spec.pod_sets}
    return {
        one.name: asked.get(one.name, 0) if one.count is None else one.count for one in admission.pod_set_assignments
    }


def policy_of(text: str) -> DisconnectPolicy | None:
    """Return the policy that a text names, None when it names none."""
    try:
        return DisconnectPolicy(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner as it is to be written."""

    cluster: str
    epoch: int
    term: int
    policy: DisconnectPolicy
    check: str = ""  # name of the MultiKueue check; "" for `local`


def _with_epoch(workload: Workload, conditions: tuple[Condition, ...], epoch: int, wall: str) -> tuple[Condition, ...]:
    """Say which epoch the reservation has that is written, where no check's state says it."""
    return put(conditions, condition(workload, epochs.EPOCH_USED, TRUE, texts.QUOTA_RESERVED, str(epoch)), wall)


def status_write(workload: Workload, **changes: Any) -> bytes:
    """Return the whole of `/status` with `changes`, guarded by UID and version.

    `changes` are fields of WorkloadStatus; None, or an empty tuple, takes a field out. What others have put among the
    conditions goes where there is no room for ours.
    """
    changes["conditions"] = fitting(changes.get("conditions", workload.status.conditions), own_conditions.WORKLOAD)
    meta = workload.metadata
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    status = documents.workload_status(msgspec.structs.replace(workload.status, **changes))
    return _ENCODE({"apiVersion": WORKLOAD.api_version, "kind": WORKLOAD.kind, "metadata": metadata, "status": status})


def condition(workload: Workload, type_: str, status: str, reason: str, message: str) -> Condition:
    """Return a condition as this Workload's generation has it; `put` gives it its time."""
    return Condition(
        type=type_, status=status, reason=reason, message=message, observed_generation=workload.metadata.generation
    )


def _reset_by_reservation(workload: Workload, conditions: tuple[Condition, ...], wall: str) -> tuple[Condition, ...]:
    """End Evicted, Preempted and the like, as a new reservation does, keeping what they said; it has a new epoch."""
    for type_ in (texts.EVICTED, texts.PREEMPTED, texts.BLOCKED_ON_GATES):
        old = find(conditions, type_)
        if old is not None and old.status == TRUE:
            message = texts.REPLACED_RECORD + old.message
            new = condition(workload, type_, FALSE, texts.QUOTA_RESERVED, message)
            conditions = put(conditions, new, wall)
    return without(conditions, epochs.EPOCH_USED)


def pending_checks(workload: Workload, names: Iterable[str], wall: str) -> tuple[AdmissionCheckState, ...]:
    """Return the states of these checks, those already there as they are, new ones Pending; others are dropped."""
    known = {check.name: check for check in workload.status.admission_checks}
    return tuple(
        known.get(name) or AdmissionCheckState(name=name, state=texts.PENDING, last_transition_time=wall)
        for name in names
    )


def _as_granted(workload: Workload, admission: Admission) -> Admission:
    """Return `admission`, with what others keep in it where the Workload has it already."""
    old = workload.status.admission
    return old if old is not None and known_part(old) == admission else admission


def reservation_write(workload: Workload, reserve: Reserve, epoch: int, wall: str) -> bytes:
    """Write a reservation without winner: QuotaReserved=True, the admission, its epoch, all checks as they stand."""
    conditions = _reset_by_reservation(workload, workload.status.conditions, wall)
    conditions = _with_epoch(workload, conditions, epoch, wall)
    reserved = condition(workload, texts.QUOTA_RESERVED, TRUE, texts.QUOTA_RESERVED, reserve.message)
    status: dict[str, Any] = {
        "conditions": put(conditions, reserved, wall),
        "admission": _as_granted(workload, reserve.admission),
        "admission_checks": pending_checks(workload, reserve.checks, wall),
        "cluster_name": None,
    }
    if workload.status.resource_requests:
        status["resource_requests"] = ()  # the admission says more
    return status_write(workload, **status)


def admission_write(
    workload: Workload, reserve: Reserve, choice: Choice | int, wall: str, besides: tuple[Condition, ...] = ()
) -> bytes:
    """Write a winner, or an admission without placement (`choice` its epoch): one write for it all, and conditions."""
    conditions = _reset_by_reservation(workload, workload.status.conditions, wall)
    if isinstance(choice, int) or not choice.check:
        epoch = choice if isinstance(choice, int) else choice.epoch
        conditions = _with_epoch(workload, conditions, epoch, wall)
    reserved = condition(workload, texts.QUOTA_RESERVED, TRUE, texts.QUOTA_RESERVED, reserve.message)
    others = (name for name in reserve.checks if isinstance(choice, int) or name != choice.check)
    conditions = admitted_by.told(put(conditions, reserved, wall), others, workload.metadata.generation, wall)
    admitted = condition(workload, texts.ADMITTED, TRUE, texts.ADMITTED, texts.WORKLOAD_ADMITTED)
    status: dict[str, Any] = {
        "conditions": _with(put(conditions, admitted, wall), besides, wall),
        "admission": _as_granted(workload, reserve.admission),
        "admission_checks": _checks_with(workload, reserve.checks, choice, wall),
        "cluster_name": None,
    }
    if isinstance(choice, Choice) and choice.check:
        status["cluster_name"] = choice.cluster
        status["nominated_cluster_names"] = ()
    if workload.status.resource_requests:
        status["resource_requests"] = ()  # the admission says more
    return status_write(workload, **status)


def _with(conditions: tuple[Condition, ...], besides: tuple[Condition, ...], wall: str) -> tuple[Condition, ...]:
    for one in besides:
        conditions = put(conditions, one, wall)
    return conditions


def _checks_with(
    workload: Workload, checks: tuple[str, ...], choice: Choice | int, wall: str
) -> tuple[AdmissionCheckState, ...]:
    states = pending_checks(workload, checks, wall)
    if isinstance(choice, int) or not choice.check:
        return states
    mark = _mark(workload, epoch=choice.epoch, term=choice.term, policy=choice.policy)
    ready = AdmissionCheckState(
        name=choice.check,
        state=texts.READY,
        message=texts.admitted_on(choice.cluster),
        last_transition_time=wall,
        pod_set_updates=(mark,),
    )
    return tuple(
        msgspec.structs.replace(ready, retry_count=state.retry_count, more=state.more)
        if state.name == choice.check
        else state
        for state in states
    )


def _mark(workload: Workload, *, epoch: int, term: int, policy: DisconnectPolicy | None = None) -> PodSetUpdate:
    pod_sets = workload.spec.pod_sets
    annotations = {ANNOTATION_TERM: str(term), ANNOTATION_EPOCH: str(epoch)}
    if policy is not None:
        annotations[ANNOTATION_DISCONNECT] = policy.value
    return PodSetUpdate(name=pod_sets[0].name if pod_sets else "main", annotations=annotations)


def waits_for_start(workload: Workload) -> Condition:
    """Return PodsReady as it is when nothing has run in this admission."""
    return condition(workload, texts.PODS_READY, FALSE, texts.WAIT_FOR_START, texts.PODS_NOT_READY)


def names_winner(check: AdmissionCheckState) -> bool:
    """Say whether it is the check's state in which a placement stands."""
    return any(ANNOTATION_TERM in update.annotations for update in check.pod_set_updates)


def adoption_write(workload: Workload, term: int) -> bytes:
    """Write the same record in this leader's own term (R3)."""
    states = []
    for check in workload.status.admission_checks:
        updates = tuple(
            msgspec.structs.replace(update, annotations={**update.annotations, ANNOTATION_TERM: str(term)})
            if ANNOTATION_TERM in update.annotations
            else update
            for update in check.pod_set_updates
        )
        states.append(msgspec.structs.replace(check, pod_set_updates=updates))
    return status_write(workload, admission_checks=tuple(states))


def eviction_write(workload: Workload, ending: Ending, wall: str) -> bytes:
    """Write Evicted=True; the winner stays until it has stopped, so that a restart knows whom to ask."""
    conditions = _evicted(workload, (ending.reason, ending.message), ending.preempted, wall)
    stats = _counted(workload, ending.reason, ending.cause)
    return status_write(workload, conditions=conditions, scheduling_stats=stats)


def _evicted(workload: Workload, said: tuple[str, str], preempted: str, wall: str) -> tuple[Condition, ...]:
    before = without(workload.status.conditions, texts.DEACTIVATION_TARGET)  # what it announced is said here
    conditions = put(before, condition(workload, texts.EVICTED, TRUE, *said), wall)
    if preempted:
        conditions = put(conditions, condition(workload, texts.PREEMPTED, TRUE, preempted, said[1]), wall)
    return conditions


def counted_as(reason: str, cause: str) -> tuple[str, str]:
    """Return reason and underlying cause under which an eviction is counted."""
    if reason.startswith(texts.DEACTIVATED_DUE_TO):
        return texts.DEACTIVATED, reason.removeprefix(texts.DEACTIVATED_DUE_TO)
    return reason, cause


def _counted(workload: Workload, reason: str, cause: str) -> SchedulingStats:
    """Return the evictions by reason and underlying cause, one more."""
    reason, cause = counted_as(reason, cause)
    stats = workload.status.scheduling_stats or SchedulingStats()
    known = {(one.reason, one.underlying_cause): one for one in stats.evictions}
    before = known.get((reason, cause)) or EvictionCount(reason=reason, underlying_cause=cause)
    known[(reason, cause)] = msgspec.structs.replace(before, count=before.count + 1)
    return msgspec.structs.replace(stats, evictions=tuple(known.values()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Marks an epoch as used, until it is raised: in the state of the dispatching check, without one in a condition.

    So a leader that finds the reservation gone and the epoch not yet raised knows that it must not be used again.
    """

    check: str
    epoch: int
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Requeue:
    """How an evicted workload comes back: at once (`at` ""), or after a backoff until the wall time `at`."""

    count: int = 0
    at: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenBack:
    """What is to be written of a reservation that is given back, besides that.

    `evicted` sets Evicted=True in the same write when no write of its own came before (the work had already ended).
    `reason`, `message`: why it has no quota. `requeue` None: it comes back when what stopped it says so (queue
    restarted, reactivated). `past_seconds`: for how long it has been admitted until now, all times together. `retried`:
    what a cluster said that gave it up, as the Retry of the check that dispatches. `besides`: conditions that are to
    stand from now on.
    """

    evicted: Ending | None
    reason: str
    message: str
    requeue: Requeue | None
    used: Used
    past_seconds: int | None = None
    retried: str = ""
    besides: tuple[Condition, ...] = ()


def release_write(workload: Workload, given_back: GivenBack, wall: str) -> bytes:
    """Give the reservation back: QuotaReserved=False, Admitted=False, no admission, no winner, checks reset."""
    evicted, requeue, used = given_back.evicted, given_back.requeue, given_back.used
    conditions = workload.status.conditions
    if evicted is not None:
        conditions = _evicted(workload, (evicted.reason, evicted.message), evicted.preempted, wall)
    conditions = without(without(conditions, texts.HELD), pod_trouble.CONDITION)  # why it waits is said there from now
    conditions = without(conditions, admitted_by.ADMITTED_BY)
    conditions = _with(conditions, given_back.besides, wall)
    waits = condition(workload, texts.QUOTA_RESERVED, FALSE, given_back.reason, given_back.message)
    conditions = put(conditions, waits, wall)
    if find(conditions, texts.ADMITTED) is not None:
        lost = texts.WORKLOAD_HAS_NO_RESERVATION
        conditions = put(conditions, condition(workload, texts.ADMITTED, FALSE, texts.NO_RESERVATION, lost), wall)
    if find(conditions, texts.PODS_READY) is not None:
        conditions = put(conditions, waits_for_start(workload), wall)
    status: dict[str, Any] = {
        "admission": None,
        "cluster_name": None,
        "nominated_cluster_names": (),
        "admission_checks": _reset_checks(workload, given_back.retried, used, wall),
        "reclaimable_pods": (),
        "accumulated_past_execution_time_seconds": given_back.past_seconds,
    }
    was = find(conditions, texts.EVICTED)
    if was is not None and was.status == TRUE:
        status_requeued = FALSE if requeue is None or requeue.at else TRUE
        requeued = condition(workload, texts.REQUEUED, status_requeued, was.reason, was.message)
        conditions = put(conditions, requeued, wall)
        if requeue is not None and requeue.at:
            before = workload.status.requeue_state or RequeueState()
            status["requeue_state"] = msgspec.structs.replace(before, count=requeue.count, requeue_at=requeue.at)
        if was.reason.startswith(texts.DEACTIVATED):
            status["requeue_state"] = None  # a person who reactivates it starts the counting anew
        if evicted is not None:
            status["scheduling_stats"] = _counted(workload, evicted.reason, evicted.cause)
    status["conditions"] = conditions if used.check else put(conditions, _used_up(workload, used), wall)
    return status_write(workload, **status)


def _reset_checks(workload: Workload, retried: str, used: Used, wall: str) -> tuple[AdmissionCheckState, ...]:
    """Return all checks Pending again; `retried` says why the dispatching one had to be given up: a Retry of ours."""
    states = []
    for check in workload.status.admission_checks:
        ours = check.name == used.check
        why = retried if ours else ""
        marks = (_mark(workload, epoch=used.epoch, term=used.term),) if ours else ()
        if check.state == texts.PENDING and not check.pod_set_updates:
            states.append(msgspec.structs.replace(check, pod_set_updates=marks))
            continue
        retries = check.retry_count
        states.append(
            AdmissionCheckState(
                name=check.name,
                state=texts.PENDING,
                message=texts.reset_check(check.state, why),
                last_transition_time=wall,
                retry_count=(retries or 0) + 1 if why or check.state == texts.RETRY else retries,
                pod_set_updates=marks,
                more=check.more,
            )
        )
    return tuple(states)


def _used_up(workload: Workload, used: Used) -> Condition:
    return condition(workload, epochs.EPOCH_USED, TRUE, epochs.RETURNED, str(used.epoch))


def reclaim_write(workload: Workload, reclaimable: tuple[tuple[str, int], ...]) -> bytes:
    """Write the pods per pod set that need quota no longer (KEP-78)."""
    pods = tuple(ReclaimablePod(name, count) for name, count in reclaimable)
    return status_write(workload, reclaimable_pods=pods)


def waiting_write(
    workload: Workload, reason: str, message: str, wall: str, requests: tuple[PodSetResources, ...] = ()
) -> bytes:
    """Write why it waits as QuotaReserved=False, and for what."""
    waits = condition(workload, texts.QUOTA_RESERVED, FALSE, reason, message)
    status: dict[str, Any] = {"conditions": put(workload.status.conditions, waits, wall)}
    if requests and requests != workload.status.resource_requests:
        status["resource_requests"] = requests
    return status_write(workload, **status)


def held_write(workload: Workload, held: tuple[str, str] | None, wall: str) -> bytes:
    """Write that it is held although it has a reservation, by reason and message; None: not any more."""
    conditions = without(workload.status.conditions, texts.HELD)
    if held is not None:
        conditions = put(workload.status.conditions, condition(workload, texts.HELD, TRUE, *held), wall)
    return status_write(workload, conditions=conditions)


def requeued_write(workload: Workload, reason: str, message: str, wall: str) -> bytes:
    """Write Requeued=True: whatever kept it out of the queue is over."""
    requeued = condition(workload, texts.REQUEUED, TRUE, reason, message)
    status: dict[str, Any] = {"conditions": put(workload.status.conditions, requeued, wall)}
    if workload.status.requeue_state is not None:
        status["requeue_state"] = msgspec.structs.replace(workload.status.requeue_state, requeue_at=None)
    return status_write(workload, **status)


def finished_write(workload: Workload, reason: str, message: str, wall: str) -> bytes:
    """Write Finished=True, which is final."""
    finished = condition(workload, texts.FINISHED, TRUE, reason, message)
    kept = without(without(workload.status.conditions, texts.HELD), pod_trouble.CONDITION)
    return status_write(workload, conditions=put(kept, finished, wall))


def epoch_patch(workload: Workload, epoch: int, *, recovered: int = 0) -> bytes:
    """Raise the epoch: a metadata patch, before the workload may be queued again; `recovered`: by a recovery."""
    annotations = {ANNOTATION_EPOCH: str(epoch)}
    if recovered:
        annotations[epochs.ANNOTATION_RECOVERED_EPOCH] = str(recovered)
    return _ENCODE(
        {
            "metadata": {
                "uid": workload.metadata.uid,
                "resourceVersion": workload.metadata.resource_version,
                "annotations": annotations,
            }
        }
    )


def finalizers_patch(meta: ObjectMeta, without: str) -> bytes | None:
    """Drop one finalizer, keep those of others; None when it is not there."""
    kept = [name for name in meta.finalizers if name != without]
    return _metadata(meta, {"finalizers": kept}) if len(kept) != len(meta.finalizers) else None


def kept_in_use(meta: ObjectMeta, finalizer: str, annotations: Mapping[str, str]) -> bytes | None:
    """Put one finalizer to those of others, and annotations on ("": off); None when all of it is so."""
    changed = {name: value or None for name, value in annotations.items() if meta.annotations.get(name, "") != value}
    if finalizer in meta.finalizers:
        return _metadata(meta, {"annotations": changed}) if changed else None
    return _metadata(meta, {"annotations": changed, "finalizers": [*meta.finalizers, finalizer]})


def _metadata(meta: ObjectMeta, change: dict[str, Any]) -> bytes:
    return _ENCODE({"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, **change}})
