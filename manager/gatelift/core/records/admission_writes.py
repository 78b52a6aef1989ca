"""The writes that give: a reservation, a winner, an admission, and an inherited record in the own term. Pure.

What they write of a winner (term, epoch, policy) is the mark in the state of the check that dispatches; how it is read:
`record`. Neighbours: `status_writes` (the write itself), `release_writes` (take it back), `epochs`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.records import admitted_by, drains, epochs, status_writes
from gatelift_admission.values.model import Reserve
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.conditions import FALSE, TRUE, find, put, without
from gatelift_kube.objects.kueue import Admission, AdmissionCheckState, PodSetUpdate, Workload
from gatelift_kube.objects.meta import Condition
from gatelift_wire.values.keys import ANNOTATION_DISCONNECT, ANNOTATION_EPOCH, ANNOTATION_PLACED_IN, ANNOTATION_TERM
from gatelift_wire.values.messages import DisconnectPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The winner as it is to be written."""

    cluster: str
    epoch: int
    term: int
    policy: DisconnectPolicy
    check: str = ""  # name of the MultiKueue check; "" for `local`
    placed_in: str = ""  # of a cluster in doubt (`record.in_session`)


def with_epoch(workload: Workload, conditions: tuple[Condition, ...], epoch: int, wall: str) -> tuple[Condition, ...]:
    """Say which epoch the reservation has that is written, where no check's state says it."""
    return put(
        conditions, status_writes.condition(workload, epochs.EPOCH_USED, TRUE, texts.QUOTA_RESERVED, str(epoch)), wall
    )


def reset_by_reservation(workload: Workload, conditions: tuple[Condition, ...], wall: str) -> tuple[Condition, ...]:
    """End Evicted, Preempted and the like, as a new reservation does, keeping what they said; it has a new epoch."""
    for type_ in (texts.EVICTED, texts.PREEMPTED, texts.BLOCKED_ON_GATES):
        old = find(conditions, type_)
        if old is not None and old.status == TRUE:
            message = texts.REPLACED_RECORD + old.message
            new = status_writes.condition(workload, type_, FALSE, texts.QUOTA_RESERVED, message)
            conditions = put(conditions, new, wall)
    return without(without(conditions, epochs.EPOCH_USED), drains.CONDITION)


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
    """Write a reservation without winner: QuotaReserved=True, the admission, its epoch, all checks as they stand.

    `epoch` 0: it is reserved to grow what runs, in the epoch of that (`records.chain.asks`).
    """
    conditions = reset_by_reservation(workload, workload.status.conditions, wall)
    if epoch:
        conditions = with_epoch(workload, conditions, epoch, wall)
    reserved = status_writes.condition(workload, texts.QUOTA_RESERVED, TRUE, texts.QUOTA_RESERVED, reserve.message)
    status: dict[str, Any] = {
        "conditions": put(conditions, reserved, wall),
        "admission": _as_granted(workload, reserve.admission),
        "admission_checks": pending_checks(workload, reserve.checks, wall),
        "cluster_name": None,
    }
    if workload.status.resource_requests:
        status["resource_requests"] = ()  # the admission says more
    return status_writes.status_write(workload, **status)


def admission_write(
    workload: Workload, reserve: Reserve, choice: Choice | int, wall: str, besides: tuple[Condition, ...] = ()
) -> bytes:
    """Write a winner, or an admission without placement (`choice` its epoch): one write for it all, and conditions."""
    conditions = reset_by_reservation(workload, workload.status.conditions, wall)
    if isinstance(choice, int) or not choice.check:
        epoch = choice if isinstance(choice, int) else choice.epoch
        conditions = with_epoch(workload, conditions, epoch, wall)
    reserved = status_writes.condition(workload, texts.QUOTA_RESERVED, TRUE, texts.QUOTA_RESERVED, reserve.message)
    others = (name for name in reserve.checks if isinstance(choice, int) or name != choice.check)
    conditions = admitted_by.told(put(conditions, reserved, wall), others, workload.metadata.generation, wall)
    admitted = status_writes.condition(workload, texts.ADMITTED, TRUE, texts.ADMITTED, texts.WORKLOAD_ADMITTED)
    status: dict[str, Any] = {
        "conditions": status_writes.with_each(put(conditions, admitted, wall), besides, wall),
        "admission": _as_granted(workload, reserve.admission),
        "admission_checks": _checks_with(workload, reserve.checks, choice, wall),
        "cluster_name": None,
    }
    if isinstance(choice, Choice) and choice.check:
        status["cluster_name"] = choice.cluster
        status["nominated_cluster_names"] = ()
    if workload.status.resource_requests:
        status["resource_requests"] = ()  # the admission says more
    return status_writes.status_write(workload, **status)


def _checks_with(
    workload: Workload, checks: tuple[str, ...], choice: Choice | int, wall: str
) -> tuple[AdmissionCheckState, ...]:
    states = pending_checks(workload, checks, wall)
    if isinstance(choice, int) or not choice.check:
        return states
    marked = mark(workload, epoch=choice.epoch, term=choice.term, policy=choice.policy)
    if choice.placed_in:
        annotations = {**marked.annotations, ANNOTATION_PLACED_IN: choice.placed_in}
        marked = msgspec.structs.replace(marked, annotations=annotations)
    ready = AdmissionCheckState(
        name=choice.check,
        state=texts.READY,
        message=texts.admitted_on(choice.cluster),
        last_transition_time=wall,
        pod_set_updates=(marked,),
    )
    return tuple(
        msgspec.structs.replace(ready, retry_count=state.retry_count, more=state.more)
        if state.name == choice.check
        else state
        for state in states
    )


def mark(workload: Workload, *, epoch: int, term: int, policy: DisconnectPolicy | None = None) -> PodSetUpdate:
    """Return what stands in the dispatching check's state: term, epoch and, of a winner, the policy."""
    pod_sets = workload.spec.pod_sets
    annotations = {ANNOTATION_TERM: str(term), ANNOTATION_EPOCH: str(epoch)}
    if policy is not None:
        annotations[ANNOTATION_DISCONNECT] = policy.value
    return PodSetUpdate(name=pod_sets[0].name if pod_sets else "main", annotations=annotations)


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
    return status_writes.status_write(workload, admission_checks=tuple(states))
