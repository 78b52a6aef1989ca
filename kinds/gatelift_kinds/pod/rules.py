"""What the webhook refuses of a single pod, besides what holds for all pods (`shared.pod_review`). Pure.

A pod that names a group is another kind's; this one sees what says a part of it, and what is given a group later.
"""

from __future__ import annotations

from gatelift_kinds.shared import asked_for, markers, pod_review, rules
from gatelift_kinds.shared.review import FieldError, Verdict, WebhookFacts
from gatelift_kinds.shared.rules import Object, annotation, invalid, label, required
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.plain_text import plain


def validate_create(obj: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a new pod, after defaulting."""
    return asked_for.joined(Verdict(errors=tuple(_of_group(obj))), pod_review.created(obj, facts))


def validate_update(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a change of a pod, which named no group before it."""
    known = {str(error) for error in _of_group(old)}
    errors = [error for error in _of_group(new) if str(error) not in known]
    errors += [*_joined(old, new), *rules.prebuilt_given(old, new, suspended=pod_review.suspended(new))]
    errors += _given_late(old, new, facts)
    return asked_for.joined(Verdict(errors=tuple(errors)), pod_review.changed(old, new, facts))


def depends_on_quota(old: Object, new: Object) -> bool:
    """Return whether a pod says something else than it did that its Workload follows only while that waits."""
    return bool(_read_waiting(old, new))


def _read_waiting(old: Object, new: Object) -> list[tuple[str, str]]:
    """Return the labels that are changed so, and what is refused of each; from one class to another it is followed."""
    was, now = rules.marks(old), rules.marks(new)
    found: list[tuple[str, str]] = []
    if markers.PRIORITY_CLASS not in was and markers.PRIORITY_CLASS in now:
        found.append((markers.PRIORITY_CLASS, "cannot be added"))
    if was.get(markers.MAX_EXECUTION_SECONDS) != now.get(markers.MAX_EXECUTION_SECONDS):
        found.append((markers.MAX_EXECUTION_SECONDS, "is immutable"))
    return found


def _given_late(old: Object, new: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return errors for what nobody would act on: of a pod that runs elsewhere the gate says that it waits (HD-526)."""
    if not facts.reserved_by or not pod_review.gated(new):
        return []  # of one that runs here the same is refused as of any object
    late, said = f"while its Workload {facts.reserved_by} holds quota: {rules.ANEW_OR_DEACTIVATED}", rules.marks(new)
    return [invalid(label(key), said.get(key, ""), f"{text} {late}") for key, text in _read_waiting(old, new)]


def _joined(old: Object, new: Object) -> list[FieldError]:
    """Return the error of a pod that is given a group: queued by itself it would leave its queue, and its run end."""
    group = pod_review.group(new)
    if not (group and pod_review.taken_over(old)):
        return []
    path, shown = pod_review.group_path(new), plain(group, pod_review.SHOWN_CHARS_MAX)
    return [invalid(path, shown, "cannot be given to a pod that was queued by itself: leave it out, or make a new pod")]


def _of_group(obj: Object) -> list[FieldError]:
    marks, notes = rules.marks(obj), rules.notes(obj)
    errors: list[FieldError] = []
    group, total = pod_review.group(obj), notes.get(markers.POD_GROUP_TOTAL_COUNT)
    total_path = annotation(markers.POD_GROUP_TOTAL_COUNT)
    if group:
        errors += rules.subdomain(pod_review.group_path(obj), group)
        if total is None:
            errors.append(required(total_path, "has to be given together with the group's name"))
        prebuilt = markers.prebuilt_name(marks, notes)
        if prebuilt and prebuilt != group:
            errors.append(invalid(annotation(markers.PREBUILT_WORKLOAD), prebuilt, "must be equal to the group's name"))
    if total is not None:
        if not group:
            errors.append(required(label(markers.POD_GROUP_NAME), "has to be given together with the group's size"))
        if not whole(total):
            errors.append(invalid(total_path, total, "must be a whole number above 0"))
    return errors
