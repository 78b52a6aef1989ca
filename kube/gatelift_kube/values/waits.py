"""How long things have waited, counted in the buckets that Kueue's histograms have. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

BOUNDS: Final = (1.0, 2.5, 5.0, *(10.0 * 2.0**power for power in range(11)))
"""Seconds; Kueue's: 1, 2.5, 5, then doubling to 10240."""
_NAMES: Final = (*(repr(each) for each in BOUNDS), "+Inf")


@dataclass(slots=True)
class Waits:
    """Waits of one series: how many up to each bound, and beyond the last."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def take(self, other: Waits) -> None:
        """Count what another series has counted."""
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        self.total += other.total

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.buckets)

    def up_to(self) -> list[tuple[str, float]]:
        """Return of each bound, by its name, how many waited no longer: as an exposition has it."""
        return list(zip(_NAMES, map(float, accumulate(self.buckets)), strict=True))
