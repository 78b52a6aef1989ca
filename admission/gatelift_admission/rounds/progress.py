"""One pass over the heads of a tree, as far as it has come: values of `cycle`, which alone changes them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_admission.entries.entry import Entry
from gatelift_admission.preemption.plan import Plan
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.rounds.claims import Claims
from gatelift_admission.rounds.tournament import Contender, winner
from gatelift_admission.state.known import State

BEGINNINGS_MAX = 256
"""Rounds with searches under way between two changes of a tree: more than several queues need to meet in all ways."""


@dataclass(slots=True, eq=False, init=False)
class Nominee:
    """A head and what was found for it; `ticket` tells whether it still stands where it stood."""

    entry: Entry
    ticket: int
    queue: QueueModel
    plan: Plan
    postponed: bool
    """It waits for others to end by themselves, and nothing has changed about that: the plan is the one before."""

    def __init__(self, entry: Entry, ticket: int, queue: QueueModel, plan: Plan, *, postponed: bool = False) -> None:
        """Take what was found for a head."""
        self.entry, self.ticket, self.queue, self.plan, self.postponed = entry, ticket, queue, plan, postponed


@dataclass(slots=True, eq=False, init=False)
class AdmissionRound:
    """One pass over the heads of one tree, possibly spread over several calls."""

    root: str
    built: int
    version: int
    releases: int
    number: int
    """Of the rounds of its tree, while the tree is as it was built."""
    heads: list[tuple[Entry, int, QueueModel]]
    nominees: list[Nominee]
    ordered: bool
    claims: Claims
    lost: list[QueueModel]
    repeated: bool
    """The same heads began at the same flavors before, and nothing came of it: losers wait for a change."""
    progress: bool
    parked: bool
    """An entry was parked in it that was evaluated without the room that the round keeps."""
    thinned: bool
    """An entry of a BestEffortFIFO queue was parked in it, which keeps no room any more: losers may have their turn."""
    anew: bool
    """A StrictFIFO head begins at its first flavor again, once for each state of the tree: losers have another turn."""
    admitted: dict[str, int]
    """Who was admitted in it, and after how many others: nobody else of the round can preempt them, as Kueue's snapshot
    does not have them."""

    def __init__(
        self, root: str, built: int, version: int, releases: int, heads: list[tuple[Entry, int, QueueModel]]
    ) -> None:
        """Begin with the heads of a tree, which has been built, changed and released so often."""
        self.root, self.built, self.version, self.releases, self.heads = root, built, version, releases, heads
        self.nominees, self.lost, self.admitted, self.claims = [], [], {}, Claims()
        self.number = 0
        self.ordered = self.repeated = self.progress = self.parked = self.thinned = self.anew = False


@dataclass(slots=True)
class RoundsBegun:
    """With which heads and flavors rounds of one tree began since it changed last."""

    version: int = -1
    beginnings: set[tuple[tuple[str, int, str], ...]] = field(default_factory=set)

    def again(self, version: int, heads: list[tuple[Entry, int, QueueModel]]) -> bool:
        """Note a round that begins; True if one began like this and the tree is as it was then, or after very many."""
        if self.version != version:
            self.version = version
            self.beginnings.clear()
        if all(not entry.cursor and not entry.overtaken for entry, _, _ in heads):
            return False  # nobody goes on: the rounds of ten thousand heads need not be remembered
        beginning = tuple((entry.uid, entry.ticket, repr((entry.cursor, entry.overtaken))) for entry, _, _ in heads)
        if beginning in self.beginnings or len(self.beginnings) >= BEGINNINGS_MAX:
            return True
        self.beginnings.add(beginning)
        return False


def take_next(state: State, round_: AdmissionRound) -> Nominee:
    """Take out the nominee that goes next: the last one by the order, or the one by what the tree's shares are now."""
    nominees = round_.nominees
    if not state.settings.fair_sharing or len(nominees) == 1:
        return nominees.pop()
    if state.node(nominees[-1].queue.name).parent is None:
        return nominees.pop()
    contenders = [
        Contender(
            node=state.node(one.queue.name),
            usage=one.plan.assignment.usage,
            priority=one.entry.priority,
            timestamp=one.entry.timestamp,
            uid=one.entry.uid,
        )
        for one in nominees
    ]
    return nominees.pop(contenders.index(winner(state.ensure(), contenders)))
