"""Rules of the webhook that all kinds share: queue, priority, execution limit, admission gates. Pure.

Rules are those of Kueue's job framework (pods-and-slices 1.3). Each refusal names the field, the rule and the way out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gatelift_kinds.shared import markers, not_served
from gatelift_kinds.shared.cluster_selector import ANNOTATION_CLUSTER_SELECTOR, parse_selector
from gatelift_kinds.shared.patches import Operation, add_to_map
from gatelift_kinds.shared.review import ErrorKind, FieldError, WebhookFacts
from gatelift_kube.values.numbers import whole
from gatelift_wire.values.keys import ANNOTATION_CLUSTER, ANNOTATION_DISCONNECT
from gatelift_wire.values.messages import DisconnectPolicy

Object = Mapping[str, Any]

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_LENGTH_MAX = 253
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_LENGTH_MAX = 63
_SHOWN_MAX = 300
"""Of a longer text the beginning says which it is."""
OUT_OF_QUEUE = (
    "without it the pod stays at its gate, which only admission takes off, and is in no queue: "
    "give it the label again, or delete the pod and make it without a queue"
)
"""What a user is told whose pod waits and names no queue any more; as in Kueue it stays gated."""
_POLICIES = tuple(policy.value for policy in DisconnectPolicy)
_GATE_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_GATE_LENGTH_MAX = 63


def label(key: str) -> str:
    """Return the field path of a label."""
    return f"metadata.labels[{key}]"


def annotation(key: str) -> str:
    """Return the field path of an annotation."""
    return f"metadata.annotations[{key}]"


def marks(obj: Object) -> Mapping[str, str]:
    """Return the labels, empty if there are none."""
    found: Mapping[str, str] = (obj.get("metadata") or {}).get("labels") or {}
    return found


def notes(obj: Object) -> Mapping[str, str]:
    """Return the annotations, empty if there are none."""
    found: Mapping[str, str] = (obj.get("metadata") or {}).get("annotations") or {}
    return found


def invalid(path: str, value: str | None, text: str) -> FieldError:
    """Return an error about a value; None is not shown."""
    return FieldError(kind=ErrorKind.INVALID, path=path, text=text, value=value)


def forbidden(path: str, text: str) -> FieldError:
    """Return an error about something that may not be."""
    return FieldError(kind=ErrorKind.FORBIDDEN, path=path, text=text)


def required(path: str, text: str) -> FieldError:
    """Return an error about something that has to be."""
    return FieldError(kind=ErrorKind.REQUIRED, path=path, text=text)


def subdomain(path: str, value: str) -> list[FieldError]:
    """Return an error unless the value is a DNS-1123 subdomain."""
    if len(value) <= _SUBDOMAIN_LENGTH_MAX and _SUBDOMAIN.fullmatch(value):
        return []
    return [
        invalid(
            path,
            value,
            "must be a DNS subdomain: at most 253 lower-case letters, digits, '-' and '.', "
            "with a letter or digit at both ends of each part",
        )
    ]


def is_label(value: str) -> bool:
    """Return whether a value is a DNS label, as names of pod sets and of clusters are."""
    return len(value) <= _LABEL_LENGTH_MAX and _LABEL.fullmatch(value) is not None


def defaulted_labels(obj: Object, facts: WebhookFacts) -> dict[str, str]:
    """Return the labels that defaulting adds: the queue `default` and the priority class `default` where they exist."""
    present = marks(obj)
    added: dict[str, str] = {}
    if markers.QUEUE_NAME not in present and markers.DEFAULT_LOCAL_QUEUE in facts.local_queues:
        added[markers.QUEUE_NAME] = markers.DEFAULT_LOCAL_QUEUE
    queued = markers.QUEUE_NAME in present or markers.QUEUE_NAME in added or facts.manage_without_queue
    if queued and markers.PRIORITY_CLASS not in present and facts.default_priority_class:
        added[markers.PRIORITY_CLASS] = markers.DEFAULT_PRIORITY_CLASS
    return added


def label_operations(obj: Object, added: Mapping[str, str]) -> list[Operation]:
    """Return the operations that add labels."""
    return add_to_map(("metadata", "labels"), (obj.get("metadata") or {}).get("labels"), added)


def created(obj: Object, *, prebuilt_served: bool = False) -> list[FieldError]:
    """Return what is wrong with the markers of a new object of any kind; of a group a Workload may be there already."""
    errors: list[FieldError] = []
    tags, remarks = marks(obj), notes(obj)
    if markers.QUEUE_NAME in tags:
        errors += subdomain(label(markers.QUEUE_NAME), tags[markers.QUEUE_NAME])
    prebuilt = markers.prebuilt_name(tags, remarks)
    if prebuilt:
        errors += subdomain(_prebuilt_path(remarks), prebuilt)
        if not prebuilt_served:
            errors.append(forbidden(_prebuilt_path(remarks), not_served.refusal(markers.PREBUILT_WORKLOAD)))
    errors += execution_limit(tags)
    errors += admission_gates(remarks)
    errors += wishes(remarks)
    return errors


def prebuilt_given(old: Object, new: Object, *, suspended: bool) -> list[FieldError]:
    """Return the error of what waits and is given a prebuilt Workload's name: it waits for one of its own.

    Of what does not wait any change of that name is refused (`changed`).
    """
    was, now = (markers.prebuilt_name(marks(each), notes(each)) for each in (old, new))
    if not (suspended and now) or was == now:
        return []
    return [forbidden(_prebuilt_path(notes(new)), not_served.refusal(markers.PREBUILT_WORKLOAD))]


def _prebuilt_path(remarks: Mapping[str, str]) -> str:
    where = annotation if remarks.get(markers.PREBUILT_WORKLOAD) else label
    return where(markers.PREBUILT_WORKLOAD)


def claims(spec: Any, path: str) -> list[FieldError]:
    """Return an error for pods that claim devices (DRA): they would be used and charged to nobody."""
    if not (spec or {}).get("resourceClaims"):
        return []
    return [forbidden(f"{path}.resourceClaims", not_served.refusal("resourceClaims"))]


ANEW_OR_DEACTIVATED = "make the object anew, or deactivate the Workload first (spec.active: false)"
GRACE_SECONDS_MAX = 86_400
"""A pod that vanishes without its end stays charged for as long as its containers may go on: for its grace (HD-267)."""


def grace(spec: Any, path: str) -> list[FieldError]:
    """Return an error for pods that may take longer than a day to stop."""
    seconds = (spec or {}).get("terminationGracePeriodSeconds")
    if not isinstance(seconds, int) or seconds <= GRACE_SECONDS_MAX:
        return []
    text = f"a pod of a queue stays charged while it may run: use at most {GRACE_SECONDS_MAX}, a day"
    return [invalid(f"{path}.terminationGracePeriodSeconds", str(seconds), text)]


def wishes(remarks: Mapping[str, str]) -> list[FieldError]:
    """Return what is wrong with a user's wishes about clusters: what nobody understands would count for nothing."""
    errors: list[FieldError] = []
    policy, name = remarks.get(ANNOTATION_DISCONNECT), remarks.get(ANNOTATION_CLUSTER)
    if policy is not None and policy not in _POLICIES:
        errors.append(invalid(annotation(ANNOTATION_DISCONNECT), policy, f"use one of {', '.join(_POLICIES)}"))
    if name is not None and not is_label(name):
        errors.append(
            invalid(annotation(ANNOTATION_CLUSTER), name, "is no name of a cluster: 'gatelift cluster list' shows them")
        )
    try:
        parse_selector(remarks.get(ANNOTATION_CLUSTER_SELECTOR, ""))
    except ValueError as error:
        text = remarks[ANNOTATION_CLUSTER_SELECTOR][:_SHOWN_MAX]
        errors.append(invalid(annotation(ANNOTATION_CLUSTER_SELECTOR), text, str(error)[:_SHOWN_MAX]))
    return errors


def execution_limit(tags: Mapping[str, str]) -> list[FieldError]:
    """Return an error unless the execution limit is absent or a positive number of seconds."""
    value = tags.get(markers.MAX_EXECUTION_SECONDS)
    if value is None or 0 < (whole(value) or 0) <= markers.MAX_EXECUTION_SECONDS_MOST:
        return []
    rule = f"must be a whole number of seconds above 0, at most {markers.MAX_EXECUTION_SECONDS_MOST}"
    return [invalid(label(markers.MAX_EXECUTION_SECONDS), value, rule)]


def admission_gates(remarks: Mapping[str, str]) -> list[FieldError]:
    """Return what is wrong with the comma list of external admission gates (KEP-6915)."""
    if not remarks.get(markers.ADMISSION_GATED_BY):
        return []
    path, text = annotation(markers.ADMISSION_GATED_BY), remarks[markers.ADMISSION_GATED_BY]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for gate in text.split(","):
        if not gate:
            errors.append(invalid(path, text, "holds an empty item: separate gates by single commas"))
        elif gate in seen:
            errors.append(invalid(path, gate, "is named twice: name each gate once"))
        elif not _gate_name(gate):
            errors.append(invalid(path, gate, "must be domain/path without spaces, at most 63 characters"))
        seen.add(gate)
    return errors


def changed(old: Object, new: Object, *, suspended: bool, was_suspended: bool, facts: WebhookFacts) -> list[FieldError]:
    """Return what is wrong with a change of the markers. `suspended` is the new object's state, `was_...` the old's."""
    before, after = marks(old), marks(new)
    notes_before, notes_after = notes(old), notes(new)
    errors: list[FieldError] = []
    errors += _queue(before, after, suspended=suspended, facts=facts)
    errors += _priority(before, after, suspended=suspended)
    errors += execution_limit(after)
    path = label(markers.MAX_EXECUTION_SECONDS)
    if before.get(markers.MAX_EXECUTION_SECONDS) != after.get(markers.MAX_EXECUTION_SECONDS) and not (
        suspended and was_suspended
    ):
        value = after.get(markers.MAX_EXECUTION_SECONDS, "")
        errors.append(invalid(path, value, "is immutable while the object is not suspended: suspend it first"))
    if not suspended and markers.prebuilt_name(before, notes_before) != markers.prebuilt_name(after, notes_after):
        value = markers.prebuilt_name(after, notes_after)
        errors.append(invalid(label(markers.PREBUILT_WORKLOAD), value, "is immutable: make a new object instead"))
    if notes_before.get(markers.ELASTIC_JOB) != notes_after.get(markers.ELASTIC_JOB):
        value = notes_after.get(markers.ELASTIC_JOB, "")
        errors.append(invalid("metadata.annotations", value, f"{markers.ELASTIC_JOB} is immutable: make a new object"))
    errors += _gates_changed(notes_before, notes_after)
    errors += wishes({key: value for key, value in notes_after.items() if notes_before.get(key) != value})
    return errors


def _queue(
    before: Mapping[str, str], after: Mapping[str, str], *, suspended: bool, facts: WebhookFacts
) -> list[FieldError]:
    path, was, value = label(markers.QUEUE_NAME), before.get(markers.QUEUE_NAME, ""), after.get(markers.QUEUE_NAME, "")
    errors = subdomain(path, value) if value and value != was else []
    if was and not value and markers.DEFAULT_LOCAL_QUEUE in facts.local_queues:
        errors.append(
            invalid(path, value, "cannot be removed where a LocalQueue `default` exists: name another queue instead")
        )
    elif was != value and not suspended:
        errors.append(invalid(path, value, "is immutable while the object is not suspended: suspend it first"))
    elif was != value and facts.reserved_by:
        text = f"is immutable while its Workload {facts.reserved_by} holds quota: {ANEW_OR_DEACTIVATED}"
        errors.append(invalid(path, value, text))
    return errors


def _priority(before: Mapping[str, str], after: Mapping[str, str], *, suspended: bool) -> list[FieldError]:
    path, was, value = (
        label(markers.PRIORITY_CLASS),
        before.get(markers.PRIORITY_CLASS),
        after.get(markers.PRIORITY_CLASS),
    )
    if suspended and (was is None or value is not None):
        return []
    if was is None and value is not None:
        return [invalid(path, value, "cannot be added to a running object: suspend it first")]
    if was is not None and value is None:
        return [invalid(path, "", "cannot be removed: name another class instead")]
    return []


def _gates_changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[FieldError]:
    old = {gate for gate in before.get(markers.ADMISSION_GATED_BY, "").split(",") if gate}
    new = [gate for gate in after.get(markers.ADMISSION_GATED_BY, "").split(",") if gate]
    added = [gate for gate in new if gate not in old]
    if not added:
        return []
    path = annotation(markers.ADMISSION_GATED_BY)
    return [forbidden(path, f"{added[0]} was added: gates are given at creation and may only be removed or re-ordered")]


def _gate_name(gate: str) -> bool:
    domain, slash, path = gate.partition("/")
    return bool(slash and len(gate) <= _GATE_LENGTH_MAX and _SUBDOMAIN.fullmatch(domain) and _GATE_PATH.fullmatch(path))
