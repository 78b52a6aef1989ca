"""The one patch of WorkerCluster.status that says all facts of a worker cluster, and whether it is due. Pure.

Neighbours: `cluster_facts` (what is said), `cluster_conditions` (what people are shown of it), `cluster_record`
(decides when it goes out).
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift.core.api import documents
from gatelift.core.clusters import cluster_conditions
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.foreign_runs import ANY
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.objects import gatelift_bounds as bounds
from gatelift_kube.objects.gatelift import Predecessor, WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey


def differs(found: WorkerCluster, facts: Facts) -> bool:
    """Say whether the status no longer tells what is true."""
    status = found.status
    shown = (status.connected, status.opened_session)
    true = (facts.connected, facts.opened_session)
    if _doubted(status) != _doubted(facts):
        return True
    if status.lease_seconds != facts.lease_seconds:
        return True
    if (status.predecessors, status.foreign) != (predecessors(found, facts), facts.foreign):
        return True
    counts = (status.placements, status.offers, status.agent_replicas)
    informs = facts.capacity is not facts.written_capacity or counts != (facts.placements, facts.offers, facts.replicas)
    certificate = bool(facts.certificate_issued_at) and status.certificate_issued_at != facts.certificate_issued_at
    if found.spec.revoked and found.status.key_digest:
        return True
    if shown != true or (facts.informs and informs) or certificate:
        return True
    return not all(cluster_conditions.shows(found, condition) for condition in cluster_conditions.of(found, facts))


def _doubted(said: Facts | WorkerClusterStatus) -> tuple[int, ...]:
    sessions = (said.restored_session, said.replaced_session, said.taken_over_session, said.settled_session)
    return (*sessions, said.unexplained or 0)


def document(found: WorkerCluster, facts: Facts, wall: str) -> dict[str, Any]:
    """Return the `.status` of a merge patch that says all facts, but for those that only inform where `informs` is off.

    What follows from the protocol (session, lost, doubts, what holds work) never depends on those.
    """
    status: dict[str, Any] = {
        "term": max(facts.term, found.status.term),
        "session": max(facts.session, found.status.session),
        "openedSession": facts.opened_session,
        "restoredSession": facts.restored_session,
        "replacedSession": facts.replaced_session,
        "takenOverSession": facts.taken_over_session,
        "settledSession": facts.settled_session,
        "clusterUid": facts.cluster_uid,
        "agentLease": facts.agent_lease,
        "mark": facts.mark,
        "unexplained": facts.unexplained or 0,
        "leaseSeconds": facts.lease_seconds,
        "connected": facts.connected,
        "agentInstance": facts.agent_instance,
        "apiReachable": facts.api_reachable,
        "predecessors": predecessors(found, facts),
        "foreign": facts.foreign,
        "lastSeen": facts.last_seen or found.status.last_seen,
        "conditions": documents.conditions(cluster_conditions.put(found, facts, wall)),
    }
    if _says_more(found.status, facts):
        status |= {"fencedThroughSession": facts.fenced_through, "fencedBy": facts.fenced_by, "fencedAt": wall}
        status |= {"fencedAfter": facts.fenced_after, "fencedAfterThrough": facts.fenced_after_through}
    if facts.informs:
        status |= _informs(facts)
    if facts.certificate_issued_at:
        status["certificateIssuedAt"] = facts.certificate_issued_at
    if found.spec.revoked:
        # The key's approval ends with the revocation: a cluster that is added again starts from a new token.
        status |= {"keyDigest": "", "enrolment": None}
    return status


def _says_more(status: WorkerClusterStatus, facts: Facts) -> bool:
    """Say whether a person's word is to be written: about a later session, or after a restore that was found since."""
    if facts.fenced_through != status.fenced_through_session:
        return facts.fenced_through > status.fenced_through_session
    after = (status.fenced_after, status.fenced_after_through)
    return (facts.fenced_after, facts.fenced_after_through) != after


def predecessors(found: WorkerCluster, facts: Facts) -> tuple[Predecessor, ...]:
    """Return what is to be remembered: what this process knows, and what stands there and is not known to be over.

    What finds no room is remembered as one that stands for all objects.
    """
    known = {PlacementKey(each.workload_uid, each.epoch) for each in facts.predecessors} | facts.predecessors_over
    kept = (one for one in found.status.predecessors if PlacementKey(one.workload_uid, one.epoch) not in known)
    every = (*facts.predecessors, *kept)
    if len(every) <= bounds.PREDECESSORS_MAX:
        return every
    named = [each for each in every if each.kind != ANY.kind or each.name != ANY.name]
    session = max(each.session for each in every)
    return (*named[: bounds.PREDECESSORS_MAX - 1], Predecessor(*ANY, workload_uid=ANY.name, epoch=1, session=session))


def patch(write_id: int, found: WorkerCluster, status: dict[str, Any]) -> Patch:
    """Return the status write, conditional on UID and resourceVersion."""
    metadata = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
    return Patch(
        write_id=write_id,
        ref=ObjectRef(WORKER_CLUSTER, ObjectKey("", found.metadata.name)),
        body=msgspec.json.encode({"metadata": metadata, "status": status}),
        subresource="status",
    )


def _informs(facts: Facts) -> dict[str, Any]:
    """Return what only people read: a part of the document that may be left out of any write."""
    said: dict[str, Any] = {
        "agentVersion": facts.agent_version,
        "agentReplicas": facts.replicas,
        "placements": facts.placements,
        "offers": facts.offers,
    }
    return said if facts.capacity is None else {**said, "capacity": facts.capacity.shown.capacity}
