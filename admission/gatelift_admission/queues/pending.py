"""What waits in one ClusterQueue: classes of equivalent workloads, the head, and who sleeps until something comes free.

A class holds all members that any evaluation would treat alike. When its representative does not fit, a
BestEffortFIFO queue parks the whole class; a StrictFIFO queue stops behind its head. Nothing polls, and ten thousand
equal workloads cost one evaluation. A workload whose victims are still leaving heads its queue (*sticky*).
Neighbours: `watches` says whom a release may help, `heads` takes heads, `state` feeds and wakes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterator

from gatelift_admission.entries.entry import Entry, Shape
from gatelift_admission.entries.ordering import pending_key
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
        "barred",
        "blocked",
        "blocked_reserves",
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
        self.blocked_reserves = False
        """The blocked head takes part in every round of its tree."""
        self.barred = False
        """No quota can help the blocked head of a StrictFIFO queue: only a change of its own wakes it."""
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
        """Return a queue of just these entries, where nothing is known of what they lack; who is set aside stays so."""
        new = PendingQueue(strict=self.strict)
        new._tickets = self._tickets  # no ticket is given twice
        for entry in entries:
            if entry.uid in self.aside:
                new.aside[entry.uid] = entry
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
        one.push(entry)
        one.note_fresh(entry)
        if not one.parked:
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
        """Keep an entry out of the order until it is added again; who others were preempted for goes first then."""
        sticky = self.sticky
        self.remove(entry)
        self.sticky = sticky
        self.aside[entry.uid] = entry

    def remove(self, entry: Entry) -> None:
        """Take an entry out, wherever it is; unknown ones are ignored."""
        self.aside.pop(entry.uid, None)
        if self.blocked is entry:
            self.unblock()
        if self.sticky is entry:
            self.sticky = None
        if self.loser is entry:
            self.loser = None
        one = self.classes.get(entry.shape)
        if one is None or one.members.pop(entry.uid, None) is None:
            return
        entry.ticket = 0
        one.deferred = False
        if not one.members:
            one.park += 1
            del self.classes[entry.shape]
            self.priorities[one.priority] -= 1
            if not self.priorities[one.priority]:
                del self.priorities[one.priority]
        elif not one.parked:
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
            if one is not None and not one.parked and sticky.uid in one.members:
                return sticky
        while self._heap:
            key, ticket, one = self._heap[0]
            head = one.head() if not one.parked and one.members else None
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
        self.loser = entry
        self.classes[entry.shape].deferred = False
        if self.blocked is entry:
            self.unblock()

    def waits(self, entry: Entry) -> None:
        """Record that the head waits for others to leave: it heads the queue, and any release wakes it."""
        self.loser = None
        one = self.classes[entry.shape]
        one.park += 1
        one.options, one.deferred = (), False
        self.watches.anything(one)
        self.sticky = entry
        self._block(entry, reserves=True)

    def fail(self, entry: Entry, assignment: Assignment, room: QueueRoom, *, changed: bool) -> PendingClass | None:
        """Record that the head does not fit: park its class, or block a StrictFIFO queue, until something changes.

        Returns None, with nothing recorded, if something `changed` since the evaluation and by now nothing is missing.
        Without a change an option that is there was refused for good reason: another flavor was preferred, and then
        nobody could be found to leave, or another group or pod set did not fit.
        """
        one = self.classes[entry.shape]
        one.park += 1
        self.loser = None
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
            self._block(entry, reserves=one.reserves)
            return one
        one.parked = True
        one.deferred = False
        reason = assignment.reason
        if one.bypass_reason != reason:
            one.bypass_reason = reason
            one.fresh = list(one.members.values())
        one.fresh = [other for other in one.fresh if other is not entry]
        return one

    def next_head(self, room: QueueRoom, kept: Kept, *, within: bool = False) -> Entry | None:
        """Return the workload to evaluate next; woken classes that by now lack something again go back unevaluated.

        What a class lacks follows from its shape and the structure alone, so comparing is as good as evaluating. But
        who has just lost may have to be evaluated to keep room of its own from others (`idle`). Those that would have
        to borrow by now go back, too, while it is the turn of those who stay `within` the quota of their queue.
        """
        self.idle = False
        while True:
            entry = self.head()
            if entry is None:
                if not self._stir(room):
                    return None
                continue
            one = self.classes[entry.shape]
            if self._defers(entry, one, room, kept):
                one.deferred = True
                self._sleep(one)
                continue
            held, one.held = one.held, ()
            if held and self.loser is not entry and not kept.leaves(held, room, one.priority, within=within):
                one.held = held
                self._sleep(one)
                continue
            if not one.options or entry.cursor:  # a search that is under way goes on
                return entry
            if any_covered(one, room):
                waits = (within or kept.anything) and not self.strict and self.loser is not entry
                if not waits or any_left(one, room, kept, within=within):
                    return entry
                if within and any_left(one, room, kept, within=False):
                    # It has its turn later, and nobody behind it has one before.
                    self._sleep(one)
                    return None
            if self.loser is entry:
                self.idle = True
                return entry
            one.park += 1
            self.watches.register(one, room)
            if self.strict:
                self._block(entry, reserves=one.reserves or self.reserves(entry, room))
            else:
                one.parked = True

    def _defers(self, entry: Entry, one: PendingClass, room: QueueRoom, kept: Kept) -> bool:
        """Return whether a class that is awake waits for its turn, since somebody asleep goes before it and fits.

        It came, or stood behind the head, while what came free was offered to nobody yet. Who others left for does not
        wait, as in Kueue, nor who has lost and is evaluated again.
        """
        if one.deferred or self.strict or len(self.classes) < 2 or one.priority >= kept.turns_below:
            return False
        return entry is not self.sticky and entry is not self.loser and self._passes_over(one, room, leaving=False)

    def _stir(self, room: QueueRoom) -> bool:
        """Wake those who were left asleep behind the best of their cell; True if there was somebody."""
        woken = self.watches.stir(room) if self.watches.stirred else []
        for one in woken:
            self._wake(one)
        return bool(woken)

    def reserves(self, entry: Entry, room: QueueRoom) -> bool:
        """Return whether an entry that lacks something now might keep room of its own from others."""
        return any(room.reserves(option) for option in self.classes[entry.shape].options)

    def hold(self, one: PendingClass, needs: Option) -> bool:
        """Let a class that nobody has evaluated wait while what it `needs` (empty: who knows) is kept from it.

        Only a BestEffortFIFO queue does: a StrictFIFO queue waits for nothing but its head.
        """
        if self.strict or self.sticky is not None:
            return False
        one.held, one.options, one.bypass_reason = needs, (), ""
        self._sleep(one)
        return True

    def _sleep(self, one: PendingClass) -> None:
        """Park a class until any release."""
        one.park += 1
        one.parked = True
        self.watches.anything(one)

    def release_anything(self, band: Band | None = None) -> bool:
        """Wake all (of `band`) for whom any release in the queue's cells may matter; True if there may be somebody.

        Nobody knows whether they would have to borrow: they have no turn among those who need not.
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
        """Wake all whose missing amounts may be there now that `cells` have more room; True if somebody was woken.

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
        """Return whether somebody asleep who may fit is worth more than a class, or as much and came earlier.

        Unless `leaving`, only who fits though nobody leaves.
        """
        head = one.head()
        for other in self.classes.values():
            if not other.parked or other.priority < one.priority or other is one:
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
        if one.parked:
            one.parked = False
            self._offer(one)
        if self.blocked is not None and self.blocked.shape == one.shape:
            self.unblock()

    def may_choose_anew(self) -> bool:
        """Return whether more in use, not less, may change what the blocked head could do by preemption."""
        blocked = self.blocked
        if blocked is None or self.barred:
            return False
        return self.blocked_reserves or not self.classes[blocked.shape].options

    def wake_blocked(self, room: QueueRoom) -> bool:
        """Let the blocked head be evaluated again if what it lacks may be there; True if it is worth evaluating."""
        if self.blocked is None or self.barred:
            return False
        one = self.classes[self.blocked.shape]
        if one.options and not any_covered(one, room):
            return False
        self._wake(one)
        return True

    def _block(self, entry: Entry, *, reserves: bool) -> None:
        self.blocked, self.blocked_reserves, self.barred = entry, reserves, False

    def bar(self, entry: Entry) -> None:
        """Let a StrictFIFO queue wait behind a head that no quota can help, until the head itself changes."""
        self.loser = None
        one = self.classes[entry.shape]
        one.park += 1
        one.options = ()
        self._block(entry, reserves=False)
        self.barred = True

    def bars(self, entry: Entry) -> bool:
        """Return whether the queue waits behind this one, whom no quota could help."""
        return self.barred and self.blocked is entry

    def unblock(self) -> None:
        """Let the blocked head be evaluated again."""
        self.blocked = None
        self.blocked_reserves = self.barred = False

    def wake_all(self) -> list[Entry]:
        """Wake every class and the blocked head; return the entries set aside, for the caller to place again."""
        self.watches.clear()
        self.unblock()
        for one in self.classes.values():
            one.options = ()
            one.park += 1
            if one.parked:
                one.parked = False
                self._offer(one)
        return list(self.aside.values())

    def in_order(self) -> Iterator[Entry]:
        """Yield all that wait in the order in which they would be served, those set aside last."""
        known = [entry for one in self.classes.values() for entry in one.members.values()]
        known.sort(key=lambda entry: pending_key(entry.priority, entry.timestamp, entry.uid))
        yield from known
        yield from sorted(self.aside.values(), key=lambda one: pending_key(one.priority, one.timestamp, one.uid))
