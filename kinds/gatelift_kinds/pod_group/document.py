"""The Workload of a group: named after it, marked as such, owned by its pods, none of which controls it. Pure.

Kueue's rules (pods-and-slices 2.4, 2.6). A Workload of that name without our marker, or of other owners, is somebody
else's: it is never adopted, changed or deleted (#14617).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gatelift_kinds.pod_group.composition import GroupPlan, PlannedSet
from gatelift_kinds.pod_group.shapes import template_of
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER, owners_of, said_of, says_owner
from gatelift_kinds.shared.patches import Operation, decode, encode, guards
from gatelift_kinds.shared.values import Priority
from gatelift_kinds.shared.workload_document import assembled, copied, pod_set_document
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.values.resources import POD

WORKLOAD_BYTES_MAX = 1_200_000
"""An API server stores objects of up to one and a half megabytes; a status comes to this, and owners that follow."""
MARK = "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWorkload:
    """What a group's Workload says besides its pod sets. `labels`: those that are copied from its pods."""

    namespace: str
    group: str
    queue: str
    priority: Priority
    limit: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def work_id(namespace: str, group: str) -> str:
    """Return the id of a group's work; no object's UID has a slash, and no name either."""
    return f"group/{namespace}/{group}"


def said_of_group(namespace: str, group: str) -> str:
    """Return what the annotation says of the work that a Workload was made for."""
    return said_of(OwnerReference(POD.api_version, POD.kind, group, work_id(namespace, group)))


def owner_of(pod: ObjectMeta, *, late: bool = False) -> OwnerReference:
    """Return the reference by which a Workload names a pod of its group: an owner, not its controller.

    `late`: one that is named while the Workload has quota: it says that the pod blocks no deletion, which is what a
    reference means that says nothing of it.
    """
    blocks = False if late else None
    return OwnerReference(
        api_version=POD.api_version, kind=POD.kind, name=pod.name, uid=pod.uid, block_owner_deletion=blocks
    )


def is_late(reference: OwnerReference) -> bool:
    """Return whether a Workload has named a pod only while it had quota: it may be in the place of another one."""
    return reference.block_owner_deletion is False


def document(plan: GroupPlan, about: GroupWorkload, owners: Sequence[ObjectMeta], raws: Mapping[str, bytes]) -> bytes:
    """Return the Workload to create as JSON.

    `owners`: the pods that are kept, the oldest first; what Kueue copies of annotations is the oldest's. `raws`: pods
    as served, by UID, for each `like` of the plan.
    """
    metadata: dict[str, Any] = {
        "name": about.group,
        "namespace": about.namespace,
        "annotations": {
            **_copied(owners),
            **own_marks(about.namespace, about.group),
        },
        "ownerReferences": [msgspec.to_builtins(owner_of(each)) for each in owners],
    }
    if about.labels:
        metadata["labels"] = dict(about.labels)
    pod_sets = [_pod_set(each, raws) for each in plan.pod_sets]
    return assembled(metadata, pod_sets=pod_sets, queue=about.queue, priority=about.priority, limit=about.limit)


def too_large(written: bytes) -> str:
    """Return that a Workload cannot be stored with what its templates say, with the way out; "" where it can."""
    if len(written) <= WORKLOAD_BYTES_MAX:
        return ""
    text = f"the Workload of the group would have {len(written)} bytes, and at most {WORKLOAD_BYTES_MAX} are stored"
    return f"{text}: give its pods shorter names, or take what is long out of their templates (a ConfigMap holds it)"


def conflict(workload: Workload, namespace: str, group: str) -> str:
    """Return why a Workload of a group's name is not that group's, with the way out; "" where it is.

    It is by whose it says it is: by our annotation, else by its mark, where all its owners are pods and none controls
    it. One that its user made for the group is adopted (`prebuilt`), and has that mark then.
    """
    name = workload.metadata.name
    marked = workload.metadata.annotations.get(markers.IS_GROUP_WORKLOAD) == MARK
    if not (marked or says_owner(workload)):
        why = f"does not say {markers.IS_GROUP_WORKLOAD}: {MARK}"
    elif not _is_of(workload, namespace, group):
        why = "is owned by something else"
    else:
        return ""
    return f"Workload {name} is not this group's, it {why}: give the group another name, or delete that Workload"


def owners_patch(meta: ObjectMeta, added: Iterable[ObjectMeta], *, late: bool = False) -> bytes:
    """Return the JSON patch that has a Workload name these pods as owners besides; `late`: it has quota."""
    references = [msgspec.to_builtins(owner_of(each, late=late)) for each in added]
    operations: list[Operation] = [*guards(meta)]
    if meta.owner_references:
        operations += [{"op": "add", "path": "/metadata/ownerReferences/-", "value": one} for one in references]
    else:
        operations.append({"op": "add", "path": "/metadata/ownerReferences", "value": references})
    return encode(operations)


def missing_owners(workload: Workload, kept: Iterable[ObjectMeta]) -> tuple[OwnerReference, ...]:
    """Return the references to pods that the Workload does not name yet: replacements; each kept pod is an owner."""
    named = {each.uid for each in workload.metadata.owner_references}
    return tuple(owner_of(each) for each in kept if each.uid not in named)


def may_be_of(workload: Workload) -> bool:
    """Return whether nothing says of a Workload whose it is but its owners, all of them pods."""
    return bool(workload.metadata.owner_references) and not says_owner(workload) and _only_pods(workload)


def own_marks(namespace: str, group: str) -> dict[str, str]:
    """Return the annotations by which a Workload is known as a group's."""
    return {markers.IS_GROUP_WORKLOAD: MARK, ANNOTATION_OWNER: said_of_group(namespace, group)}


def _is_of(workload: Workload, namespace: str, group: str) -> bool:
    if not _only_pods(workload):
        return False
    if not says_owner(workload):
        return bool(workload.metadata.owner_references)
    return {(one.kind, one.name, one.uid) for one in owners_of(workload)} == {
        (POD.kind, group, work_id(namespace, group))
    }


def _only_pods(workload: Workload) -> bool:
    pod = (POD.api_version, POD.kind)
    return all((one.api_version, one.kind) == pod and not one.controller for one in workload.metadata.owner_references)


def _copied(owners: Sequence[ObjectMeta]) -> dict[str, str]:
    """Return what goes on to the Workload of the pods' annotations; where they differ, the oldest pod's counts."""
    found: dict[str, str] = {}
    for each in reversed(owners):
        found.update(copied(each.annotations))
    return found


def _pod_set(planned: PlannedSet, raws: Mapping[str, bytes]) -> dict[str, Any]:
    if planned.like:
        template = template_of(raws[planned.like])
        metadata, spec = msgspec.json.decode(template.metadata), msgspec.json.decode(template.spec)
    else:
        written = decode(planned.template)
        metadata, spec = written.get("metadata") or {}, written["spec"]
    return pod_set_document(planned.name, planned.count, metadata, spec)
