"""What may be written on a Workload, at creation and as a change. Neighbour: `validation` for the other kinds."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from gatelift_admission.entries.entry import Phase, phase_of
from gatelift_admission.entries.ordering import is_true
from gatelift_admission.feed.validation import InvalidField, quantity_errors
from gatelift_admission.values.amounts import QuantityError, parse
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.core import POD_COUNT, Container, PodSpec, ResourceRequirements
from gatelift_kube.objects.kueue import PodSet, PodSetAssignment, Workload

POD_SETS_MAX: Final = 18
POD_SET_GROUP_NAME_MAX: Final = 317
"""Characters, as in Kueue's API: what a qualified name may have."""
CHECK_STATES_MAX: Final = 8
_ELASTIC: Final = "kueue.x-k8s.io/elastic-job"


def elastic_errors(workload: Workload) -> list[InvalidField]:
    """Return what is wrong with an elastic Workload besides, where sizes change: fewer pods are no wish of it.

    Not asked yet: `workload_errors` alone is, until elastic Jobs are served.
    """
    if workload.metadata.annotations.get(_ELASTIC) != "true":
        return []
    text = "cannot be combined with kueue.x-k8s.io/elastic-job: drop one of them"
    return [
        InvalidField(f"spec.podSets[{index}].minCount", text)
        for index, one in enumerate(workload.spec.pod_sets)
        if one.min_count is not None
    ]


def workload_errors(workload: Workload) -> list[InvalidField]:
    """Return what is wrong with a Workload by itself."""
    pod_sets = workload.spec.pod_sets
    errors = []
    if not 1 <= len(pod_sets) <= POD_SETS_MAX:
        rule = f"has {len(pod_sets)} items, 1 to {POD_SETS_MAX} are allowed: merge or split the workload"
        errors.append(InvalidField("spec.podSets", rule))
    names = [one.name for one in pod_sets]
    errors += [
        InvalidField("spec.podSets", f"name {name!r} appears more than once: keep one")
        for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if sum(one.min_count is not None for one in pod_sets) > 1:
        errors.append(InvalidField("spec.podSets", "at most one podSet can use minCount: drop the others"))
    for index, one in enumerate(pod_sets):
        errors += _pod_set_errors(f"spec.podSets[{index}]", one)
    return errors + _status_errors(workload, {one.name: one for one in pod_sets})


def _pod_set_errors(at: str, pod_set: PodSet) -> list[InvalidField]:
    errors = []
    if pod_set.count < 0:
        errors.append(InvalidField(f"{at}.count", f"{pod_set.count} is negative: write 0 or more"))
    if pod_set.min_count is not None and not 0 < pod_set.min_count <= pod_set.count:
        errors.append(
            InvalidField(f"{at}.minCount", f"must be between 1 and count ({pod_set.count}): change one of them")
        )
    group = pod_set.topology_request.pod_set_group_name if pod_set.topology_request is not None else ""
    if len(group) > POD_SET_GROUP_NAME_MAX:
        rule = f"has {len(group)} characters, {POD_SET_GROUP_NAME_MAX} are allowed: take a shorter name for the group"
        errors.append(InvalidField(f"{at}.topologyRequest.podSetGroupName", rule))
    return errors + _pod_errors(f"{at}.template.spec", pod_set.template.spec)


def _pod_errors(at: str, spec: PodSpec) -> list[InvalidField]:
    errors = []
    listed: list[tuple[str, tuple[Container, ...]]] = [
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
    ]
    for field, containers in listed:
        for index, container in enumerate(containers):
            errors += _resource_errors(f"{at}.{field}[{index}].resources", container.resources)
    if spec.resources is not None:
        errors += _resource_errors(f"{at}.resources", spec.resources)
    for name, quantity in spec.overhead.items():
        errors += quantity_errors(f"{at}.overhead[{name}]", quantity, name)
    return errors


def _resource_errors(at: str, resources: ResourceRequirements) -> list[InvalidField]:
    errors = []
    for field, quantities in (("requests", resources.requests), ("limits", resources.limits)):
        for name, quantity in quantities.items():
            errors += quantity_errors(f"{at}.{field}[{name}]", quantity, name)
            if name == POD_COUNT:
                rule = "the resource pods is counted by Kueue and cannot be requested: drop it"
                errors.append(InvalidField(f"{at}.{field}[{name}]", rule))
    return errors


def _status_errors(workload: Workload, pod_sets: dict[str, PodSet]) -> list[InvalidField]:
    errors = []
    status = workload.status
    for index, done in enumerate(status.reclaimable_pods):
        known = pod_sets.get(done.name)
        at = f"status.reclaimablePods[{index}]"
        if known is None:
            errors.append(_unknown(f"{at}.name", done.name))
        elif not 0 <= done.count <= known.count:
            errors.append(InvalidField(f"{at}.count", f"must be between 0 and the podSet's count ({known.count})"))
    if len(status.admission_checks) > CHECK_STATES_MAX:
        errors.append(
            InvalidField("status.admissionChecks", f"at most {CHECK_STATES_MAX} items are allowed: remove some")
        )
    for index, check in enumerate(status.admission_checks):
        errors += [
            _unknown(f"status.admissionChecks[{index}].podSetUpdates[{number}].name", update.name)
            for number, update in enumerate(check.pod_set_updates)
            if update.name not in pod_sets
        ]
    if is_true(workload, "QuotaReserved") and status.admission is None:
        errors.append(InvalidField("status.admission", "is required while QuotaReserved is True: set both or none"))
    if status.admission is not None:
        for index, granted in enumerate(status.admission.pod_set_assignments):
            errors += _granted_errors(f"status.admission.podSetAssignments[{index}]", granted, pod_sets)
    return errors


def _granted_errors(at: str, granted: PodSetAssignment, pod_sets: dict[str, PodSet]) -> list[InvalidField]:
    known = pod_sets.get(granted.name)
    if known is None:
        return [_unknown(f"{at}.name", granted.name)]
    count = granted.count if granted.count is not None else known.count
    errors = []
    for name, quantity in granted.resource_usage.items():
        field = f"{at}.resourceUsage[{name}]"
        try:
            amount = parse(quantity, name)
        except QuantityError as error:
            errors.append(InvalidField(field, str(error)))
            continue
        if count > 0 and amount % count:
            errors.append(InvalidField(field, f"{quantity} is not a multiple of count ({count}): correct one of them"))
    return errors


def _unknown(field: str, name: str) -> InvalidField:
    return InvalidField(field, f"{name!r} is no podSet of this workload: correct the name")


def workload_change_errors(new: Workload, old: Workload) -> list[InvalidField]:
    """Return what is wrong with the change from `old` to `new`, besides `workload_errors(new)`."""
    reserving = {Phase.RESERVED, Phase.ADMITTED}
    before = phase_of(old)
    stays = before in reserving and phase_of(new) in reserving
    errors = []
    if before in reserving:
        if not _only_shrinks(new, old):
            errors += _immutable("spec.podSets", new.spec.pod_sets, old.spec.pod_sets)
        errors += _immutable("spec.priorityClassRef", _class_kind(new), _class_kind(old))
    if stays:
        errors += _immutable("spec.queueName", new.spec.queue_name, old.spec.queue_name)
        errors += _reclaim_errors(new, old)
    if before is Phase.ADMITTED:
        limits = (new.spec.maximum_execution_time_seconds, old.spec.maximum_execution_time_seconds)
        errors += _immutable("spec.maximumExecutionTimeSeconds", *limits)
    if old.status.admission is not None and new.status.admission is not None:
        # What has no place in our structs, such as a topology assignment, is not ours to judge.
        errors += _immutable("status.admission", known_part(new.status.admission), known_part(old.status.admission))
    return errors + _check_update_errors(new, old) + _cluster_errors(new, old, stays=stays)


def _only_shrinks(new: Workload, old: Workload) -> bool:
    """Return whether an elastic workload has fewer pods than before, and nothing else of its pod sets changed."""
    if new.metadata.annotations.get(_ELASTIC) != "true" or len(new.spec.pod_sets) != len(old.spec.pod_sets):
        return False
    return all(
        after.count <= before.count and structs.replace(after, count=before.count) == before
        for after, before in zip(new.spec.pod_sets, old.spec.pod_sets, strict=True)
    )


def _class_kind(workload: Workload) -> tuple[str, str, str]:
    """Return what of the priority class reference is fixed: its kind, and the name too if it is a pod's class."""
    ref = workload.spec.priority_class_ref
    if ref is None:
        return "", "", ""
    return ref.group, ref.kind, ref.name if ref.kind == "PriorityClass" else ""


def _immutable(field: str, new: object, old: object) -> list[InvalidField]:
    if new == old:
        return []
    return [InvalidField(field, "field is immutable while quota is reserved: deactivate the workload first")]


def _reclaim_errors(new: Workload, old: Workload) -> list[InvalidField]:
    now = {done.name: done.count for done in new.status.reclaimable_pods}
    return [
        InvalidField(
            "status.reclaimablePods",
            f"count of {done.name!r} cannot fall below {done.count} while quota is reserved: leave it, or raise it",
        )
        for done in old.status.reclaimable_pods
        if now.get(done.name, 0) < done.count
    ]


def _check_update_errors(new: Workload, old: Workload) -> list[InvalidField]:
    known = {check.name: check for check in old.status.admission_checks}
    errors = []
    for index, check in enumerate(new.status.admission_checks):
        before = known.get(check.name)
        fixed = before is not None and before.state == "Ready" and check.state == "Ready"
        if fixed and before is not None and before.pod_set_updates != check.pod_set_updates:
            rule = "is immutable while the check is Ready: set the check to Pending first"
            errors.append(InvalidField(f"status.admissionChecks[{index}].podSetUpdates", rule))
    return errors


def _cluster_errors(new: Workload, old: Workload, *, stays: bool) -> list[InvalidField]:
    name, before = new.status.cluster_name, old.status.cluster_name
    nominated = new.status.nominated_cluster_names
    errors = []
    if name and nominated:
        errors.append(InvalidField("status", "clusterName and nominatedClusterNames exclude each other: keep one"))
    if stays and before and name != before:
        errors.append(InvalidField("status.clusterName", "field is immutable once set: end the attempt first"))
    known = old.status.nominated_cluster_names
    if name and not before and known and name not in known:
        errors.append(
            InvalidField("status.clusterName", f"{name!r} must be one of the nominated clusters: {', '.join(known)}")
        )
    return errors
