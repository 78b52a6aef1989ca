"""What of a Job stays as it was when its run began, whatever is written into it later. Pure. Neighbour: `job_rules`.

A worker gets the Job as it is when it is told to start it, and nothing that is changed afterwards (Kueue's MultiKueue
does the same); with how few pods it may do was asked when its quota was given. Taken without a word, such a change
would be a deadline that nobody keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gatelift_kinds import markers, rules
from gatelift_kinds.review import FieldError
from gatelift_kinds.rules import Object, annotation, invalid

FIELDS = ("activeDeadlineSeconds", "backoffLimit", "maxFailedIndexes")
"""Of the spec: what an API server lets anybody change while a Job runs, and only the worker's Job controller reads."""
RUNS_ELSEWHERE = (
    "is not passed on to the cluster where the Job runs: suspend it first, and it is queued again as it is then; "
    "or make a new Job"
)
RUNS = "is immutable while the Job runs: suspend it first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that a run that has begun takes no notice of: its path, the new value, and what is wrong with it."""

    path: str
    value: str
    text: str


def changes(old: Object, new: Object) -> tuple[Change, ...]:
    """Return what is changed that a run takes no notice of; of the spec, where no controller of this cluster acts."""
    was, wanted = _spec(old), _spec(new)
    fields = FIELDS if wanted.get("managedBy") == markers.MULTIKUEUE_MANAGER else ()
    found = [
        Change(path=f"spec.{field}", value=_text(wanted.get(field)), text=RUNS_ELSEWHERE)
        for field in fields
        if was.get(field) != wanted.get(field)
    ]
    name = markers.JOB_MIN_PARALLELISM
    before, after = rules.notes(old).get(name), rules.notes(new).get(name)
    if before != after:
        found.append(Change(path=annotation(name), value=_text(after), text=RUNS))
    return tuple(found)


def refused(old: Object, new: Object) -> tuple[FieldError, ...]:
    """Return an error for each change of a Job that runs."""
    return tuple(invalid(each.path, each.value, each.text) for each in changes(old, new))


def warned(old: Object, new: Object, workload: str) -> tuple[str, ...]:
    """Return a warning for each change of a Job that is still suspended, while its Workload holds quota."""
    if not workload:
        return ()
    late = f"its Workload {workload} holds quota: if that is being started now, this counts from its next start on"
    return tuple(f"{each.path}: {late}" for each in changes(old, new))


def _spec(obj: Object) -> Any:
    return obj.get("spec") or {}


def _text(value: Any) -> str:
    return "" if value is None else str(value)
