"""What a write that did not happen, or may not have, means for its object: wait for news, read, or pause.

Neighbours: `answers` calls; `inflight` keeps what holds up everything about an object, `resting` what holds up itself.
"""

from __future__ import annotations

from gatelift.core.api.inflight import Outstanding
from gatelift.core.conclusions import raising
from gatelift.core.dispatching import refused_reservations
from gatelift.core.state.core import Core
from gatelift.core.told import refused_ends, shown_end, telling
from gatelift_kube.deciding.writes import WriteError, WriteFailed

_DOUBTFUL = frozenset({WriteError.UNKNOWN, WriteError.NOT_FOUND, WriteError.ALREADY_EXISTS})
"""After these the object is read before anything is decided on it."""


def failed(core: Core, outstanding: Outstanding, event: WriteFailed, now: float) -> None:
    """Take that a write failed."""
    ref, purpose = outstanding.ref, outstanding.purpose
    known = core.known(ref)
    informs = purpose.informs
    if event.error in {WriteError.CONFLICT, WriteError.PRECONDITION}:
        if (known.metadata.resource_version if known is not None else "") == outstanding.decided_on:
            core.inflight.conflicted(ref, outstanding.decided_on, now)
        return
    if informs:
        core.resting.failed(ref, purpose, now, doubt=event.error in _DOUBTFUL)
    if event.error is WriteError.UNKNOWN:
        version, lands_until = outstanding.decided_on, outstanding.lands_until
        core.inflight.unsure(ref, now, version=version, lands_until=lands_until, informs=informs)
        core.note(f"{purpose.value}: {ref}: {event.message}; it may be done, so it is read", warning=True)
    elif event.error in _DOUBTFUL:
        core.inflight.unsure(ref, now, informs=informs)
    else:
        decided = refused_ends.refused(core, outstanding, event, now)
        decided = decided or refused_reservations.refused(core, outstanding, event, now)
        if not (informs or decided):
            core.inflight.failed(ref, now)
        shown_end.refused(core, outstanding, event)
        raising.refused(core, outstanding, event)
        telling.refused(core, outstanding, event)
        core.note(f"{purpose.value}: {ref}: {event.error.value}: {event.message}", warning=True)
