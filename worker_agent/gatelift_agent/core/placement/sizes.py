"""The size of elastic work at the agent (KEP-77): its state table, and what is known of it. Rules: Size 1 to 9.

Beside the placement's own table (`placements`), for one that was committed with a size or found with a mark. `opened`
are slots: a pod that ended is replaced in one, whatever has become of the session, and no other is opened but by a word
of the present one (Size 9). Neighbours: `advancing.sizing` sets the object to it, `advancing.gates` lets pods go,
`session.sizes` takes what the manager says.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatelift_kinds.shared.sizes import Size, SizeMark
from gatelift_wire.values.messages import PodSetRequest

WRITTEN_MAX = 64
"""Sizes that were asked for, none of which was seen to land: each is another word of the manager, and another try."""


class SizeState(enum.Enum):
    """Where the size of a placement stands."""

    __hash__ = object.__hash__

    UNCONFIRMED = "Unconfirmed"
    """A number is known, and not confirmed in this session: slots that are open are filled again, none is opened."""
    SETTING = "Setting"
    """Taken; the patch of the object with its mark has not landed."""
    SET = "Set"
    """Slots may be opened up to the counts."""
    ANSWERED = "Answered"
    """And it was said, in this session, that no more can run."""
    STOPPING = "Stopping"
    """The placement ends: no size is taken, and nothing is let go."""


class SizeMove(enum.Enum):
    """What happens to a size."""

    TAKE = "a higher number was said"
    CONFIRM = "its own number was said"
    LANDED = "the object bears its mark"
    ANSWERED = "the manager was told that no more can run"
    NEW_SESSION = "a session began that is no resumed one"
    STOP = "the placement ends"
    GO_ON = "what was to end goes on"


_ANY = frozenset(SizeState)
_STAYS = {
    SizeMove.LANDED: _ANY - {SizeState.SETTING},
    SizeMove.ANSWERED: _ANY - {SizeState.SET},
    SizeMove.GO_ON: _ANY - {SizeState.STOPPING},
    SizeMove.CONFIRM: _ANY - {SizeState.UNCONFIRMED},
    SizeMove.TAKE: frozenset({SizeState.STOPPING}),
    SizeMove.NEW_SESSION: frozenset({SizeState.STOPPING}),
}
_BECOMES = {
    SizeMove.TAKE: SizeState.SETTING,
    SizeMove.CONFIRM: SizeState.SETTING,
    SizeMove.LANDED: SizeState.SET,
    SizeMove.ANSWERED: SizeState.ANSWERED,
    SizeMove.NEW_SESSION: SizeState.UNCONFIRMED,
    SizeMove.STOP: SizeState.STOPPING,
    SizeMove.GO_ON: SizeState.UNCONFIRMED,
}
TABLE: dict[SizeState, dict[SizeMove, SizeState]] = {
    state: {move: state if state in _STAYS.get(move, ()) else _BECOMES[move] for move in SizeMove}
    for state in SizeState
}
"""Total: every move has an entry in every state, its own state where it changes nothing."""


@dataclass(slots=True, kw_only=True)
class GateLift:
    """A pod of elastic work whose gate we asked to be taken off: it has a slot, whatever came of that (Size 7).

    The write names the version that was seen, so it is over with what it may do once the pod is seen in another one.
    `asked`: it is under way. `in_doubt`: one of them had no known outcome; the next one is not before `again_at`.
    `since`: when it was seen to wait while its size was known.
    """

    pod_set: str
    version: str
    asked: bool = True
    in_doubt: bool = False
    attempts: int = 0
    again_at: float = 0.0
    since: float = 0.0


@dataclass(slots=True, kw_only=True)
class SizeHold:
    """Room that is held for a growth which was offered: the size, all of its pods, and until when."""

    number: int
    pod_sets: tuple[PodSetRequest, ...]
    until: float


@dataclass(slots=True, kw_only=True)
class Sizing:
    """The size of one placement. `number` 0: the mark that was found cannot be read, and nothing of it is known."""

    number: int
    counts: dict[str, int]
    state: SizeState = SizeState.UNCONFIRMED
    confirmed_session: int = 0
    """The session in which its number was said last."""
    opened: dict[str, int] = field(default_factory=dict)
    """Slots in which a pod was let go, by pod set: never more than the counts."""
    landed: SizeMark | None = None
    """The mark that the object was seen with and that is ours; `written`: sizes that were asked for since."""
    written: dict[int, Mapping[str, int]] = field(default_factory=dict)
    lifts: dict[str, GateLift] = field(default_factory=dict)
    """By the pod's UID."""
    rests: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Pods that could not be let go, by UID: how often, and until when another one has their turn."""
    gated: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Pods that wait at the gate, by UID: the number that was known then, and since when they wait."""
    ended_before: dict[str, tuple[int, int]] | None = None
    """How many pods had succeeded and failed when the size was taken; None: not known yet."""
    drained: tuple[tuple[str, int], ...] | None = None
    """What the manager was told that is in the way, in this session."""
    refused: str = ""
    """What the manager was told of why it cannot be carried out."""
    waits_for_room: bool = False
    """It asks for more than before, and the remote admission has not granted that yet."""
    hold: SizeHold | None = None
    resized_unseen: bool = False
    """It was found at a start, and is not the first size: pods above one of before may have vanished unseen."""

    @property
    def size(self) -> Size:
        """Return number and counts."""
        return Size(number=self.number, counts=self.counts)

    def move(self, move: SizeMove) -> None:
        """Follow the table."""
        self.state = TABLE[self.state][move]

    def take(self, number: int, counts: Mapping[str, int]) -> None:
        """Have another size from now on; what it grants less than before is open no longer."""
        self.number, self.counts = number, dict(counts)
        self.opened = {name: min(self.opened.get(name, 0), count) for name, count in counts.items()}
        self.move(SizeMove.TAKE)
        self.ended_before, self.drained, self.refused = None, None, ""

    def waits(self, uids: Iterable[str], now: float) -> None:
        """Take which pods wait: each since it is seen to, and since the present size is known."""
        self.gated = {
            uid: known if (known := self.gated.get(uid)) is not None and known[0] == self.number else (self.number, now)
            for uid in uids
        }

    def writes(self) -> None:
        """Take that the object is asked to be set to it; of older sizes that were asked for the last few are known."""
        self.written.pop(self.number, None)
        self.written[self.number] = dict(self.counts)
        while len(self.written) > WRITTEN_MAX:
            del self.written[next(iter(self.written))]

    def sees(self, mark: SizeMark) -> bool:
        """Take the mark that the object bears; False where it is none of ours."""
        known = self.landed is not None and mark == self.landed
        counts = self.counts if mark.number == self.number else self.written.get(mark.number)
        if not known and counts != mark.counts:
            return False
        self.landed = mark
        self.written = {number: each for number, each in self.written.items() if number > mark.number}
        return True
