"""Classes of equivalent pending workloads in one queue, and whether the quota that a class lacks is available.

Neighbours: `pending` keeps the classes of a queue in order, `watches` notes what they lack, `preemption.oracle.Room`
says what is there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

from gatelift_admission.entries.entry import Entry, Shape
from gatelift_admission.entries.standings import ACTIVE, Stander
from gatelift_admission.flavors.assignment import Option
from gatelift_admission.flavors.plain import Demand
from gatelift_admission.preemption.oracle import QueueRoom
from gatelift_admission.waking.kept_quota import Kept

VOID_SLACK = 64
"""Void items a heap may carry beyond its live ones before it is rebuilt: keeps memory within twice the need."""

HEAP_MAX = 512
"""Up to how many stand in a heap alone: below that a sorted list gains nothing."""

DEMANDS_MAX = 256
"""Shapes of a queue whose demand is remembered: with more, all are worked out anew now and then."""

Stand = tuple[float, str, int]
"""Where a workload stands in its class: queue timestamp, UID; and its ticket, which tells whether it still does."""


@dataclass(slots=True, eq=False)
class Line:
    """The members of a class in order, the earliest first.

    They are taken from the end of a sorted list, which costs the same at any length; a heap of a hundred thousand costs
    twice what one of a thousand does. Those that came since the list was sorted are in a heap, until they are as many.
    """

    order: list[Stand] = field(default_factory=list)
    """The latest first."""
    late: list[Stand] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Sort the members that it begins with."""
        self.order.sort(reverse=True)

    def __len__(self) -> int:
        """Return how many stand in it."""
        return len(self.order) + len(self.late)

    def push(self, stand: Stand) -> None:
        """Add a member."""
        heapq.heappush(self.late, stand)

    def first(self) -> Stand | None:
        """Return the earliest, None in an empty line."""
        late, order = self.late, self.order
        if len(late) > len(order) + HEAP_MAX:
            order += late
            order.sort(reverse=True)
            late.clear()
        if not order:
            return late[0] if late else None
        return late[0] if late and late[0] < order[-1] else order[-1]

    def next(self) -> Stand | None:
        """Take the earliest out and return the next one."""
        if self.order and (not self.late or self.order[-1] < self.late[0]):
            self.order.pop()
        else:
            heapq.heappop(self.late)
        return self.first()


@dataclass(slots=True, eq=False)
class PendingClass(Stander):
    """Equivalent waiting workloads, earliest first."""

    priority: int
    shape: Shape
    members: dict[str, Entry] = field(default_factory=dict)
    line: Line = field(default_factory=Line)
    park: int = 0
    """Raised at each parking and waking: watches of an earlier parking are void."""
    bypass_reason: str = ""
    fresh: list[Entry] = field(default_factory=list)
    """Members to be told that an equivalent workload failed, once it has."""
    options: tuple[Option, ...] = ()
    """What the class lacked when it was evaluated last; void once the structure changes."""
    withheld: Option = ()
    """What it needs, while it is not evaluated since that is kept for others."""
    reserves: bool = False
    """As the blocked head of a StrictFIFO queue it keeps room for itself in its cohort."""
    demand: Demand | None = None
    """What its members need where they have no choice of flavors."""
    built: int = 0
    """The build of the tree for which `demand` was worked out."""
    offered: int = 0
    """Ticket of the member by which the class stands in the queue's heap, 0 if it does not."""

    def __post_init__(self) -> None:
        """Begin awake."""
        self.standing = ACTIVE

    def head(self) -> Entry | None:
        """Return the earliest member."""
        first = self.line.first()
        while first is not None:
            entry = self.members.get(first[1])
            if entry is not None and entry.ticket == first[2]:
                return entry
            first = self.line.next()
        return None

    def push(self, entry: Entry) -> None:
        """Add a member; it must carry its new ticket."""
        if len(self.line) > 2 * len(self.members) + VOID_SLACK:
            self.line = Line([(one.timestamp, one.uid, one.ticket) for one in self.members.values()])
        self.members[entry.uid] = entry
        self.line.push((entry.timestamp, entry.uid, entry.ticket))

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


def covered(option: Option, room: QueueRoom, priority: int) -> bool:
    """Return whether all of an option is there for `priority`, or might be after preemption."""
    for cell, need in option:
        if need > room.free(cell) and not (room.preempts and room.covers(cell, priority, need)):
            return False
    return True


def any_left(one: PendingClass, room: QueueRoom, kept: Kept, *, within: bool) -> bool:
    """Return whether one of the options of a class is not kept from it; `within`: of the quota of its queue."""
    for option in one.options:  # noqa: SIM110 - a generator costs more than what it asks
        if kept.leaves(option, room, one.priority, within=within):
            return True
    return False


def any_free(one: PendingClass, room: QueueRoom) -> bool:
    """Return whether one of the options of a class is there without any preemption; so may be what is not known."""
    if not one.options:
        return not one.withheld or _free(one.withheld, room)
    for option in one.options:  # noqa: SIM110 - a generator costs more than what it asks
        if _free(option, room):
            return True
    return False


def _free(option: Option, room: QueueRoom) -> bool:
    for cell, need in option:  # noqa: SIM110 - a generator costs more than what it asks
        if need > room.free(cell):
            return False
    return True


def any_covered(one: PendingClass, room: QueueRoom) -> bool:
    """Return whether one of the options of a class is there."""
    for option in one.options:  # noqa: SIM110 - a generator costs more than what it asks
        if covered(option, room, one.priority):
            return True
    return False
