"""What the webhook refuses of a single pod, besides what holds for all pods (`shared.pod_review`). Pure.

Groups are not served by this version: a pod that names one is refused, and told what is wrong with what it says of it.
"""

from __future__ import annotations

from gatelift_kinds.shared import asked_for, markers, not_served, pod_review, rules
from gatelift_kinds.shared.review import FieldError, Verdict, WebhookFacts
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid, label, required
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.plain_text import plain


def validate_create(obj: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a new pod, after defaulting."""
    errors = _of_group(obj)
    if pod_review.group(obj):
        errors.append(forbidden(pod_review.group_path(obj), not_served.refusal(markers.POD_GROUP_NAME)))
    return asked_for.joined(Verdict(errors=tuple(errors)), pod_review.created(obj, facts))


def validate_update(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a change of a pod.

    What of a group was there before is changed and ended as ever, and its name may be taken off: it was never served.
    """
    errors: list[FieldError] = []
    if not (_group(old) and not _group(new)):
        known = {str(error) for error in _of_group(old)}
        errors += [error for error in _of_group(new) if str(error) not in known]
    errors += [*_joined(old, new), *rules.prebuilt_given(old, new, suspended=pod_review.suspended(new))]
    return asked_for.joined(Verdict(errors=tuple(errors)), pod_review.changed(old, new, facts))


def _joined(old: Object, new: Object) -> list[FieldError]:
    """Return the error of a pod that is given a group: queued by itself it would leave its queue, and its run end."""
    before, after = _group(old), _group(new)
    if not after or before == after:
        return []
    path, shown = pod_review.group_path(new), plain(after, pod_review.SHOWN_CHARS_MAX)
    if before:
        return [invalid(path, shown, pod_review.ONE_GROUP)]
    if not pod_review.taken_over(old):
        return []
    return [invalid(path, shown, "cannot be given to a pod that was queued by itself: leave it out, or make a new pod")]


def _group(obj: Object) -> str:
    return pod_review.group(obj)


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
