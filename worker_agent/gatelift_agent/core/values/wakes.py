"""Timers of the machine: which key wants to be looked at when. One entry a key, the earliest asked for."""

from __future__ import annotations

import heapq
from typing import Generic, TypeVar

K = TypeVar("K")


class Alarms(Generic[K]):
    """Keys with a moment each; asking again moves it to the earlier one."""

    __slots__ = ("_at", "_heap", "_order")

    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0  # makes ties deterministic and keys need no order

    def ask(self, key: K, at: float) -> None:
        """Look at `key` at the moment `at`, or earlier if that was asked for already."""
        known = self._at.get(key)
        if known is not None and known <= at:
            return
        self._at[key] = at
        self._order += 1
        heapq.heappush(self._heap, (at, self._order, key))

    def drop(self, key: K) -> None:
        """Do not look at `key` any more."""
        self._at.pop(key, None)

    def due(self, now: float) -> list[K]:
        """Return and forget the keys whose moment has come."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            at, _, key = heapq.heappop(self._heap)
            if self._at.get(key) == at:
                del self._at[key]
                found.append(key)
        return found

    def next(self) -> float | None:
        """Return the earliest moment, None when nothing is asked for."""
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
