"""A reservation in words: what was granted per pod set, and the decision that the caller has to write.

Neighbours: `outcomes` charges it.
"""

from __future__ import annotations

from gatelift_admission import texts
from gatelift_admission.demand.grants import Grant, GrantedPodSet
from gatelift_admission.demand.growth import together
from gatelift_admission.entries import checks
from gatelift_admission.entries.entry import Entry
from gatelift_admission.entries.ordering import waiting_since
from gatelift_admission.flavors.assignment import Assignment
from gatelift_admission.flavors.plain import Fit
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Reserve
from gatelift_kube.objects.kueue import Admission, PodSetAssignment


def outcome(plan: Plan, queue: QueueModel) -> Fit:
    """Return what a plan that fits grants; of a workload without a choice once for all that are like it."""
    demand = plan.demand
    if demand is None:
        return _outcome(plan.assignment, queue)
    found = demand.outcomes.get(plan.levels)
    if found is None:
        demand.fill(plan.assignment, plan.levels)
        found = demand.outcomes[plan.levels] = _outcome(plan.assignment, queue)
    return found


def _outcome(assignment: Assignment, queue: QueueModel) -> Fit:
    granted = tuple(
        GrantedPodSet(
            name=one.name,
            flavors=one.flavors,
            usage={name: one.requests[name] for name in one.flavors},
            count=one.count,
        )
        for one in assignment.pod_sets
    )
    if assignment.held is not None:
        granted = tuple(together(assignment.held.get(one.name), one) for one in granted)
    written = Admission(queue.name, tuple(_written(one) for one in granted))
    grant = Grant.of(written, granted)
    required = checks.required(queue.spec, (flavor for flavor, _ in grant.cells))
    return Fit(grant, assignment.considered, required)


def _written(one: GrantedPodSet) -> PodSetAssignment:
    return PodSetAssignment(
        name=one.name,
        flavors=one.flavors,
        resource_usage={name: amounts.to_quantity(one.usage[name], name) for name in one.flavors},
        count=one.count,
    )


def decision(entry: Entry, queue: QueueModel, found: Fit, unix_now: float, replaces: str) -> Reserve:
    """Return the reservation that has to be written; the wait counts up to `unix_now` (Unix seconds).

    `replaces`: the slice whose place it takes, "" for none.
    """
    wait = max(0.0, unix_now - waiting_since(entry.workload))
    return Reserve(
        uid=entry.uid,
        key=entry.key,
        admission=found.grant.written,
        checks=found.checks,
        wait_seconds=wait,
        flavors_considered=found.considered,
        message=texts.quota_reserved(queue.name),
        event=texts.quota_reserved_event(queue.name, wait, found.considered),
        replaces=replaces,
    )
