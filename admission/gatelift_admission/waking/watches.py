"""Index of the classes of one ClusterQueue that do not fit, by a cell of quota that each of their options lacks.

Each option of a class is registered under one missing cell alone, so that a release of quota looks only at options that
may fit now; one that lacks another cell instead is registered under that. In a queue that may preempt, what preemption
could give counts as available. Neighbours: `pending` parks and wakes classes, `preemption.oracle.Room` says what is
available.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sized
from dataclasses import dataclass
from typing import Final

from gatelift_admission.entries.ordering import pending_key
from gatelift_admission.flavors.assignment import Option
from gatelift_admission.preemption.oracle import QueueRoom
from gatelift_admission.values.model import Cell
from gatelift_admission.waking.equals import VOID_SLACK, PendingClass
from gatelift_admission.waking.kept_quota import Kept
from gatelift_admission.waking.timing import Band

_SCAN_MAX: Final = 32
"""Watches of one cell up to which the first in order of those that fit is woken alone, instead of all of them."""

WatchKey = tuple[Cell, int | None]
"""A cell, and the priority of the class that lacks it: None in a queue that may not preempt."""


@dataclass(slots=True)
class CellWatch:
    """One option of a parked class (or of the blocked head), registered under one cell that is missing."""

    owner: PendingClass
    park: int
    option: Option


_Item = tuple[int, int, CellWatch]
"""In a heap: the amount that is needed, a number that tells equals apart, the option."""


class Watches:
    """What the parked classes of one queue lack. What is taken out of it is woken by `pending`."""

    __slots__ = ("_by_key", "_classes", "_eager", "_sequence", "stirred")

    def __init__(self, classes: Sized) -> None:
        """Serve a queue of these `classes`, whose number bounds how much is kept."""
        self.stirred: set[WatchKey] = set()
        """Cells of which further classes may fit once the first of them, which was woken alone, is decided."""
        self._classes = classes
        self._by_key: dict[WatchKey, list[_Item]] = {}
        self._eager: list[tuple[PendingClass, int]] = []
        """Classes that any release may let fit, and the parking for which that holds."""
        self._sequence = 0

    def __len__(self) -> int:
        """Return how many watches are kept, void ones included."""
        return len(self._eager) + sum(len(watches) for watches in self._by_key.values())

    def is_empty(self) -> bool:
        """Return whether no class is registered."""
        return not self._eager and not self._by_key

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()
        self._eager.clear()
        self.stirred.clear()

    def register(self, one: PendingClass, room: QueueRoom) -> None:
        """Register each option of a class; for any release where nothing is missing if others were preempted."""
        anything = False
        for option in one.options:
            anything |= self._settle(CellWatch(one, one.park, option), room)
        if anything:
            self.anything(one)

    def anything(self, one: PendingClass) -> None:
        """Register a class for any release at all."""
        if len(self._eager) > 2 * len(self._classes) + VOID_SLACK:
            self._eager = [item for item in self._eager if item[0].park == item[1]]
        self._eager.append((one, one.park))

    def _settle(self, watch: CellWatch, room: QueueRoom) -> bool:
        """Register a watch under its first missing cell; True if nothing is missing (then it is registered nowhere)."""
        priority = watch.owner.priority
        for cell, need in watch.option:
            if need > room.free(cell) and not (room.preempts and room.covers(cell, priority, need)):
                self._watch(watch, (cell, priority if room.preempts else None), need)
                return False
        return True

    def _watch(self, watch: CellWatch, key: WatchKey, need: int) -> None:
        self._sequence += 1
        watches = self._by_key.setdefault(key, [])
        if len(watches) > 2 * len(self._classes) + VOID_SLACK:
            watches[:] = [item for item in watches if item[2].owner.park == item[2].park]
            heapq.heapify(watches)
        heapq.heappush(watches, (need, self._sequence, watch))

    def take_eager(self, band: Band | None) -> list[PendingClass]:
        """Take out all classes (of `band`) that any release may let fit."""
        if not self._eager:
            return []
        eager, self._eager = self._eager, []
        if band is not None:
            self._eager = [(one, park) for one, park in eager if not band.has(one.priority)]
            eager = [(one, park) for one, park in eager if band.has(one.priority)]
        return [one for one, park in eager if one.park == park and one.members]

    def release(
        self, cells: Collection[Cell], room: QueueRoom, kept: Kept, *, wake: bool, band: Band | None
    ) -> list[PendingClass]:
        """Take out all classes that may fit now that `cells` have more room; some may be named twice.

        With `band` only its priorities are looked at; without `wake` not cells of which a class was woken already. In a
        queue that may preempt all cells are looked at: what preemption could give there may have grown since.
        """
        found: list[PendingClass] = []
        if not self._by_key:
            return found
        turn = None if band is None else (band, kept)
        for key, watches in self._concerned(cells, room):
            has_turn = band is None or key[1] is None or band.has(key[1])
            if watches and has_turn and (wake or key not in self.stirred):
                found += self._release(key, watches, room, turn, wake=wake)
        return found

    def _concerned(self, cells: Collection[Cell], room: QueueRoom) -> list[tuple[WatchKey, list[_Item]]]:
        """Return the watches that more room in `cells` may concern."""
        if room.preempts:
            return list(self._by_key.items())
        keys: list[WatchKey] = [(cell, None) for cell in cells]
        return [(key, self._by_key[key]) for key in keys if key in self._by_key]

    def _release(
        self, key: WatchKey, watches: list[_Item], room: QueueRoom, turn: tuple[Band, Kept] | None, *, wake: bool
    ) -> list[PendingClass]:
        """Take out the classes of one cell that may fit now; `turn`: whose it is, and what is kept from them."""
        cell, priority = key
        least = watches[0][0]
        if turn is not None and turn[0].within and not room.within(cell, least):
            return []  # all of them would have to borrow
        if not room.covers(cell, priority or 0, least):
            return []
        best = wake and turn is None and not room.preempts and 1 < len(watches) <= _SCAN_MAX
        if best and all(len(watch.option) == 1 for _, _, watch in watches):
            return self._release_best(key, watches, room)
        found: list[PendingClass] = []
        others: list[_Item] = []
        covered = least  # what is there for that much is there for less
        while watches:
            need = watches[0][0]
            if need > covered and not room.covers(cell, priority or 0, need):
                break
            covered = need
            item = heapq.heappop(watches)
            watch = item[2]
            if watch.owner.park != watch.park or not watch.owner.members:
                continue
            if turn is not None and not _in_turn(turn[0], watch, room, turn[1]):
                others.append(item)
            elif len(watch.option) == 1 or self._settle(watch, room):
                found.append(watch.owner)
        for item in others:
            heapq.heappush(watches, item)
        if not watches:
            del self._by_key[key]
        return found

    def _release_best(self, key: WatchKey, watches: list[_Item], room: QueueRoom) -> list[PendingClass]:
        """Take out the first class in order of those whose amount in one cell is available, if there is any.

        The others are not evaluated before it, and may lack something again by then (`stir`).
        """
        cell, priority = key
        best: tuple[tuple[int, float, str], _Item] | None = None
        covered = 0
        for item in watches:
            owner = item[2].owner
            head = owner.head() if owner.park == item[2].park else None
            if head is None or not room.covers(cell, priority or 0, item[0]):
                continue
            covered += 1
            rank = pending_key(owner.priority, head.timestamp, head.uid)
            if best is None or rank < best[0]:
                best = rank, item
        if best is None:
            return []
        if covered > 1:
            self.stirred.add(key)
        watches.remove(best[1])
        heapq.heapify(watches)
        return [best[1][2].owner]

    def stir(self, room: QueueRoom) -> list[PendingClass]:
        """Take out the next class of each cell of which others were left registered."""
        stirred, self.stirred = self.stirred, set()
        found: list[PendingClass] = []
        for key in sorted(stirred, key=repr):
            watches = self._by_key.get(key)
            if watches:
                found += self._release(key, watches, room, None, wake=True)
        return found


def _in_turn(band: Band, watch: CellWatch, room: QueueRoom, kept: Kept) -> bool:
    """Return whether the priority of a registered class is in `band`, and what it lacks is not kept from it."""
    priority = watch.owner.priority
    return band.has(priority) and kept.leaves(watch.option, room, priority, within=band.within)
