"""Moments at which something is due, None for never. Pure."""

from __future__ import annotations


def soonest(*moments: float | None) -> float | None:
    """Return the earliest of them, None where there is none. Asked after every event, so it takes one call."""
    found: float | None = None
    for moment in moments:
        if moment is not None and (found is None or moment < found):
            found = moment
    return found
