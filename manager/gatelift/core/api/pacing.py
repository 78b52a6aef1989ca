"""How often what concerns all of several objects is looked at for what happens to single ones of them. Pure.

A group of a thousand pods is told of a hundred times a second, and each look at all of it says the same as the next
one a moment later. So the first looks are at once, then one in `LOOK_SECONDS`; the last of them is never left out,
since it is a timer of the agenda. What concerns one object alone, and what is news of all of them, waits for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.agenda import Key

LOOKS_AT_ONCE = 16
"""Looks in a row that wait for nothing: all that happens to a small group, and the steps that follow from each other."""
LOOK_SECONDS = 0.05
"""Between two looks after these: less than an offer and its bid take, so nobody's quota is free noticeably later."""
KEPT_MAX = 256
"""Keys beyond which those are dropped that may be looked at as often as one that was never looked at."""


@dataclass(slots=True)
class Pacing:
    """When each key was looked at, as the time at which all its looks would have come at their pace."""

    _until: dict[Key, float] = field(default_factory=dict)
    _kept: int = KEPT_MAX

    def looked(self, key: Key, now: float) -> None:
        """Take that a key is looked at, for whatever reason."""
        self._until[key] = max(self._until.get(key, now), now) + LOOK_SECONDS
        if len(self._until) > self._kept:
            self._until = {each: until for each, until in self._until.items() if until > now}
            self._kept = max(KEPT_MAX, 2 * len(self._until))

    def due(self, key: Key, now: float) -> float:
        """Return when a key may be looked at next for one object: `now`, or a moment later."""
        until = self._until.get(key)
        return now if until is None else max(now, until - (LOOKS_AT_ONCE - 1) * LOOK_SECONDS)
