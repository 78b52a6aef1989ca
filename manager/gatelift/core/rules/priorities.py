"""The priority of a Workload follows its class, and the class follows the label on the user's object, as with Kueue.

A changed value of a WorkloadPriorityClass is written to all Workloads that name it, whether they wait or run; a changed
label to the object's own Workload. PriorityClasses of pods have no changes: their value is immutable. Neighbours:
`owners` and `reconcile` call; the engine queues and preempts by what the Workload says.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kinds.shared.values import Priority, PriorityNames
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import PriorityClassRef, Workload, WorkloadPriorityClass
from gatelift_kube.values.resources import KUEUE_GROUP, WORKLOAD_PRIORITY_CLASS, ObjectKey, ObjectRef

SCHEDULING_GROUP = "scheduling.k8s.io"
WORKLOAD_CLASS = "WorkloadPriorityClass"


def resolve(core: Core, owner: Owner) -> Priority | None:
    """Return the priority by the names the object carries; None, with an event, when a class does not exist."""
    return resolve_names(core, owner, owner.kind.priority_names(owner.object))


def resolve_names(core: Core, owner: Owner, names: PriorityNames) -> Priority | None:
    """Return the priority by these names; `owner`: who is told, and looked at again, when a class does not exist."""
    if names.workload_class:
        found = core.knowledge.workload_classes.get(names.workload_class)
        if found is None:
            text = texts.priority_class_missing(names.workload_class)
            core.event(owner.ref, owner.object.metadata.uid, "WorkloadPriorityClassNotFound", text, warning=True)
            core.classless.wait_only(names.workload_class, owner.ref)
            return None
        ref = PriorityClassRef(group=KUEUE_GROUP, kind=WORKLOAD_CLASS, name=names.workload_class)
        return Priority(value=found.value, ref=ref)
    classes = core.knowledge.pod_classes
    if names.pod_class:
        ref = PriorityClassRef(group=SCHEDULING_GROUP, kind="PriorityClass", name=names.pod_class)
        known = classes.get(names.pod_class)
        return Priority(value=known.value if known is not None else names.pod_priority or 0, ref=ref)
    for name, known in sorted(classes.items()):
        if known.global_default:
            ref = PriorityClassRef(group=SCHEDULING_GROUP, kind="PriorityClass", name=name)
            return Priority(value=known.value, ref=ref)
    return Priority(value=names.pod_priority or 0)


def follow_label(case: Case, owner: Owner) -> bool:
    """Take over another class that the user's object names now; True if a write was asked for.

    A Workload that holds quota may change from one class to another, not to or from having one.
    """
    core, workload = case.core, case.known
    name = owner.kind.priority_names(owner.object).workload_class
    ref = workload.spec.priority_class_ref
    of_ours = ref is not None and ref.kind == WORKLOAD_CLASS
    if name == (ref.name if ref is not None and of_ours else ""):
        return False
    if is_true(workload.status.conditions, texts.QUOTA_RESERVED) and not (name and of_ours):
        return False
    if api_requests.blocked(core, ref_of(workload), owner.look, case.now):
        return False
    priority = resolve(core, owner)
    if priority is None:
        return False
    _write(core, workload, priority, had_ref=ref is not None)
    meta = workload.metadata
    text = texts.priority_class_changed(f"{meta.namespace}/{meta.name}")
    core.event(owner.ref, owner.object.metadata.uid, texts.UPDATED_WORKLOAD, text)
    return True


def follow_value(core: Core, workload: Workload) -> bool:
    """Write the value that the Workload's class has now, if it is another; True if a write was asked for."""
    ref = workload.spec.priority_class_ref
    if ref is None or ref.kind != WORKLOAD_CLASS or is_true(workload.status.conditions, texts.FINISHED):
        return False
    known = core.knowledge.workload_classes.get(ref.name)
    if known is None or known.value == (workload.spec.priority or 0):
        return False
    _write(core, workload, Priority(value=known.value, ref=ref), had_ref=True)
    return True


def class_seen(core: Core, seen: WorkloadPriorityClass) -> None:
    """Look at all Workloads of a class whose value changed (some per call, there may be many), and at who missed it."""
    for ref in core.classless.of(seen.metadata.name):
        owner = core.knowledge.owners.get(ref)
        if owner is not None:
            core.mark_owner(owner)
    core.classless.take(seen.metadata.name)
    before = core.knowledge.workload_classes.get(seen.metadata.name)
    if core.untaken.keeps(ObjectRef(WORKLOAD_PRIORITY_CLASS, ObjectKey("", seen.metadata.name)), seen.metadata.uid):
        before = None  # it may be known by half
    core.knowledge.put(seen)
    if before is None or before.value != seen.value:
        known = core.knowledge.workloads
        core.mark_later(known[key].metadata.uid for key in sorted(core.knowledge.by_class.get(seen.metadata.name, ())))


def owner_gone(core: Core, ref: ObjectRef) -> None:
    """Forget a user's object that waits for a class."""
    core.classless.leave_all(ref)


def _write(core: Core, workload: Workload, priority: Priority, *, had_ref: bool) -> None:
    spec: dict[str, object] = {"priority": priority.value}
    if priority.ref is not None:
        spec["priorityClassRef"] = msgspec.to_builtins(priority.ref)
    elif had_ref:
        spec["priorityClassRef"] = None
    metadata = {"uid": workload.metadata.uid, "resourceVersion": workload.metadata.resource_version}
    body = msgspec.json.encode({"metadata": metadata, "spec": spec})
    api_requests.patch_workload(core, workload, body, Purpose.PRIORITY, status=False)
