"""What keeps each of the placed pods of one placement from running, as its cluster last said, the first one at hand.

Kept up by each report: a group has thousands of pods, and one report says something of one of them. Neighbour:
`attempts` has it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from gatelift_kinds.shared.pod_trouble import Trouble, weight


@dataclass(slots=True)
class HeardTroubles:
    """By name of the object. Only this class writes what it holds."""

    _by_name: dict[str, Trouble] = field(default_factory=dict)
    _in_order: list[tuple[int, Trouble]] = field(default_factory=list)

    def put(self, name: str, trouble: Trouble | None) -> None:
        """Take what keeps one from running; None: nothing."""
        before = self._by_name.pop(name, None)
        if before is not None:
            del self._in_order[bisect_left(self._in_order, weight(before))]
        if trouble is not None:
            self._by_name[name] = trouble
            insort(self._in_order, weight(trouble))

    @property
    def first(self) -> Trouble | None:
        """What is told of all of them; None where nothing keeps any from running."""
        return self._in_order[0][1] if self._in_order else None
