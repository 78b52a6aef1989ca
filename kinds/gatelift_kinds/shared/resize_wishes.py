"""What the user of an elastic object says of how it is to be resized: annotations, and what is wrong with them. Pure.

Each is of an object that is elastic: on any other it would be taken for what it does not do. Neighbour: the rules of
each elastic kind ask.
"""

from __future__ import annotations

import re

from gatelift_kinds.shared import markers, rules, slices
from gatelift_kinds.shared.review import FieldError
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid

RESIZE_FLAVOR = "gatelift.dev/resize-flavor"
RESIZE_DEADLINE = "gatelift.dev/resize-deadline"
STRATEGIES = ("atomic", "partial")
"""Kueue's values: all of a growth or nothing, or any part of it."""
FLAVORS = ("migrate",)
DEADLINE_SECONDS_MAX = 7 * 24 * 3600
_DEADLINE = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?")
NEEDS_OPT_IN = (
    f'is read of elastic objects alone: set {markers.ELASTIC_JOB}: "{slices.OPTED_IN}" as well, or leave it out'
)
NO_DEADLINE = "must be a duration like 30s, 5m or 1h30m, from 1s to 168h: leave it out for 5m"


def errors(old: Object, new: Object) -> list[FieldError]:
    """Return what is wrong with what an object says now and did not say before."""
    before, notes = rules.notes(old), rules.notes(new)
    found: list[FieldError] = []
    for key, values in ((markers.SCALE_UP_STRATEGY, STRATEGIES), (RESIZE_FLAVOR, FLAVORS), (RESIZE_DEADLINE, ())):
        said = notes.get(key)
        if said is None or (said == before.get(key) and slices.asks(before)):
            continue
        if not slices.asks(notes):
            found.append(forbidden(annotation(key), NEEDS_OPT_IN))
        elif values and said not in values:
            found.append(invalid(annotation(key), said, _one_of(values)))
        elif not values and not _is_deadline(said):
            found.append(invalid(annotation(key), said, NO_DEADLINE))
    return found


def _one_of(values: tuple[str, ...]) -> str:
    return f"must be {' or '.join(values)}: leave it out for what is done without it"


def _is_deadline(said: str) -> bool:
    parts = _DEADLINE.fullmatch(said)
    if parts is None or not said:
        return False
    hours, minutes, seconds = (int(part or 0) for part in parts.groups())
    return 1 <= hours * 3600 + minutes * 60 + seconds <= DEADLINE_SECONDS_MAX
