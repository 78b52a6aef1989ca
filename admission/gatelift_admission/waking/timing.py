"""When pending classes are evaluated again after a release of quota: `SOON`, after a period, or in a turn of their own.

Pure timing, one tree of cohorts at a time: this says which priorities are woken when, `state` wakes them. Kueue wakes a
whole tree 1 s after a release. Here a release is offered in turns, so that fewer workloads are admitted that have to be
preempted soon after:

* `SOON` after it: to priorities at least as high as that which released, as far as they need not borrow for it.
* A *period* after it: to all. A successor of the workload that ended may arrive until then, and would preempt
  (`kept_quota`).
* Of those woken together, classes that stay within the nominal quota of their queue come before those that borrow,
  which could be reclaimed from, and higher priorities before lower ones; each once those before are decided.
* The period grows with each workload that is preempted soon after its admission, and shrinks with each period that
  passes. While it has grown, a workload that arrives waits as well where what it needs is kept from it.

What a cycle decides is not touched: a class that is not woken yet is one that Kueue has not flushed yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf
from typing import Final

from gatelift_admission.values.model import Cell, EngineSettings
from gatelift_admission.waking.kept_quota import PARTS, KeptQuota

SOON: Final = 0.005
"""Seconds for which releases are collected for equals: the ends of one moment are one wake-up. More would let some
queues borrow in a cycle what others that released more reclaim in the next (a cycle takes one head of each queue)."""
PERIOD_MIN: Final = 0.02
"""Seconds of collecting from which the period grows: far above the time that a cycle takes."""
PERIOD_OF_QUEUE: Final = 0.002
"""Seconds of it for each queue of a tree, up to the longest: turns of many queues are rarer, and cost no more."""
PERIOD_GROWTH: Final = 1.5
"""By what the period grows with each workload that is preempted soon after it was let in."""
PERIOD_DECAY: Final = 0.99
"""By what it shrinks with each that passes: halved after 69, so that a burst is not forgotten before the next."""
ROUNDING: Final = 1e-6
"""Seconds by which sums of times may be wrong: what is due now is not kept any more."""
BANDS_MAX: Final = 4
"""Priorities of a tree that have a turn of their own; those below share one: a turn looks at every queue."""


@dataclass(slots=True)
class Band:
    """The priorities of one turn: from `lowest` to below `below` (None: all above).

    `within`: only classes that would stay within the nominal quota of their queue.
    """

    lowest: int
    below: int | None
    within: bool

    def has(self, priority: int) -> bool:
        """Say whether a priority is in it."""
        return priority >= self.lowest and (self.below is None or priority < self.below)


@dataclass(slots=True)
class Freed:
    """What was released in a tree and not offered to all yet, in monotonic seconds."""

    level: int
    """The lowest priority that released something since the turn of `soon`."""
    since: float
    """When it was offered to all last, or when it was released."""
    due: float
    soon: float | None = None
    """When priorities of at least `level` are woken; None: they were."""
    cells: set[Cell] = field(default_factory=set)


@dataclass(slots=True)
class Turns:
    """Priorities of a tree that are woken one after the other, from the highest down to `floor` (None: all)."""

    cells: set[Cell]
    floor: int | None
    within: bool = True
    """Classes that stay within the nominal quota of their queue come before those that have to borrow."""
    below: int | None = None
    """Priorities below this have not been woken yet; None: none has."""
    taken: int = 0


@dataclass(slots=True)
class Wakes:
    """Which wake-ups are due when, by root of the tree."""

    freed: dict[str, Freed] = field(default_factory=dict)
    turns: dict[str, Turns] = field(default_factory=dict)
    periods: dict[str, float] = field(default_factory=dict)
    """Where they have grown."""
    leasts: dict[str, float] = field(default_factory=dict)
    """The least that they are, as far as asked."""
    queues: dict[str, int] = field(default_factory=dict)
    """How many queues there are in each tree: a turn looks at all of them."""
    kept_quota: KeptQuota = field(default_factory=KeptQuota)

    def clear(self) -> None:
        """Forget all: the trees are built anew, and all that waits is looked at."""
        self.freed.clear()
        self.turns.clear()
        self.periods.clear()
        self.leasts.clear()
        self.kept_quota.clear()

    def period(self, root: str, settings: EngineSettings) -> float:
        """Return for how many seconds released quota is kept for a successor; 0: none is."""
        least = self._least(root, settings)
        return max(least, self.periods[root]) if root in self.periods else least

    def _least(self, root: str, settings: EngineSettings) -> float:
        found = self.leasts.get(root)
        if found is None:
            most = min(self.queues.get(root, 0) * PERIOD_OF_QUEUE, settings.wake_period_max)
            found = self.leasts[root] = max(settings.wake_period, most) if settings.wake_period > 0 else 0.0
        return found

    def since(self, root: str, now: float, settings: EngineSettings) -> float:
        """Return the time since which released quota is kept still."""
        return now - self.period(root, settings) + ROUNDING

    def released(self, root: str, cells: Collection[Cell], level: int, now: float, period: float) -> None:
        """Note that a workload of priority `level` left more room in `cells`, or may be preempted there now.

        `period`: of its tree. What it released is noted by `kept_quota`.
        """
        freed = self.freed.get(root)
        if freed is None:
            freed = self.freed[root] = Freed(level, now, now + period)
        freed.cells.update(cells)
        if freed.soon is None:
            freed.soon, freed.level = now + min(SOON, period), level
        freed.level = min(freed.level, level)

    def preempted_soon(self, root: str, settings: EngineSettings) -> None:
        """Lengthen the period: a workload is preempted that was admitted just now."""
        grown = max(self.period(root, settings), PERIOD_MIN) * PERIOD_GROWTH
        self.periods[root] = min(settings.wake_period_max, grown)

    def careful(self, root: str, settings: EngineSettings) -> bool:
        """Return whether workloads that arrive wait where quota is kept from them: the period has grown."""
        return root in self.kept_quota.roots and self.periods.get(root, 0.0) > self._least(root, settings)

    def next_time(self) -> float | None:
        """Return when `expire` has something to do."""
        found: float | None = None
        for one in self.freed.values():
            due = one.due if one.soon is None else min(one.due, one.soon)
            if found is None or due < found:
                found = due
        return found

    def expire(self, now: float, settings: EngineSettings) -> None:
        """Begin the turns that are due."""
        for root, freed in list(self.freed.items()):
            if freed.due <= now:
                period = self.period(root, settings)
                if root in self.periods:
                    self.periods[root] *= PERIOD_DECAY ** min(1.0, (now - freed.since) / period)
                self._begin(root, freed.cells, None)
                oldest = self.kept_quota.expire(root, self.since(root, now, settings))
                if oldest is None:
                    del self.freed[root]
                else:  # what is kept still is offered as soon as it is not
                    freed.since, freed.soon = now, None
                    freed.due = max(oldest + period, now + period / PARTS)
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
        """Return whether the turn is that of classes which stay within the quota of their queue."""
        turns = self.turns.get(root)
        return turns is not None and turns.within

    def turns_below(self, root: str) -> float:
        """Return below which priority every class has a turn to come, with borrowing as well."""
        if root in self.freed:
            return inf
        turns = self.turns.get(root)
        if turns is None or turns.floor is not None:
            return -inf
        return inf if turns.within or turns.below is None else float(turns.below)

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
