"""How many requests may wait in all, and how many of each share where that is all taken. Pure.

Neighbours: `executor` and `reads`, whose requests these are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class FairRoom:
    """`capacity` places; beyond them a share that has fewer than `own_min` still gets one."""

    capacity: int
    own_min: int
    held: int = 0
    _of: Counter[str] = field(default_factory=Counter)  # only shares that hold any

    @property
    def left(self) -> int:
        """How many more are taken now of any share; not above 0 where only those get a place that have few."""
        return self.capacity - self.held

    def take(self, share: str) -> bool:
        """Take a place; False where there is none."""
        if self.left <= 0 and self._of[share] >= min(self.own_min, self.capacity):
            return False
        self.held += 1
        self._of[share] += 1
        return True

    def give_back(self, share: str) -> None:
        """Give a place back that was taken."""
        self.held -= 1
        self._of[share] -= 1
        if not self._of[share]:
            del self._of[share]
