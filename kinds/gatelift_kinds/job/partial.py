"""Partial admission of a Job: fewer pods at once than it asks for, by its own annotation (KEP-420). Pure.

Lowered while it runs: at the worker in the object that is made, at home (and at `local`) together with the unsuspend,
as Kueue does. What it was before stands in an annotation, so that it is put back exactly, completions too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.patches import Json, Operation, pointer
from gatelift_kinds.shared.values import MergeConflictError
from gatelift_kube.objects.batch import Job
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.unreadable import UNREADABLE

ANNOTATION_BEFORE = "gatelift.dev/parallelism-before"
"""On a Job that runs with fewer pods at once than its user asked for: JSON of what `spec` said before."""

FIELDS = ("parallelism", "completions")
"""Fields of a Job's spec that are lowered."""

COUNT_MAX = 2**31 - 1
"""Kubernetes counts pods in int32."""
BEFORE_CHARS_MAX = 256
"""Longest annotation that is read: ours has four numbers."""

TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})
"""What Kueue reads as true in an annotation."""


class Before(msgspec.Struct, frozen=True):
    """What `spec` said before it was lowered."""

    parallelism: int = 1
    completions: int | None = None


class PartialNote(Before, frozen=True):
    """The same, as it stands in the annotation."""

    lowered: dict[str, int] | None = None
    """What was written in its place, by field; None in a note that was written before this was kept."""


def now(obj: Job) -> Before:
    """Return parallelism and completions as `spec` says them now."""
    return Before(1 if obj.spec.parallelism is None else obj.spec.parallelism, obj.spec.completions)


def of_spec(spec: Mapping[str, Any]) -> Before:
    """Return parallelism and completions as a decoded `spec` of a Job says them."""
    parallelism = spec.get("parallelism")
    return Before(1 if parallelism is None else parallelism, spec.get("completions"))


def asked(obj: Job) -> Before:
    """Return parallelism and completions as the user asked for them: never less than `spec` lets run now."""
    return lowered_from(obj) or now(obj)


def lowered_from(obj: Job) -> Before | None:
    """Return what a Job had that we lowered; None where its annotation says what our lowering cannot have come from.

    Whoever may edit the Job can write the annotation. So it never makes a Job smaller than its `spec`.
    """
    indexed = obj.spec.completion_mode == "Indexed"
    return _lowered_from(before_of(obj.metadata.annotations), now(obj), indexed=indexed)


def _lowered_from(note: PartialNote | None, present: Before, *, indexed: bool) -> Before | None:
    before = note and _unless_changed(note, present)
    if before is None or before.parallelism < present.parallelism:
        return None
    if before.completions == present.completions:
        return before
    if before.completions is None or present.completions is None or not indexed:
        return None
    return before if before.completions >= present.completions else None


def _unless_changed(note: PartialNote, present: Before) -> Before | None:
    """Return what it had, but for what its user has changed since we wrote it; None where that is all of it."""
    if note.lowered is None:
        return note
    ours = [name for name in FIELDS if name in note.lowered and note.lowered[name] == getattr(present, name)]
    return msgspec.structs.replace(present, **{name: getattr(note, name) for name in ours}) if ours else None


def kept_size(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Operation, ...]:
    """Return the operations that leave a running Job its size, where an update says how it was before we lowered it.

    That is what a manifest does which is applied again.
    """
    present, before = of_spec(old.get("spec") or {}), asked_in(old)
    said = of_spec(new.get("spec") or {})
    return tuple(
        {"op": "add", "path": pointer("spec", name), "value": getattr(present, name)}
        for name in FIELDS
        if getattr(said, name) != getattr(present, name) and getattr(said, name) == getattr(before, name)
    )


def asked_in(document: Mapping[str, Any]) -> Before:
    """Return parallelism and completions of a decoded Job as its user asked for them (`asked`)."""
    spec = document.get("spec") or {}
    notes: Mapping[str, str] = (document.get("metadata") or {}).get("annotations") or {}
    present = of_spec(spec)
    return _lowered_from(before_of(notes), present, indexed=spec.get("completionMode") == "Indexed") or present


def before_of(annotations: Mapping[str, str]) -> PartialNote | None:
    """Return what the annotation keeps, None where it is absent or cannot be read."""
    kept = annotations.get(ANNOTATION_BEFORE)
    if kept is None:
        return None
    if len(kept) > BEFORE_CHARS_MAX:
        return None
    try:
        found = msgspec.json.decode(kept.encode(), type=PartialNote)
    except UNREADABLE:
        return None
    return found if found.parallelism >= 0 and (found.completions or 0) >= 0 else None


def pods_at_once(before: Before) -> int:
    """Return the count of the pod set: the smaller of parallelism and completions (default: parallelism), an int32.

    A count that is none of these would never be what the Workload says, and the Job be queued anew for ever.
    """
    found = before.parallelism if before.completions is None else min(before.parallelism, before.completions)
    return min(max(0, found), COUNT_MAX)


def min_count(obj: Job) -> int | None:
    """Return the smallest number of pods at once that the Job can do with, None if it needs all."""
    notes = obj.metadata.annotations
    least = whole(notes.get(markers.JOB_MIN_PARALLELISM, ""))
    if least is None or notes.get(markers.ELASTIC_JOB) == "true":
        return None
    return least if 1 <= least < pods_at_once(asked(obj)) else None


def lowered(obj: Job, granted: int | None) -> dict[str, int]:
    """Return the fields of `spec` for `granted` pods at once; empty if nothing is to be lowered (any more)."""
    if granted is None or min_count(obj) is None or granted >= pods_at_once(asked(obj)):
        return {}
    notes = obj.metadata.annotations
    fields = {"parallelism": granted}
    if notes.get(markers.JOB_SYNC_COMPLETIONS, "") in TRUE and obj.spec.completion_mode == "Indexed":
        fields["completions"] = granted
    return fields


def check_size(obj: Job, granted: int | None) -> None:
    """Raise MergeConflictError where a Job would start with more pods at once than were granted.

    Compared is what `spec` says as it starts. Its user has changed it since: it is queued anew with the size it has.
    """
    fields, present = lowered(obj, granted), now(obj)
    starts = Before(fields.get("parallelism", present.parallelism), fields.get("completions", present.completions))
    check_starts(starts, granted)


def check_starts(starts: Before, granted: int | None) -> None:
    """Raise MergeConflictError where that many pods at once are more than were granted (None: all are)."""
    size = pods_at_once(starts)
    if granted is not None and size > granted:
        raise MergeConflictError(f"spec.parallelism: {size} pods at once are asked for now, {granted} were admitted")


def home_change(obj: Job, granted: int | None) -> Json:
    """Return the merge patch (metadata and spec) that lowers the user's own Job; empty if nothing is to be lowered."""
    fields = lowered(obj, granted)
    if not fields:
        return {}
    return {"metadata": {"annotations": {ANNOTATION_BEFORE: _kept(obj, fields)}}, "spec": fields}


def home_restore(obj: Job) -> Json:
    """Return the merge patch that puts the user's Job back; empty if it was not lowered."""
    if ANNOTATION_BEFORE not in obj.metadata.annotations:
        return {}
    before, spec = lowered_from(obj), dict[str, Any]()
    if before is not None:
        spec["parallelism"] = before.parallelism
        if before.completions != obj.spec.completions:
            spec["completions"] = before.completions
    return {"metadata": {"annotations": {ANNOTATION_BEFORE: None}}, "spec": spec}


def local_marks(obj: Job, granted: int | None) -> dict[str, str]:
    """Return the annotation that a Job gets which is lowered when it starts at `local`."""
    fields = lowered(obj, granted)
    return {ANNOTATION_BEFORE: _kept(obj, fields)} if fields else {}


def local_operations(obj: Job, granted: int | None) -> list[Operation]:
    """Return the operations that lower a Job which starts at `local`."""
    return [{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in lowered(obj, granted).items()]


def local_restore(obj: Job) -> list[Operation]:
    """Return the operations that put a Job back which was lowered at `local`."""
    if ANNOTATION_BEFORE not in obj.metadata.annotations:
        return []
    operations: list[Operation] = [{"op": "remove", "path": pointer("metadata", "annotations", ANNOTATION_BEFORE)}]
    before = lowered_from(obj)
    if before is None:
        return operations
    operations.append({"op": "add", "path": "/spec/parallelism", "value": before.parallelism})
    if before.completions is not None and before.completions != obj.spec.completions:
        operations.append({"op": "add", "path": "/spec/completions", "value": before.completions})
    return operations


def _kept(obj: Job, fields: dict[str, int]) -> str:
    before = asked(obj)
    return msgspec.json.encode(PartialNote(before.parallelism, before.completions, fields)).decode()
