"""A Workload that its user made for a group: whether it may become the group's, and the write by which it does. Pure.

Pods that name it as prebuilt (`kueue.x-k8s.io/prebuilt-workload-name`, equal to the group's name) get no other one. It
is adopted whole, in one write that names all pods as its owners, or left as it is: never one that names an owner, or
that holds quota, since its quota was given to nobody's pods (decision 97). Neighbour: `document` has its name and mark.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gatelift_kinds.pod_group.composition import GroupPlan, differs
from gatelift_kinds.pod_group.document import own_marks, owner_of
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.made_for import says_owner
from gatelift_kinds.shared.patches import Operation, add_to_map, encode, guards
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.plain_text import plain

NAME_CHARS_MAX = 63


def problem(workload: Workload | None, group: str) -> str:
    """Return why a group cannot use the Workload that its user made for it, "" where it can; None: there is none."""
    told = f"Workload {group}, which the pods name as prebuilt,"
    if workload is None:
        return f"{told} is not there: make it, or leave the name out"
    if not is_nobodys(workload):
        return f"{told} is owned by something else: make one for the group"
    conditions = workload.status.conditions
    if workload.metadata.deletion_timestamp is not None or is_true(conditions, "Finished"):
        return f"{told} has finished, or is being deleted: make another one"
    partial = next((each.name for each in workload.spec.pod_sets if each.min_count is not None), None)
    if partial is not None:
        return f"{told} has a minCount in pod set {plain(partial, NAME_CHARS_MAX)}: a group is admitted whole"
    return ""


def holds_quota(workload: Workload) -> str:
    """Return that it is too late for it, with the way out; "" where it holds no quota."""
    if workload.status.admission is None and not is_true(workload.status.conditions, "QuotaReserved"):
        return ""
    name = workload.metadata.name
    return (
        f"Workload {name}, which the pods name as prebuilt, holds quota already, and is adopted before that: make it "
        "with spec.active: false, and set that to true once it names the pods as its owners"
    )


def is_nobodys(workload: Workload) -> bool:
    """Return whether a Workload names no owner, of whatever kind."""
    return not workload.metadata.owner_references and not says_owner(workload)


def unlike(workload: Workload, plan: GroupPlan, other_needs: str) -> str:
    """Return the first difference between its pod sets and the pods of the group, with the way out; "" for none.

    `other_needs`: the first pod set whose pods ask for something else.
    """
    found = differs(workload, plan)
    if not found and other_needs:
        role = plain(other_needs, NAME_CHARS_MAX)
        found = f"spec.podSets: the pods of {role} ask for something else than its template"
    return f"Workload {workload.metadata.name}, which the pods name as prebuilt, differs: {found}" if found else ""


def adoption(workload: Workload, group: str, owners: Sequence[ObjectMeta]) -> bytes:
    """Return the JSON patch by which it becomes the group's: its owners are the pods, and it has our mark.

    It is for the version that was seen: what got quota, or an owner, in between refuses it.
    """
    meta = workload.metadata
    operations: list[Operation] = [
        *guards(meta),
        {
            "op": "add",
            "path": "/metadata/ownerReferences",
            "value": [msgspec.to_builtins(owner_of(each)) for each in owners],
        },
        *add_to_map(("metadata", "annotations"), meta.annotations, own_marks(meta.namespace, group)),
    ]
    if markers.RESOURCE_IN_USE not in meta.finalizers:
        finalizers = [*meta.finalizers, markers.RESOURCE_IN_USE]
        operations.append({"op": "add", "path": "/metadata/finalizers", "value": finalizers})
    return encode(operations)
