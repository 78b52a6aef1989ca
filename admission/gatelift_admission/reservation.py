"""A reservation in words: what was granted per pod set, and the decision that the caller has to write.

Neighbours: `cycle` decides and charges; `flavors` found what is described here.
"""

from __future__ import annotations

from gatelift_admission import amounts, checks, texts
from gatelift_admission.entry import Entry
from gatelift_admission.flavors import AssignedPodSet, Assignment
from gatelift_admission.model import GrantedPodSet, Reserve
from gatelift_admission.ordering import waiting_since
from gatelift_admission.queues import QueueModel
from gatelift_kube.objects.kueue import Admission, PodSetAssignment


def granted(assignment: Assignment) -> tuple[GrantedPodSet, ...]:
    """Return what each pod set is granted."""
    return tuple(
        GrantedPodSet(
            name=one.name,
            flavors=one.flavors,
            usage={name: one.requests[name] for name in one.flavors},
            count=one.count,
        )
        for one in assignment.pod_sets
    )


def decision(entry: Entry, queue: QueueModel, assignment: Assignment, unix_now: float) -> Reserve:
    """Return the reservation that has to be written; the wait counts up to `unix_now` (Unix seconds)."""
    wait = max(0.0, unix_now - waiting_since(entry.workload))
    considered = assignment.considered
    return Reserve(
        uid=entry.uid,
        key=entry.key,
        admission=Admission(queue.name, tuple(_written(one) for one in assignment.pod_sets)),
        checks=checks.required(queue.spec, (name for one in assignment.pod_sets for name in one.flavors.values())),
        wait_seconds=wait,
        flavors_considered=considered,
        message=texts.quota_reserved(queue.name),
        event=texts.quota_reserved_event(queue.name, wait, considered),
    )


def _written(one: AssignedPodSet) -> PodSetAssignment:
    return PodSetAssignment(
        name=one.name,
        flavors=one.flavors,
        resource_usage={name: amounts.to_text(one.requests[name], name) for name in one.flavors},
        count=one.count,
    )
