"""What to look at next: keys that are dirty, and keys to look at again at a time. Neighbours: `machine` drains it.

Keys that only show what a cluster has said of its objects have a line of their own, behind all others: one cluster may
say something of thousands at once, and everybody's next pod would wait behind them. In each line namespaces take turns:
one change may make thousands of one namespace dirty, and others' keys do not wait for the CPU of those.
"""

from __future__ import annotations

import enum
import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift_kube.deciding.fair_line import FairLine
from gatelift_kube.values.resources import ObjectKey, Resource


class Look(enum.StrEnum):
    """What kind of thing a key names; the machine has one pass for each."""

    OWNER = "owner"
    WORK = "work"  # all users' objects of a work of several, by where their Workload belongs
    WORKLOAD = "workload"
    CHECK = "check"
    CLUSTER_QUEUE = "cluster-queue"
    LOCAL_QUEUE = "local-queue"
    COHORT = "cohort"
    FLAVOR = "flavor"
    CLUSTER = "cluster"
    INFORM = "inform"  # texts and statuses that wait for the budget of writes that only inform
    DECIDING = "deciding"  # quota, after deciding on it has failed
    UNDECIDED = "undecided"  # a Workload, after deciding on its quota has failed
    UNCOMPARED = "uncompared"  # a Workload whose placement could not be compared with what its cluster listed
    UNTAKEN = "untaken"  # an object of which a version could not be taken
    DOUBTS = "doubts"  # placements that no cache explains
    WORDS = "words"  # what follows a cluster's reports and waits for its share of all writes
    WAKING = "waking"  # those whom a change of a cluster may help
    UNSENT = "unsent"  # objects whose write found no turn


class Key(NamedTuple):
    """A thing to look at. `resource`: of a user's object, and of what could not be taken; None otherwise."""

    look: Look
    object: ObjectKey
    resource: Resource | None = None


LATE_EVERY = 8
"""Of so many keys one is taken of the late line, so that it is never left alone."""
STALE_MAX = 64
"""Timers in the heap beyond twice those that count, before it is made anew."""


@dataclass(slots=True)
class Agenda:
    """Dirty keys, each once, in two lines; timers as one heap, at most one entry for each key.

    In a line namespaces take turns, what is of none is a share as well, and in each the order is that of arrival.

    Whoever looks at a key asks again for the timer that it still needs: what was asked for before is over with `take`.
    """

    _line: FairLine[Key] = field(default_factory=FairLine)
    _late: FairLine[Key] = field(default_factory=FairLine)
    _late_due: set[Key] = field(default_factory=set)  # of those with a timer
    _taken: int = 0
    was_late: bool = False
    """Whether the key that was taken last is of the late line."""
    _timers: list[tuple[float, int, Key]] = field(default_factory=list)
    _due: dict[Key, float] = field(default_factory=dict)
    _count: int = 0

    def mark(self, key: Key) -> None:
        """Look at `key` soon; repeated marks are one."""
        self._late.leave(key)
        self._line.stand(key, (key.object.namespace,))

    def mark_late(self, key: Key) -> None:
        """Look at `key` behind all others."""
        if key not in self._line:
            self._late.stand(key, (key.object.namespace,))

    def wake(self, key: Key, at: float, *, late: bool = False) -> None:
        """Look at `key` again at `at` or before, or behind all others then; an earlier time already set stays."""
        due = self._due.get(key)
        if due is not None and due <= at:
            return
        self._due[key] = at
        if late:
            self._late_due.add(key)
        else:
            self._late_due.discard(key)
        self._count += 1
        heapq.heappush(self._timers, (at, self._count, key))
        if len(self._timers) > 2 * len(self._due) + STALE_MAX:
            self._timers = [(when, number, each) for number, (each, when) in enumerate(self._due.items())]
            heapq.heapify(self._timers)

    def ring(self, now: float) -> None:
        """Mark all keys whose time has come."""
        while self._timers and self._timers[0][0] <= now:
            at, _, key = heapq.heappop(self._timers)
            if self._due.get(key) == at:
                del self._due[key]
                if key in self._late_due:
                    self._late_due.discard(key)
                    self.mark_late(key)
                else:
                    self.mark(key)

    def take(self, *, late: bool = True) -> Key | None:
        """Return the dirty key whose turn it is and clear it and its timer; None when there is none.

        `late` false: none of the late line.
        """
        self._taken += 1
        first = late and not self._taken % LATE_EVERY
        self.was_late = late and bool(self._late) and (first or not self._line)
        if not (self.was_late or self._line):
            return None
        key = (self._late if self.was_late else self._line).take()
        self.forget(key)
        return key

    def forget(self, key: Key) -> None:
        """Drop a key that names nothing any more; its timer is ignored when it rings."""
        self._line.leave(key)
        self._late.leave(key)
        self._late_due.discard(key)
        self._due.pop(key, None)

    @property
    def dirty(self) -> int:
        """Return how many keys wait."""
        return len(self._line) + len(self._late)

    def waits(self, key: Key) -> bool:
        """Say whether `key` is dirty or has a timer."""
        return key in self._line or key in self._late or key in self._due

    def next_time(self) -> float | None:
        """Return the time of the next timer that counts."""
        while self._timers and self._due.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None
