"""The writes that take back: an eviction, and the release of a reservation once nothing runs any more. Pure.

Neighbours: `status_writes` (the write itself), `admission_writes` (gave it), `epochs` (which one is used up).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.records import admission_writes, admitted_by, drains, epochs, slice_condition, status_writes
from gatelift.core.records.attempts import Ending
from gatelift_kinds.shared import pod_trouble
from gatelift_kube.objects.conditions import FALSE, TRUE, find, put, without
from gatelift_kube.objects.kueue import AdmissionCheckState, EvictionCount, RequeueState, SchedulingStats, Workload
from gatelift_kube.objects.meta import Condition


def eviction_write(workload: Workload, ending: Ending, wall: str) -> bytes:
    """Write Evicted=True; the winner stays until it has stopped, so that a restart knows whom to ask."""
    conditions = _evicted(workload, (ending.reason, ending.message), ending.preempted, wall)
    stats = _counted(workload, ending.reason, ending.cause)
    return status_writes.status_write(workload, conditions=conditions, scheduling_stats=stats)


def _evicted(workload: Workload, said: tuple[str, str], preempted: str, wall: str) -> tuple[Condition, ...]:
    before = without(workload.status.conditions, texts.DEACTIVATION_TARGET)  # what it announced is said here
    before = without(before, drains.CONDITION)  # of an end before this one, or nobody's: this one has freed nothing yet
    conditions = put(before, status_writes.condition(workload, texts.EVICTED, TRUE, *said), wall)
    if preempted:
        conditions = put(conditions, status_writes.condition(workload, texts.PREEMPTED, TRUE, preempted, said[1]), wall)
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


NOTHING_USED = Used(check="", epoch=0, term=0)


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
    conditions = without(conditions, drains.CONDITION)
    conditions = without(conditions, admitted_by.ADMITTED_BY)
    conditions = without(conditions, slice_condition.SLICE)
    conditions = status_writes.with_each(conditions, given_back.besides, wall)
    waits = status_writes.condition(workload, texts.QUOTA_RESERVED, FALSE, given_back.reason, given_back.message)
    conditions = put(conditions, waits, wall)
    if find(conditions, texts.ADMITTED) is not None:
        lost = texts.WORKLOAD_HAS_NO_RESERVATION
        conditions = put(
            conditions, status_writes.condition(workload, texts.ADMITTED, FALSE, texts.NO_RESERVATION, lost), wall
        )
    if find(conditions, texts.PODS_READY) is not None:
        conditions = put(conditions, status_writes.waits_for_start(workload), wall)
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
        requeued = status_writes.condition(workload, texts.REQUEUED, status_requeued, was.reason, was.message)
        conditions = put(conditions, requeued, wall)
        if requeue is not None and requeue.at:
            before = workload.status.requeue_state or RequeueState()
            status["requeue_state"] = msgspec.structs.replace(before, count=requeue.count, requeue_at=requeue.at)
        if was.reason.startswith(texts.DEACTIVATED):
            status["requeue_state"] = None  # a person who reactivates it starts the counting anew
        if evicted is not None:
            status["scheduling_stats"] = _counted(workload, evicted.reason, evicted.cause)
    status["conditions"] = conditions if used.check else put(conditions, _used_up(workload, used), wall)
    return status_writes.status_write(workload, **status)


def unsaid_write(workload: Workload, late: Collection[str], not_before: str, wall: str) -> bytes:
    """Take back what these checks have said of a slice that waits to grow what runs, and that it is to be deactivated.

    `not_before`: as of `growth_struck_write`.
    """
    checks = workload.status.admission_checks
    return status_writes.status_write(
        workload,
        conditions=without(workload.status.conditions, texts.DEACTIVATION_TARGET),
        admission_checks=tuple(_reset(each, "", wall) if each.name in late else each for each in checks),
        requeue_state=_later(workload, not_before),
    )


def growth_struck_write(workload: Workload, said: tuple[str, str], not_before: str, wall: str) -> bytes:
    """Give back what was reserved to grow what runs: nothing ran by it, so no epoch is used and nothing is evicted.

    `said`: reason and message of why it has no quota; `not_before`: the wall time before which it is not tried again.
    """
    waits = status_writes.condition(workload, texts.QUOTA_RESERVED, FALSE, *said)
    return status_writes.status_write(
        workload,
        conditions=put(workload.status.conditions, waits, wall),
        admission=None,
        admission_checks=_reset_checks(workload, "", NOTHING_USED, wall),
        requeue_state=_later(workload, not_before),
    )


def _later(workload: Workload, not_before: str) -> RequeueState | None:
    before = workload.status.requeue_state
    return msgspec.structs.replace(before or RequeueState(), requeue_at=not_before) if not_before else before


def _reset_checks(workload: Workload, retried: str, used: Used, wall: str) -> tuple[AdmissionCheckState, ...]:
    """Return all checks Pending again; `retried` says why the dispatching one had to be given up: a Retry of ours."""
    states = []
    for check in workload.status.admission_checks:
        ours = check.name == used.check
        why = retried if ours else ""
        marks = (admission_writes.mark(workload, epoch=used.epoch, term=used.term),) if ours else ()
        if check.state == texts.PENDING and not check.pod_set_updates:
            states.append(msgspec.structs.replace(check, pod_set_updates=marks))
            continue
        states.append(msgspec.structs.replace(_reset(check, why, wall), pod_set_updates=marks))
    return tuple(states)


def _reset(check: AdmissionCheckState, why: str, wall: str) -> AdmissionCheckState:
    retries = check.retry_count
    return AdmissionCheckState(
        name=check.name,
        state=texts.PENDING,
        message=texts.reset_check(check.state, why),
        last_transition_time=wall,
        retry_count=(retries or 0) + 1 if why or check.state == texts.RETRY else retries,
        more=check.more,
    )


def _used_up(workload: Workload, used: Used) -> Condition:
    return status_writes.condition(workload, epochs.EPOCH_USED, TRUE, epochs.RETURNED, str(used.epoch))
