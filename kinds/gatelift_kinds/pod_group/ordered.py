"""A list in order, with a place for each key: a look-up, an insertion and a removal by halving. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K", bound=tuple[object, ...])


class Ordered(Generic[K]):
    """Keys in order, each once. A change costs as many comparisons as the logarithm of their number."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: list[K] = []

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._keys)

    def add(self, key: K) -> None:
        """Take in a key; nothing for one that is there."""
        at, is_there = self._find(key)
        if not is_there:
            self._keys.insert(at, key)

    def remove(self, key: K) -> None:
        """Let go of a key; nothing for one that is not there."""
        at, is_there = self._find(key)
        if is_there:
            del self._keys[at]

    def first(self, most: int = 1) -> tuple[K, ...]:
        """Return the first ones, `most` of them at most."""
        return tuple(islice(self._keys, max(0, most)))

    def place(self, key: K) -> int:
        """Return how many there are before a key."""
        return self._find(key)[0]

    def between(self, start: int, end: int) -> tuple[K, ...]:
        """Return those from place `start` on, as far as before `end`."""
        return tuple(self._keys[max(0, start) : max(0, end)])

    def __iter__(self) -> Iterator[K]:
        """Yield all in order: for who writes them all."""
        return iter(self._keys)

    def _find(self, key: K) -> tuple[int, bool]:
        at = bisect_left(self._keys, key)
        return at, at < len(self._keys) and self._keys[at] == key
