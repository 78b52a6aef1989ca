"""What the webhook sets on Jobs and refuses of them. Pure. Kueue's rules: pods-and-slices 1.3, 3.5, 7.13."""

from __future__ import annotations

from typing import Any

from gatelift_kinds import job_partial, markers, rules
from gatelift_kinds.patches import Operation
from gatelift_kinds.review import FieldError, Verdict, WebhookFacts
from gatelift_kinds.rules import Object, annotation, invalid

MANAGERS = frozenset({None, markers.MULTIKUEUE_MANAGER, markers.BUILTIN_JOB_CONTROLLER})
"""Values of `spec.managedBy` with which a Job is queued."""
_BOOLEANS = frozenset({"1", "t", "T", "true", "True", "TRUE", "0", "f", "F", "false", "False", "FALSE"})


def defaults(obj: Object, facts: WebhookFacts) -> tuple[Operation, ...]:
    """Return the operations that queue a new Job: default labels, suspend, `managedBy` if it will run elsewhere."""
    if facts.by_agent or not facts.namespace_selected or facts.owner_managed:
        return ()
    added = rules.defaulted_labels(obj, facts)
    queue = {**rules.marks(obj), **added}.get(markers.QUEUE_NAME, "")
    if not queue and not facts.manage_without_queue:
        return ()
    operations = rules.label_operations(obj, added)
    spec: Any = obj.get("spec") or {}
    if spec.get("suspend") is not True:
        operations.append({"op": "add", "path": "/spec/suspend", "value": True})
    if facts.local_queues.get(queue) and spec.get("managedBy") is None:
        operations.append({"op": "add", "path": "/spec/managedBy", "value": markers.MULTIKUEUE_MANAGER})
    return tuple(operations)


def validate_create(obj: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a new Job, after defaulting."""
    return Verdict(errors=(*rules.created(obj), *_managed_by(obj), *_partial(obj)))


def validate_update(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a change of a Job."""
    suspended, was_suspended = _suspended(new), _suspended(old)
    errors = rules.changed(old, new, suspended=suspended, was_suspended=was_suspended, facts=facts)
    errors += _partial(new)
    if not rules.marks(old).get(markers.QUEUE_NAME):
        errors += _managed_by(new)
    if not suspended and not was_suspended:
        errors += _partial_running(old, new)
    return Verdict(errors=tuple(errors))


def _managed_by(obj: Object) -> list[FieldError]:
    """Return an error for a queued Job that another controller runs: nobody would ever let it go."""
    manager = (obj.get("spec") or {}).get("managedBy")
    if not isinstance(manager, str) or manager in MANAGERS or not rules.marks(obj).get(markers.QUEUE_NAME):
        return []
    text = "its controller is not asked to wait for quota: leave it out, or take the queue's name off the Job"
    return [invalid("spec.managedBy", manager, text)]


def _partial(obj: Object) -> list[FieldError]:
    notes = rules.notes(obj)
    spec: Any = obj.get("spec") or {}
    parallelism = spec.get("parallelism", 1)
    errors: list[FieldError] = []
    minimum = notes.get(markers.JOB_MIN_PARALLELISM)
    if minimum is not None:
        path = annotation(markers.JOB_MIN_PARALLELISM)
        count = min(parallelism, spec.get("completions") or parallelism)
        before = job_partial.before_of(notes)
        if before is not None:  # lowered by us: a Job that runs with the least may be suspended as it is
            count = job_partial.pods_at_once(before)
        if not (minimum.isascii() and minimum.isdigit()):
            errors.append(invalid(path, minimum, "must be a whole number"))
        elif not 1 <= int(minimum) < count and _suspended(obj):
            errors.append(invalid(path, minimum, f"must be at least 1 and below the {count} pods of the Job"))
        if notes.get(markers.ELASTIC_JOB) == "true":
            errors.append(invalid(path, minimum, f"cannot be combined with {markers.ELASTIC_JOB}: drop one of them"))
    sync = notes.get(markers.JOB_SYNC_COMPLETIONS)
    if sync is not None:
        errors += _sync(annotation(markers.JOB_SYNC_COMPLETIONS), sync, spec, parallelism)
    return errors


def _sync(path: str, sync: str, spec: Any, parallelism: int) -> list[FieldError]:
    if sync not in _BOOLEANS:
        return [invalid(path, sync, "must be `true` or `false`")]
    if sync not in job_partial.TRUE:
        return []
    if spec.get("completionMode", "NonIndexed") != "Indexed":
        return [invalid(path, sync, "needs completionMode Indexed: set it or drop the annotation")]
    if spec.get("completions", parallelism) != parallelism:
        return [invalid(path, sync, "needs completions equal to parallelism: make them equal or drop the annotation")]
    return []


def _partial_running(old: Object, new: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    before, after = rules.notes(old), rules.notes(new)
    was, value = (old.get("spec") or {}).get("parallelism"), (new.get("spec") or {}).get("parallelism")
    if markers.JOB_MIN_PARALLELISM in after and was != value:
        errors.append(
            invalid(
                "spec.parallelism", str(value), "is immutable while a partially admitted Job runs: suspend it first"
            )
        )
    if before.get(markers.JOB_SYNC_COMPLETIONS) != after.get(markers.JOB_SYNC_COMPLETIONS):
        value_now = after.get(markers.JOB_SYNC_COMPLETIONS, "")
        path = annotation(markers.JOB_SYNC_COMPLETIONS)
        errors.append(invalid(path, value_now, "is immutable while the Job runs: suspend it first"))
    return errors


def _suspended(obj: Object) -> bool:
    return bool((obj.get("spec") or {}).get("suspend"))
