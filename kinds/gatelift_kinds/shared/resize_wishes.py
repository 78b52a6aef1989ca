"""What the user of an elastic object says of how it is to be resized: annotations, and what is wrong with them. Pure.

Each is of an object that is elastic: on any other it would be taken for what it does not do. Neighbour: the rules of
each elastic kind ask.
"""

from __future__ import annotations

from gatelift_kinds.shared import markers, rules, slices
from gatelift_kinds.shared.review import FieldError
from gatelift_kinds.shared.rules import Object, annotation, forbidden, invalid
from gatelift_kube.values.numbers import whole

RESIZE_FLAVOR = "gatelift.dev/resize-flavor"
RESIZE_DEADLINE = "gatelift.dev/resize-deadline"
"""For how many seconds a growth may wait for the cluster on which it runs."""
AT_DEADLINE = "gatelift.dev/resize-at-deadline"
"""And what becomes of it then: it waits on, or is rolled back, or all of it moves."""
VALUES: dict[str, tuple[str, ...]] = {
    markers.SCALE_UP_STRATEGY: ("atomic", "partial"),  # Kueue's: all of a growth or nothing, or any part of it
    RESIZE_FLAVOR: ("migrate",),
    AT_DEADLINE: ("keep", "rollback", "move"),
    RESIZE_DEADLINE: (),
}
"""What each may say; the deadline is a number."""
DEADLINE_SECONDS_MAX = 7 * 24 * 3600
NEEDS_OPT_IN = (
    f'is read of elastic objects alone: set {markers.ELASTIC_JOB}: "{slices.OPTED_IN}" as well, or leave it out'
)
NO_DEADLINE = f"must be whole seconds from 1 to {DEADLINE_SECONDS_MAX}, without a unit: leave it out for 300"


def errors(old: Object, new: Object) -> list[FieldError]:
    """Return what is wrong with what an object says now and did not say before."""
    before, notes = rules.notes(old), rules.notes(new)
    found: list[FieldError] = []
    for key, values in VALUES.items():
        said = notes.get(key)
        if said is None or (said == before.get(key) and slices.asks(before)):
            continue
        if not slices.asks(notes):
            found.append(forbidden(annotation(key), NEEDS_OPT_IN))
        elif values and said not in values:
            text = f"must be {' or '.join(values)}: leave it out for what is done without it"
            found.append(invalid(annotation(key), said, text))
        elif not values and not _is_deadline(said):
            found.append(invalid(annotation(key), said, NO_DEADLINE))
    return found


def _is_deadline(said: str) -> bool:
    seconds = whole(said)
    return seconds is not None and 1 <= seconds <= DEADLINE_SECONDS_MAX
