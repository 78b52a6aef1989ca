"""What failed in us while one thing was handled: it rests, and is tried again later; all others go on. Pure.

An exception belongs to the object, key or stream that raised it (decision 26). Whoever catches it changes nothing of
what is known of that thing: what holds quota keeps it, what runs is neither stopped nor released.
"""

from __future__ import annotations

import traceback
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

PAUSE_SECONDS_MIN = 1.0
PAUSE_SECONDS_MAX = 300.0
"""What failed is tried again after the first, doubling to the second: a log line each, and what it costs to fail."""
REMEMBERED_MAX = 10_000
"""Things that rest; above, the oldest is tried again as if it had never failed."""
FRAMES_TOLD = 8
"""Innermost frames of a traceback that are told: where it failed, and on what way."""
CHARS_TOLD = 2000

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Failure:
    """`text`: one line for people. `where`: the end of the traceback. `again_at`: when it is tried again."""

    text: str
    where: str
    again_at: float


@dataclass(slots=True)
class Contained(Generic[KeyT]):
    """Things that failed, by key."""

    surfaces: ClassVar[bool] = False
    """Raise at once instead: for tests, in which nothing of this may happen unseen."""

    resting: dict[KeyT, tuple[int, float]] = field(default_factory=dict)
    """Failures in a row, and until when it rests."""
    count: int = 0
    """All failures so far."""

    def rests_until(self, key: KeyT, now: float) -> float:
        """Return until when a thing rests, 0 if it does not."""
        found = self.resting.get(key) if self.resting else None
        return found[1] if found is not None and found[1] > now else 0.0

    def failed(self, key: KeyT, error: Exception, now: float) -> Failure:
        """Take that handling a thing raised an exception; it is raised again where tests want to see it."""
        if Contained.surfaces:
            raise error
        self.count += 1
        failures = self.resting.pop(key, (0, 0.0))[0] + 1
        again_at = now + min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_MIN * 2.0 ** min(failures - 1, 16))
        if len(self.resting) >= REMEMBERED_MAX:
            del self.resting[next(iter(self.resting))]
        self.resting[key] = failures, again_at
        told = "".join(traceback.format_exception(error, limit=-FRAMES_TOLD))
        return Failure(f"{type(error).__name__}: {error}"[:CHARS_TOLD], told[-CHARS_TOLD:], again_at)

    def changed(self, key: KeyT, now: float) -> None:
        """Take that something about a thing changed: it is tried again soon, whatever pause it had; no hot loop."""
        found = self.resting.get(key) if self.resting else None
        if found is not None:
            self.resting[key] = found[0], min(found[1], now + PAUSE_SECONDS_MIN)

    def well(self, key: KeyT) -> None:
        """Take that a thing was handled."""
        if self.resting:
            self.resting.pop(key, None)
