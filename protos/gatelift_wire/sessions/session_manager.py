"""The manager's end of one cluster's session: greeting, fencing, the lease it grants, the inventory it collects. Pure.

Neighbours: `session` (words and promises), `session_core` (what both ends share).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, get_args

from gatelift_wire.sessions.leases import UNCOUNTED, LeaseStanding, ManagerLease, Sealed, start_right_seconds
from gatelift_wire.sessions.session import (
    AnotherGreeted,
    CloseStream,
    CounterShown,
    CreditsGranted,
    GreetingEnded,
    GreetingReceived,
    HigherTermSeen,
    InventoryReceived,
    LeaseRenewed,
    LostReached,
    SessionOutput,
    SessionState,
    SessionStep,
    SuspectReached,
    Transmit,
    Welcomed,
)
from gatelift_wire.sessions.session_core import Lineage, SessionCore
from gatelift_wire.values import limits, speakers
from gatelift_wire.values.inventory import InventoryChunk, InventoryEntry, InventoryRequest
from gatelift_wire.values.keys import PROTOCOL_VERSION, PROTOCOL_VERSION_MIN, PlacementKey
from gatelift_wire.values.messages import (
    Close,
    Control,
    CreditGrant,
    Frame,
    Hello,
    LeaseGranted,
    LeaseRenew,
    Report,
    Welcome,
)
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import IllegalUse

_LIVE_CONTROLS = frozenset({LeaseRenew, CreditGrant, InventoryChunk, Close})


@dataclass(slots=True)
class _Collection:
    """Chunks of one inventory so far."""

    request: int
    applied: int | None = None
    entries: list[InventoryEntry] = field(default_factory=list)
    keys: set[PlacementKey] = field(default_factory=set)


class ManagerSession(SessionCore):
    """The manager's session with one cluster. Serves only between `lead` and `step_down`; a standby says so.

    `instance` names this process. `last_session` of a new object is 0: the core takes the next number from
    WorkerCluster.status.
    """

    TAKEN: ClassVar[dict[SessionState, frozenset[type]]] = {
        SessionState.CLOSED: frozenset(),
        SessionState.GREETING: frozenset({Close}),
        SessionState.RESUMING: _LIVE_CONTROLS,
        SessionState.RESYNCING: _LIVE_CONTROLS,
        SessionState.OPEN: _LIVE_CONTROLS,
        SessionState.DRAINING: _LIVE_CONTROLS,
    }
    TAKES: ClassVar[frozenset[type]] = frozenset(get_args(Report))

    def __init__(
        self,
        *,
        instance: str,
        lease_seconds: float = limits.LEASE_SECONDS,
        renew_seconds: float = limits.RENEW_SECONDS,
        suspect_seconds: float = limits.SUSPECT_SECONDS,
        lost_seconds: float = limits.LOST_SECONDS,
        credit_window: int = 256,
        keeps_quota: bool = False,
        versions: tuple[int, int] = (PROTOCOL_VERSION_MIN, PROTOCOL_VERSION),
    ) -> None:
        super().__init__(instance)
        if start_right_seconds(lease_seconds) > lost_seconds * (1.0 + 1e-9):  # what rounding adds is no time
            raise IllegalUse(
                f"lease_seconds: {lease_seconds:g} and the agent's last write must be over {lost_seconds:g} s "
                "after a renewal, when the cluster counts as lost"
            )
        if not renew_seconds < suspect_seconds < lost_seconds:
            raise IllegalUse(
                f"renew_seconds, suspect_seconds, lost_seconds: must rise, are {renew_seconds:g}, {suspect_seconds:g} "
                f"and {lost_seconds:g}"
            )
        self._suspect_seconds = suspect_seconds
        self._lost_seconds = lost_seconds
        self._lease_seconds = lease_seconds
        self._renew_seconds = renew_seconds
        self._credit_window = credit_window
        self._keeps_quota = keeps_quota
        self._versions = versions
        self._leading = False
        self._waiting: dict[int, float] = {}
        self._hello: Hello | None = None
        self._lease: ManagerLease | None = None
        self._standing_told = LeaseStanding.CURRENT
        self._renewal: tuple[float, float] | None = None
        self._collection: _Collection | None = None
        self._last_request = 0

    # --- the doors ---------------------------------------------------------------------------------------------

    def lead(
        self, term: int, now: float, *, recorded_grant_seconds: float = limits.LEASE_SECONDS
    ) -> list[SessionOutput]:
        """Serve under `term`. Every lease counts as renewed now; what was sent under another term is forgotten.

        `recorded_grant_seconds` is the longest grant that stands in WorkerCluster and has not run out (P3).
        """
        self._end(CloseReason.NOT_LEADER, "the leader's term changed", now)
        self._forget_lineage()
        self.term = term
        self._leading = True
        fresh = ManagerLease(contact_at=now, suspect_seconds=self._suspect_seconds, lost_seconds=self._lost_seconds)
        self._lease = fresh.counted(now, max(recorded_grant_seconds, limits.LEASE_SECONDS))
        self._standing_told = LeaseStanding.CURRENT
        return self._take_out()

    @property
    def lease_seconds(self) -> float:
        """The right to start that one renewal buys here."""
        return self._lease_seconds

    def count_grant(self, seconds: float, at: float) -> None:
        """Count a grant that another leader has recorded, given `at` at the latest (P3). Nothing while not leading."""
        if self._lease is not None:
            self._lease = self._lease.counted(at, seconds)
            self._due_known = False

    @property
    def right_until(self) -> float:
        """Until when, on this process's clock, a write that the agent began under any grant may land."""
        return self._lease.right_until if self._lease is not None else 0.0

    def step_down(self, text: str, now: float) -> list[SessionOutput]:
        """Serve no more: sessions and greetings end with *not leader*."""
        self._leading = False
        self._lease = None
        self._end(CloseReason.NOT_LEADER, text, now)
        self._forget_lineage()
        for stream in tuple(self._waiting):
            self._reject_stranger(stream, CloseReason.NOT_LEADER, text)
        return self._take_out()

    def welcome(
        self, stream_id: int, session_number: int, origin: str, now: float, *, resume_allowed: bool = True
    ) -> list[SessionOutput]:
        """Answer a greeting, after `session_number` was written (R2). Nothing happens if that greeting is over.

        Raises `IllegalUse` for a number that is not above every earlier one.
        """
        self._expire(now)
        hello = self._hello
        if self.state is not SessionState.GREETING or stream_id != self._stream or hello is None:
            return self._take_out()
        if session_number <= self.session:
            raise IllegalUse(f"session number: must be above {self.session}, is {session_number}")
        lineage = self._lineage
        resumed = resume_allowed and self._resumable(hello)
        if resumed and lineage is not None:
            self._outbox.replay_from(hello.received + 1)
        else:
            lineage = Lineage(peer_instance=hello.instance, first_session=session_number, term=self.term)
        self._begin(session_number, lineage, resumed=resumed)
        self._collection = None
        self._renewal = None
        self._touch_lease(now)
        wait = now + limits.CATCH_UP_SECONDS if resumed else None
        self._set_deadline(wait, "Welcome: was not answered in time")
        version = min(self._versions[1], hello.version_max)
        self._transmit((self._welcome_value(session_number, version, origin, resumed=resumed),))
        self._out.append(
            Welcomed(
                session=session_number,
                term=self.term,
                resumed=resumed,
                version=version,
                origin=origin,
                peer_instance=hello.instance,
            )
        )
        self._out.append(CreditsGranted(session=session_number, credits=hello.credits))
        return self._take_out()

    def _welcome_value(self, number: int, version: int, origin: str, *, resumed: bool) -> Welcome:
        return Welcome(
            session=number,
            instance=self.instance,
            version=version,
            resume=resumed,
            origin=origin,
            received=self._received if resumed else 0,
            lease_seconds=self._lease_seconds,
            renew_seconds=self._renew_seconds,
            credit_window=self._credit_window,
            keeps_quota=self._keeps_quota,
        )

    def missed(self, now: float) -> list[SessionOutput]:
        """Take that a session was written whose agent was gone before its Welcome: its silence counts from now."""
        self._expire(now)
        self._touch_lease(now)
        return self._take_out()

    def refuse(
        self, stream_id: int, reason: CloseReason, text: str, now: float, *, ticket: str = ""
    ) -> list[SessionOutput]:
        """Answer a greeting with a typed no (revoked, restored, unknown). Nothing happens if that greeting is over."""
        self._expire(now)
        if self.state is SessionState.GREETING and stream_id == self._stream:
            self._farewell = Close(reason=reason, text=text, ticket=ticket)
            self._transmit((self._farewell,))
            self._end(reason, text, now)
        return self._take_out()

    def ask_inventory(self, request: int, now: float, namespaces: Collection[str] = ()) -> list[SessionOutput]:
        """Ask for the complete inventory; the answer to an earlier request that is still on its way is dropped.

        Nothing happens without a session or before a resume is through (`Opened`). Raises `IllegalUse` for a request
        number that does not grow.
        """
        self._expire(now)
        if self.state not in {SessionState.RESYNCING, SessionState.OPEN}:
            return self._take_out()
        if request <= self._last_request:
            raise IllegalUse(f"inventory request: must be above {self._last_request}, is {request}")
        self._last_request = request
        self._collection = _Collection(request)
        self._set_deadline(now + limits.CATCH_UP_SECONDS, f"inventory {request}: was not complete in time")
        named = tuple(sorted(namespaces)[: limits.NAMESPACES_MAX])
        self._transmit((InventoryRequest(request=request, namespaces=named),))
        return self._take_out()

    def grant(
        self, now: float, *, seconds: float | None = None, sent_at: float | None = None, sealed: Sealed = UNCOUNTED
    ) -> list[SessionOutput]:
        """Answer the youngest renewal: the lease runs `seconds` (default: the session's) from its sending.

        With `sent_at`, only if the youngest is still that one: its facts were written, those of another were not (P4).
        `sealed` is what the agent is to bring back at its next greeting.

        Nothing happens without an unanswered renewal or without a session. The caller's own leader lease is valid: a
        manager that may not lead extends nobody's right. A longer grant than the default is recorded before (P3).
        """
        self._expire(now)
        granting = self.state in {SessionState.RESUMING, SessionState.RESYNCING, SessionState.OPEN}
        if self._renewal is None or self._lease is None or not granting:
            return self._take_out()
        renewed_at, received_at = self._renewal
        if sent_at is not None and sent_at != renewed_at:
            return self._take_out()
        length = min(self._lease_seconds if seconds is None else seconds, limits.LEASE_SECONDS_MAX)
        self._renewal = None
        self._lease = self._lease.granted(received_at, length)
        self._standing_told = LeaseStanding.CURRENT
        self._transmit((LeaseGranted(sent_at=renewed_at, seconds=length, counter=sealed.counter, seal=sealed.seal),))
        return self._take_out()

    def standing(self, now: float) -> LeaseStanding:
        """Say how the cluster counts; a process that does not lead knows nothing and says LOST."""
        return LeaseStanding.LOST if self._lease is None else self._lease.standing(now)

    # --- lease -------------------------------------------------------------------------------------------------

    def _touch_lease(self, now: float) -> None:
        if self._lease is not None:
            self._lease = self._lease.touched(now)
            self._standing_told = LeaseStanding.CURRENT

    def _deadlines(self) -> Iterable[float | None]:
        standing_at = None
        if self._lease is not None and self._standing_told is not LeaseStanding.LOST:
            suspected = self._standing_told is LeaseStanding.SUSPECT
            standing_at = self._lease.lost_at if suspected else self._lease.suspect_at
        return (*super()._deadlines(), standing_at, min(self._waiting.values(), default=None))

    @property
    def is_lost(self) -> bool:
        """Say whether `LostReached` was the last that was told of the agent's silence."""
        return self._standing_told is LeaseStanding.LOST

    def _expire(self, now: float) -> None:
        if self._lease is not None:
            standing = self._lease.standing(now)
            if standing is LeaseStanding.LOST and self._standing_told is not LeaseStanding.LOST:
                self._standing_told = standing
                self._lose(now)
            elif standing is LeaseStanding.SUSPECT and self._standing_told is LeaseStanding.CURRENT:
                self._standing_told = standing
                self._out.append(SuspectReached())
        super()._expire(now)
        for stream in [stream for stream, until in self._waiting.items() if now >= until]:
            text = f"Hello: did not come within {limits.HELLO_SECONDS:g} s"
            self._reject_stranger(stream, CloseReason.PROTOCOL_VIOLATION, text)

    def _lose(self, now: float) -> None:
        if self.live:
            text = "no renewal was granted in time; greet anew"
            self._end(CloseReason.LOST, text, now)
        self._forget_lineage()
        self._out.append(LostReached(last_session=self.session))

    # --- streams that have not greeted -------------------------------------------------------------------------

    def _stream_opened(self, stream: int, now: float) -> None:
        self._waiting[stream] = now + limits.HELLO_SECONDS
        if not self._leading:
            self._reject_stranger(stream, CloseReason.NOT_LEADER, "this manager is a standby; ask again")
        elif len(self._waiting) > limits.STREAMS_WAITING_MAX:
            text = f"more than {limits.STREAMS_WAITING_MAX} streams of this cluster have not greeted"
            self._reject_stranger(min(self._waiting), CloseReason.PROTOCOL_VIOLATION, text)

    def _take_stranger(self, stream: int, frame: Frame, now: float) -> None:
        if stream not in self._waiting:
            return  # R6: of a stream that is over
        match frame.control:
            case (Hello() as hello,) if frame.session == 0 and not frame.messages:
                self._take_hello(stream, hello, now)
            case (Close(reason=reason, text=text),):
                del self._waiting[stream]
                self._out.append(CloseStream(stream_id=stream, close=None))
                self._out.append(GreetingEnded(stream_id=stream, reason=reason, text=text))
            case _:
                text = "frame: the first on a stream must be a Hello of session 0, alone"
                self._reject_stranger(stream, CloseReason.PROTOCOL_VIOLATION, text)

    def _take_hello(self, stream: int, hello: Hello, now: float) -> None:
        least, most = self._versions
        if hello.version_max < least or hello.version_min > most or hello.version_min > hello.version_max:
            served = f"versions {least} to {most} are served here, {hello.version_min} to {hello.version_max} there"
            self._reject_stranger(stream, CloseReason.VERSION_UNSUPPORTED, f"{served}; upgrade the older end")
            return
        if hello.counter or hello.seal:
            self._out.append(CounterShown(sealed=Sealed(hello.counter, hello.seal), term=hello.last_term))
        if hello.last_term > self.term:
            text = f"term: {self.term} is over, the agent has seen {hello.last_term}"
            self._reject_stranger(stream, CloseReason.TERM_STALE, text)
            self._out.append(HigherTermSeen(term=hello.last_term))
            return
        if self._hello is not None and speakers.of(self._hello).is_another(speakers.of(hello)):
            text = f"agent {self._hello.instance} serves this cluster, by another Lease than this one"
            self._reject_stranger(stream, CloseReason.ANOTHER_AGENT, text)
            self._out.append(AnotherGreeted(hello=hello))
            return
        self._end(CloseReason.FENCED_BY_NEWER_SESSION, "another stream of this cluster greeted", now)
        del self._waiting[stream]
        self._stream = stream
        self._hello = hello
        self._move(SessionStep.GREETED)
        self._set_deadline(now + limits.WELCOME_SECONDS, "Hello: the session number could not be written in time")
        self._out.append(GreetingReceived(stream_id=stream, hello=hello, resumable=self._resumable(hello)))

    def _resumable(self, hello: Hello) -> bool:
        """Say whether both windows hold: same processes, same term, a session of the same lineage (R6)."""
        lineage = self._lineage
        return (
            lineage is not None
            and self._base_known
            and lineage.peer_instance == hello.instance
            and hello.peer_instance == self.instance
            and lineage.term == self.term
            and lineage.first_session <= hello.last_session <= self.session
            and self._outbox.can_replay_from(hello.received + 1)
        )

    def _reject_stranger(self, stream: int, reason: CloseReason, text: str) -> None:
        if stream not in self._waiting:
            return
        del self._waiting[stream]
        close = Close(reason=reason, text=text)
        self._out.append(Transmit(stream_id=stream, frame=Frame(session=0, term=self.term, control=(close,))))
        self._out.append(CloseStream(stream_id=stream, close=close))
        self._out.append(GreetingEnded(stream_id=stream, reason=reason, text=text))

    def _stranger_closed(self, stream: int, text: str, _now: float) -> None:
        if self._waiting.pop(stream, None) is not None:
            self._out.append(GreetingEnded(stream_id=stream, reason=None, text=text))

    def _take_greeting(self, frame: Frame, now: float) -> None:
        match frame.control:
            case (Close(reason=reason, text=text),):
                self._end(reason, text, now, by_peer=True)
            case _:
                self._violation("frame: came before Welcome was sent", now)

    def _closing(self) -> None:
        for stream in tuple(self._waiting):
            self._reject_stranger(stream, CloseReason.SHUTTING_DOWN, "the manager is stopping; ask again")

    def _ended(self, _reason: CloseReason | None, _now: float, _advice: float) -> float | None:
        self._hello = None
        self._collection = None
        self._renewal = None
        return None

    # --- in a session ------------------------------------------------------------------------------------------

    def _frame_numbers(self) -> tuple[int, int]:
        return (0 if self.state is SessionState.GREETING else self.session), self.term

    def _admissible(self, frame: Frame, now: float) -> bool:
        if frame.term == 0:
            return True
        self._violation(f"term: must be 0 in a frame of an agent, is {frame.term}", now)
        return False

    def _caught_up_by_frame(self) -> bool:
        return True

    def _take_control(self, control: Control, now: float) -> None:
        match control:
            case LeaseRenew(sent_at=sent_at):
                self._renewal = (sent_at, now)
                self._out.append(
                    LeaseRenewed(
                        session=self.session,
                        sent_at=sent_at,
                        api_reachable=control.api_reachable,
                        replicas=control.replicas,
                        mark=control.mark,
                    )
                )
            case CreditGrant(credits=credits_):
                self._out.append(CreditsGranted(session=self.session, credits=credits_))
            case InventoryChunk():
                self._take_chunk(control, now)
            case _:
                self._violation(f"control: {type(control).__name__} is not the agent's to send", now)

    def _take_chunk(self, chunk: InventoryChunk, now: float) -> None:
        collection = self._collection
        if chunk.request > self._last_request:
            self._violation(f"InventoryChunk.request: {chunk.request} was never asked for", now)
            return
        if collection is None or chunk.request < collection.request or self.state is SessionState.DRAINING:
            return  # an answer that nobody waits for any more
        fault = self._add(collection, chunk)
        if fault is not None:
            self._end(fault[0], fault[1], now)
            return
        if not chunk.last:
            return
        self._collection = None
        self._set_deadline(None, "")
        self._out.append(
            InventoryReceived(
                session=self.session,
                request=chunk.request,
                applied=chunk.applied,
                entries=tuple(collection.entries),
                foreign=chunk.foreign,
                unheard=chunk.unheard,
            )
        )
        if self.state is SessionState.RESYNCING:
            self._open()

    def _add(self, collection: _Collection, chunk: InventoryChunk) -> tuple[CloseReason, str] | None:
        """Add a chunk; returns why the session must end, if it must."""
        total = len(collection.entries) + len(chunk.entries)
        if total > limits.INVENTORY_ENTRIES_MAX:
            return CloseReason.TOO_LARGE, f"inventory: must have at most {limits.INVENTORY_ENTRIES_MAX} entries"
        if collection.applied not in {None, chunk.applied}:
            return CloseReason.PROTOCOL_VIOLATION, "InventoryChunk.applied: changed within one inventory"
        if chunk.applied > self._outbox.transmitted:
            sent = self._outbox.transmitted
            return (
                CloseReason.PROTOCOL_VIOLATION,
                f"InventoryChunk.applied: is {chunk.applied}, but only {sent} were ever sent",
            )
        if (chunk.foreign or chunk.unheard) and not chunk.last:
            name = "foreign" if chunk.foreign else "unheard"
            return CloseReason.PROTOCOL_VIOLATION, f"InventoryChunk.{name}: must come with the last chunk"
        if not chunk.entries and not chunk.last:
            return CloseReason.PROTOCOL_VIOLATION, "InventoryChunk.entries: must not be empty before the last chunk"
        collection.applied = chunk.applied
        for entry in chunk.entries:
            if entry.key in collection.keys:
                return CloseReason.PROTOCOL_VIOLATION, f"inventory: lists {entry.key} twice"
            collection.keys.add(entry.key)
            collection.entries.append(entry)
        return None
