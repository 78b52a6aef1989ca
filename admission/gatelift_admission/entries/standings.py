"""Where a waiting workload stands, and what may follow what. Why something happens is decided elsewhere.

Two kinds of things stand somewhere: a workload, and the class of equivalent workloads that it is evaluated with. A
workload in the order of its queue (QUEUED) stands as its class does; each of the others it stands for itself. What may
be so in any standing is none, and stays a fact beside it: who is kept out by the caller (`Entry.on_hold`), what runs
beside its record (`Entry.ghost`), for whom others were preempted (`PendingQueue.sticky`), how far a search for flavors
has come (`Entry.cursor` and what is beside it), what is kept from a class (`PendingClass.withheld`).
Neighbours: `entry` and `equals` carry a standing, `pending` asks for nearly all moves.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final


class QueueStanding(enum.Enum):
    """Where a workload, or a class of equivalent ones, stands; the value is what people read."""

    __hash__ = object.__hash__  # members are singletons; the one of Enum is Python code on the hot path

    # Of a workload.
    OUT = "in no queue"
    FAULTY = "in no queue: it raised an exception as it was looked at"
    INADMISSIBLE = "in its queue, not in its order: kept out, backing off, or nothing could help it"
    QUEUED = "in the order of its queue"
    LOST = "in the order of its queue: it lost to another one in the last round, and is evaluated at once again"
    BLOCKED = "heads its queue and was evaluated in vain: all behind it wait"
    RESERVING = "heads its queue and keeps room for itself in each round: all behind it wait"
    BARRED = "heads its queue and no quota can help it: all behind it wait"
    # Of a class.
    ACTIVE = "has its turn when it heads its queue"
    RECALLED = "as ACTIVE: it was deferred, and is not again before it was looked at"
    PARKED = "waits for what it lacks"
    DEFERRED = "waits for its turn: who sleeps and goes before it fits"


class QueueMove(enum.Enum):
    """What happens to a workload or a class of them."""

    __hash__ = object.__hash__

    ENTER = "it joins its equals in a queue"
    KEEP_OUT = "it is put into its queue, out of the order"
    LEAVE = "it is taken out of its queue"
    RAISE = "it raised an exception as it was looked at"
    TAKE_IN = "its object is taken in again"
    ANEW = "its queue is made anew, wherever the exception of another one has left it"
    LOSE = "another one took the room or the victims in the same round"
    BLOCK = "it does not fit, and nobody behind it has a turn before it has"
    RESERVE = "the same, and its room is kept"
    BAR = "the same, and no quota can help it"
    RESUME = "it is evaluated again, or no more the one that all wait behind"
    PARK = "it was evaluated in vain"
    SLEEP = "it waits again, unevaluated"
    DEFER = "it waits for those who go before it"
    WAKE = "what it lacks may be there, or it is its turn"
    LOOK = "one of it was looked at, or has gone"


_S, _M = QueueStanding, QueueMove
_ANYWHERE: Final[dict[QueueMove, QueueStanding]] = {_M.RAISE: _S.FAULTY, _M.ANEW: _S.OUT}

TABLE: Final[dict[QueueStanding, dict[QueueMove, QueueStanding]]] = {
    _S.OUT: {**_ANYWHERE, _M.ENTER: _S.QUEUED, _M.KEEP_OUT: _S.INADMISSIBLE},
    _S.FAULTY: {_M.RAISE: _S.FAULTY, _M.TAKE_IN: _S.OUT, _M.RESUME: _S.FAULTY},
    _S.INADMISSIBLE: {**_ANYWHERE, _M.LEAVE: _S.OUT},
    _S.QUEUED: {
        **_ANYWHERE,
        _M.LEAVE: _S.OUT,
        _M.LOSE: _S.LOST,
        _M.BLOCK: _S.BLOCKED,
        _M.RESERVE: _S.RESERVING,
        _M.BAR: _S.BARRED,
    },
    _S.LOST: {**_ANYWHERE, _M.LOSE: _S.LOST, _M.RESUME: _S.QUEUED},
    _S.BLOCKED: {**_ANYWHERE, _M.RESUME: _S.QUEUED, _M.RESERVE: _S.RESERVING, _M.BAR: _S.BARRED},
    _S.RESERVING: {**_ANYWHERE, _M.RESUME: _S.QUEUED, _M.RESERVE: _S.RESERVING, _M.BAR: _S.BARRED},
    _S.BARRED: {**_ANYWHERE, _M.RESUME: _S.QUEUED},
    _S.ACTIVE: {_M.PARK: _S.PARKED, _M.SLEEP: _S.PARKED, _M.DEFER: _S.DEFERRED},
    _S.RECALLED: {_M.PARK: _S.PARKED, _M.SLEEP: _S.DEFERRED, _M.LOOK: _S.ACTIVE},
    _S.PARKED: {_M.PARK: _S.PARKED, _M.WAKE: _S.ACTIVE, _M.LOOK: _S.PARKED},
    _S.DEFERRED: {_M.PARK: _S.PARKED, _M.WAKE: _S.RECALLED, _M.LOOK: _S.PARKED},
}
"""A missing entry is a mistake of ours: `Stander.move` raises, and nothing was changed."""

# The members by which the engine asks for each workload: an attribute of an enumeration costs more than the rest of a
# question or a move, since Python looks for it by code of its class. Each is Final, which compiled code reads at once.
FAULTY: Final = QueueStanding.FAULTY
INADMISSIBLE: Final = QueueStanding.INADMISSIBLE
RESERVING: Final = QueueStanding.RESERVING
BARRED: Final = QueueStanding.BARRED
ACTIVE: Final = QueueStanding.ACTIVE
RECALLED: Final = QueueStanding.RECALLED
ENTER: Final = QueueMove.ENTER
LEAVE: Final = QueueMove.LEAVE
LOSE: Final = QueueMove.LOSE
RESUME: Final = QueueMove.RESUME
BLOCK: Final = QueueMove.BLOCK
RESERVE: Final = QueueMove.RESERVE
SLEEP: Final = QueueMove.SLEEP
DEFER: Final = QueueMove.DEFER
WAKE: Final = QueueMove.WAKE
PARK: Final = QueueMove.PARK
LOOK: Final = QueueMove.LOOK

OF_CLASSES: Final = (QueueStanding.ACTIVE, QueueStanding.RECALLED, QueueStanding.PARKED, QueueStanding.DEFERRED)
"""What only a class stands; all others are of a workload."""
AWAKE: Final[tuple[QueueStanding, ...]] = (ACTIVE, RECALLED)
"""Classes of which one may have a turn. A tuple: members of an enumeration are found by identity; and of any length,
since compiled code makes one of known length anew each time that it is asked for a member."""


class IllegalQueueMoveError(Exception):
    """A move for which the standing has no entry in the table."""


@dataclass(slots=True, eq=False)
class Stander:
    """Something that stands somewhere."""

    standing: QueueStanding = field(default=QueueStanding.OUT, init=False)
    """Only `move` changes it."""

    def move(self, move: QueueMove) -> None:
        """Stand elsewhere. Raises IllegalQueueMoveError, and changes nothing, where the table has no entry."""
        try:
            self.standing = TABLE[self.standing][move]
        except KeyError:
            raise IllegalQueueMoveError(
                f"who stands {self.standing.name} cannot {move.name}: {self.standing.value}; {move.value}"
            ) from None
