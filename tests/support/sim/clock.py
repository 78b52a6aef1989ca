"""Time, chance and the trace of a simulation: one heap of things to come, one seeded source, one hash of what happened.

Nothing in a simulation reads a clock or draws from another source, so a seed is a run.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

START = 1000.0
WALL = 1_795_000_000.0
"""Wall time minus simulated time; only texts for people show it."""
TRACE_LINES = 4000
"""Lines kept for a failure's report; the hash covers all of them."""


@dataclass(frozen=True, slots=True)
class ProcessClock:
    """A process's own monotonic clock: it began somewhere else, and runs a little fast or slow."""

    offset: float = 0.0
    rate: float = 1.0
    """Seconds of this clock in a true second."""

    def at(self, true: float) -> float:
        """Return what this clock shows at a true moment."""
        return true if self.rate == 1.0 and not self.offset else self.offset + self.rate * true

    def lasts(self, seconds: float) -> float:
        """Return how many true seconds some seconds of this clock last."""
        return seconds / self.rate


class Timeline:
    """What is to come, in order of time and then of asking."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = START
        self.rng = random.Random(seed)  # noqa: S311 (a simulation's chance, no secret)
        self.steps = 0
        self.trace: deque[str] = deque(maxlen=TRACE_LINES)
        self.moment: Callable[[str], None] = lambda _what: None
        """Told of moments at which a fault is most likely to hurt: commands, ends and writes on their way."""
        self._digest = hashlib.sha256()
        self._count = 0
        self._heap: list[tuple[float, int, Callable[[], object]]] = []

    @property
    def wall(self) -> float:
        """Seconds since 1970, as the API servers see it."""
        return WALL + self.now

    @property
    def digest(self) -> str:
        """Hash of all that was said."""
        return self._digest.hexdigest()

    def after(self, seconds: float, act: Callable[[], object]) -> None:
        """Let something happen later."""
        self._count += 1
        heapq.heappush(self._heap, (self.now + max(0.0, seconds), self._count, act))

    def step(self, until: float) -> bool:
        """Let the next thing happen; False when there is none until then."""
        if not self._heap or self._heap[0][0] > until:
            self.now = max(self.now, until)
            return False
        at, _, act = heapq.heappop(self._heap)
        self.now = max(self.now, at)
        self.steps += 1
        act()
        return True

    def say(self, who: str, text: str) -> None:
        """Put a line into the trace."""
        line = f"{self.now:10.4f} {who}: {text}"
        self.trace.append(line)
        self._digest.update(line.encode())

    def clock(self, drift: float) -> ProcessClock:
        """Draw the clock of a process that starts: up to `drift` fast or slow (0: a true one)."""
        if not drift:
            return ProcessClock()
        return ProcessClock(offset=self.between(-900.0, 100_000.0), rate=1.0 + self.between(-drift, drift))

    def chance(self, probability: float) -> bool:
        """Draw."""
        return probability > 0 and self.rng.random() < probability

    def between(self, low: float, high: float) -> float:
        """Draw a number of seconds."""
        return self.rng.uniform(low, high)
