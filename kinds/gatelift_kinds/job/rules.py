"""What the webhook sets on Jobs and refuses of them. Pure. Kueue's rules: pods-and-slices 1.3, 3.5, 7.13."""

from __future__ import annotations

from typing import Any

from gatelift_kinds.job import fixed as job_fixed
from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import selector as job_selector
from gatelift_kinds.job import template as job_template
from gatelift_kinds.job import template_before
from gatelift_kinds.shared import asked_for, fixed, markers, not_served, rules
from gatelift_kinds.shared.patches import Operation
from gatelift_kinds.shared.review import NO_CORRECTION, Correction, FieldError, HeldChange, Verdict, WebhookFacts
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid, label
from gatelift_kube.values.numbers import whole

MANAGERS = frozenset({None, markers.MULTIKUEUE_MANAGER, markers.BUILTIN_JOB_CONTROLLER})
"""Values of `spec.managedBy` with which a Job is queued."""
STAYS_SUSPENDED = (
    "spec.suspend: stays true: the Job starts when its queue admits it ('gatelift explain' says what it waits for); "
    "leave the field out of what you apply"
)
NOBODY_RUNS = (
    f'"{markers.MULTIKUEUE_MANAGER}" keeps every controller of this cluster away: make the Job anew without the field, '
    "or in a queue that sends work to other clusters"
)
STAYS_PATIENT = (
    "spec.podReplacementPolicy: stays Failed while the Job runs: a pod that stops still counts against its quota; "
    "leave the field out of what you apply"
)
STAYS_SMALL = (
    "spec.parallelism: stays {} while the Job runs: it was admitted with fewer pods than it asks for; "
    "suspend it, and it is queued again with all it asks for"
)
_KEPT = {
    job_partial.ANNOTATION_BEFORE: "with fewer pods than it asks for",
    template_before.ANNOTATION_BEFORE: "in this cluster",
}
"""Annotations by which a Job is put back when it stops, and what wears them."""
_NOT_OF_USERS = frozenset({markers.ADMISSION_GATE, markers.TOPOLOGY_GATE, markers.ELASTIC_JOB})
_ELASTIC = frozenset({markers.ELASTIC_JOB})
_BOOLEANS = frozenset({"1", "t", "T", "true", "True", "TRUE", "0", "f", "F", "false", "False", "FALSE"})


def expected_manager(manager: str | None) -> str:
    """Return what is wrong with a Job that is to run elsewhere, in Kueue's words."""
    return f'Expecting spec.managedBy to be "{markers.MULTIKUEUE_MANAGER}" not "{manager or ""}"'


def is_taken(obj: Object, facts: WebhookFacts) -> bool:
    """Return whether a Job is queued here, by its name of a queue or that which it is given."""
    if facts.by_agent or not facts.namespace_selected:
        return False
    return bool(_queue(obj, facts)) or facts.manage_without_queue


def _queue(obj: Object, facts: WebhookFacts) -> str:
    queue: str = {**rules.marks(obj), **rules.defaulted_labels(obj, facts)}.get(markers.QUEUE_NAME, "")
    return queue


def defaults(obj: Object, facts: WebhookFacts) -> tuple[Operation, ...]:
    """Return the operations that queue a new Job: default labels, suspend, `managedBy` if it will run elsewhere.

    Whoever owns it: no kind that is queued here makes Jobs, so none is held back by what its owner waits for.
    """
    if not is_taken(obj, facts):
        return ()
    added, queue = rules.defaulted_labels(obj, facts), _queue(obj, facts)
    operations = rules.label_operations(obj, added)
    spec: Any = obj.get("spec") or {}
    if spec.get("suspend") is not True:
        operations.append({"op": "add", "path": "/spec/suspend", "value": True})
    if facts.local_queues.get(queue) and spec.get("managedBy") is None:
        operations.append({"op": "add", "path": "/spec/managedBy", "value": markers.MULTIKUEUE_MANAGER})
    return tuple(operations)


def corrected(old: Object, new: Object, facts: WebhookFacts) -> Correction:
    """Return that a Job which waits in a queue stays suspended, whoever wants it otherwise: admission alone starts it.

    Put back and not refused: a controller that lets its Jobs go, or a manifest with `suspend: false` that is applied
    again, would fail for ever. A suspended Job is never an admitted one that runs, so nothing else need be known. The
    places of its template stay as they run also where an update suspends it: that is what a manifest with
    `suspend: true` does which is applied again. It evicts; what the lift added is taken off when the Job has stopped.
    """
    if facts.by_agent or not facts.namespace_selected or not _queued(old, new) or _finished(old):
        return NO_CORRECTION
    places = template_before.kept_places(old, new)
    if is_suspended(new):
        return Correction(operations=places)
    if is_suspended(old):
        operation: Operation = {"op": "add", "path": "/spec/suspend", "value": True}
        return Correction(operations=(operation, *places), warnings=(STAYS_SUSPENDED,))
    patient, size = _replacement(old, new), job_partial.kept_size(old, new)
    warnings = (*patient.warnings, *((STAYS_SMALL.format(_size(old).parallelism),) if size else ()))
    return Correction(operations=(*patient.operations, *places, *size), warnings=warnings)


def _replacement(old: Object, new: Object) -> Correction:
    """Return that a Job which runs goes on replacing its pods when they have ended, as it was let go with."""
    field, wanted = "podReplacementPolicy", markers.REPLACED_WHEN_ENDED
    if (old.get("spec") or {}).get(field) != wanted or (new.get("spec") or {}).get(field) == wanted:
        return NO_CORRECTION
    operation: Operation = {"op": "add", "path": f"/spec/{field}", "value": wanted}
    return Correction(operations=(operation,), warnings=(STAYS_PATIENT,))


def validate_create(obj: Object, facts: WebhookFacts, *, elastic: bool = False) -> Verdict:
    """Return what is wrong with a new Job, after defaulting; of an `elastic` one another size while it runs is not."""
    kept = _kept({}, obj, facts)
    shape = (*_managed_by(obj, facts), *_template(obj, facts), *_selector(obj, facts), *_partial(obj))
    errors = (*rules.created(obj), *shape, *kept)
    return asked_for.joined(Verdict(errors=errors), _asked_for({}, obj, facts, elastic=elastic))


def validate_update(old: Object, new: Object, facts: WebhookFacts, *, elastic: bool = False) -> Verdict:
    """Return what is wrong with a change of a Job; of an `elastic` one another size is not."""
    suspended, was_suspended = is_suspended(new), is_suspended(old)
    errors = rules.changed(old, new, suspended=suspended, was_suspended=was_suspended, facts=facts)
    errors += [*_partial(new), *_kept(old, new, facts), *_prebuilt(old, new, facts)]
    if rules.marks(old).get(markers.QUEUE_NAME) != rules.marks(new).get(markers.QUEUE_NAME):
        errors += _managed_by(new, facts)
        errors += [*_template(new, facts), *_selector(new, facts)]
    else:
        errors += [] if _template(old, facts) else _template(new, facts)
        errors += [] if _selector(old, facts) else _selector(new, facts)
    fixed_size = () if suspended or was_suspended else _partial_running(old, new)
    errors += fixed_size
    warnings: tuple[str, ...] = ()
    if not facts.by_agent and _queued(old, new) and not _finished(old):
        if not (suspended or was_suspended):
            errors += fixed.refused(job_fixed.changes(old, new))
        elif suspended and was_suspended:
            warnings = fixed.warned(held_changes(old, new), facts.reserved_by)
    unasked = suspended or was_suspended or facts.by_agent or elastic
    resized = () if unasked or any(one.path == "spec.parallelism" for one in fixed_size) else _resized(old, new)
    errors += [one for one in resized if isinstance(one, FieldError)]
    verdict = Verdict(errors=tuple(errors), warnings=(*warnings, *(one for one in resized if isinstance(one, str))))
    return asked_for.joined(verdict, _asked_for(old, new, facts, elastic=elastic))


def held_changes(old: Object, new: Object) -> tuple[HeldChange, ...]:
    """Return what is changed of a Job that waits, and taken no notice of by a run that begins at this moment."""
    return job_fixed.changes(old, new) if is_suspended(old) else ()


def _asked_for(old: Object, new: Object, facts: WebhookFacts, *, elastic: bool) -> Verdict:
    """Return what a queued Job asks for of what is not served: anew, or for the first time while it is queued."""
    queued = rules.marks(new).get(markers.QUEUE_NAME) or facts.manage_without_queue
    if facts.by_agent or not facts.namespace_selected or not queued:
        return Verdict()
    counted = rules.marks(old).get(markers.QUEUE_NAME) or facts.manage_without_queue
    before = old if counted else {}
    served = _ELASTIC if elastic else frozenset[str]()
    asked = asked_for.verdict("Job", before, new, served=served)
    return asked_for.joined(asked, Verdict(warnings=_gates_elsewhere(before, new)))


def _prebuilt(old: Object, new: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return the error of a Job that is given a prebuilt Workload's name, or a queue beside one that it had."""
    counted = rules.marks(old).get(markers.QUEUE_NAME) or facts.manage_without_queue
    queued = rules.marks(new).get(markers.QUEUE_NAME) or facts.manage_without_queue
    return rules.prebuilt_given(old if counted else {}, new, suspended=is_suspended(new)) if queued else []


def _gates_elsewhere(old: Object, new: Object) -> tuple[str, ...]:
    """Return warnings of a user's gates in the template of a Job that another cluster runs: its pods are not here.

    Those that the table answers for everywhere are left out. A pod's own gates travel, and so does their end.
    """
    if (new.get("spec") or {}).get("managedBy") != markers.MULTIKUEUE_MANAGER:
        return ()
    known = {*_gates(old), *_NOT_OF_USERS}
    return tuple(
        f"spec.template.spec.schedulingGates[{place}].name: {not_served.USERS_GATE}"
        for place, name in enumerate(_gates(new))
        if name not in known
    )


def _gates(obj: Object) -> tuple[str, ...]:
    """Return the names of the gates in the template."""
    template: Any = (obj.get("spec") or {}).get("template") or {}
    return tuple(gate.get("name", "") for gate in (template.get("spec") or {}).get("schedulingGates") or ())


def _managed_by(obj: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return an error for a queued Job of another controller, which nobody would ever let go.

    And for one of a queue of worker clusters that its own cluster would run as well, or of one at home that nobody
    would run.
    """
    manager = (obj.get("spec") or {}).get("managedBy")
    queue = rules.marks(obj).get(markers.QUEUE_NAME)
    if not queue:
        return []
    if isinstance(manager, str) and manager not in MANAGERS:
        text = "its controller is not asked to wait for quota: leave it out, or take the queue's name off the Job"
        return [invalid("spec.managedBy", manager, text)]
    if facts.local_queues.get(queue) and manager != markers.MULTIKUEUE_MANAGER:
        way_out = "make the Job anew without the field"
        text = (
            f'must be "{markers.MULTIKUEUE_MANAGER}" where LocalQueue {queue} sends work to other clusters: {way_out}'
        )
        return [invalid("spec.managedBy", manager or "", text)]
    if facts.local_queues.get(queue) is False and manager == markers.MULTIKUEUE_MANAGER:
        return [invalid("spec.managedBy", manager, f"LocalQueue {queue} runs its work here: {NOBODY_RUNS}")]
    return []


def _kept(old: Object, new: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return errors for what a Job was before it was let go that others than Gatelift write: it is put back to that."""
    return [error for name, where in _KEPT.items() for error in _kept_note(name, where, old, new, facts)]


def _kept_note(name: str, where: str, old: Object, new: Object, facts: WebhookFacts) -> list[FieldError]:
    was, said = rules.notes(old).get(name), rules.notes(new).get(name)
    if facts.by_agent or was == said:
        return []
    way_out = "leave it out" if was is None else "leave it as it is: it goes when the Job stops"
    text = f"is written by Gatelift alone, on a Job that runs {where}: {way_out}"
    return [invalid(annotation(name), said or "", text)]


def _template(obj: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return errors for a queued Job whose pods would say that they were queued themselves, or claim devices.

    Or wait at our gate, or are of another pod set: Kueue does not start such a Job. A queue's name there is as common
    as it is harmless.
    """
    if not _to_be_queued(obj, facts):
        return []
    template: Any = (obj.get("spec") or {}).get("template") or {}
    pods, path = template.get("spec"), "spec.template.spec"
    errors = [*rules.claims(pods, path), *rules.grace(pods, path)]
    if (obj.get("spec") or {}).get("managedBy") == markers.MULTIKUEUE_MANAGER and (pods or {}).get("nodeName"):
        errors.append(forbidden(f"{path}.nodeName", not_served.NODE_NAME))
    if markers.MANAGED in rules.marks(template):
        path = f"spec.template.{label(markers.MANAGED)}"
        errors.append(forbidden(path, "the Job is queued, not its pods: leave the label out of the template"))
    errors += [
        forbidden(f"spec.template.spec.schedulingGates[{place}]", job_template.OWN_GATE)
        for place, name in enumerate(_gates(obj))
        if name == markers.ADMISSION_GATE
    ]
    pod_set = rules.marks(template).get(markers.POD_SET, markers.DEFAULT_POD_SET)
    if pod_set != markers.DEFAULT_POD_SET:
        path = f"spec.template.{label(markers.POD_SET)}"
        text = f'says "{markers.DEFAULT_POD_SET}" on the pods of a Job while it runs, and is set for you: leave it out'
        errors.append(invalid(path, str(pod_set), text))
    return errors


def _selector(obj: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return the error of a queued Job that finds its pods by labels which its user may change on them."""
    return job_selector.refused(obj) if _to_be_queued(obj, facts) else []


def _to_be_queued(obj: Object, facts: WebhookFacts) -> bool:
    named = rules.marks(obj).get(markers.QUEUE_NAME) or facts.manage_without_queue
    return bool(named) and not facts.by_agent


def _partial(obj: Object) -> list[FieldError]:
    notes = rules.notes(obj)
    spec: Any = obj.get("spec") or {}
    parallelism = spec.get("parallelism", 1)
    errors: list[FieldError] = []
    minimum = notes.get(markers.JOB_MIN_PARALLELISM)
    if minimum is not None:
        path = annotation(markers.JOB_MIN_PARALLELISM)
        count = min(parallelism, spec.get("completions") or parallelism)
        before = job_partial.asked_in(obj)
        if before != job_partial.of_spec(spec):  # lowered by us: it may be suspended as it is
            count = job_partial.pods_at_once(before)
        least = whole(minimum)
        if least is None:
            errors.append(invalid(path, minimum, "must be a whole number"))
        elif not 1 <= least < count and is_suspended(obj):
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


def _resized(old: Object, new: Object) -> tuple[FieldError | str, ...]:
    """Return the error of a running Job that grows, or the warning of one that shrinks: quota is for what it had."""
    if not _queued(old, new) or _finished(old):
        return ()
    before, after = _size(old), _size(new)
    was, wanted = job_partial.pods_at_once(before), job_partial.pods_at_once(after)
    if wanted > was:
        field = "parallelism" if after.parallelism != before.parallelism else "completions"
        way_out = "suspend it first, and it is queued again with its new size; or make a new Job"
        text = f"cannot grow from {was} to {wanted} pods at once while the Job runs: {way_out}"
        return (invalid(f"spec.{field}", str(getattr(after, field)), text),)
    if wanted < was:
        return (f"spec.parallelism: the Job is stopped and queued again, with {wanted} instead of {was} pods at once",)
    return ()


def _size(obj: Object) -> job_partial.Before:
    return job_partial.of_spec(obj.get("spec") or {})


def _queued(old: Object, new: Object) -> bool:
    """Return whether a Job is ours by its queue's name, now or before."""
    manager = (new.get("spec") or {}).get("managedBy")
    return manager in MANAGERS and any(rules.marks(one).get(markers.QUEUE_NAME) for one in (old, new))


def _finished(obj: Object) -> bool:
    conditions: Any = (obj.get("status") or {}).get("conditions")
    return isinstance(conditions, list) and any(
        isinstance(one, dict) and one.get("type") in {"Complete", "Failed"} and one.get("status") == "True"
        for one in conditions
    )


def is_suspended(obj: Object) -> bool:
    """Return whether a Job, as it is shown to the webhook, is suspended."""
    return bool((obj.get("spec") or {}).get("suspend"))
