"""Typed parts of a status as JSON documents, with every field that the CRDs require, empty or not. Pure.

The structs leave out defaults when they are encoded, which suits reading; a Condition without `message`, though, or a
check state without `state`, is refused by the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gatelift_kube.decoding.unknown_fields import put_back
from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheckState,
    EvictionCount,
    FlavorUsage,
    PodSetResources,
    PodSetUpdate,
    QueueStatus,
    ReclaimablePod,
    RequeueState,
    SchedulingStats,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition

Document = dict[str, Any]


def conditions(values: Iterable[Condition]) -> list[Document]:
    """Return metav1.Conditions."""
    documents = []
    for value in values:
        document: Document = {
            "type": value.type,
            "status": value.status,
            "reason": value.reason or value.type,  # required, at least one character
            "message": value.message,
            "lastTransitionTime": value.last_transition_time,
        }
        if value.observed_generation:
            document["observedGeneration"] = value.observed_generation
        documents.append(put_back(value, document) if value.more else document)
    return documents


def workload_status(status: WorkloadStatus) -> Document:
    """Return the whole of Workload.status, as a write that replaces it carries it. What is empty is left out."""
    document: Document = {}
    for field, name in _WORKLOAD_FIELDS:
        value = getattr(status, field)
        if value is None or value == ():
            continue
        form = _WORKLOAD_FORMS.get(field)
        document[name] = form(value) if form is not None else value
    return put_back(status, document) if status.more else document


def admission(value: Admission) -> Document:
    """Return Workload.status.admission."""
    assignments = []
    for one in value.pod_set_assignments:
        document: Document = {"name": one.name, "flavors": one.flavors, "resourceUsage": one.resource_usage}
        if one.count is not None:
            document["count"] = one.count
        assignments.append(put_back(one, document) if one.more else document)
    whole: Document = {"clusterQueue": value.cluster_queue, "podSetAssignments": assignments}
    return put_back(value, whole) if value.more else whole


def _requests(values: Iterable[PodSetResources]) -> list[Document]:
    return [put_back(one, {"name": one.name, "resources": one.resources}) for one in values]


def _reclaimable(values: Iterable[ReclaimablePod]) -> list[Document]:
    return [put_back(one, {"name": one.name, "count": one.count}) for one in values]


def _requeue_state(value: RequeueState) -> Document:
    document: Document = {"count": value.count}
    if value.requeue_at is not None:
        document["requeueAt"] = value.requeue_at
    return put_back(value, document)


def _scheduling_stats(value: SchedulingStats) -> Document:
    return put_back(value, {"evictions": _evictions(value.evictions)})


def _checks(values: Iterable[AdmissionCheckState]) -> list[Document]:
    documents = []
    for value in values:
        document: Document = {
            "name": value.name,
            "state": value.state,
            "message": value.message,
            "lastTransitionTime": value.last_transition_time,
        }
        if value.requeue_after_seconds is not None:
            document["requeueAfterSeconds"] = value.requeue_after_seconds
        if value.retry_count is not None:
            document["retryCount"] = value.retry_count
        if value.pod_set_updates:
            document["podSetUpdates"] = [_update(update) for update in value.pod_set_updates]
        documents.append(put_back(value, document) if value.more else document)
    return documents


def _update(value: PodSetUpdate) -> PodSetUpdate | Document:
    if not value.more:
        return value
    document: Document = msgspec.to_builtins(msgspec.structs.replace(value, more=None))
    return put_back(value, document)


def _evictions(values: Iterable[EvictionCount]) -> list[Document]:
    documents = []
    for value in values:
        document = {"reason": value.reason, "underlyingCause": value.underlying_cause, "count": value.count}
        documents.append(put_back(value, document))
    return documents


def queue_status(value: QueueStatus, *, borrows: bool) -> Document:
    """Return the status of a queue, zeros too, since a merge patch has to overwrite what was there.

    `borrows` false (LocalQueue): its CRD has no `borrowed` and prunes it.
    """
    fair = value.fair_sharing if borrows else None
    return {
        "conditions": conditions(value.conditions),
        **({"fairSharing": share(fair.weighted_share)} if fair is not None else {}),
        "pendingWorkloads": value.pending_workloads,
        "reservingWorkloads": value.reserving_workloads,
        "admittedWorkloads": value.admitted_workloads,
        "flavorsReservation": _usage(value.flavors_reservation, borrows=borrows),
        "flavorsUsage": _usage(value.flavors_usage, borrows=borrows),
    }


def share(weighted: int) -> Document:
    """Return the `fairSharing` part of a status, a share of zero too."""
    return {"weightedShare": weighted}


def _usage(flavors: Iterable[FlavorUsage], *, borrows: bool) -> list[Document]:
    return [
        {
            "name": flavor.name,
            "resources": [
                {"name": one.name, "total": str(one.total), **({"borrowed": str(one.borrowed)} if borrows else {})}
                for one in flavor.resources
            ],
        }
        for flavor in flavors
    ]


_WORKLOAD_FIELDS = tuple(
    (field, name)
    for field, name in zip(WorkloadStatus.__struct_fields__, WorkloadStatus.__struct_encode_fields__, strict=True)
    if field != "more"
)
_WORKLOAD_FORMS: dict[str, Callable[[Any], Any]] = {
    "conditions": conditions,
    "admission": admission,
    "admission_checks": _checks,
    "reclaimable_pods": _reclaimable,
    "requeue_state": _requeue_state,
    "scheduling_stats": _scheduling_stats,
    "resource_requests": _requests,
}
