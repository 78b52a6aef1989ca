"""The writes of sizes: of a record that moves to the next slice of its chain, and of one that is charged less. Pure.

The first is one status write of that slice: winner, epoch, policy and counts, copied from the record and not chosen
anew, in the term of who writes it, conditional on the version at which its number was read (Size 1). The second comes
after the cluster has answered (Size 2). Neighbours: `admission_writes`, `status_writes`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gatelift.core import texts
from gatelift.core.records import admission_writes, admitted_by, epochs, reclaimed, slice_condition, status_writes
from gatelift.core.records.record import names_winner
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, Reserve
from gatelift_kube.objects.conditions import TRUE, find, put
from gatelift_kube.objects.kueue import Admission, AdmissionCheckState, PodSetAssignment, ReclaimablePod, Workload
from gatelift_kube.objects.meta import Condition
from gatelift_wire.values.keys import ANNOTATION_TERM


def growth_write(target: Workload, record: Workload, reserve: Reserve, term: int, wall: str) -> bytes:
    """Write that a slice is the record from now on, in the place of `record`: all that this says of its placement.

    Since when quota is reserved and admitted goes along: what runs is no younger for having grown.
    """
    conditions = admission_writes.reset_by_reservation(target, target.status.conditions, wall)
    if not record.status.cluster_name:
        conditions = admission_writes.with_epoch(target, conditions, epochs.of(record), wall)
    reserved = status_writes.condition(target, texts.QUOTA_RESERVED, TRUE, texts.QUOTA_RESERVED, reserve.message)
    admitted = status_writes.condition(target, texts.ADMITTED, TRUE, texts.ADMITTED, texts.WORKLOAD_ADMITTED)
    others = _others(record, reserve) or admitted_by.names(record)
    conditions = admitted_by.told(conditions, others, target.metadata.generation, wall)
    grown = slice_condition.grown(target, _counts(reserve.admission), record)
    for one in (reserved, admitted, grown, find(record.status.conditions, texts.PODS_READY)):
        if one is not None:
            conditions = put(conditions, one, wall)
    status = record.status
    return status_writes.status_write(
        target,
        conditions=_since(conditions, status.conditions),
        admission=reserve.admission,
        admission_checks=_checks(target, record, reserve, term),
        cluster_name=status.cluster_name or None,
        nominated_cluster_names=(),
        resource_requests=(),
        accumulated_past_execution_time_seconds=status.accumulated_past_execution_time_seconds,
    )


def _others(record: Workload, reserve: Reserve) -> tuple[str, ...]:
    """Return the checks of other controllers by which a growth was reserved."""
    ours = {check.name for check in record.status.admission_checks if names_winner(check)}
    return tuple(name for name in reserve.checks if name not in ours)


def _checks(target: Workload, record: Workload, reserve: Reserve, term: int) -> tuple[AdmissionCheckState, ...]:
    """Return the states of checks that a growth is written with: what others said of it, and where the record runs.

    What others want on its pods is for those that come with it (UG-017). Where none is asked all stays as it was.
    """
    before, others = record.status.admission_checks, _others(record, reserve)
    if not others:
        return tuple(_in_term(check, term) for check in before)
    ours = [_in_term(check, term) for check in before if names_winner(check)]
    said = [check for check in target.status.admission_checks if check.name in others]
    return tuple(sorted((*ours, *said), key=lambda check: check.name))


_GO_ALONG = frozenset({texts.QUOTA_RESERVED, texts.ADMITTED, texts.PODS_READY})


def _since(conditions: tuple[Condition, ...], before: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Return conditions that stand since when those of the same type and status stood before."""
    stood = {(each.type, each.status): each.last_transition_time for each in before if each.type in _GO_ALONG}
    return tuple(
        msgspec.structs.replace(
            each, last_transition_time=stood.get((each.type, each.status), each.last_transition_time)
        )
        for each in conditions
    )


def _in_term(check: AdmissionCheckState, term: int) -> AdmissionCheckState:
    """Return the state of a check, with what stands in it of a winner in the term of who writes it (R3)."""
    updates = tuple(
        msgspec.structs.replace(update, annotations={**update.annotations, ANNOTATION_TERM: str(term)})
        if ANNOTATION_TERM in update.annotations
        else update
        for update in check.pod_set_updates
    )
    return msgspec.structs.replace(check, pod_set_updates=updates)


def lowered(admission: Admission, counts: Mapping[str, int]) -> Admission:
    """Return a reservation for so many pods, in the pod sets in which these are fewer; none is raised."""
    assignments = tuple(_of_pods(one, counts.get(one.name)) for one in admission.pod_set_assignments)
    return msgspec.structs.replace(admission, pod_set_assignments=assignments)


def raised(admission: Admission, counts: Mapping[str, int], per_pod: Mapping[str, Amounts]) -> Admission:
    """Return a reservation for so many pods, in the pod sets in which these are more; none is lowered.

    `per_pod`: what one pod requests, of a pod set that has none now: its reservation does not tell that.
    """
    assignments = tuple(_raised(one, counts.get(one.name, 0), per_pod) for one in admission.pod_set_assignments)
    return msgspec.structs.replace(admission, pod_set_assignments=assignments)


def _raised(one: PodSetAssignment, count: int, per_pod: Mapping[str, Amounts]) -> PodSetAssignment:
    if one.count is None or count <= one.count:
        return one
    if one.count:
        return _with_pods(one, count)
    requested = per_pod.get(one.name, {})
    usage = {name: amounts.multiply(requested.get(name, 0), count) for name in one.flavors}
    said = {name: amounts.to_quantity(amount, name) for name, amount in usage.items()}
    return msgspec.structs.replace(one, resource_usage=said, count=count)


def _of_pods(one: PodSetAssignment, count: int | None) -> PodSetAssignment:
    if count is None or one.count is None or not 0 <= count < one.count:
        return one
    return _with_pods(one, count)


def _with_pods(one: PodSetAssignment, count: int) -> PodSetAssignment:
    before = one.count or 1
    usage = {
        name: amounts.to_quantity(amounts.parse(quantity, name) // before * count, name)
        for name, quantity in one.resource_usage.items()
    }
    return msgspec.structs.replace(one, resource_usage=usage, count=count)


def shrink_write(known: Workload, admission: Admission, wall: str) -> bytes:
    """Write that a record is charged less: what it was answered that no more can run than that.

    With it that fewer of those that are over are free: else the next leader would take these off what is left (HD-551).
    """
    granted = _counts(admission)
    over = tuple(ReclaimablePod(name, count) for name, count in reclaimed.lowered(known, granted))
    conditions = put(known.status.conditions, slice_condition.shrunk(known, granted), wall)
    return status_writes.status_write(known, admission=admission, reclaimable_pods=over, conditions=conditions)


def _counts(admission: Admission) -> dict[str, int]:
    return {one.name: one.count or 0 for one in admission.pod_set_assignments}
