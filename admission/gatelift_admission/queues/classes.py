"""The members of one ClusterQueue that wait: classes of equivalent workloads in the order of their heads.

A class holds all members that any evaluation would treat alike. Those that are inadmissible one by one stand aside; a
head that blocks its queue, goes first or lost the last round is known by name. Neighbours: `pending` says what becomes
of them, `waking.equals` is one class, `standings` the table of where they stand.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator

from gatelift_admission.entries.entry import Entry, Shape
from gatelift_admission.entries.ordering import pending_key
from gatelift_admission.entries.standings import ACTIVE, AWAKE, ENTER, LEAVE, LOOK, RESUME, QueueMove
from gatelift_admission.flavors.plain import Demand
from gatelift_admission.waking.equals import VOID_SLACK, Demands, PendingClass


class PendingClasses:
    """The classes of one ClusterQueue, and the heads that stand apart."""

    __slots__ = (
        "_demands",
        "_heap",
        "_tickets",
        "aside",
        "blocked",
        "classes",
        "loser",
        "priorities",
        "sticky",
        "strict",
    )

    def __init__(self, *, strict: bool) -> None:
        """Begin empty."""
        self.strict = strict
        self.classes: dict[Shape, PendingClass] = {}
        self.priorities: Counter[int] = Counter()
        """How many classes there are of each priority."""
        self.aside: dict[str, Entry] = {}
        """Individually inadmissible: backing off or kept out, or its namespace or limits do not suit."""
        self.blocked: Entry | None = None
        """The head behind which a StrictFIFO queue waits, or that waits for its victims to leave."""
        self.sticky: Entry | None = None
        """The workload for which others were preempted last: it goes first in a BestEffortFIFO queue."""
        self.loser: Entry | None = None
        """The head that lost to another entry in the last round: Kueue evaluates it at once again."""
        self._heap: list[tuple[tuple[int, float, str], int, PendingClass]] = []
        self._demands = Demands()
        self._tickets = 0

    def __len__(self) -> int:
        """Return how many workloads wait, in whatever state."""
        return len(self.aside) + sum(len(one.members) for one in self.classes.values())

    def add(self, entry: Entry) -> PendingClass:
        """Queue an entry whose priority, timestamp and shape are set; returns its class (it may be parked)."""
        self._tickets += 1
        entry.ticket = self._tickets
        one = self.classes.get(entry.shape)
        if one is None:
            one = self.classes[entry.shape] = PendingClass(entry.priority, entry.shape)
            self.priorities[entry.priority] += 1
        entry.move(ENTER)
        one.push(entry)
        one.note_fresh(entry)
        if one.standing in AWAKE:
            self._offer(one)
        return one

    def tell_again(self, entry: Entry) -> None:
        """Let an entry, whose text is no longer true, be told when its class fails the next time."""
        one = self.classes.get(entry.shape)
        if one is not None and entry.uid in one.members:
            one.note_fresh(entry)

    def evaluate(self, entry: Entry) -> None:
        """Let the class of an entry be evaluated when it heads the queue, whatever it lacked before."""
        self.classes[entry.shape].options = ()

    def demand(self, entry: Entry, built: int, work_out: Callable[[], Demand | None]) -> Demand | None:
        """Return what members of the entry's class need where they have no choice, in build `built` of the tree."""
        one = self.classes[entry.shape]
        if one.built != built:
            one.demand, one.built = self._demands.of(entry.shape, built, work_out), built
        return one.demand

    def set_aside(self, entry: Entry) -> None:
        """Make an entry inadmissible until it is added again; a sticky one goes first then."""
        sticky = self.sticky
        self.remove(entry)
        self.sticky = sticky
        entry.move(QueueMove.KEEP_OUT)
        self.aside[entry.uid] = entry

    def remove(self, entry: Entry) -> None:
        """Take an entry out, wherever it is; unknown ones are ignored."""
        if self.aside.pop(entry.uid, None) is not None:
            entry.move(LEAVE)
        if self.blocked is entry:
            self.unblock()
        if self.sticky is entry:
            self.sticky = None
        if self.loser is entry:
            self.forget_loser()
        one = self.classes.get(entry.shape)
        if one is None or one.members.pop(entry.uid, None) is None:
            return
        entry.move(LEAVE)
        entry.ticket = 0
        if one.standing is not ACTIVE:
            one.move(LOOK)
        if not one.members:
            one.park += 1
            del self.classes[entry.shape]
            self.priorities[one.priority] -= 1
            if not self.priorities[one.priority]:
                del self.priorities[one.priority]
        elif one.standing in AWAKE:
            self._offer(one)

    def forget_loser(self) -> None:
        """Forget which head lost in the last round."""
        loser, self.loser = self.loser, None
        if loser is not None:
            loser.move(RESUME)

    def unblock(self) -> None:
        """Let the blocked head be evaluated again."""
        blocked, self.blocked = self.blocked, None
        if blocked is not None:
            blocked.move(RESUME)

    def head(self) -> Entry | None:
        """Return the workload to evaluate next, None if none is worth evaluating."""
        entry = self._first()
        return None if entry is None or entry is self.blocked else entry

    def _first(self) -> Entry | None:
        sticky = self.sticky
        if sticky is not None and not self.strict:
            one = self.classes.get(sticky.shape)
            if one is not None and one.standing in AWAKE and sticky.uid in one.members:
                return sticky
        while self._heap:
            key, ticket, one = self._heap[0]
            head = one.head() if one.standing in AWAKE and one.members else None
            if head is not None and head.ticket == ticket and head.uid == key[2]:
                return head
            heapq.heappop(self._heap)
            if one.offered == ticket:
                one.offered = 0
        return None

    def _offer(self, one: PendingClass) -> None:
        """Make the class stand in the queue's heap by its head, once."""
        head = one.head()
        if head is None or one.offered == head.ticket:
            return
        one.offered = head.ticket
        if len(self._heap) > 2 * len(self.classes) + VOID_SLACK:
            self._heap = [item for item in self._heap if item[2].offered == item[1]]
            heapq.heapify(self._heap)
        heapq.heappush(self._heap, (pending_key(one.priority, head.timestamp, head.uid), head.ticket, one))

    def in_order(self) -> Iterator[Entry]:
        """Yield all that wait in the order in which they would be served, the inadmissible last."""
        known = [entry for one in self.classes.values() for entry in one.members.values()]
        known.sort(key=lambda entry: pending_key(entry.priority, entry.timestamp, entry.uid))
        yield from known
        yield from sorted(self.aside.values(), key=lambda one: pending_key(one.priority, one.timestamp, one.uid))
