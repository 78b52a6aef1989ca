"""Deletes the objects of a work that are too many, once they have been so for a moment (HD-518). Pure.

Neighbours: `gathered` says who they are, `state.surplus` since when.
"""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import several
from gatelift.core.records.work import Work
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import Called


def drop(core: Core, work: Work, surplus: tuple[Called, ...], now: float) -> bool:
    """Delete the objects that are too many; their finalizers go by their own passes. True if there are any."""
    due, later = core.surplus.settled(work.key, [each.uid for each in surplus], now)
    if later is not None:
        core.agenda.wake(work.look, later)
    for called in surplus:
        owner = several.named(core, work, called.name, called.uid) if called.uid in due else None
        if owner is not None and not api_requests.blocked(core, owner.ref, work.look, now):
            api_requests.delete(core, owner.ref, called.uid, Purpose.DELETE_SURPLUS)
    return bool(surplus)
