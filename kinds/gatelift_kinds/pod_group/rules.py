"""What the webhook sets on a pod of a group and refuses of it, besides what holds for all pods. Pure.

What one pod alone shows is refused here; in what members differ, the Workload's composition tells. A change is judged
by what is new in it: what was there before is changed, ended and deleted as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gatelift_kinds.pod_group import declaration, marks
from gatelift_kinds.shared import asked_for, markers, pod_review, rules
from gatelift_kinds.shared.patches import Operation, add_to_map
from gatelift_kinds.shared.review import FieldError, Verdict, WebhookFacts
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid, label
from gatelift_kube.values.plain_text import plain

KEPT = (
    (annotation, markers.POD_GROUP_SETS, "the Workload was made of them"),
    (annotation, markers.ROLE_HASH, "it is the pod's role"),
    (label, markers.POD_GROUP_ROLE, "it is the pod's role"),
    (label, markers.POD_SET, "it says as what the pod was let go"),
)
"""What a member says once: path, key, and why."""
UNTIL_IT_RUNS = (markers.POD_GROUP_TOTAL_COUNT, markers.POD_GROUP_FAST_ADMISSION, markers.POD_GROUP_SERVING)
"""Annotations that say how the whole group is admitted and ends."""
GIVEN_BEFORE = ((annotation, markers.POD_GROUP_SETS), (label, markers.POD_GROUP_ROLE))
"""What a member may be given while its group waits: who is of which pod set was settled with its quota."""
READ_WAITING = (markers.PRIORITY_CLASS, markers.MAX_EXECUTION_SECONDS)
"""Labels that the Workload follows while it waits. Of a pod whose group runs elsewhere the gate says that it waits."""


def defaults(obj: Object, facts: WebhookFacts) -> tuple[Operation, ...]:
    """Return the operations that take a new pod over, with its rank in the group where another label has that."""
    taken = pod_review.defaults(obj, facts)
    return (*taken, *_index(obj)) if taken else ()


def validate_create(obj: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a new pod, after defaulting."""
    errors = [*_problems(obj), *_bound(obj)]
    warnings = tuple(marks.warnings(rules.marks(obj), rules.notes(obj)))
    shared = pod_review.created(obj, facts, prebuilt_served=True)
    return asked_for.joined(Verdict(errors=tuple(errors), warnings=warnings), shared)


def validate_update(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a change of a pod."""
    before = {str(error) for error in _problems(old)}
    errors = [error for error in _problems(new) if str(error) not in before]
    errors += [*_renamed(old, new), *_resized(old, new, facts), *_given_late(old, new, facts), *_said_anew(old, new)]
    told = marks.warnings(rules.marks(old), rules.notes(old))
    warnings = tuple(text for text in marks.warnings(rules.marks(new), rules.notes(new)) if text not in told)
    warnings += tuple(_read_later(old, new, facts))
    return asked_for.joined(Verdict(errors=tuple(errors), warnings=warnings), pod_review.changed(old, new, facts))


def depends_on_quota(old: Object, new: Object) -> bool:
    """Return whether a pod says something else of its group than it did, which counts while that waits alone."""
    return bool(_changed(old, new) or _given(old, new) or _later(old, new))


def _changed(old: Object, new: Object) -> list[str]:
    was, now = rules.notes(old), rules.notes(new)
    changed = [key for key in UNTIL_IT_RUNS if was.get(key) != now.get(key)]
    return [key for key in changed if key != markers.POD_GROUP_TOTAL_COUNT or key in was]


def _problems(obj: Object) -> list[FieldError]:
    labels, notes = rules.marks(obj), rules.notes(obj)
    sets = declaration.problems(marks.read(labels, notes), notes.get(markers.POD_GROUP_TOTAL_COUNT))
    return [*marks.problems(labels, notes), *sets]


def _bound(obj: Object) -> Iterator[FieldError]:
    node = (obj.get("spec") or {}).get("nodeName")
    if node:
        text = "names a node, and a pod of a group gets one after the group is admitted: use nodeSelector or affinity"
        yield forbidden("spec.nodeName", text)


def _renamed(old: Object, new: Object) -> Iterator[FieldError]:
    before, after = pod_review.group(old), pod_review.group(new)
    if before and before != after:
        yield invalid(pod_review.group_path(new), plain(after, marks.SHOWN_CHARS_MAX), pod_review.ONE_GROUP)


def _resized(old: Object, new: Object, facts: WebhookFacts) -> Iterator[FieldError]:
    """Yield an error for another size of a group that runs, or is about to; until then members that differ are told."""
    for key in () if _waits(old, new, facts) else _changed(old, new):
        text = "is immutable once the group runs, or its Workload holds quota: make a new group"
        yield invalid(annotation(key), plain(rules.notes(new).get(key, ""), marks.SHOWN_CHARS_MAX), text)


def _given(old: Object, new: Object) -> list[tuple[Callable[[str], str], str]]:
    found: list[tuple[Callable[[str], str], str]] = []
    for where, key in GIVEN_BEFORE:
        was, now = (said.get(key) for said in _said(where, old, new))
        if was is None and now is not None:
            found.append((where, key))
    return found


def _given_late(old: Object, new: Object, facts: WebhookFacts) -> Iterator[FieldError]:
    for where, key in () if _waits(old, new, facts) else _given(old, new):
        text = "cannot be given once the group runs, or its Workload holds quota: make a new group"
        yield invalid(where(key), plain(_said(where, new)[0].get(key, ""), marks.SHOWN_CHARS_MAX), text)


def _later(old: Object, new: Object) -> list[str]:
    was, now = rules.marks(old), rules.marks(new)
    return [key for key in READ_WAITING if was.get(key) != now.get(key)]


def _read_later(old: Object, new: Object, facts: WebhookFacts) -> Iterator[str]:
    for key in _later(old, new) if facts.reserved_by and pod_review.gated(new) else ():
        text = f"is read when the group waits for quota, and its Workload {facts.reserved_by} has it"
        yield f"{label(key)}: {text}: deactivate that (spec.active: false), and say the same on each pod of the group"


def _waits(old: Object, new: Object, facts: WebhookFacts) -> bool:
    return pod_review.gated(old) and pod_review.gated(new) and not facts.reserved_by


def _said_anew(old: Object, new: Object) -> Iterator[FieldError]:
    for where, key, why in KEPT:
        was, now = (said.get(key) for said in _said(where, old, new))
        if was is not None and was != now:
            yield invalid(where(key), plain(now or "", marks.SHOWN_CHARS_MAX), f"is immutable, {why}: make a new pod")


def _said(where: Callable[[str], str], *objects: Object) -> list[Mapping[str, str]]:
    """Return the labels of each, or the annotations."""
    return [(rules.marks if where is label else rules.notes)(each) for each in objects]


def _index(obj: Object) -> list[Operation]:
    """Return the operation that copies the pod's rank from the label that an annotation names."""
    labels, notes = rules.marks(obj), rules.notes(obj)
    rank = labels.get(notes.get(markers.POD_GROUP_POD_INDEX_LABEL, ""))
    if rank is None or markers.POD_GROUP_POD_INDEX in labels:
        return []
    return add_to_map(("metadata", "labels"), labels, {markers.POD_GROUP_POD_INDEX: rank})
