"""A reservation whose write the API server does not take: given back, told, and tried again ever more rarely. Pure.

What nobody can write is no reservation: kept in the engine it would hold quota that nothing uses, which no record shows
and nobody else gets. Neighbours: `write_failures` calls.
"""

from __future__ import annotations

from gatelift.core.api.inflight import Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import giving_back
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.state.core import Core
from gatelift.core.told.shown_end import FOR_GOOD
from gatelift_kinds.shared.markers import RESOURCE_IN_USE
from gatelift_kube.deciding.writes import KubeObject, WriteFailed
from gatelift_kube.values.plain_text import plain

NOT_WRITTEN = "ReservationNotWritten"
"""Reason of the event, and of QuotaReserved=False."""
STRIPPED = f"the finalizer {RESOURCE_IN_USE} was taken off it as it was written, by a webhook or by somebody"
_UNPLACED = frozenset({AttemptState.RESERVED, AttemptState.OFFERED})


def _is_due(purpose: Purpose) -> bool:
    return purpose.charges or purpose is Purpose.HOLD_WORKLOAD


def refused(core: Core, outstanding: Outstanding, event: WriteFailed, now: float) -> bool:
    """Take that a write was refused; True when it was due for a reservation that is given back for it.

    The pause is that of a workload which no cluster takes, and doubles: the same write would be refused again, and what
    refuses it (a policy, a webhook, what somebody has put into the status) may change without a word to us.
    """
    if not _is_due(outstanding.purpose) or event.error not in FOR_GOOD:
        return False
    return _gives_back(core, outstanding, told(event.message or event.error.value), now)


def ignored(core: Core, outstanding: Outstanding, answered: KubeObject, now: float) -> bool:
    """Take that a write was done; True when the API server answered it without what it was for (HD-248).

    A webhook of somebody that strips our finalizer does that without an error: written again at once it would go on so
    for ever, at the pace of the API server.
    """
    if outstanding.purpose is not Purpose.HOLD_WORKLOAD or RESOURCE_IN_USE in answered.metadata.finalizers:
        return False
    return _gives_back(core, outstanding, told(STRIPPED), now)


def _gives_back(core: Core, outstanding: Outstanding, why: str, now: float) -> bool:
    """Give back what is reserved and not placed, and tell it; say whether there was any."""
    attempt = core.attempts.get(outstanding.uid)
    if attempt is None or attempt.state not in _UNPLACED:
        return False
    core.event(outstanding.ref, outstanding.uid, NOT_WRITTEN, why, warning=True)
    giving_back.give_back(core, attempt, now, (NOT_WRITTEN, why))
    return True


def told(why: str) -> str:
    """Return what people are told, by the API server's own words."""
    return f"the API server does not take its reservation, so its quota is for others; tried again later: {plain(why)}"
