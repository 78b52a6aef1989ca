"""Where the size of what is placed stands, and what may follow what. Why something happens is decided elsewhere.

What a cluster says is total (P8): an answer that names another number, or that comes when all of it ends, changes
nothing (Size 5). What the record says of a size is the API's; whether it was answered is kept for one session. Only
this module writes it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gatelift_kinds.shared.sizes import FIRST_NUMBER


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


@dataclass(slots=True)
class PlacedSize:
    """The size of one placement: its number, and in which session its cluster has answered just that (0: in none)."""

    state: ChainSizeState = ChainSizeState.SETTLED
    number: int = FIRST_NUMBER
    answered_in: int = 0

    def follows(self, number: int, *, lowers: bool) -> None:
        """Take the number that the record has; it only goes up (Size 4). `lowers`: more is charged than it asks for."""
        if number <= self.number or self.state is ChainSizeState.ENDING:
            return
        self.number, self.answered_in = number, 0
        self.state = TABLE[self.state][SizeEvent.LOWER if lowers else SizeEvent.GROW]

    def answer(self, number: int, session: int) -> bool:
        """Take that a cluster says of a size that no more can run; False where that changes nothing."""
        after = TABLE[self.state].get(SizeEvent.ANSWERED)
        if after is None or number != self.number or session <= self.answered_in:
            return False
        self.state, self.answered_in = after, session
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
