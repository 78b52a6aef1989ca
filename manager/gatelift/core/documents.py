"""Typed parts of a status as JSON documents, with every field that the CRDs require, empty or not. Pure.

The structs leave out defaults when they are encoded, which suits reading; a Condition without `message`, though, or a
check state without `state`, is refused by the API server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheckState,
    EvictionCount,
    FlavorUsage,
    PodSetResources,
    PodSetUpdate,
    QueueStatus,
)
from gatelift_kube.objects.meta import Condition
from gatelift_kube.unknown_fields import put_back

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


def admission(value: Admission) -> Document:
    """Return Workload.status.admission."""
    assignments = []
    for one in value.pod_set_assignments:
        document: Document = {"name": one.name, "flavors": one.flavors, "resourceUsage": one.resource_usage}
        if one.count is not None:
            document["count"] = one.count
        assignments.append(document)
    return {"clusterQueue": value.cluster_queue, "podSetAssignments": assignments}


def requests(values: Iterable[PodSetResources]) -> list[Document]:
    """Return Workload.status.resourceRequests."""
    return [{"name": one.name, "resources": one.resources} for one in values]


def checks(values: Iterable[AdmissionCheckState]) -> list[Document]:
    """Return Workload.status.admissionChecks."""
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


def evictions(values: Iterable[EvictionCount]) -> list[Document]:
    """Return Workload.status.schedulingStats.evictions."""
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
