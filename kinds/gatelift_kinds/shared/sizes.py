"""Sizes of elastic work (KEP-77): a number that only grows, and how many pods of each pod set. Pure.

On a Workload stands the number alone, since its pod sets have the counts; on what runs stand both, as it was set to
them. What cannot be read is told apart from what is not there: whoever meets it goes on charging, and starts nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from gatelift_kinds.shared.values import KindError
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.keys import ANNOTATION_SIZE

Counts = Mapping[str, int]
"""Pods by pod set."""

FIRST_NUMBER = 1
"""Of work that was never resized; a Workload does not say it."""
NUMBER_MAX = 2**63 - 1
COUNT_MAX = 2**31 - 1
MARK_BYTES_MAX = 1024
"""Of the mark on what runs: a few pod sets with their names."""


class SizeError(KindError):
    """What stands on an object as its size cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A number, and the pods of each pod set that may run at once."""

    number: int
    counts: Counts


class SizeMark(msgspec.Struct, frozen=True):
    """What an object that runs was set to: its size, as it stands in the annotation."""

    number: int
    counts: dict[str, int]
    tied: bool = False
    """Whether the object has another field that is set with the count: completions of an Indexed Job."""

    @property
    def size(self) -> Size:
        """Return the size alone."""
        return Size(number=self.number, counts=self.counts)


def number_of(annotations: Mapping[str, str]) -> int:
    """Return the number of a Workload's size. SizeError: it says what is none."""
    said = annotations.get(ANNOTATION_SIZE)
    if said is None:
        return FIRST_NUMBER
    number = whole(said)
    if number is None or number < FIRST_NUMBER or said != str(number):
        raise SizeError(f"metadata.annotations[{ANNOTATION_SIZE}]: is no number of a size, and Gatelift's alone")
    return number


def counts_of(workload: Workload) -> dict[str, int]:
    """Return the pods that a Workload asks for, by pod set."""
    return {one.name: one.count for one in workload.spec.pod_sets}


def told(counts: Counts) -> str:
    """Return counts in words: of one pod set the pods alone, else of each by its name."""
    if len(counts) == 1:
        (count,) = counts.values()
        return f"{count} pod" if count == 1 else f"{count} pods"
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "no pods"


def written(mark: SizeMark) -> str:
    """Return the annotation of what runs. SizeError: it would be longer than is read."""
    text = msgspec.json.encode(mark, order="sorted").decode()
    if len(text.encode()) > MARK_BYTES_MAX:
        raise SizeError(f"metadata.annotations[{ANNOTATION_SIZE}]: the names of the pod sets are too long for it")
    return text


def mark_of(annotations: Mapping[str, str]) -> SizeMark | None:
    """Return what an object that runs was set to, None where it says nothing. SizeError: it says what is no size."""
    said = annotations.get(ANNOTATION_SIZE)
    if said is None:
        return None
    found = _read(said) if len(said.encode()) <= MARK_BYTES_MAX else None
    if found is None:
        raise SizeError(f"metadata.annotations[{ANNOTATION_SIZE}]: is no size that Gatelift wrote, and its alone")
    return found


def _read(said: str) -> SizeMark | None:
    try:
        found = msgspec.json.decode(said.encode(), type=SizeMark)
    except UNREADABLE:
        return None
    counted = all(0 <= count <= COUNT_MAX for count in found.counts.values())
    return found if counted and FIRST_NUMBER <= found.number <= NUMBER_MAX else None


def is_scaled_down(before: Counts, after: Counts) -> bool:
    """Return whether some pod set has fewer pods and none has more; a pod set of one side alone is not compared."""
    both = [(before[name], after[name]) for name in before.keys() & after.keys()]
    return any(new < old for old, new in both) and not any(new > old for old, new in both)


def lowered(current: Counts, wanted: Counts) -> dict[str, int]:
    """Return the counts of the slice that runs after what is wanted: what is wanted less is lowered, nothing raised."""
    return {name: min(count, wanted.get(name, count)) for name, count in current.items()}


def raised(wanted: Counts, least: Counts) -> dict[str, int]:
    """Return the counts of a slice that is to be no smaller than `least` in any pod set."""
    return {**wanted, **{name: max(count, wanted.get(name, count)) for name, count in least.items()}}


def is_raised(current: Counts, wanted: Counts) -> bool:
    """Return whether more pods are wanted in some pod set: a slice on top of the one that runs is needed."""
    return any(wanted.get(name, count) > count for name, count in current.items())
