"""By which labels a Job knows its pods: those that the API server generated for it, or some that its user chose. Pure.

A Job's pods are its own as long as they wear these labels: the Job controller lets go of one that no longer does, and
makes another one in its place, while the first runs on and nobody is charged for it. Generated labels are kept on what
runs (the policies of both sides, `gatelift_kinds.shared.placed_mark`); labels that a user chose are his to change. So a
Job with such a selector is queued nowhere. The selector itself is looked at too: by it pods are found, whatever
`spec.manualSelector` says of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatelift_kinds.shared.review import FieldError
from gatelift_kinds.shared.rules import Object, invalid
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.meta import LabelSelector

GENERATED = frozenset({"controller-uid", "batch.kubernetes.io/controller-uid"})
"""Labels by which the API server lets a Job select its pods: the Job's own UID, in the old spelling and the new one."""
RULE = (
    "a queued Job finds its pods by the labels that Kubernetes generates, since quota is given for these pods alone: "
    "make the Job anew without spec.selector and spec.manualSelector, or without a queue's name"
)


def why_not(obj: Job) -> str:
    """Return why a Job must not be queued because of how it selects its pods, with field and way out; "" if it may."""
    spec, selector = obj.spec, obj.spec.selector
    if spec.manual_selector:
        return f"spec.manualSelector: {RULE}"
    return "" if selector is None or _generated(selector, obj.metadata.uid) else f"spec.selector: {RULE}"


def refused(obj: Object) -> list[FieldError]:
    """Return the same of a Job as it is shown to the webhook; a new one has no selector before one is generated."""
    spec: Any = obj.get("spec") or {}
    selector, uid = spec.get("selector"), (obj.get("metadata") or {}).get("uid", "")
    if spec.get("manualSelector"):
        return [invalid("spec.manualSelector", "true", RULE)]
    if selector is None or _is_generated(selector.get("matchLabels"), selector.get("matchExpressions"), uid):
        return []
    return [invalid("spec.selector", ", ".join(sorted(selector.get("matchLabels") or {})), RULE)]


def chosen_in(spec: Mapping[str, Any]) -> str:
    """Return why a Job of this spec is made at no worker, with the field; "" if it is: what is sent names no pods."""
    for field in ("manualSelector", "selector"):
        if spec.get(field):
            return f"spec.{field}: {RULE}"
    return ""


def _generated(selector: LabelSelector, uid: str) -> bool:
    return _is_generated(selector.match_labels, selector.match_expressions, uid)


def _is_generated(labels: Mapping[str, str] | None, expressions: Any, uid: str) -> bool:
    [*named] = (labels or {}).items()
    return not expressions and len(named) == 1 and named[0][0] in GENERATED and named[0][1] == uid
