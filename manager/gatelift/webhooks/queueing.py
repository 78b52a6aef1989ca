"""Rules on Kueue's own kinds that their CRDs cannot say: sums, names that refer to each other, what is fixed when.

Pure. An update is refused for what it makes wrong only: an object that came in before a rule, or around it, can be
mended one field at a time, and other things may change. The rules themselves are the engine's (`feed.validation`), but
for what an annotation of ours may say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gatelift.webhooks.review import Json, Question
from gatelift_admission.feed import validation, validation_workload
from gatelift_admission.feed.validation import InvalidField
from gatelift_kinds.shared import asked_for
from gatelift_kinds.shared import review as kinds
from gatelift_kinds.shared.review import ErrorKind, Verdict
from gatelift_kube.decoding import unknown_fields
from gatelift_kube.decoding.decoding import struct_of
from gatelift_kube.objects.kueue import ClusterQueue
from gatelift_kube.values.resources import CLUSTER_QUEUE, COHORT, RESOURCE_FLAVOR, WORKLOAD, Resource
from gatelift_wire.values.keys import ANNOTATION_RELEASE, ANNOTATION_RELEASE_PARTIAL
from gatelift_wire.values.release import ReleaseRule

_RELEASES = (ReleaseRule.ON_TERMINATING.value, ReleaseRule.ON_TERMINAL.value)
_PARTIAL = ("true", "false")


def _cluster_queue_errors(queue: ClusterQueue) -> list[InvalidField]:
    """Return what is wrong with a ClusterQueue, its annotation of ours (KEP-6143) besides."""
    errors = validation.cluster_queue_errors(queue)
    said = queue.metadata.annotations.get(ANNOTATION_RELEASE)
    if said is not None and said not in _RELEASES:
        rule = f"{said[:64]!r} is not supported: use one of {', '.join(_RELEASES)}, or drop it"
        errors.append(InvalidField(f"metadata.annotations[{ANNOTATION_RELEASE}]", rule))
    partial = queue.metadata.annotations.get(ANNOTATION_RELEASE_PARTIAL)
    if partial is not None and partial not in _PARTIAL:
        rule = f"{partial[:64]!r} is not supported: use one of {', '.join(_PARTIAL)}, or drop it"
        errors.append(InvalidField(f"metadata.annotations[{ANNOTATION_RELEASE_PARTIAL}]", rule))
    return errors


_RULES: dict[Resource, Callable[[Any], list[InvalidField]]] = {
    CLUSTER_QUEUE: _cluster_queue_errors,
    COHORT: validation.cohort_errors,
    RESOURCE_FLAVOR: validation.resource_flavor_errors,
    WORKLOAD: validation_workload.workload_errors,
}


def verdict(resource: Resource, question: Question) -> Verdict:
    """Return what is wrong with a new object, or with a change, and what it asks for that is not served."""
    old = {} if question.operation == "CREATE" else question.old
    return asked_for.joined(_ruled(resource, question), asked_for.verdict(resource.kind, old, question.new))


def _ruled(resource: Resource, question: Question) -> Verdict:
    rules = _RULES.get(resource)
    if rules is None:
        return Verdict()  # all rules are in its CRD
    before = None if question.operation == "CREATE" else _read(resource, question.old)
    try:
        new = _converted(resource, question.new)
    except msgspec.ValidationError as error:
        if question.operation != "CREATE" and before is None:
            return Verdict()  # it could not be read before either: whatever is changed, it is not this that breaks it
        unread = f"{error}: give the field the type that the API says"
        return Verdict(errors=(kinds.FieldError(kind=ErrorKind.INVALID, path=resource.kind, text=unread),))
    known = frozenset(rules(before)) if before is not None else frozenset()
    found = [error for error in rules(new) if error not in known]
    if resource == WORKLOAD and before is not None:
        found += validation_workload.workload_change_errors(new, before)
    return Verdict(
        errors=tuple(kinds.FieldError(kind=ErrorKind.INVALID, path=each.field, text=each.rule) for each in found)
    )


def _read(resource: Resource, document: Json) -> Any:
    try:
        return _converted(resource, document)
    except (msgspec.ValidationError, RecursionError):
        return None


def _converted(resource: Resource, document: Json) -> Any:
    struct = struct_of(resource)
    unknown_fields.set_aside(document, struct)
    return msgspec.convert(document, struct, strict=True)
