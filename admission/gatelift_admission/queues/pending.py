"""What waits in one ClusterQueue and what becomes of it: who is evaluated next, what sleeps, and what is woken.

When its representative does not fit, a BestEffortFIFO queue parks the whole class; a StrictFIFO queue stops behind its
head. Nothing polls, and ten thousand equal workloads cost one evaluation. A workload whose victims are still leaving
heads its queue (*sticky*). Where an entry or a class stands, and which moves there are, is the table of `standings`.
Neighbours: `classes` keeps the members in order, `watches` finds the classes that a release may help, `heads` takes
heads, `state` feeds and wakes.
"""

from __future__ import annotations

from collections.abc import Collection

from gatelift_admission.entries.entry import Entry
from gatelift_admission.entries.standings import (
    ACTIVE,
    AWAKE,
    BARRED,
    INADMISSIBLE,
    LOOK,
    LOSE,
    PARK,
    RECALLED,
    RESERVING,
    SLEEP,
    WAKE,
    QueueMove,
)
from gatelift_admission.flavors.assignment import Assignment, Option
from gatelift_admission.preemption.oracle import QueueRoom
from gatelift_admission.queues.classes import PendingClasses
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Cell
from gatelift_admission.waking.equals import PendingClass, any_covered, any_free, any_left
from gatelift_admission.waking.kept_quota import Kept
from gatelift_admission.waking.timing import Band
from gatelift_admission.waking.watches import Watches


class PendingQueue(PendingClasses):
    """The waiting workloads of one ClusterQueue."""

    __slots__ = ("idle", "watches")

    def __init__(self, *, strict: bool) -> None:
        """Begin empty."""
        super().__init__(strict=strict)
        self.idle = False
        """The head found last lacks something; it only keeps room for itself (the reserve rule)."""
        self.watches = Watches(self.classes)

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

    def stirs(self) -> bool:
        """Return whether there may be a workload worth evaluating."""
        return bool(self.watches.stirred) or self.head() is not None

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
        self._block(entry, QueueMove.RESERVE)

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
            self._block(entry, QueueMove.RESERVE if one.reserves else QueueMove.BLOCK)
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
            one = self.classes[entry.shape]
            if self._defers(entry, one, room, kept):
                self._sleep(one, QueueMove.DEFER)
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
                self._block(entry, QueueMove.RESERVE if keeps else QueueMove.BLOCK)
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
