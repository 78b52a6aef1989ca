"""When those who wait are looked at again after quota came free: at once, soon, or once others had their turn.

Pure timing, one tree of cohorts at a time: this says whom to wake and when, `state` wakes. Kueue wakes all of a tree
together, 1 s after a release. Here a release is offered in turns, so that nobody is let in who has to leave soon:

* `SOON` after it, to those worth at least as much as those who gave it back, who need not borrow for it.
* A *period* after it, to all: whoever follows the one that left may need it, and would preempt. A further release by
  somebody of a higher priority defers that, up to the longest period after the first release.
* Of those woken together, who stays within the nominal quota of its queue comes before who borrows, which others might
  reclaim, and higher priorities before lower ones; each once those before have been decided upon.
* The period grows each time somebody is preempted soon after having been let in, and shrinks with each that passes.
  While it has grown, whoever arrives and is worth less than those it is kept for waits for its end, too.

What a cycle decides is not touched: a workload that is not woken yet is one that Kueue has not flushed yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from gatelift_admission.model import Cell, Settings

SOON = 0.005
"""Seconds for which releases are collected for equals: the ends of one moment are one wake-up. More would let some
queues borrow in a cycle what others, who lost more, reclaim in the next (a cycle takes one head of each queue)."""
PERIOD_MIN = 0.02
"""Seconds of collecting from which the period grows: far above the time that a cycle takes."""
PERIOD_GROWTH = 1.5
"""By what the period grows with each workload that is preempted soon after it was let in."""
PERIOD_DECAY = 0.99
"""By what it shrinks with each that passes: halved after 69, so that a burst is not forgotten before the next."""
BANDS_MAX = 4
"""Priorities of a tree that have a turn of their own; those below share one: a turn looks at every queue."""


@dataclass(frozen=True, slots=True)
class Band:
    """Whose turn it is: the priorities from `lowest` to below `below` (None: all above).

    `within`: only who would stay within the nominal quota of the own queue.
    """

    lowest: int
    below: int | None
    within: bool

    def has(self, priority: int) -> bool:
        """Say whether a priority is in it."""
        return priority >= self.lowest and (self.below is None or priority < self.below)


@dataclass(slots=True)
class Freed:
    """What came free in a tree and was not offered to all yet, in monotonic seconds."""

    level: int
    """The highest priority that gave something back: it is kept for those of at least this one until `due`."""
    due: float
    latest: float
    soon: float | None = None
    """When those of at least `level` are woken; None: they were."""
    cells: set[Cell] = field(default_factory=set)


@dataclass(slots=True)
class Turns:
    """Priorities of a tree that are woken one after the other, from the highest down to `floor` (None: all)."""

    cells: set[Cell]
    floor: int | None
    within: bool = True
    """Who stays within the nominal quota of the own queue comes before who has to borrow."""
    below: int | None = None
    """Who is worth less than this has not been woken yet; None: nobody has."""
    taken: int = 0


@dataclass(slots=True)
class Wakes:
    """What is due when, by root of the tree."""

    freed: dict[str, Freed] = field(default_factory=dict)
    turns: dict[str, Turns] = field(default_factory=dict)
    periods: dict[str, float] = field(default_factory=dict)
    """Where they have grown."""

    def clear(self) -> None:
        """Forget all: the trees are built anew, and all that waits is looked at."""
        self.freed.clear()
        self.turns.clear()
        self.periods.clear()

    def period(self, root: str, settings: Settings) -> float:
        """Return for how many seconds a release is kept from lower priorities now; 0: nothing is collected."""
        return max(settings.wake_period, self.periods.get(root, 0.0))

    def released(self, root: str, cells: Collection[Cell], priority: int, now: float, settings: Settings) -> None:
        """Note that somebody of `priority` gave back quota."""
        freed = self._keep(root, priority, now, settings)
        freed.cells.update(cells)
        if freed.soon is None:
            freed.soon = now + min(SOON, self.period(root, settings))

    def preempted_soon(self, root: str, priority: int, now: float, settings: Settings) -> None:
        """Note that somebody of `priority` had somebody leave who was let in just now: that was too early."""
        grown = max(self.period(root, settings), PERIOD_MIN) * PERIOD_GROWTH
        self.periods[root] = min(settings.wake_period_max, grown)
        self._keep(root, priority, now, settings)

    def _keep(self, root: str, priority: int, now: float, settings: Settings) -> Freed:
        period = self.period(root, settings)
        freed = self.freed.get(root)
        if freed is None:
            latest = now + max(period, settings.wake_period_max)
            freed = self.freed[root] = Freed(priority, now + period, latest)
        elif priority > freed.level:
            freed.level, freed.due = priority, min(freed.latest, now + period)
        return freed

    def keeps_from(self, root: str, priority: int, settings: Settings) -> bool:
        """Return whether whoever arrives with `priority` waits: others were let in too early, and higher ones come."""
        freed = self.freed.get(root)
        return freed is not None and priority < freed.level and self.periods.get(root, 0.0) > settings.wake_period

    def next_time(self) -> float | None:
        """Return when `expire` has something to do."""
        found: float | None = None
        for one in self.freed.values():
            due = one.due if one.soon is None else min(one.due, one.soon)
            if found is None or due < found:
                found = due
        return found

    def expire(self, now: float) -> None:
        """Begin the turns that are due."""
        for root, freed in list(self.freed.items()):
            if freed.due <= now:
                del self.freed[root]
                if root in self.periods:
                    self.periods[root] *= PERIOD_DECAY
                self._begin(root, freed.cells, None)
            elif freed.soon is not None and freed.soon <= now:
                freed.soon = None
                self._begin(root, freed.cells, freed.level)

    def _begin(self, root: str, cells: set[Cell], floor: int | None) -> None:
        before = self.turns.get(root)
        if before is not None:
            cells = cells | before.cells
            floor = None if floor is None or before.floor is None else min(floor, before.floor)
        self.turns[root] = Turns(set(cells), floor)

    def within(self, root: str) -> bool:
        """Return whether it is the turn of those who stay within the quota of their queue."""
        turns = self.turns.get(root)
        return turns is not None and turns.within

    def turn(self, root: str, waiting: Collection[int]) -> tuple[Band, set[Cell]] | None:
        """Take the next turn of a tree in which workloads of these priorities wait; None: all had theirs."""
        turns = self.turns.get(root)
        if turns is None:
            return None
        below, floor = turns.below, turns.floor
        left = [one for one in waiting if (below is None or one < below) and (floor is None or one >= floor)]
        if left:
            turns.taken += 1
            lowest = max(left) if turns.taken <= BANDS_MAX else min(left)
            turns.below = lowest
            return Band(lowest, below, turns.within), turns.cells
        if turns.within and floor is None:
            turns.within, turns.below, turns.taken = False, None, 0
            return self.turn(root, waiting)
        del self.turns[root]
        return None
