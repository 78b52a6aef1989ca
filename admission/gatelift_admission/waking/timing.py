"""When those who wait are looked at again after quota came free: at once, soon, or once others had their turn.

Pure timing, one tree of cohorts at a time: this says whom to wake and when, `state` wakes. Kueue wakes all of a tree
together, 1 s after a release. Here a release is offered in turns, so that nobody is let in who has to leave soon:

* `SOON` after it, to those worth at least as much as those who gave it back, who need not borrow for it.
* A *period* after it, to all: whoever follows the one that left may need it, and would preempt (`keeping`).
* Of those woken together, who stays within the nominal quota of its queue comes before who borrows, which others might
  reclaim, and higher priorities before lower ones; each once those before have been decided upon.
* The period grows each time somebody is preempted soon after having been let in, and shrinks with each that passes.
  While it has grown, whoever arrives waits as well where what it needs is kept from it.

What a cycle decides is not touched: a workload that is not woken yet is one that Kueue has not flushed yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf
from typing import Final

from gatelift_admission.quota.tree import TreeNode
from gatelift_admission.values.model import Cell, EngineSettings, Usage
from gatelift_admission.waking.keeping import PARTS, Keeping

SOON: Final = 0.005
"""Seconds for which releases are collected for equals: the ends of one moment are one wake-up. More would let some
queues borrow in a cycle what others, who lost more, reclaim in the next (a cycle takes one head of each queue)."""
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
    """The lowest priority that gave something back since its equals had their turn."""
    since: float
    """When all had their turn last, or when it came free."""
    due: float
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
    leasts: dict[str, float] = field(default_factory=dict)
    """Which they have not grown from, as far as asked."""
    queues: dict[str, int] = field(default_factory=dict)
    """How many queues there are in each tree: a turn looks at all of them."""
    keeping: Keeping = field(default_factory=Keeping)

    def clear(self) -> None:
        """Forget all: the trees are built anew, and all that waits is looked at."""
        self.freed.clear()
        self.turns.clear()
        self.periods.clear()
        self.leasts.clear()
        self.keeping.clear()

    def period(self, root: str, settings: EngineSettings) -> float:
        """Return for how many seconds what comes free is kept for those who follow; 0: nothing is."""
        least = self._least(root, settings)
        return max(least, self.periods[root]) if root in self.periods else least

    def _least(self, root: str, settings: EngineSettings) -> float:
        found = self.leasts.get(root)
        if found is None:
            most = min(self.queues.get(root, 0) * PERIOD_OF_QUEUE, settings.wake_period_max)
            found = self.leasts[root] = max(settings.wake_period, most) if settings.wake_period > 0 else 0.0
        return found

    def since(self, root: str, now: float, settings: EngineSettings) -> float:
        """Return the time from which on what came free is kept still."""
        return now - self.period(root, settings) + ROUNDING

    def released(
        self, node: TreeNode, usage: Usage, cells: Collection[Cell], level: int, now: float, settings: EngineSettings
    ) -> None:
        """Note that somebody of priority `level` gave back `usage` of a queue, or might leave `cells`."""
        period = self.period(node.root, settings)
        if usage:
            self.keeping.gave(node, usage, level, now, period)
        freed = self.freed.get(node.root)
        if freed is None:
            freed = self.freed[node.root] = Freed(level, now, now + period)
        freed.cells.update(cells)
        if freed.soon is None:
            freed.soon, freed.level = now + min(SOON, period), level
        freed.level = min(freed.level, level)

    def preempted_soon(self, root: str, settings: EngineSettings) -> None:
        """Note that somebody has to leave who was let in just now: that was too early."""
        grown = max(self.period(root, settings), PERIOD_MIN) * PERIOD_GROWTH
        self.periods[root] = min(settings.wake_period_max, grown)

    def careful(self, root: str, settings: EngineSettings) -> bool:
        """Return whether who arrives is not let in at once where something is kept: others were let in too early."""
        return root in self.keeping.roots and self.periods.get(root, 0.0) > self._least(root, settings)

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
                oldest = self.keeping.expire(root, self.since(root, now, settings))
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
        """Return whether it is the turn of those who stay within the quota of their queue."""
        turns = self.turns.get(root)
        return turns is not None and turns.within

    def turns_below(self, root: str) -> float:
        """Return below which priority all have a turn to come, those who borrow as well."""
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
