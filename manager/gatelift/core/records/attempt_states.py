"""The states of an attempt, and what may follow what. Why something happens is decided elsewhere.

For what comes from the wire the table is total (rule P8): no entry means a typed no-op. For internal events a missing
entry is a mistake of ours: it raises and changes nothing.
"""

from __future__ import annotations

import enum


class AttemptState(enum.StrEnum):
    """Where an attempt stands."""

    PENDING = "Pending"
    RESERVED = "Reserved"
    OFFERED = "Offered"
    CHOSEN = "Chosen"
    PLACED = "Placed"
    RUNNING = "Running"
    ENDING = "Ending"
    ENDED = "Ended"
    LOST = "Lost"


class Internal(enum.StrEnum):
    """What the manager does itself. Each must have an entry in the table for the state it happens in."""

    RESERVE = "quota was reserved"
    UNRESERVE = "the reservation was given back"
    OFFER = "offers were sent"
    UNOFFER = "no bid can be used"
    WRITTEN = "the record names the winner"
    ADMIT = "admitted without a placement"
    END = "it has to stop"
    CLOSE = "it ended before anything was committed"
    LOSE = "the cluster is lost"
    FENCE = "a person said that nothing of it runs"


class Wire(enum.StrEnum):
    """What a cluster says. Total: without an entry nothing changes."""

    BID = "bid"
    APPLIED = "applied"
    LIFTED = "lifted"
    FINISHED = "finished"
    STOPPED = "stopped"
    REFUSED = "refused"
    EVICTED = "evicted"
    ABSENT = "absent from the inventory, by rule R4"
    LISTED_HELD = "listed, held only"
    LISTED_GATED = "listed, not lifted"
    LISTED_LIFTED = "listed, lifted"


class IllegalTransition(Exception):  # noqa: N818 - the name says what happened, as in the state tables of the design
    """An internal event for which the state has no entry. Nothing was changed."""

    def __init__(self, state: AttemptState, event: Internal) -> None:
        super().__init__(f"attempt in state {state.value} has no entry for: {event.value}")
        self.state = state
        self.event = event


_S = AttemptState
_OVER: dict[Internal | Wire, AttemptState] = {
    Wire.FINISHED: _S.ENDED,
    Wire.STOPPED: _S.ENDED,
    Wire.REFUSED: _S.ENDED,
    Wire.EVICTED: _S.ENDED,
}
_PLACED: dict[Internal | Wire, AttemptState] = {**_OVER, Wire.ABSENT: _S.ENDED}

TABLE: dict[AttemptState, dict[Internal | Wire, AttemptState]] = {
    _S.PENDING: {
        Internal.RESERVE: _S.RESERVED,
        # A new leader finds the record of a placement: the attempt starts where the record says.
        Internal.WRITTEN: _S.CHOSEN,
        Internal.ADMIT: _S.RUNNING,
        Internal.CLOSE: _S.ENDED,
    },
    _S.RESERVED: {
        Internal.UNRESERVE: _S.PENDING,
        Internal.OFFER: _S.OFFERED,
        # A write of which nobody could tell turns out to have happened.
        Internal.WRITTEN: _S.CHOSEN,
        Internal.ADMIT: _S.RUNNING,
        Internal.CLOSE: _S.ENDED,
    },
    _S.OFFERED: {
        Wire.BID: _S.OFFERED,
        Internal.OFFER: _S.OFFERED,
        Internal.UNOFFER: _S.RESERVED,
        Internal.WRITTEN: _S.CHOSEN,
        Internal.CLOSE: _S.ENDED,
    },
    _S.CHOSEN: {
        Wire.APPLIED: _S.PLACED,
        Wire.LIFTED: _S.RUNNING,
        Wire.LISTED_HELD: _S.CHOSEN,
        Wire.LISTED_GATED: _S.PLACED,
        Wire.LISTED_LIFTED: _S.RUNNING,
        Internal.END: _S.ENDING,
        Internal.LOSE: _S.LOST,
        **_PLACED,
    },
    _S.PLACED: {
        Wire.LIFTED: _S.RUNNING,
        Wire.LISTED_GATED: _S.PLACED,
        Wire.LISTED_LIFTED: _S.RUNNING,
        Internal.END: _S.ENDING,
        Internal.LOSE: _S.LOST,
        **_PLACED,
    },
    _S.RUNNING: {
        Wire.LISTED_GATED: _S.PLACED,
        Wire.LISTED_LIFTED: _S.RUNNING,
        Internal.END: _S.ENDING,
        # Admitted without a placement: there is nothing to stop.
        Internal.CLOSE: _S.ENDED,
        Internal.LOSE: _S.LOST,
        **_PLACED,
    },
    _S.ENDING: {
        Wire.LISTED_HELD: _S.ENDING,
        Wire.LISTED_GATED: _S.ENDING,
        Wire.LISTED_LIFTED: _S.ENDING,
        Internal.LOSE: _S.LOST,
        **_PLACED,
    },
    _S.LOST: {
        Wire.LISTED_HELD: _S.CHOSEN,
        Wire.LISTED_GATED: _S.PLACED,
        Wire.LISTED_LIFTED: _S.RUNNING,
        Internal.FENCE: _S.ENDED,
        **_PLACED,
    },
    _S.ENDED: {},
}

LIVE = frozenset({_S.CHOSEN, _S.PLACED, _S.RUNNING, _S.ENDING, _S.LOST})
"""States in which something of the placement may exist at a cluster (rule P7: the record says placed or ending)."""

CHOOSING = frozenset({_S.RESERVED, _S.OFFERED})
"""States in which quota is reserved and no cluster has won."""
NO_WINNER = CHOOSING | {_S.PENDING}

UNLIFTED = frozenset({_S.CHOSEN, _S.PLACED})
"""States in which the agent waits for the manager's word in each new session (R1)."""


def follow(state: AttemptState, event: Internal | Wire) -> AttemptState | None:
    """Return the next state; None when a message from the wire changes nothing here.

    Raises IllegalTransition for an internal event without an entry.
    """
    after = TABLE[state].get(event)
    if after is None and isinstance(event, Internal):
        raise IllegalTransition(state, event)
    return after
