"""The condition by which a slice of elastic work says what it is, once it has grown, shrunk or ended (SL-72). Pure.

It goes with writes that are due anyway: what waits says so by QuotaReserved, and the first slice is a Workload as any
other. True of what runs, False of what is past. Neighbours: `size_writes`, `works.past_slices`.
"""

from __future__ import annotations

from gatelift.core.records import status_writes
from gatelift_kinds.shared.sizes import Counts, SizeError, counts_of, number_of, told
from gatelift_kube.objects.conditions import FALSE, TRUE, find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition

SLICE = "gatelift.dev/Slice"
"""Type. It informs: where a list of conditions is full, it goes with those of others (`own_conditions`)."""
CURRENT = "Current"
"""Reason; of what is past it is the one of Finished."""


def grown(target: Workload, counts: Counts, before: Workload) -> Condition:
    """Return that a slice runs from now on, in the place of another one."""
    name, asked = before.metadata.name, counts_of(before)
    text = f"{_size(target, counts)} may run, in the place of Workload {name} ({told(asked)})"
    return status_writes.condition(target, SLICE, TRUE, CURRENT, text)


def shrunk(record: Workload, counts: Counts) -> Condition:
    """Return that no more than so many pods of a slice can run."""
    return status_writes.condition(record, SLICE, TRUE, CURRENT, f"{_size(record, counts)} may run")


def past(known: Workload, reason: str, by: Workload | None) -> Condition:
    """Return that a slice is past; `by`: what has taken its place, None where nobody has."""
    size = _size(known, counts_of(known))
    text = f"{size}: never ran, and is not wanted any more"
    if by is not None:
        text = f"{size}: replaced by Workload {by.metadata.name} ({_size(by, counts_of(by))})"
    return status_writes.condition(known, SLICE, FALSE, reason, text)


def ended(known: Workload, reason: str) -> tuple[Condition, ...]:
    """Return that what ran of a slice has ended with all of its chain; nothing of one that never said that it runs."""
    said = find(known.status.conditions, SLICE)
    if said is None or said.status != TRUE:
        return ()
    return (status_writes.condition(known, SLICE, FALSE, reason, f"{_size(known, counts_of(known))}: has ended"),)


def _size(known: Workload, counts: Counts) -> str:
    try:
        number = f"size {number_of(known.metadata.annotations)}"
    except SizeError:
        number = "a size without a number"
    return f"{number}, {told(counts)}"
