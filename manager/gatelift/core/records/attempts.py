"""The attempt: one admission cycle of one Workload, and the table of its states. Neighbours: `reconcile`, `dispatch`.

The table says what may follow what; why something happens is decided elsewhere. For what comes from the wire the table
is total (rule P8): no entry means a typed no-op. For internal events a missing entry is a mistake of ours: it raises
and changes nothing.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift.core.api.agenda import Key, Look
from gatelift_admission.values.model import Reserve
from gatelift_kinds.pod_trouble import Trouble
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.kueue import Admission, PodSet
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Bid, CountsReport, DisconnectPolicy, FailedContainer, ObjectReport


class AttemptState(enum.StrEnum):
    """Where an attempt stands (design 6)."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why an attempt has to stop; `evict` false: nothing is written of it, the object goes or is finished."""

    reason: str
    message: str
    evict: bool = True
    preempted: str = ""
    """Reason of the condition Preempted, "" if nobody else took its place."""
    cause: str = ""
    """What is behind the reason, where Kueue counts that apart (a time-out of start or of recovery)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a placement ended, by the agent's, the inventory's or a person's word."""

    how: Wire | Internal
    reason: str = ""
    message: str = ""
    succeeded: bool = False
    cluster: str = ""
    failed: FailedContainer | None = None
    """What its cluster says of the container that failed first; it is in `message` as well."""
    kept_seconds: float = 0.0
    """For how long what failed can be looked at there; it is in `message` as well."""


@dataclass(slots=True, kw_only=True)
class OfferRound:
    """Offers that are out, and what came back. `asked` are all clusters asked in this reservation."""

    offered: dict[str, int] = field(default_factory=dict)  # cluster -> session in which the offer went
    bids: dict[str, Bid] = field(default_factory=dict)
    bid_at: dict[str, float] = field(default_factory=dict)
    sent_at: dict[str, float] = field(default_factory=dict)
    alone: bool = False  # the first asked was asked alone, though there are others
    looks: int = 0  # how often the time limit for answers was set
    looked_at: float = 0.0
    asked: set[str] = field(default_factory=set)
    since: float = 0.0
    deadline: float = 0.0
    patient_until: float = 0.0


class Asked(NamedTuple):
    """A reservation that was asked to be written."""

    epoch: int
    admission: Admission


ASKED_MAX = 8
"""Reservations on one version of a Workload that are remembered: each was given up after ten seconds, unheard of."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """All that the manager keeps in memory of one attempt; a restart rebuilds it from the record and inventories.

    `written_revision`: the machine's record revision at which the winner was written (rule R4). `heard_session`: the
    session in which the agent was told to go on (Commit or Confirm), 0 if not yet. `listed_session`: the last one in
    which its inventory had it. `wants_objects`: the agent had not
    made all objects when it listed the placement, so it needs the Commit with their templates once more. `waiting`
    (reason, message): no cluster can take it, the reservation is on its way back. `epoch_spent`: an agent knows this
    epoch as used (R5), so it must be raised. `reserved_for`: the pod sets that quota was reserved for, None where the
    reservation was read from the record. `why_not`: cluster to reason. Times are monotonic seconds.
    """

    uid: str
    workload: ObjectKey
    epoch: int
    state: AttemptState = AttemptState.PENDING
    cluster: str = ""
    reserve: Reserve | None = None
    reserved_for: tuple[PodSet, ...] | None = None
    reserved_at: float = 0.0
    asked_on: str = ""  # the version on which its reservations were last asked to be written
    asked_for: tuple[Asked, ...] = ()
    round: OfferRound | None = None
    written_revision: int = 0
    policy: DisconnectPolicy = DisconnectPolicy.WAIT
    heard_session: int = 0
    listed_session: int = 0
    listed_over: bool = False  # its cluster has listed it as over, and is to report how
    commit_session: int = 0
    commit_sequence: int = 0
    wants_objects: bool = False
    wants_word: bool = False  # it runs, and its agent has something to start again: it is confirmed as what waits is
    stop_session: int = 0
    forgotten: bool = False
    unreported: bool = False  # its end was seen at the user's own object, and its cluster has not told it yet
    ending: Ending | None = None
    outcome: Outcome | None = None
    reports: dict[str, ObjectReport] = field(default_factory=dict)
    counts: CountsReport | None = None
    unshown_since: float = 0.0
    reported_at: float = 0.0  # when its cluster last told how an object of it is
    trouble: Trouble | None = None  # of its pods, as its cluster last said
    trouble_since: float = 0.0  # since when the Workload says something else of it
    withdrawn: dict[str, int] = field(default_factory=dict)  # cluster -> session in which its hold was let go
    waiting: tuple[str, str] | None = None
    epoch_spent: bool = False
    ended_at: float = 0.0
    end_refused: bool = False  # the user's object does not take the status that was reported with the end
    words_left_out: bool = False  # what its cluster said of the end was refused with it
    end_unshown: str = ""  # why the user's object does not show the end
    reservation_told: bool = False
    admitted_at: float | None = None
    absent_until: float | None = None  # it is not listed where it was placed; what may run has stopped by then
    gates_told: tuple[str, ...] = ()  # those of the user's own that its cluster was told of, in `gates_session`
    gates_session: int = 0
    why_not: dict[str, str] = field(default_factory=dict)  # cluster -> why it was not used, for explain
    key: PlacementKey = field(init=False)  # on the wire
    look: Key = field(init=False)  # on the agenda

    def __post_init__(self) -> None:
        """Name both once; every step asks for them."""
        self.key = PlacementKey(self.uid, self.epoch)
        self.look = Key(Look.WORKLOAD, self.workload)

    @property
    def live(self) -> bool:
        """Say whether something of it may exist at its cluster."""
        return self.state in LIVE and bool(self.cluster)

    def asks(self, version: str) -> None:
        """Note that its reservation is asked to be written on a version of its Workload."""
        if self.asked_on != version:
            self.asked_on, self.asked_for = version, ()
        if self.reserve is not None:
            self.asked_for = (*self.asked_for[1 - ASKED_MAX :], Asked(self.epoch, self.reserve.admission))

    def has_asked(self, version: str, epoch: int, admission: Admission | None) -> bool:
        """Say whether just this was asked to be written on that version."""
        if self.asked_on != version:
            return False
        return any(each.epoch == epoch and known_part(each.admission) == admission for each in self.asked_for)

    def follow(self, event: Internal | Wire) -> bool:
        """Take the transition; False when the table has a typed no-op. Raises IllegalTransition, changing nothing."""
        after = follow(self.state, event)
        if after is None:
            return False
        self.state = after
        return True
