"""What of an object stays as it was when its run began, whatever is written into it later: refused or warned of. Pure.

A worker gets the object as it is when it is told to start it, and nothing that is changed afterwards (as in Kueue's
MultiKueue). Taken without a word, such a change would be a deadline that nobody keeps. Which changes these are, the
kinds say: `job.fixed`, `pod_fixed`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gatelift_kinds.shared.review import FieldError, HeldChange
from gatelift_kinds.shared.rules import Object, invalid

RUNS_ELSEWHERE = "is not passed on to the cluster where the {kind} runs: {way_out}"

CLUSTER = "{cluster}"


def changed_fields(old: Object, new: Object, fields: Iterable[str], text: str) -> tuple[HeldChange, ...]:
    """Return the changes of fields of `spec`; what is not there is as good as empty."""
    was, wanted = spec_of(old), spec_of(new)
    return tuple(
        HeldChange(path=f"spec.{field}", value=shown(wanted.get(field)), text=text)
        for field in fields
        if (was.get(field) or None) != (wanted.get(field) or None)
    )


def refused(changes: Iterable[HeldChange], cluster: str = "") -> tuple[FieldError, ...]:
    """Return an error for each change of what runs, in the cluster of that name."""
    return tuple(invalid(each.path, each.value, each.text.replace(CLUSTER, cluster)) for each in changes)


def warned(changes: Iterable[HeldChange], workload: str) -> tuple[str, ...]:
    """Return a warning for each change of what is held back, while its Workload holds quota; "" if that does not."""
    if not workload:
        return ()
    late = f"its Workload {workload} holds quota: if that is being started now, this counts from its next start on"
    return tuple(f"{each.path}: {late}" for each in changes)


def spec_of(obj: Object) -> Any:
    """Return the spec, empty if there is none."""
    return obj.get("spec") or {}


def shown(value: Any) -> str | None:
    """Return a value as an error shows it."""
    return None if isinstance(value, dict | list) else "" if value is None else str(value)
