"""Slices that are finished before the end of what runs, by their chains and in order: out of the way of what counts.

A change of a chain is read of the few slices that are not past; of these only numbers and order matter. Neighbour:
`chains` alone writes it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from gatelift.core.api.user_objects import Name
from gatelift.core.records.chain import Slice


@dataclass(slots=True)
class PastSlices:
    """By whose they are, then by the UID of the first slice that they name; `_owners` the other way round."""

    _of: dict[Name, dict[str, list[Slice]]] = field(default_factory=dict)
    _owners: dict[str, dict[Name, None]] = field(default_factory=dict)

    def put(self, one: Slice) -> None:
        """Take in a slice, in its place."""
        insort(self._of.setdefault(one.owner, {}).setdefault(one.said, []), one, key=_place)
        self._owners.setdefault(one.said, {})[one.owner] = None

    def drop(self, one: Slice) -> None:
        """Forget a slice as it was put."""
        found = self._of.get(one.owner, {}).get(one.said, [])
        at = bisect_left(found, one.place, key=_place)
        if at == len(found) or found[at].uid != one.uid:
            return
        del found[at]
        if not found:
            del self._of[one.owner][one.said], self._owners[one.said][one.owner]
        if not self._of[one.owner]:
            del self._of[one.owner]
        if not self._owners[one.said]:
            del self._owners[one.said]

    def of(self, owner: Name | None, said: str) -> tuple[Slice, ...]:
        """Return those of an object that name this first slice, the oldest first."""
        return tuple(self._of.get(owner, {}).get(said, ())) if owner is not None else ()

    def owners(self, said: str) -> frozenset[Name]:
        """Return whose slices name this first slice."""
        return frozenset(self._owners.get(said, ()))

    def latest(self, owner: Name) -> Iterator[Slice]:
        """Yield of each chain that slices of an object name the last one of them."""
        for found in self._of.get(owner, {}).values():
            yield found[-1]


def _place(one: Slice) -> tuple[int, str]:
    return one.place
