"""What waits in one ClusterQueue: classes of equivalent workloads, its head, and which classes are asleep.

A class holds all members that any evaluation would treat alike. When its representative does not fit, a
BestEffortFIFO queue parks the whole class; a StrictFIFO queue stops behind its head. Nothing polls, and ten thousand
equal workloads cost one evaluation. A workload whose victims are still leaving heads its queue (*sticky*). Where an
entry or a class stands, and which moves there are, is the table of `standings`.
Neighbours: `watches` finds the classes that a release may help, `heads` takes heads, `state` feeds and wakes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterator

from gatelift_admission.entries.entry import Entry, Shape
from gatelift_admission.entries.ordering import pending_key
from gatelift_admission.entries.standings import (
    ACTIVE,
    AWAKE,
    BARRED,
    BLOCK,
    DEFER,
    ENTER,
    INADMISSIBLE,
    LEAVE,
    LOOK,
    LOSE,
    PARK,
    RECALLED,
    RESERVE,
    RESERVING,
    RESUME,
    SLEEP,
    WAKE,
    QueueMove,
)
from gatelift_admission.flavors.assigner import Assignment, Option
from gatelift_admission.flavors.plain import Demand
from gatelift_admission.preemption.oracle import QueueRoom
from gatelift_admission.quota.tree import Tree, TreeNode
from gatelift_admission.values.model import Cell
from gatelift_admission.waking.equals import VOID_SLACK, Demands, PendingClass, any_covered, any_free, any_left
from gatelift_admission.waking.keeping import Kept
from gatelift_admission.waking.timing import Band
from gatelift_admission.waking.watches import Watches


class PendingQueue:
    """The waiting workloads of one ClusterQueue."""

    __slots__ = (
        "_demands",
        "_heap",
        "_tickets",
        "aside",
        "blocked",
        "classes",
        "idle",
        "loser",
        "priorities",
        "sticky",
        "strict",
        "watches",
    )

    def __init__(self, *, strict: bool) -> None:
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
        self.idle = False
        """The head found last lacks something; it only keeps room for itself (the reserve rule)."""
        self.watches = Watches(self.classes)
        self._heap: list[tuple[tuple[int, float, str], int, PendingClass]] = []
        self._demands = Demands()
        self._tickets = 0

    def __len__(self) -> int:
        """Return how many workloads wait, in whatever state."""
        return len(self.aside) + sum(len(one.members) for one in self.classes.values())

    def anew(self, entries: list[Entry]) -> PendingQueue:
        """Return a queue of just these entries, with nothing known of what they lack; the inadmissible stay so."""
        new = PendingQueue(strict=self.strict)
        new._tickets = self._tickets  # no ticket is given twice
        for entry in entries:
            aside = entry.standing is INADMISSIBLE
            entry.move(QueueMove.ANEW)
            if aside:
                new.set_aside(entry)
            else:
                new.add(entry)
            if entry is self.sticky:
                new.sticky = entry
        return new

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

    def stirs(self) -> bool:
        """Return whether there may be a workload worth evaluating."""
        return bool(self.watches.stirred) or self.head() is not None

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

    def might_reserve(self, tree: Tree, node: TreeNode) -> bool:
        """Return whether the blocked head of a StrictFIFO queue, that kept no room when it was evaluated, might now.

        It may claim room as soon as it fits into a subtree below the root; that depends on what others use.
        """
        if self.blocked is None or not self.strict or node.parent is None or node.parent.parent is None:
            return False
        one = self.classes[self.blocked.shape]
        return any(all(tree.lowest_fit(node, cell, need)[1] for cell, need in option) for option in one.options)

    def lost(self, entry: Entry) -> None:
        """Record that the head lost to another entry: it stays where it is."""
        if self.loser is not None and self.loser is not entry:
            self.forget_loser()
        one = self.classes[entry.shape]
        if one.standing is not ACTIVE:
            one.move(LOOK)
        if self.blocked is entry:
            self.unblock()
        self.loser = entry
        entry.move(LOSE)

    def forget_loser(self) -> None:
        """Forget which head lost in the last round."""
        loser, self.loser = self.loser, None
        if loser is not None:
            loser.move(RESUME)

    def waits(self, entry: Entry) -> None:
        """Record that the head waits for its victims to leave: it heads the queue, and any release wakes it."""
        if self.loser is not None:
            self.forget_loser()
        one = self.classes[entry.shape]
        one.park += 1
        one.options = ()
        if one.standing is not ACTIVE:
            one.move(LOOK)
        self.watches.anything(one)
        self.sticky = entry
        self._block(entry, RESERVE)

    def fail(self, entry: Entry, assignment: Assignment, room: QueueRoom, *, changed: bool) -> PendingClass | None:
        """Record that the head does not fit: park its class, or block a StrictFIFO queue, until something changes.

        Returns None, with nothing recorded, if something `changed` since the evaluation and by now nothing is missing.
        Without a change an option that is there was refused for good reason: another flavor was preferred, and then
        no victims were found, or another group or pod set did not fit.
        """
        one = self.classes[entry.shape]
        one.park += 1
        if self.loser is not None:
            self.forget_loser()
        anything = assignment.lacks_anything
        one.options = () if anything else assignment.lacks
        if changed and (anything or any_covered(one, room)):
            one.park += 1
            return None
        if anything:
            self.watches.anything(one)
        else:
            self.watches.register(one, room)
        if self.blocked is entry:
            self.unblock()
        if self.strict:
            one.reserves = entry.reserves
            self._block(entry, RESERVE if one.reserves else BLOCK)
            return one
        one.move(PARK)
        reason = assignment.reason
        if one.bypass_reason != reason:
            one.bypass_reason = reason
            one.fresh = list(one.members.values())
        one.fresh = [other for other in one.fresh if other is not entry]
        return one

    def next_head(self, room: QueueRoom, kept: Kept, *, within: bool = False) -> Entry | None:
        """Return the workload to evaluate next; woken classes that by now lack something again go back unevaluated.

        What a class lacks follows from its shape and the structure alone, so comparing is as good as evaluating. But
        the loser of the last round may have to be evaluated to keep room of its own (`idle`). Classes that would have
        to borrow by now go back, too, in the turn of those that stay `within` the quota of their queue.
        """
        self.idle = False
        while True:
            entry = self.head()
            if entry is None:
                if not self._stir(room):
                    return None
                continue
            # Its class heads the heap, as a rule; to look that up by its shape costs more than a move.
            first = self._heap[0][2] if self._heap else None
            one = first if first is not None and entry.uid in first.members else self.classes[entry.shape]
            if self._defers(entry, one, room, kept):
                self._sleep(one, DEFER)
                continue
            withheld, one.withheld = one.withheld, ()
            if withheld and self.loser is not entry and not kept.leaves(withheld, room, one.priority, within=within):
                one.withheld = withheld
                self._sleep(one)
                continue
            if not one.options or entry.cursor:  # a search that is under way goes on
                return entry
            if any_covered(one, room):
                waits = (within or kept.anything) and not self.strict and self.loser is not entry
                if not waits or any_left(one, room, kept, within=within):
                    return entry
                if within and any_left(one, room, kept, within=False):
                    # It has its turn later, and what stands behind it has none before.
                    self._sleep(one)
                    return None
            if self.loser is entry:
                self.idle = True
                return entry
            one.park += 1
            self.watches.register(one, room)
            if self.strict:
                keeps = one.reserves or self.reserves(entry, room)
                self._block(entry, RESERVE if keeps else BLOCK)
            else:
                one.move(SLEEP)

    def _defers(self, entry: Entry, one: PendingClass, room: QueueRoom, kept: Kept) -> bool:
        """Return whether a class that is awake has to wait, since one that is asleep goes before it and fits.

        It came, or stood behind the head, before what came free was offered. A sticky workload does not wait, as in
        Kueue, nor does the loser of the last round.
        """
        if one.standing is RECALLED or self.strict or len(self.classes) < 2:
            return False
        if one.priority >= kept.turns_below:
            return False
        return entry is not self.sticky and entry is not self.loser and self._passes_over(one, room, leaving=False)

    def _stir(self, room: QueueRoom) -> bool:
        """Wake the classes that were left asleep behind the best of their cell; True if there were any."""
        woken = self.watches.stir(room) if self.watches.stirred else []
        for one in woken:
            self._wake(one)
        return bool(woken)

    def reserves(self, entry: Entry, room: QueueRoom) -> bool:
        """Return whether an entry that lacks something now might keep room of its own from others."""
        return any(room.reserves(option) for option in self.classes[entry.shape].options)

    def hold(self, one: PendingClass, needs: Option) -> bool:
        """Let a class that was not evaluated yet wait while what it `needs` (empty: unknown) is kept for others.

        Only a BestEffortFIFO queue does: a StrictFIFO queue waits for nothing but its head.
        """
        if self.strict or self.sticky is not None:
            return False
        one.withheld, one.options, one.bypass_reason = needs, (), ""
        self._sleep(one)
        return True

    def _sleep(self, one: PendingClass, move: QueueMove = SLEEP) -> None:
        """Let a class wait until any release."""
        one.park += 1
        one.move(move)
        self.watches.anything(one)

    def release_anything(self, band: Band | None = None) -> bool:
        """Wake all (of `band`) for which any release in the queue's cells may matter; True if there may be any.

        Whether they would have to borrow is not known: they have no turn among those that need not.
        """
        if band is not None and band.within:
            return False
        woken = self.watches.take_eager(band)
        for one in woken:
            self._wake(one)
        return bool(woken)

    def release(
        self, cells: Collection[Cell], room: QueueRoom, kept: Kept, *, wake: bool = True, band: Band | None = None
    ) -> bool:
        """Wake all whose missing amounts may be there now that `cells` have more room; True if any was woken.

        Without `wake` any release wakes them from now on. With `band` only its priorities are looked at.
        """
        covered = self.watches.release(cells, room, kept, wake=wake, band=band)
        within = band is not None and band.within and len(self.classes) > 1
        for one in covered:
            if within and self._passes_over(one, room):
                self.watches.anything(one)
            elif wake:
                self._wake(one)
            else:
                self.watches.anything(one)
        return wake and bool(covered)

    def _passes_over(self, one: PendingClass, room: QueueRoom, *, leaving: bool = True) -> bool:
        """Return whether a class that is asleep and may fit goes before this one, by priority, then by age.

        Unless `leaving`, only one that fits without any preemption.
        """
        head = one.head()
        for other in self.classes.values():
            if other.standing in AWAKE or other.priority < one.priority or other is one:
                continue
            first = other.head()
            if other.priority == one.priority and (
                first is None or head is None or (first.timestamp, first.uid) > (head.timestamp, head.uid)
            ):
                continue
            if leaving and (not other.options or any_covered(other, room)):
                return True
            if not leaving and any_free(other, room):
                return True
        return False

    def _wake(self, one: PendingClass) -> None:
        one.park += 1
        if one.standing not in AWAKE:
            one.move(WAKE)
            self._offer(one)
        if self.blocked is not None and self.blocked.shape == one.shape:
            self.unblock()

    def may_choose_anew(self) -> bool:
        """Return whether more in use, not less, may change what the blocked head could do by preemption."""
        blocked = self.blocked
        if blocked is None or blocked.standing is BARRED:
            return False
        return blocked.standing is RESERVING or not self.classes[blocked.shape].options

    def wake_blocked(self, room: QueueRoom) -> bool:
        """Let the blocked head be evaluated again if what it lacks may be there; True if it is worth evaluating."""
        if self.blocked is None or self.blocked.standing is BARRED:
            return False
        one = self.classes[self.blocked.shape]
        if one.options and not any_covered(one, room):
            return False
        self._wake(one)
        return True

    def _block(self, entry: Entry, move: QueueMove) -> None:
        """Let the queue wait behind a head, in the place of the one before it."""
        if self.blocked is not entry:
            self.unblock()
        entry.move(move)
        self.blocked = entry

    def bar(self, entry: Entry) -> None:
        """Let a StrictFIFO queue wait behind a head that no quota can help, until the head itself changes."""
        if self.loser is not None:
            self.forget_loser()
        one = self.classes[entry.shape]
        one.park += 1
        one.options = ()
        self._block(entry, QueueMove.BAR)

    def bars(self, entry: Entry) -> bool:
        """Return whether the queue waits behind this entry, which no quota could help."""
        return self.blocked is entry and entry.standing is BARRED

    def keeps_room(self) -> bool:
        """Return whether the blocked head takes part in every round of its tree."""
        return self.blocked is not None and self.blocked.standing is RESERVING

    def unblock(self) -> None:
        """Let the blocked head be evaluated again."""
        blocked, self.blocked = self.blocked, None
        if blocked is not None:
            blocked.move(RESUME)

    def wake_all(self) -> list[Entry]:
        """Wake every class and the blocked head; return the inadmissible entries, for the caller to place again."""
        self.watches.clear()
        self.unblock()
        for one in self.classes.values():
            one.options = ()
            one.park += 1
            if one.standing not in AWAKE:
                one.move(WAKE)
                self._offer(one)
        return list(self.aside.values())

    def in_order(self) -> Iterator[Entry]:
        """Yield all that wait in the order in which they would be served, the inadmissible last."""
        known = [entry for one in self.classes.values() for entry in one.members.values()]
        known.sort(key=lambda entry: pending_key(entry.priority, entry.timestamp, entry.uid))
        yield from known
        yield from sorted(self.aside.values(), key=lambda one: pending_key(one.priority, one.timestamp, one.uid))
