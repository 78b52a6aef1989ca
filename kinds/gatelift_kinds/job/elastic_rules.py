"""What the webhook sets on elastic Jobs and refuses of them (KEP-77), besides the `rules` of all Jobs. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatelift_kinds.job import elastic
from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import rules as job_rules
from gatelift_kinds.job.hook import HOOK as JOB_HOOK
from gatelift_kinds.shared import markers, resize_wishes, rules, slices
from gatelift_kinds.shared.hooks import CorrectedChange
from gatelift_kinds.shared.patches import Operation, pointer
from gatelift_kinds.shared.review import Correction, FieldError, Verdict, WebhookFacts
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid

_GATE = {"name": markers.ELASTIC_JOB}
_PATH = ("spec", "template", "spec", "schedulingGates")
NO_VALUE = (
    f'may only be "{slices.OPTED_IN}": leave the annotation out, and the Job keeps the size with which it is admitted'
)
NOT_BY_PARTS = "cannot be combined with {}: drop one of them"
STAYS_GATED = (
    f"spec.template.spec.schedulingGates: {markers.ELASTIC_JOB} stays: at it the pods of an elastic Job wait until "
    "they are granted; leave the field out of what you apply"
)
NOT_BY_TOPOLOGY = (
    f"cannot be combined with {markers.ELASTIC_JOB}: pods that come later find no place that was chosen with the first "
    "ones; drop one of them"
)
TOGETHER = (
    "must be {}, as parallelism: an elastic Job with as many completions as pods at once keeps them equal; change both "
    "in one update"
)
NOT_TOGETHER = (
    "must not become equal to completions, which were not so when the Job began and would be changed with it from then "
    "on: a larger number runs {} pods at once as well"
)


def _without_gate() -> str:
    """Return the condition of a Job that asks to be elastic, and whose template has not the gate."""
    notes, gates = "object.metadata.annotations", "object.spec.template.spec.schedulingGates"
    asks = (
        f"has({notes}) && '{markers.ELASTIC_JOB}' in {notes} && {notes}['{markers.ELASTIC_JOB}'] == '{slices.OPTED_IN}'"
    )
    return f"{asks} && !(has({gates}) && {gates}.exists(g, g.name == '{markers.ELASTIC_JOB}'))"


HOOK = replace(
    JOB_HOOK,
    put_right=(
        *JOB_HOOK.put_right,
        CorrectedChange(name="elastic", title="elastic-without-its-gate", expression=_without_gate()),
    ),
)


def defaults(obj: Object, facts: WebhookFacts) -> tuple[Operation, ...]:
    """Return the operations that queue a new Job, and put the gate into the template of one that asks for it, once."""
    operations = job_rules.defaults(obj, facts)
    if not job_rules.is_taken(obj, facts) or not slices.asks(rules.notes(obj)):
        return operations
    return (*operations, *_gate_operations(obj))


def corrected(old: Object, new: Object, facts: WebhookFacts) -> Correction:
    """Return that a Job which waits stays suspended, and that the template of an elastic one has the gate.

    Where it gets a queue's name later, and where a manifest without the gate is applied again. Of one that has begun,
    and had none, the API server takes no other template: it is a Job as any other.
    """
    found = job_rules.corrected(old, new, facts)
    if not job_rules.is_taken(new, facts) or not slices.asks(rules.notes(new)) or is_gated(new):
        return found
    began = (old.get("status") or {}).get("startTime")
    if not is_gated(old) and (began or not job_rules.is_suspended(old)):
        return found
    warnings = (STAYS_GATED,) if is_gated(old) else ()
    operations = (*found.operations, *_gate_operations(new))
    return Correction(operations=operations, warnings=(*found.warnings, *warnings))


def validate_create(obj: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a new Job, after defaulting."""
    verdict = job_rules.validate_create(obj, facts, elastic=_resizes(obj))
    return replace(verdict, errors=(*verdict.errors, *_asked({}, obj, facts)))


def validate_update(old: Object, new: Object, facts: WebhookFacts) -> Verdict:
    """Return what is wrong with a change of a Job. Of size there is nothing, but for completions that go with it."""
    verdict = job_rules.validate_update(old, new, facts, elastic=_resizes(old) and _resizes(new))
    return replace(verdict, errors=(*verdict.errors, *_asked(old, new, facts), *_tied(old, new, facts)))


def is_gated(obj: Object) -> bool:
    """Return whether the template of a Job, as it is shown to the webhook, has the gate."""
    return any(isinstance(gate, dict) and gate.get("name") == markers.ELASTIC_JOB for gate in _gates(obj) or ())


def _resizes(obj: Object) -> bool:
    return slices.asks(rules.notes(obj)) and is_gated(obj)


def _template(obj: Object) -> dict[str, Any]:
    template: dict[str, Any] = (obj.get("spec") or {}).get("template") or {}
    return template


def _gates(obj: Object) -> Any:
    return (_template(obj).get("spec") or {}).get("schedulingGates")


def _gate_operations(obj: Object) -> tuple[Operation, ...]:
    """Return the operation that adds the gate to what gates there are, none where it is there."""
    if is_gated(obj):
        return ()
    if not _template(obj).get("spec"):
        return ({"op": "add", "path": pointer(*_PATH[:-1]), "value": {_PATH[-1]: [_GATE]}},)
    if not _gates(obj):
        return ({"op": "add", "path": pointer(*_PATH), "value": [_GATE]},)
    return ({"op": "add", "path": pointer(*_PATH, "-"), "value": _GATE},)


def _asked(old: Object, new: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return what a queued Job asks for that does not go together with another size, or in other words than these."""
    if not job_rules.is_taken(new, facts):
        return []
    before, notes = rules.notes(old), rules.notes(new)
    said, minimum = notes.get(markers.ELASTIC_JOB), notes.get(markers.JOB_MIN_PARALLELISM)
    errors: list[FieldError] = []
    if said is not None and said != slices.OPTED_IN and before.get(markers.ELASTIC_JOB) != said:
        errors.append(invalid(annotation(markers.ELASTIC_JOB), said, NO_VALUE))
    if minimum is not None and notes.get(markers.DYNAMICALLY_SIZED) == slices.OPTED_IN:
        text = NOT_BY_PARTS.format(markers.DYNAMICALLY_SIZED)
        errors.append(invalid(annotation(markers.JOB_MIN_PARALLELISM), minimum, text))
    name = markers.PREFERRED_TOPOLOGY
    near, was_near = (rules.notes(_template(one)).get(name) for one in (new, old))
    if slices.asks(notes) and near is not None and near != was_near:
        errors.append(forbidden(f"spec.template.{annotation(name)}", NOT_BY_TOPOLOGY))
    return [*errors, *resize_wishes.errors(old, new)]


def _tied(old: Object, new: Object, facts: WebhookFacts) -> list[FieldError]:
    """Return the error of completions that part from the pods at once while a Job runs, or come to be as many."""
    waits = job_rules.is_suspended(old) or job_rules.is_suspended(new)
    if waits or not _resizes(new) or not job_rules.is_taken(new, facts):
        return []
    mode = (new.get("spec") or {}).get("completionMode")
    before, after = (job_partial.of_spec(one.get("spec") or {}) for one in (old, new))
    was, becomes = elastic.is_tied(mode, before), elastic.is_tied(mode, after)
    if was and not becomes:
        return [invalid("spec.completions", str(after.completions), TOGETHER.format(after.parallelism))]
    if becomes and not was:
        return [invalid("spec.parallelism", str(after.parallelism), NOT_TOGETHER.format(after.completions))]
    return []
