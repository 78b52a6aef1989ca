"""A queue of keys to look at again: each key once, some later, failed ones with growing delays. Pure: `now` is given.

A loop takes due keys, works on each, and says `done`. A key that is added while it is being worked on is looked at
once more afterwards, so no change is missed and no key is worked on twice at a time.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class QueueFullError(Exception):
    """The queue holds as many keys as it may; the caller slows down or drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays of a key that fails again and again: `first_seconds`, then times `factor`, up to `max_seconds`."""

    first_seconds: float = 0.05
    factor: float = 2.0
    max_seconds: float = 60.0

    def seconds(self, failures: int, fraction: float = 1.0) -> float:
        """Return the delay after `failures` failures in a row (1 or more); `fraction` in 0..1 spreads its upper half.

        A fraction of 1 gives the whole delay, of 0 the half, so that many keys that failed at once do not return at
        once.
        """
        # The exponent is capped because a float overflows long before the number of failures does.
        whole = min(self.max_seconds, self.first_seconds * self.factor ** min(failures - 1, 64))
        return whole * (0.5 + 0.5 * fraction)


class WorkQueue(Generic[K]):
    """Keys with the moment at which each is due; at most `capacity` keys, failures counted for as many."""

    def __init__(self, capacity: int, backoff: Backoff | None = None) -> None:
        self._capacity = capacity
        self._backoff = backoff or Backoff()
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._order = 0
        self._taken: set[K] = set()
        self._again: dict[K, float] = {}
        self._failures: dict[K, int] = {}

    def __len__(self) -> int:
        return len(self._due) + len(self._again)

    def add(self, key: K, now: float, after: float = 0.0) -> None:
        """Look at `key` at `now + after`; an earlier wish for it stays, a later one is brought forward.

        Raises QueueFullError where `capacity` other keys wait; a key that waits already is never refused.
        """
        due = now + after
        if key in self._taken:
            self._again[key] = min(due, self._again.get(key, due))
            return
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        if known is None and len(self) >= self._capacity:
            raise QueueFullError(f"{self._capacity} keys wait already")
        self._push(key, due)

    def take(self, now: float, limit: int = 1) -> list[K]:
        """Take up to `limit` due keys, the longest due first; each must be given back by `done` or `retry`."""
        taken: list[K] = []
        while self._heap and len(taken) < limit and self._heap[0][0] <= now:
            due, _, key = heapq.heappop(self._heap)
            if self._due.get(key) == due:  # else: brought forward, this entry is stale
                del self._due[key]
                self._taken.add(key)
                taken.append(key)
        return taken

    def done(self, key: K) -> None:
        """Say that the work on `key` went well: its failures are forgotten, a wish that came meanwhile is queued."""
        self._failures.pop(key, None)
        self._give_back(key)

    def retry(self, key: K, now: float, fraction: float = 1.0) -> float:
        """Say that the work on `key` failed; return the delay after which it is due again (see `Backoff.seconds`)."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = self._backoff.seconds(failures, fraction)
        self._again[key] = min(now + delay, self._again.get(key, now + delay))
        self._give_back(key)
        return delay

    def forget(self, key: K) -> None:
        """Drop `key` and its failures, also while it is being worked on."""
        self._failures.pop(key, None)
        self._again.pop(key, None)
        self._due.pop(key, None)

    def failures(self, key: K) -> int:
        """Return how often the work on `key` has failed in a row."""
        return self._failures.get(key, 0)

    def next_deadline(self) -> float | None:
        """Return when the next key is due, or None where none waits."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def _give_back(self, key: K) -> None:
        self._taken.discard(key)
        due = self._again.pop(key, None)
        if due is not None:
            self._push(key, due)

    def _push(self, key: K, due: float) -> None:
        self._due[key] = due
        self._order += 1
        heapq.heappush(self._heap, (due, self._order, key))
