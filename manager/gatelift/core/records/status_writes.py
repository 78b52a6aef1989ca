"""The write of a Workload's whole status, and the writes that change one thing that it says.

Every write carries UID and resourceVersion of the version it was decided on, and the whole status, what we do not know
of it too (decision 16). Neighbours: `admission_writes` and `release_writes` (which change many things at once),
`own_conditions` (whose condition has room).
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.api import documents
from gatelift.core.records import drains, own_conditions
from gatelift_kinds.shared import pod_trouble
from gatelift_kube.objects.conditions import FALSE, TRUE, fitting, is_true, put, without
from gatelift_kube.objects.kueue import PodSetResources, ReclaimablePod, Workload
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.resources import WORKLOAD

_ENCODE = msgspec.json.Encoder().encode


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


def with_each(conditions: tuple[Condition, ...], besides: tuple[Condition, ...], wall: str) -> tuple[Condition, ...]:
    """Return the conditions with some others put among them."""
    for one in besides:
        conditions = put(conditions, one, wall)
    return conditions


def waits_for_start(workload: Workload) -> Condition:
    """Return PodsReady as it is when nothing has run in this admission."""
    return condition(workload, texts.PODS_READY, FALSE, texts.WAIT_FOR_START, texts.PODS_NOT_READY)


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


def finished_write(
    workload: Workload, reason: str, message: str, wall: str, besides: tuple[Condition, ...] = ()
) -> bytes:
    """Write Finished=True, which is final, and some conditions besides."""
    finished = condition(workload, texts.FINISHED, TRUE, reason, message)
    kept = without(without(workload.status.conditions, texts.HELD), pod_trouble.CONDITION)
    kept = without(kept, drains.CONDITION)
    if is_true(kept, texts.REPLACEMENTS):  # else it would go on to ask for pods that nobody lets go (HD-652)
        besides = (*besides, condition(workload, texts.REPLACEMENTS, FALSE, reason, texts.NOBODY_REPLACED))
    return status_write(workload, conditions=put(with_each(kept, besides, wall), finished, wall))
