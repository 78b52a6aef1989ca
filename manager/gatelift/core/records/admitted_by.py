"""By which checks of other controllers a Workload was admitted: a condition of ours, for whoever leads next. Pure.

The list of the checks' states does not tell it: whoever may write a status can add to it, and the controller of a check
that the queue asks for only since may rightly. What runs is ended by a check that admitted it, and by no other. Where
no check of others was asked for the condition is not written at all.
Neighbours: `admission_writes` writes it with an admission, `verdicts` asks, `kept_record` puts it back where somebody
changes it.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift.core import texts
from gatelift_kube.objects.conditions import TRUE, find, put, without
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition

ADMITTED_BY = "gatelift.dev/AdmittedBy"
"""Condition whose message names the checks, with a comma and a space between them: no name of an object has either."""
_BETWEEN = ", "


def names(workload: Workload) -> tuple[str, ...]:
    """Return the checks of other controllers by which the admission that stands was given; none where none is named."""
    said = find(workload.status.conditions, ADMITTED_BY)
    if said is None or said.status != TRUE:
        return ()
    return tuple(name for name in said.message.split(_BETWEEN) if name)


def told(conditions: tuple[Condition, ...], checks: Iterable[str], generation: int, wall: str) -> tuple[Condition, ...]:
    """Return the conditions with these checks, all of other controllers, as those of the admission that is written."""
    message = _BETWEEN.join(checks)
    if not message:
        return without(conditions, ADMITTED_BY)
    said = Condition(
        type=ADMITTED_BY, status=TRUE, reason=texts.ADMITTED, message=message, observed_generation=generation
    )
    return put(conditions, said, wall)
