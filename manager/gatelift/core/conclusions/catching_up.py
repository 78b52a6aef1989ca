"""What the links said and nobody has taken yet: in order, of each cluster for itself.

A large inventory is compared over many calls. What its cluster says meanwhile waits behind it; what the others say is
taken, and all work goes on: the cluster itself counts as closed until it is compared (`Core.sessions`). A session that
ends takes its inventory with it, since the next one begins with another. Neighbours: `machine` (owns this), `upcalls`
(takes what is no inventory), `inventories`.
"""

from __future__ import annotations

from collections import deque

from gatelift.core.api.events import NOT_TAKEN, UNPROVED, BreakOff, Event
from gatelift.core.clusters.link_values import LinkBroken, PlacementsInventoried, Upcall
from gatelift.core.conclusions import recovery_lists
from gatelift.core.conclusions.inventories import Comparison
from gatelift.core.conclusions.upcalls import take
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import few_lines
from gatelift.core.state.core import DOUBTS, Core

BEHIND_PER_CALL = 64
"""Words taken in one call that have waited behind an inventory, at 20 to 60 us each."""


class CatchingUp:
    """Words of clusters that wait."""

    __slots__ = ("_behind", "_compares", "_comparisons", "_core", "_new")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._new: deque[Upcall] = deque()
        self._behind: dict[str, deque[Upcall]] = {}
        self._comparisons: dict[str, Comparison] = {}
        self._compares = True

    def __bool__(self) -> bool:
        """Say whether anything waits."""
        return bool(self._new or self._behind)

    def pass_on(self, event: Event, now: float) -> None:
        """Hand an event to the links and take what they have to say."""
        outcome = self._core.links.handle(event, now, record_revision=self._core.record_revision)
        self._core.command(*outcome.commands)
        self._new.extend(outcome.upcalls)

    def go_on(self, now: float) -> None:
        """Take all that waits, but of inventories a bounded part: of another cluster at each call."""
        core = self._core
        self._compares = True
        progress = core.caution.recovery
        if progress.again:
            self._new.extend(progress.take_again())
        for cluster in tuple(self._behind):
            if not self._compares:
                break
            waiting = self._behind.pop(cluster)
            if not self._take(core, waiting, now):
                self._behind[cluster] = waiting
                self._compares = False
        if progress.again:
            self._new.extend(progress.take_again())
        while self._new and not core.stands_still:
            head = self._new.popleft()
            if head.cluster in self._behind:
                self._put_behind(core, head)
            elif not self._heard(core, head, now):
                self._behind[head.cluster] = deque((head,))
                self._compares = False
            if progress.again:
                self._new.extend(progress.take_again())

    def _take(self, core: Core, waiting: deque[Upcall], now: float) -> bool:
        """Take what waits behind an inventory, and that first; False when some is left."""
        for _ in range(min(BEHIND_PER_CALL, len(waiting))):
            if core.stands_still or not self._heard(core, waiting[0], now):
                return False
            waiting.popleft()
        return not waiting

    def _put_behind(self, core: Core, word: Upcall) -> None:
        """Let a word wait. The end of a session ends the comparison of what was listed in it."""
        waiting, cluster = self._behind[word.cluster], word.cluster
        if isinstance(word, LinkBroken) and _is_of(waiting[0], word.session):
            waiting.popleft()
            if self._comparisons.pop(cluster, None) is not None:
                few_lines.end(core, cluster)
            core.sessions.compared(cluster)
            core.agenda.mark(DOUBTS)  # what waited for that comparison waits for nothing now
        waiting.append(word)

    def _heard(self, core: Core, word: Upcall, now: float) -> bool:
        """Take one word; False when it needs another call."""
        done = True
        with Boundary(self._break_off, core, word.cluster, now=now):
            if isinstance(word, PlacementsInventoried):
                done = self._compared(core, word)
            else:
                take(core, word, now)
        for cluster in core.sessions.take_unproved():
            self.pass_on(BreakOff(cluster=cluster, text=UNPROVED), now)
        return done

    def _compared(self, core: Core, upcall: PlacementsInventoried) -> bool:
        cluster = upcall.cluster
        if not self._compares:
            core.sessions.compare(cluster)  # it is told nothing until its turn has come, either
            return False
        if cluster not in self._comparisons:
            core.sessions.resync(cluster, upcall.session)
            self._comparisons[cluster] = Comparison(core, upcall)
        if not self._comparisons[cluster].step(core):
            return False
        del self._comparisons[cluster]
        recovery_lists.listed(core, upcall)
        return True

    def _break_off(self, core: Core, cluster: str, error: Exception, now: float) -> None:
        """End the session of a cluster whose word could not be taken: the next one begins with an inventory."""
        self._comparisons.pop(cluster, None)
        containment.word_failed(core, cluster, error, now)
        core.sessions.compared(cluster)
        self.pass_on(BreakOff(cluster=cluster, text=NOT_TAKEN), now)


def _is_of(word: Upcall, session: int) -> bool:
    return isinstance(word, PlacementsInventoried) and word.session == session
