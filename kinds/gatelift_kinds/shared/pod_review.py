"""What the webhook sets on pods and refuses of them, alone or in a group. Pure. Kueue's: pods-and-slices 1.2 and 1.3.

What it refuses of a single pod besides is in `pod.rules`, of a group's in `pod_group.rules`.
"""

from __future__ import annotations

from typing import Any

from gatelift_kinds.shared import asked_for, fixed, markers, not_served, pod_fixed, rules
from gatelift_kinds.shared.patches import Operation, add_to_map
from gatelift_kinds.shared.review import FieldError, HeldChange, Verdict, WebhookFacts
from gatelift_kinds.shared.role_hash import role_hash
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid, label
from gatelift_kube.values.plain_text import plain

SHOWN_CHARS_MAX = 100
_OVER = frozenset({"Succeeded", "Failed"})


def defaults(obj: Object, facts: WebhookFacts) -> tuple[Operation, ...]:
    """Return the operations that take a new pod over, none if it is not to be queued.

    A pod with a suspending parent gets gate and hash only: the parent has done the rest. Otherwise the namespace has to
    be selected, no queued owner may have made it, and it needs a queue (or everything is managed). A pod of a queued
    owner loses the label of those that are taken over: it would be queued once more, and nothing would hold it back.
    """
    if facts.by_agent:
        return ()
    if markers.POD_SUSPENDING_PARENT in rules.notes(obj):
        return (*_gates(obj, facts), *_hash(obj))
    if facts.owner_managed:
        return _unmarked(obj)
    if not (facts.namespace_selected and facts.pod_taken):
        return ()
    added = rules.defaulted_labels(obj, facts)
    queued = markers.QUEUE_NAME in {**rules.marks(obj), **added} or facts.manage_without_queue
    if not queued:
        return ()
    added[markers.MANAGED] = markers.MANAGED_VALUE
    return (*rules.label_operations(obj, added), *_finalizer(obj), *_gates(obj, facts), *_hash(obj))


def created(obj: Object, facts: WebhookFacts, *, prebuilt_served: bool = False) -> Verdict:
    """Return what is wrong with a new pod, after defaulting, whether it is alone or in a group."""
    errors = rules.created(obj, prebuilt_served=prebuilt_served)
    errors += [*_managed(obj), *_marked_by_others(obj, facts), *_claimed(obj, facts)]
    if markers.MANAGED in rules.marks(obj) and not facts.owner_managed and not facts.by_agent:
        errors += [*rules.claims(obj.get("spec"), "spec"), *rules.grace(obj.get("spec"), "spec")]
    if markers.ELASTIC_JOB in rules.notes(obj):
        errors.append(forbidden(annotation(markers.ELASTIC_JOB), not_served.refusal(markers.ELASTIC_JOB)))
    return asked_for.joined(Verdict(errors=tuple(errors)), _asked_for({}, obj, facts))


def changed(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a change of a pod, whether it is alone or in a group."""
    errors = rules.changed(old, new, suspended=suspended(new), was_suspended=suspended(old), facts=facts)
    errors += [*_managed(new), *_of_group(old, new)]
    late = () if facts.by_agent else held_changes(old, new)
    if facts.runs_on:
        errors += fixed.refused(late, facts.runs_on)
        late = ()
    warnings = (*_left_waiting(old, new, facts), *fixed.warned(late, facts.reserved_by))
    return asked_for.joined(Verdict(errors=tuple(errors), warnings=warnings), _asked_for(old, new, facts))


def held_changes(old: Object, new: Object) -> tuple[HeldChange, ...]:
    """Return what is changed of a pod at its gate, and taken no notice of by a run elsewhere.

    Without the gate it runs here, and its kubelet acts on what may be changed.
    """
    return pod_fixed.changes(old, new) if gated(old) else ()


def _asked_for(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what a pod that waits for its own quota asks for of what is not served."""
    if markers.MANAGED not in rules.marks(new) or facts.owner_managed or facts.by_agent:
        return Verdict()
    return asked_for.verdict("Pod", old, new)


def _left_waiting(old: Object, new: Object, facts: WebhookFacts) -> tuple[str, ...]:
    """Return what a user is told who takes a pod that waits out of its queue: as in Kueue, its gate stays."""
    before, after = rules.marks(old), rules.marks(new)
    taken_off = bool(before.get(markers.QUEUE_NAME)) and not after.get(markers.QUEUE_NAME)
    waits = markers.MANAGED in after and gated(new) and not facts.manage_without_queue
    return (f"{label(markers.QUEUE_NAME)}: {rules.OUT_OF_QUEUE}",) if taken_off and waits else ()


def _managed(obj: Object) -> list[FieldError]:
    managed = rules.marks(obj).get(markers.MANAGED)
    if managed is None or managed == markers.MANAGED_VALUE:
        return []
    return [forbidden(label(markers.MANAGED), "may only be `true`: leave it out, the webhook sets it")]


def _of_group(old: Object, new: Object) -> list[FieldError]:
    """Return what of its group a pod may not change: whether it is in one, which, and that nobody is to replace it."""
    errors: list[FieldError] = []
    before, after = group(old), group(new)
    if before and before != after:
        errors.append(invalid(group_path(new), after, "is immutable once set: make a new pod instead"))
    if after and not before and markers.MANAGED in rules.marks(old):
        text = "cannot be given to a pod that was queued by itself: make a new pod in the group"
        errors.append(invalid(group_path(new), plain(after, SHOWN_CHARS_MAX), text))
    notes_before, notes_after = rules.notes(old), rules.notes(new)
    if (
        notes_before.get(markers.RETRIABLE_IN_GROUP) == "false"
        and notes_after.get(markers.RETRIABLE_IN_GROUP) != "false"
    ):
        errors.append(
            forbidden(
                annotation(markers.RETRIABLE_IN_GROUP), "an unretriable pod cannot become retriable: keep it false"
            )
        )
    return errors


def _marked_by_others(obj: Object, facts: WebhookFacts) -> list[FieldError]:
    marked = markers.MANAGED in rules.marks(obj)
    if facts.by_agent or not facts.owner_managed or not marked or markers.POD_SUSPENDING_PARENT in rules.notes(obj):
        return []
    return [forbidden(label(markers.MANAGED), "the pod's owner is queued, not the pod: leave the label out")]


def _claimed(obj: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return an error for a pod that pretends to be a queued Job's, where it does not wait for quota of its own."""
    if facts.by_agent or not facts.owner_claimed or gated(obj):
        return []
    text = (
        "names a queued Job as its controller, and only the controller of Jobs makes pods of it: "
        "leave the owner out, or give the pod a queue of its own"
    )
    return [forbidden("metadata.ownerReferences", text)]


def _unmarked(obj: Object) -> tuple[Operation, ...]:
    if markers.MANAGED not in rules.marks(obj):
        return ()
    key = markers.MANAGED.replace("~", "~0").replace("/", "~1")
    return ({"op": "remove", "path": f"/metadata/labels/{key}"},)


def group(obj: Object) -> str:
    """Return the name of its group, "" if it is alone."""
    return markers.group_name(rules.marks(obj), rules.notes(obj))


def group_path(obj: Object) -> str:
    """Return the path of that name: annotation or label, whichever counts."""
    in_annotation = rules.notes(obj).get(markers.POD_GROUP_NAME)
    return annotation(markers.POD_GROUP_NAME) if in_annotation else label(markers.POD_GROUP_NAME)


def gated(obj: Object) -> bool:
    """Return whether our gate is there."""
    gates = (obj.get("spec") or {}).get("schedulingGates") or []
    return any(gate.get("name") == markers.ADMISSION_GATE for gate in gates)


def suspended(obj: Object) -> bool:
    """Return whether it is gated or over."""
    return gated(obj) or (obj.get("status") or {}).get("phase") in _OVER


def _finalizer(obj: Object) -> list[Operation]:
    return _append(("metadata", "finalizers"), (obj.get("metadata") or {}).get("finalizers"), markers.MANAGED)


def _gates(obj: Object, facts: WebhookFacts) -> list[Operation]:
    present = (obj.get("spec") or {}).get("schedulingGates") or []
    ours = markers.GATES_OF_ADMISSION if facts.topology_gate else markers.GATES_OF_ADMISSION[:1]
    found: list[Operation] = []
    for gate in ({"name": name} for name in ours):
        found += _append(("spec", "schedulingGates"), present, gate)
        present = [*present, gate]
    return found


def _hash(obj: Object) -> list[Operation]:
    notes = rules.notes(obj)
    if markers.ROLE_HASH in notes:
        return []
    return add_to_map(("metadata", "annotations"), notes, {markers.ROLE_HASH: role_hash(obj.get("spec") or {})})


def _append(path: tuple[str, str], present: list[Any] | None, item: Any) -> list[Operation]:
    where = "/" + "/".join(path)
    if not present:
        return [{"op": "add", "path": where, "value": [item]}]
    return [] if item in present else [{"op": "add", "path": f"{where}/-", "value": item}]
