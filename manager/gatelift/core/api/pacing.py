"""How often what concerns all of several objects is looked at for what happens to single ones of them. Pure.

A group of a thousand pods hears of one of them a hundred times a second, and each look at all of it says the same as
the next one a moment later. So the first looks are at once, and the others keep a pause that grows with the group; the
last of them is never left out, since it is a timer of the agenda. What concerns one object alone, and what is news of
all of them, waits for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.agenda import Key

LOOKS_AT_ONCE = 16
"""Looks in a row that wait for nothing: what happens to a small group, and the steps that follow from each other."""
LOOK_SECONDS_OF_ONE = 0.0005
"""Of the pause between two looks after these, for each object: little beside what its writes take API servers."""
LOOK_SECONDS_MAX = 0.25
KEPT_MAX = 256
"""Keys beyond which those are dropped that may be looked at as often as one that was never looked at."""


@dataclass(slots=True)
class Pacing:
    """Of each key its pause, and until when looks that keep it would have taken."""

    _of: dict[Key, tuple[float, float]] = field(default_factory=dict)
    _kept: int = KEPT_MAX

    def looked(self, key: Key, objects: int, now: float) -> None:
        """Take that a key of so many objects is looked at, for whatever reason."""
        pause = min(LOOK_SECONDS_MAX, objects * LOOK_SECONDS_OF_ONE)
        self._of[key] = pause, max(self._of.get(key, (pause, now))[1], now) + pause
        if len(self._of) > self._kept:
            self._of = {each: found for each, found in self._of.items() if found[1] > now}
            self._kept = max(KEPT_MAX, 2 * len(self._of))

    def due(self, key: Key, now: float) -> float:
        """Return when a key may be looked at next for one object: `now`, or a moment later."""
        pause, until = self._of.get(key, (0.0, now))
        due = until - (LOOKS_AT_ONCE - 1) * pause
        return due if due > now + pause / 1000 else now  # sums of pauses are not exact
