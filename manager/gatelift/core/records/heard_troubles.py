"""What keeps each of the placed pods of one placement from running, as its cluster last said, the first one at hand.

Kept up by each report: a group has thousands of pods, and one report says something of one of them. Neighbour:
`attempts` has it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field

from gatelift.core.records.shown_objects import ShownObjects
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


@dataclass(slots=True, kw_only=True)
class TroubledObjects(ShownObjects):
    """The same of an attempt. Changed by its methods only."""

    trouble: Trouble | None = None  # of its pods, as its cluster last said
    trouble_since: float = 0.0  # since when the Workload says something else of it
    _troubles: HeardTroubles | None = None  # of each of them, once one has any

    def has_trouble(self, trouble: Trouble | None) -> None:
        """Take what keeps its pods from running."""
        self.trouble = trouble

    def is_troubled(self, name: str, trouble: Trouble | None) -> None:
        """Take what keeps one of its objects from running; None: nothing."""
        if self._troubles is None:
            self._troubles = HeardTroubles() if trouble is not None else None
        if self._troubles is not None:
            self._troubles.put(name, trouble)

    @property
    def first_trouble(self) -> Trouble | None:
        """What keeps its objects from running, the one of them that is told."""
        return self._troubles.first if self._troubles is not None else None

    def trouble_shown(self) -> None:
        """Take that the Workload says what keeps its pods from running, or need not."""
        self.trouble_since = 0.0

    def trouble_unshown(self, now: float) -> float:
        """Take that it does not; return since when."""
        self.trouble_since = self.trouble_since or now
        return self.trouble_since
