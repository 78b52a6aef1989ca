"""Since when another size of elastic work is wanted, until it runs or is given back: for figures. Pure.

What a leader finds as it begins was wanted before, and is not measured. Neighbour: `chains` keeps it as long as a
chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Growth(NamedTuple):
    """More pods that are wanted, and since when."""

    since: float
    counts: Mapping[str, int]


@dataclass(slots=True)
class SizeWishes:
    """By the UID of a chain. One that wants more, and more again, wants that since the first time."""

    _more: dict[str, Growth] = field(default_factory=dict)
    _less: dict[str, float] = field(default_factory=dict)

    def more(self, uid: str, counts: Mapping[str, int], now: float) -> None:
        """Take that so many pods are wanted, which is more in some pod set."""
        known = self._more.get(uid)
        self._more[uid] = Growth(known.since if known is not None else now, counts)

    def less(self, uid: str, now: float) -> None:
        """Take that fewer are wanted in some pod set."""
        self._less.setdefault(uid, now)

    def growth(self, uid: str) -> Growth | None:
        """Return what more is wanted and does not run yet."""
        return self._more.get(uid)

    def more_is_over(self, uid: str) -> Growth | None:
        """Take that it runs, or is not wanted any more."""
        return self._more.pop(uid, None)

    def less_is_over(self, uid: str) -> float | None:
        """Take that what was too much is given back; return since when that was wanted."""
        return self._less.pop(uid, None)

    def drop(self, uid: str) -> None:
        """Keep nothing of a chain."""
        self._more.pop(uid, None)
        self._less.pop(uid, None)
