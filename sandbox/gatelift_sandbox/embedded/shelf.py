"""The objects of one kind in the order of their keys, and pages of them. Pure."""

from __future__ import annotations

import base64
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from gatelift_sandbox.embedded.failures import bad_request, expired
from gatelift_sandbox.embedded.selection import ListSelection
from gatelift_sandbox.embedded.watches import ChangeLog, Stored

Key = tuple[str, str]
"""(namespace, name); the namespace is empty for cluster-scoped kinds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfPage:
    """One answer to a list: the version that a watch may go on from, and where the next page starts ("" = nowhere)."""

    items: list[Stored]
    version: int
    next: str = ""
    remaining: int | None = None


class _Token(msgspec.Struct, frozen=True):
    version: int
    namespace: str
    name: str


class Shelf:
    """Objects by key; the sorted order is made when somebody lists and kept until a key comes or goes."""

    __slots__ = ("_objects", "_order", "history")

    def __init__(self) -> None:
        self._objects: dict[Key, Stored] = {}
        self._order: list[Key] | None = None
        self.history = ChangeLog()

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Stored]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> Stored | None:
        """Return an object, None where there is none."""
        return self._objects.get(key)

    def put(self, stored: Stored) -> None:
        """Keep a version of an object instead of the one before."""
        key = (stored.namespace, stored.name)
        if key not in self._objects:
            self._order = None
        self._objects[key] = stored

    def remove(self, key: Key) -> None:
        """Keep an object no longer."""
        del self._objects[key]
        self._order = None

    def page(self, selection: ListSelection, version: int, limit: int, token: str) -> ShelfPage:
        """Return what is selected, at most `limit` objects (0: all).

        Later pages show objects as they are by then, with the version of the first: a watch from it misses nothing.
        """
        order, start = self._sorted(), 0
        if token:
            place = _decoded(token)
            if place.version < self.history.floor:
                raise expired(
                    "The provided continue parameter is too old to display a consistent list result. You must start a"
                    " new list without the continue parameter."
                )
            version, start = place.version, bisect_left(order, (place.namespace, place.name))
        stop = len(order)
        if selection.namespace:
            start = max(start, bisect_left(order, (selection.namespace, "")))
            stop = bisect_left(order, (selection.namespace + "\0", ""))
        found: list[Stored] = []
        for index in range(start, stop):
            stored = self._objects[order[index]]
            if not selection.everything and not selection.matches(stored.labels, stored.fields):
                continue
            if limit and len(found) == limit:
                after = _encoded(_Token(version, *order[index]))
                left = stop - index if selection.everything else None
                return ShelfPage(items=found, version=version, next=after, remaining=left)
            found.append(stored)
        return ShelfPage(items=found, version=version)

    def _sorted(self) -> list[Key]:
        if self._order is None:
            self._order = sorted(self._objects)
        return self._order


def _encoded(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decoded(token: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=_Token)
    except (ValueError, msgspec.MsgspecError):
        raise bad_request("continue key is not valid") from None
