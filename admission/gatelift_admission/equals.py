"""Equivalent workloads that wait in one queue, and whether what they lack is there.

Neighbours: `pending` keeps the classes of a queue in order, `watches` notes what they lack, `preemption.oracle.Room`
says what is there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from gatelift_admission.entry import Entry, Shape
from gatelift_admission.flavors import Option
from gatelift_admission.keeping import Kept
from gatelift_admission.plain import Demand
from gatelift_admission.preemption.oracle import Room

VOID_SLACK = 64
"""Void items a heap may carry beyond its live ones before it is rebuilt: keeps memory within twice the need."""

DEMANDS_MAX = 256
"""Shapes of a queue whose demand is remembered: with more, all are worked out anew now and then."""


@dataclass(slots=True, eq=False)
class PendingClass:
    """Equivalent waiting workloads, earliest first."""

    priority: int
    shape: Shape
    members: dict[str, Entry] = field(default_factory=dict)
    heap: list[tuple[float, str, int]] = field(default_factory=list)
    parked: bool = False
    park: int = 0
    """Raised at each parking and waking: watches of an earlier parking are void."""
    bypass_reason: str = ""
    fresh: list[Entry] = field(default_factory=list)
    """Members to be told that an equivalent workload failed, once it has."""
    options: tuple[Option, ...] = ()
    """What the class lacked when it was evaluated last; void once the structure changes."""
    held: Option = ()
    """What it needs, while nobody has evaluated it since that is kept from it."""
    reserves: bool = False
    """As the blocked head of a StrictFIFO queue it keeps room for itself in its cohort."""
    demand: Demand | None = None
    """What its members need where they have no choice of flavors."""
    built: int = 0
    """The build of the tree for which `demand` was worked out."""
    offered: int = 0
    """Ticket of the member by which the class stands in the queue's heap, 0 if it does not."""

    def head(self) -> Entry | None:
        """Return the earliest member."""
        while self.heap:
            _, uid, ticket = self.heap[0]
            entry = self.members.get(uid)
            if entry is not None and entry.ticket == ticket:
                return entry
            heapq.heappop(self.heap)
        return None

    def push(self, entry: Entry) -> None:
        """Add a member; it must carry its new ticket."""
        if len(self.heap) > 2 * len(self.members) + VOID_SLACK:
            self.heap = [(one.timestamp, one.uid, one.ticket) for one in self.members.values()]
            heapq.heapify(self.heap)
        self.members[entry.uid] = entry
        heapq.heappush(self.heap, (entry.timestamp, entry.uid, entry.ticket))

    def note_fresh(self, entry: Entry) -> None:
        """Note a member that has to be told when the class fails."""
        if len(self.fresh) > 2 * len(self.members) + VOID_SLACK:
            self.fresh = [other for other in self.fresh if self.members.get(other.uid) is other]
        self.fresh.append(entry)


@dataclass(slots=True)
class Demands:
    """What shapes need that have no choice of flavors, as far as asked. Unlike a class it outlives its last member."""

    built: int = 0
    """The build of the tree for which they were worked out."""
    known: dict[Shape, Demand | None] = field(default_factory=dict)

    def of(self, shape: Shape, built: int, work_out: Callable[[], Demand | None]) -> Demand | None:
        """Return what a shape needs in build `built` of the tree."""
        if self.built != built or len(self.known) >= DEMANDS_MAX:
            self.built, self.known = built, {}
        if shape not in self.known:
            self.known[shape] = work_out()
        return self.known[shape]


def covered(option: Option, room: Room, priority: int) -> bool:
    """Return whether all of an option is there for `priority`, or might be after preemption."""
    for cell, need in option:
        if need > room.free(cell) and not (room.preempts and room.covers(cell, priority, need)):
            return False
    return True


def any_left(one: PendingClass, room: Room, kept: Kept, *, within: bool) -> bool:
    """Return whether one of the options of a class is not kept from it; `within`: of the quota of its queue."""
    for option in one.options:  # noqa: SIM110 - a generator costs more than what it asks
        if kept.leaves(option, room, one.priority, within=within):
            return True
    return False


def any_covered(one: PendingClass, room: Room) -> bool:
    """Return whether one of the options of a class is there."""
    for option in one.options:  # noqa: SIM110 - a generator costs more than what it asks
        if covered(option, room, one.priority):
            return True
    return False
