"""The session both ends run: words, table, events and outputs. Pure.

The two machines are in the neighbours `session_agent.AgentSession` and `session_manager.ManagerSession`, both over
`session_core.SessionCore`.

How to drive one (a session is per manager and cluster; it outlives streams and sessions in the protocol's sense):

- `handle(event, now)` takes one of `SessionEvent`, `tick(now)` what `next_deadline()` named; both return outputs.
  Every other method that does something returns outputs as well: actions, to be carried out in order, and after them
  upcalls, to be taken in order (what a method called on an upcall returns is carried out then and there).
  `now` is monotonic seconds of this end (CLOCK_BOOTTIME at the agent) and must not go back.
- `send(messages, now)` queues for the peer. Messages flow in OPEN only; those queued while a resume is still possible
  are kept for it, all others are dropped: `Opened(resumed=False)` means *compute everything anew*. `last_sequence` is
  the number of the message queued last (rule R4 compares a Commit's with an inventory's `applied`); numbers only grow
  for the life of the process.
- `close(reason, text, now)` says farewell: sends what may be sent, then Close, waits `DRAIN_SECONDS` for the peer.

Order of upcalls. Manager: `GreetingReceived` → (core writes the session number, R2) `welcome(...)` → `Welcomed` →
if not resumed (core's own lists complete) `ask_inventory(...)` → `InventoryReceived` → `Opened` → `Delivered`* →
`SessionEnded`. Agent: `Welcomed` → if not resumed `InventoryAsked` → `answer_inventory(...)` → `Opened` → ... →
`SessionEnded`. A greeting that comes to nothing ends with `GreetingEnded`. `Welcomed` and `SessionEnded` come in pairs.

Methods beside those. Both: `state`, `session`, `last_sequence`, `live`, and `abort(reason, text, now)`, which ends at
once (revoked, restored) where `close` says farewell first. Agent: `start(now)` begins to dial, `set_facts(credits_=,
api_reachable=, replicas=, kinds=, now=)`, `answer_inventory(request, entries, now)`, `lease_valid(now)` (a grant of the
present session has not run out), `lease_acknowledged_at`, `see_term(term, now)`. Manager: `lead(term, now,
recorded_grant_seconds=)`, `step_down(text, now)`, `welcome(stream_id, session_number, origin, now, resume_allowed=)`,
`refuse(stream_id, reason, text, now)`, `ask_inventory(request, now)`, `grant(now, seconds=, sent_at=)`,
`standing(now)`.

Inside: messages belong to a session (R6): frames of streams other than the present one and of earlier sessions are
dropped. Resume only between the same two instances, in the same term, after a session that did not end by LOST, and
while both windows hold; otherwise both outboxes are emptied. Gaps, wrong states, wrong kinds and unknown numbers end
the session with a typed Close and nothing else. Duplicates below the expected number are dropped and acknowledged
again. Deadlines are looked at before the event, so what comes after LOST does not count even when the timer was late
(H12). A renewal is answered by the manager's core through `grant(...)`, because facts in it may have to be written
first (P3, P4) and only a leader with a valid lease may answer.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gatelift_wire.sessions.leases import Sealed
from gatelift_wire.values.inventory import ForeignRun, InventoryEntry
from gatelift_wire.values.messages import Close, Frame, Hello, Message
from gatelift_wire.values.refusals import CloseReason


class SessionState(enum.Enum):
    """Where a session is."""

    CLOSED = "CLOSED"
    GREETING = "GREETING"  # Hello was sent or received, Welcome not yet
    RESUMING = "RESUMING"  # welcomed; what the peer has not handled is sent again
    RESYNCING = "RESYNCING"  # welcomed; outboxes are empty, the inventory is awaited
    OPEN = "OPEN"  # messages flow
    DRAINING = "DRAINING"  # Close was sent, the peer hangs up


class SessionStep(enum.Enum):
    """What moves a session from one state to the next."""

    GREETED = "greeted"
    RESUMED = "welcomed to resume"
    RESYNCED = "welcomed to resync"
    CAUGHT_UP = "caught up"
    FAREWELL = "close asked for"
    ENDED = "ended"


TABLE: dict[SessionState, dict[SessionStep, SessionState]] = {
    SessionState.CLOSED: {SessionStep.GREETED: SessionState.GREETING},
    SessionState.GREETING: {
        SessionStep.RESUMED: SessionState.RESUMING,
        SessionStep.RESYNCED: SessionState.RESYNCING,
        SessionStep.ENDED: SessionState.CLOSED,
    },
    SessionState.RESUMING: {
        SessionStep.CAUGHT_UP: SessionState.OPEN,
        SessionStep.FAREWELL: SessionState.DRAINING,
        SessionStep.ENDED: SessionState.CLOSED,
    },
    SessionState.RESYNCING: {
        SessionStep.CAUGHT_UP: SessionState.OPEN,
        SessionStep.FAREWELL: SessionState.DRAINING,
        SessionStep.ENDED: SessionState.CLOSED,
    },
    SessionState.OPEN: {SessionStep.FAREWELL: SessionState.DRAINING, SessionStep.ENDED: SessionState.CLOSED},
    SessionState.DRAINING: {SessionStep.ENDED: SessionState.CLOSED},
}
"""Steps are the machine's own decisions, so an absent one is a mistake of ours and raises. What the *peer* may send in
which state is a second pair of tables (`TAKEN` in each machine), total over states; what is not listed is a violation.
"""

LIVE = frozenset({SessionState.RESUMING, SessionState.RESYNCING, SessionState.OPEN, SessionState.DRAINING})
"""States in which there is a session with a number."""


# --- events in -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOpened:
    """Agent: the stream that `OpenStream` asked for is open. Manager: a stream of this cluster came (ids grow)."""

    stream_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReceived:
    """A frame came, decoded and within limits."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class BadFrame:
    """What came could not be decoded or is over a limit: `reason` and `text` of the `WireViolation`."""

    stream_id: int
    reason: CloseReason
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamClosed:
    """A stream ended, or could not be opened; also after our own `CloseStream` (then it is ignored)."""

    stream_id: int
    text: str = ""


SessionEvent = StreamOpened | FrameReceived | BadFrame | StreamClosed


# --- outputs: actions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """Agent: dial now (waiting and jitter are done). Answered by `StreamOpened` or `StreamClosed` of this id."""

    stream_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Transmit:
    """Write this frame; drop it when the stream is gone, the session will hear of that.

    Unacknowledged messages in flight are bounded by the window, so the adapter's queue is.
    """

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseStream:
    """End the stream after what was transmitted is written. `close` was already transmitted; it is for log and status.

    None: the peer or nobody gave a reason.
    """

    stream_id: int
    close: Close | None


# --- outputs: upcalls ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingReceived:
    """Manager: an agent greets. The core writes term and session number (R2), then calls `welcome` or `refuse`.

    `resumable`: the outboxes on both sides allow a resume; the core may still decide for a resync.
    """

    stream_id: int
    hello: Hello
    resumable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterShown:
    """Manager: an agent greets, whatever comes of it, and brings back the highest counter that it was ever granted."""

    sealed: Sealed
    term: int  # the highest that it has seen, by its own word


@dataclass(frozen=True, slots=True, kw_only=True)
class AnotherGreeted:
    """Manager: while one agent of this cluster is served another one greets, which is turned away (`speakers`)."""

    hello: Hello


@dataclass(frozen=True, slots=True, kw_only=True)
class GreetingEnded:
    """A greeting came to nothing. `reason` None: the stream broke. Agent: `retry_at` is when it dials again."""

    stream_id: int
    reason: CloseReason | None
    text: str
    retry_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcomed:
    """There is a session with a number. Not resumed: nothing sent before counts any more.

    `keeps_quota`: at the agent, what its manager says of pods that are done.
    """

    session: int
    term: int
    resumed: bool
    version: int
    origin: str
    peer_instance: str
    keeps_quota: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Messages flow from now on. After a resync the inventory came before."""

    session: int
    resumed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A message of the present session, in order, once."""

    session: int
    sequence: int
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryAsked:
    """Agent: answer with `answer_inventory` when the own lists are complete (R8). `namespaces`: to be looked into."""

    session: int
    request: int
    namespaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryReceived:
    """Manager: the complete answer to a request of this session. `applied`: last command the agent had applied (R4).

    `unheard`: see `inventory.InventoryChunk`.
    """

    session: int
    request: int
    applied: int
    entries: tuple[InventoryEntry, ...]
    foreign: tuple[ForeignRun, ...] = ()
    unheard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditsGranted:
    """Manager: the agent takes so many un-applied placements from now on."""

    session: int
    credits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRenewed:
    """Manager: the agent asks for a longer lease. Answer with `grant`; unanswered it extends nothing.

    P4: when `api_reachable` is False, that is written before it is granted.
    """

    session: int
    sent_at: float
    api_reachable: bool
    replicas: int
    mark: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseExtended:
    """Agent: the manager answered a renewal; the right to start runs until `until` (own clock)."""

    session: int
    acknowledged_at: float  # when the answered renewal was sent: agent deadlines (`stopAfter`) run from here
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLapsed:
    """Agent: the right to start ran out in a live session; it comes back with the next grant."""

    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspectReached:
    """Manager: no granted renewal for `SUSPECT_SECONDS`. Ends with the next grant or session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostReached:
    """Manager: the cluster is lost, its session (if any) is over. Conclude nothing before it is written (R2)."""

    last_session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HigherTermSeen:
    """Manager: the agent says that it has seen a higher term, so another process leads or led (R3).

    It is the word of one worker: command that worker nothing, and read the leader's Lease or WorkerCluster.status
    before stepping down, else a worker that lies would stop all dispatch.
    """

    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """The session is over. `reason` None: the stream broke. Nothing of it counts any more (R6)."""

    session: int
    reason: CloseReason | None
    text: str
    by_peer: bool


SessionOutput = (
    OpenStream
    | Transmit
    | CloseStream
    | GreetingReceived
    | CounterShown
    | AnotherGreeted
    | GreetingEnded
    | Welcomed
    | Opened
    | Delivered
    | InventoryAsked
    | InventoryReceived
    | CreditsGranted
    | LeaseRenewed
    | LeaseExtended
    | LeaseLapsed
    | SuspectReached
    | LostReached
    | HigherTermSeen
    | SessionEnded
)
