"""Where the size of what is placed stands, and what may follow what. Why something happens is decided elsewhere.

What a cluster says is total (P8): an answer that names another number, or that comes when all of it ends, changes
nothing (Size 5). What the record says of a size is the API's; whether it was answered is kept for one session. Only
this module writes it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift_kinds.shared.sizes import FIRST_NUMBER

AGAIN_SECONDS = 1.0
"""A size that was refused is said again after so long, twice as long each time: that needs no write."""


class ChainSizeState(enum.StrEnum):
    """Where a size stands."""

    SETTLED = "Settled"
    GROWING = "Growing"
    LOWERING = "Lowering"
    ENDING = "Ending"


class SizeEvent(enum.Enum):
    """What may happen to a size."""

    GROW = "a later slice has become the record"
    LOWER = "a lower count is written"
    ANSWERED = "no more than its counts can run, says its cluster"
    END = "all of it ends"


_S, _E = ChainSizeState, SizeEvent
_RESIZED = {_E.GROW: _S.GROWING, _E.LOWER: _S.LOWERING, _E.END: _S.ENDING}
TABLE: dict[ChainSizeState, dict[SizeEvent, ChainSizeState]] = {
    _S.SETTLED: {**_RESIZED, _E.ANSWERED: _S.SETTLED},
    _S.GROWING: {**_RESIZED, _E.ANSWERED: _S.SETTLED},
    # It is settled with the write that lowers, which follows.
    _S.LOWERING: {**_RESIZED, _E.ANSWERED: _S.SETTLED},
    _S.ENDING: {},
}


class SizeRefusal(NamedTuple):
    """That a cluster does not carry a size out: why, since when, how often it said so, and when it is asked again."""

    number: int
    why: str
    since: float
    times: int
    again_at: float


class LateSize(NamedTuple):
    """A growth whose pods were not ready in time: what was wanted, how often, and until when it is not tried again."""

    number: int
    wanted: dict[str, int]
    times: int
    until: float


class ListedSize(NamedTuple):
    """A size with which a cluster has listed a placement, and the pods that it grants by pod set."""

    number: int
    granted: dict[str, int]


@dataclass(slots=True)
class PlacedSize:
    """The size of one placement: its number, and in which session its cluster has answered just that (0: in none).

    `said_number`, `said_session`: what its cluster was told last. `refused`: that it does not carry out its number.
    `ahead`: what it has listed that is later than the record was then. `remaining`: what is in the way of its answer.
    `carried`: the last size that it has as far as anybody here knows, with the counts by which it knows that number.
    """

    state: ChainSizeState = ChainSizeState.SETTLED
    number: int = FIRST_NUMBER
    answered_in: int = 0
    said_number: int = 0
    said_session: int = 0
    refused: SizeRefusal | None = None
    ahead: ListedSize | None = None
    carried: ListedSize | None = None
    waits_since: float | None = None
    """Of what is to grow: since when its cluster keeps it waiting."""
    remaining: dict[str, int] = field(default_factory=dict)
    counts_of: dict[str, int] = field(default_factory=dict)
    given_of: dict[str, int] = field(default_factory=dict)
    """How many pods were granted, by pod set, when its cluster counted them last, and when some were given back last:
    of fewer, fewer of those that are over are free."""

    ready_number: int = 0
    """The number of which all pods were ready at once; 0 where none was, as far as this leader has seen."""
    unready: tuple[int, float] = (0, 0.0)
    """A number of which not all pods are ready, and since when."""
    late: LateSize | None = None

    def follows(self, number: int, *, lowers: bool) -> None:
        """Take the number that the record has; it only goes up (Size 4). `lowers`: more is charged than it asks for."""
        if number <= self.number or self.state is ChainSizeState.ENDING:
            return
        self.number, self.answered_in, self.refused, self.remaining = number, 0, None, {}
        self.state = TABLE[self.state][SizeEvent.LOWER if lowers else SizeEvent.GROW]

    def answer(self, number: int, session: int) -> bool:
        """Take that a cluster says of a size that no more can run; False where that changes nothing."""
        after = TABLE[self.state].get(SizeEvent.ANSWERED)
        if after is None or number != self.number or session <= self.answered_in:
            return False
        self.state, self.answered_in, self.refused, self.remaining = after, session, None, {}
        if not self.is_ahead(number):
            self.ahead = None
        return True

    def is_answered(self, number: int, session: int) -> bool:
        """Say whether just this size was answered in just this session: what was answered before says nothing now."""
        return (
            session > 0
            and self.state is not ChainSizeState.ENDING
            and (number, session) == (self.number, self.answered_in)
        )

    def ends(self) -> None:
        """Take that all of it ends: no size is said any more, and no answer counts."""
        self.state = TABLE[self.state].get(SizeEvent.END, ChainSizeState.ENDING)

    # --- what its cluster is told, and says of it -------------------------------------------------------------------

    def says(self, number: int, session: int, counts: dict[str, int] | None = None) -> None:
        """Take that its cluster was told this number in this session, with these counts if with any (Size 4)."""
        if number and counts is not None and (self.carried is None or number > self.carried.number):
            self.carried = ListedSize(number, counts)
        self.said_number, self.said_session = number, session
        if self.refused is not None:
            pause = AGAIN_SECONDS * 2.0 ** min(self.refused.times, 16)
            self.refused = self.refused._replace(again_at=self.refused.again_at + pause)

    def counts_at(self, number: int) -> dict[str, int] | None:
        """Return what an answer of its cluster to this number is about; None where nobody here knows."""
        return self.carried.granted if self.carried is not None and self.carried.number == number else None

    def is_said(self, number: int, session: int) -> bool:
        """Say whether its cluster was told this number in this session."""
        return (number, session) == (self.said_number, self.said_session)

    def is_refused(self, number: int, why: str, now: float, most: float) -> bool:
        """Take that its cluster does not carry this number out; True where that is news. `most`: the longest pause."""
        before = self.refused if self.refused is not None and self.refused.number == number else None
        times, since = (before.times + 1, before.since) if before is not None else (0, now)
        again_at = now + min(AGAIN_SECONDS * 2.0 ** min(times, 16), most)
        self.refused = SizeRefusal(number, why, since, times, again_at)
        return before is None or before.why != why

    def counts(self, granted: dict[str, int]) -> None:
        """Take that its cluster counts pods, of so many that are granted."""
        self.counts_of = granted

    def gives_of(self, granted: dict[str, int]) -> None:
        """Take that what is given back is counted of so many."""
        self.given_of = granted

    def waits(self, now: float) -> float:
        """Take that the cluster of its chain keeps it waiting; return since when."""
        if self.waits_since is None:
            self.waits_since = now
        return self.waits_since

    def waits_no_more(self) -> None:
        """Take that it does not."""
        self.waits_since = None

    def drains(self, remaining: tuple[tuple[str, int], ...]) -> None:
        """Take how many pods are in the way of its answer, by pod set."""
        self.remaining = dict(remaining)

    def lists(self, number: int, granted: tuple[tuple[str, int], ...], *, above: int) -> None:
        """Take the size that it is listed with, and what that grants; `above`: the number that its record has."""
        self.carried = ListedSize(number, dict(granted)) if number else self.carried
        self.ahead = self.carried if number > above else None

    def is_ahead(self, number: int) -> bool:
        """Say whether its cluster has listed a later size than this."""
        return self.ahead is not None and self.ahead.number > number

    # --- pods that are to be ready in time ---------------------------------------------------------------------------

    def is_ready(self, number: int, counts: Mapping[str, int]) -> None:
        """Take that all pods of this number are ready, which are so many."""
        self.ready_number, self.unready = number, (0, 0.0)
        if self.late is not None and self.late.wanted == counts:
            self.late = None

    def was_ready(self, number: int) -> bool:
        """Say whether all pods of this number were ready at once."""
        return self.ready_number == number

    def is_late_since(self, number: int, now: float) -> float:
        """Take that not all pods of this number are ready; return since when."""
        if self.unready[0] != number:
            self.unready = number, now
        return self.unready[1]

    def gives_up(self, number: int, wanted: Mapping[str, int], until: float) -> None:
        """Take that the pods of this number were not ready in time, and nothing like it is tried before `until`."""
        self.late = LateSize(number, dict(wanted), self.times_late(wanted) + 1, until)

    def is_given_up(self, number: int) -> bool:
        """Say whether the pods of this number were not ready in time."""
        return self.late is not None and self.late.number == number

    def times_late(self, wanted: Mapping[str, int]) -> int:
        """Return how often what is wanted was late."""
        return self.late.times if self.late is not None and self.late.wanted == wanted else 0

    def rests_until(self, wanted: Mapping[str, int]) -> float:
        """Return until when what is wanted is not tried again."""
        return self.late.until if self.late is not None and self.late.wanted == wanted else 0.0
