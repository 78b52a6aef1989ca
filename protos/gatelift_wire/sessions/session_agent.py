"""The agent's end of a session: dialling, greeting, the lease it holds, the inventory it answers. Pure.

Neighbours: `session` (words and promises), `session_core` (what both ends share).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import ClassVar, get_args

from gatelift_wire.sessions.cutting import inventory_chunks
from gatelift_wire.sessions.leases import UNCOUNTED, AgentLease, Sealed, least_lost
from gatelift_wire.sessions.session import (
    GreetingEnded,
    InventoryAsked,
    LeaseExtended,
    LeaseLapsed,
    OpenStream,
    SessionOutput,
    SessionState,
    SessionStep,
    Welcomed,
)
from gatelift_wire.sessions.session_core import Lineage, SessionCore
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import ForeignRun, InventoryEntry, InventoryRequest
from gatelift_wire.values.keys import PROTOCOL_VERSION, PROTOCOL_VERSION_MIN
from gatelift_wire.values.messages import (
    Close,
    Command,
    Control,
    CreditGrant,
    Frame,
    Hello,
    LeaseGranted,
    LeaseRenew,
    Welcome,
)
from gatelift_wire.values.refusals import CloseReason

GOLDEN = 0.6180339887498949
"""Steps of this length round the unit circle never cluster: jitter without a random source in pure code."""

HOPELESS = frozenset(
    {
        CloseReason.VERSION_UNSUPPORTED,
        CloseReason.UNKNOWN_CLUSTER,
        CloseReason.REVOKED,
        CloseReason.SESSION_TOO_HIGH,
    }
)
"""Answers that only a person changes."""

ELSEWHERE = frozenset({CloseReason.NOT_LEADER, CloseReason.TERM_STALE})
"""Answers that say: another manager leads, its address will be right in a moment."""

_LIVE_CONTROLS = frozenset({LeaseGranted, InventoryRequest, Close})


class AgentSession(SessionCore):
    """The agent's session with one manager.

    `instance` names this process; `jitter` in [0, 1) differs between agents and spreads their dials; `last_session`
    and `last_term` are what was last kept in the worker. `adopts`: see `Hello`. `versions` are the protocol versions
    served, least and most.
    """

    TAKEN: ClassVar[dict[SessionState, frozenset[type]]] = {
        SessionState.CLOSED: frozenset(),
        SessionState.GREETING: frozenset({Welcome, Close}),
        SessionState.RESUMING: _LIVE_CONTROLS,
        SessionState.RESYNCING: _LIVE_CONTROLS,
        SessionState.OPEN: _LIVE_CONTROLS,
        SessionState.DRAINING: _LIVE_CONTROLS,
    }
    TAKES: ClassVar[frozenset[type]] = frozenset(get_args(Command))

    def __init__(
        self,
        *,
        instance: str,
        jitter: float = 0.0,
        last_session: int = 0,
        last_term: int = 0,
        agent_version: str = "",
        adopts: bool = False,
        versions: tuple[int, int] = (PROTOCOL_VERSION_MIN, PROTOCOL_VERSION),
    ) -> None:
        super().__init__(instance)
        self.session = last_session
        self.seen_term = last_term
        self.sealed = UNCOUNTED
        """The grant with the highest counter: it says how far the manager's record had come, and never goes back."""
        self._agent_version, self._adopts = agent_version, adopts
        self._versions = versions
        self._fraction = jitter % 1.0
        self._kinds: tuple[str, ...] = ()
        self._credits = 0
        self._replicas = 1
        self._api_reachable = True
        self._wanted = False
        self._dial_at: float | None = None
        self._dialling: int | None = None
        self._last_stream = 0
        self._failures = 0
        self._heard_at = 0.0
        self._lease = AgentLease()
        self._lapse_told = True
        self._renewals: deque[float] = deque(maxlen=limits.RENEWALS_OUTSTANDING_MAX)
        self._renew_at: float | None = None
        self._renew_every = limits.RENEW_SECONDS
        self._silence = limits.LOST_SECONDS
        self._asked: int | None = None
        self._cluster_uid = self._lease_name = ""
        self._ticket = self.offered_ticket = ""
        self._mark = self._greeting_mark = 0

    # --- the doors ---------------------------------------------------------------------------------------------

    def recall(self, last_session: int, last_term: int, sealed: Sealed = UNCOUNTED) -> None:
        """Take what is kept in the worker by now, before `start`: another process may have had the lead since.

        A greeting with a session of before would pass for a worker that was restored from a backup.
        """
        if self.state is SessionState.CLOSED and last_session > self.session:
            self._forget_lineage()
            self.session = last_session
        self.seen_term = max(self.seen_term, last_term)
        self._count(sealed)

    def forget_counter(self) -> None:
        """Forget the counter of a former manager: it is of another Lease."""
        self.sealed = UNCOUNTED

    def _count(self, sealed: Sealed) -> None:
        if sealed.counter > self.sealed.counter:
            self.sealed = sealed

    def identify(self, cluster_uid: str, mark: int, lease: str = "") -> None:
        """Take which cluster this is, by which Lease this replica leads and what that counted then, before `start`.

        Greetings say that number until a session has begun: what the Lease has counted since proves no memory. All was
        listed anew since the last farewell, so a ticket that came with it counts from here on.
        """
        self._cluster_uid, self._mark, self._greeting_mark = cluster_uid, mark, mark
        self._lease_name, self._ticket = lease, self.offered_ticket

    def set_mark(self, mark: int) -> None:
        """Take what the Lease counts now, for renewals and for greetings after this session."""
        self._mark = max(self._mark, mark)

    def start(self, now: float) -> list[SessionOutput]:
        """Dial now and, until `close`, whenever a session ended."""
        self._wanted = True
        if self.state is SessionState.CLOSED and self._dialling is None and self._dial_at is None:
            self._dial_at = now
        self._expire(now)
        return self._take_out()

    def redial(self, now: float) -> list[SessionOutput]:
        """Dial now instead of later: what the last answer objected to has changed. Nothing while a stream is there."""
        if self._dial_at is not None and self._dialling is None:
            self._dial_at = now
        self._expire(now)
        return self._take_out()

    def set_facts(
        self, *, credits_: int, api_reachable: bool, replicas: int, kinds: Iterable[str], now: float
    ) -> list[SessionOutput]:
        """Tell what greetings, renewals and credit grants say from now on; changes go out at once."""
        self._expire(now)
        credits_changed = credits_ != self._credits
        lease_changed = (api_reachable, replicas) != (self._api_reachable, self._replicas)
        self._credits, self._api_reachable, self._replicas = credits_, api_reachable, replicas
        self._kinds = tuple(kinds)
        if self.state in {SessionState.RESUMING, SessionState.RESYNCING, SessionState.OPEN}:
            control: tuple[Control, ...] = (CreditGrant(credits=credits_),) if credits_changed else ()
            if lease_changed:
                control = (*control, self._renewal(now))
            if control:
                self._transmit(control)
        return self._take_out()

    def answer_inventory(
        self,
        request: int,
        entries: Sequence[InventoryEntry],
        now: float,
        foreign: tuple[ForeignRun, ...] = (),
        *,
        unheard: bool = False,
    ) -> list[SessionOutput]:
        """Answer the inventory that was asked for, with the state at this moment. Ignored when nobody asks any more.

        More than `INVENTORY_ENTRIES_MAX` entries end the session, typed. Raises `WireViolation` for an entry that
        breaks a limit.
        """
        self._expire(now)
        if request != self._asked or self.state not in {SessionState.RESYNCING, SessionState.OPEN}:
            return self._take_out()
        if len(entries) > limits.INVENTORY_ENTRIES_MAX:
            text = f"inventory: must have at most {limits.INVENTORY_ENTRIES_MAX} entries, has {len(entries)}"
            self._end(CloseReason.TOO_LARGE, text, now)
            return self._take_out()
        chunks = tuple(inventory_chunks(request, self._received, entries, foreign, unheard=unheard))
        self._asked = None
        for chunk in chunks:
            self._transmit((chunk,))
        if self.state is SessionState.RESYNCING:
            self._open()
            self._failures = 0
            self._flush()
        return self._take_out()

    def see_term(self, term: int, now: float) -> list[SessionOutput]:
        """Learn of a leader's term by another way than the stream; a session of a lower one ends."""
        self._expire(now)
        self.seen_term = max(self.seen_term, term)
        if self.live and self.seen_term > self.term:
            self._end(CloseReason.TERM_STALE, f"term: {self.term} is over, {self.seen_term} was seen", now)
        return self._take_out()

    def lease_valid(self, now: float) -> bool:
        """Say whether a grant of the present session still gives the right to start (R1)."""
        return self.live and self._lease.valid(now)

    @property
    def lease_acknowledged_at(self) -> float | None:
        """When the youngest answered renewal of the latest session was sent, on this end's clock."""
        return self._lease.acknowledged_at

    # --- dialling ----------------------------------------------------------------------------------------------

    def _deadlines(self) -> Iterable[float | None]:
        lapse = self._lease.until if self.live and not self._lapse_told else None
        silence = self._heard_at + self._silence if self.live else None
        return (*super()._deadlines(), self._dial_at, self._renew_at, lapse, silence)

    def _expire(self, now: float) -> None:
        if self.live and not self._lapse_told and not self._lease.valid(now):
            self._lapse_told = True
            self._out.append(LeaseLapsed(session=self.session))
        if self.live and now >= self._heard_at + self._silence:
            text = f"no word from the manager for {self._silence:g} s"
            self._end(CloseReason.LOST, text, now)
        super()._expire(now)
        if self._renew_at is not None and now >= self._renew_at:
            self._transmit((self._renewal(now),))
        if self._dial_at is not None and now >= self._dial_at:
            self._dial(now)

    def _dial(self, now: float) -> None:
        if self._dialling is not None:  # the dial before was neither open nor refused in time
            self._dialling = None
            self._dial_failed(f"no connection within {limits.DIAL_SECONDS:g} s", now)
            return
        self._last_stream += 1
        self._dialling = self._last_stream
        self._dial_at = now + limits.DIAL_SECONDS
        self._out.append(OpenStream(stream_id=self._last_stream))

    def _dial_failed(self, text: str, now: float) -> None:
        self._dial_at = self._redial_at(None, now, 0.0) if self._wanted else None
        self._out.append(GreetingEnded(stream_id=self._last_stream, reason=None, text=text, retry_at=self._dial_at))

    def _redial_at(self, reason: CloseReason | None, now: float, advice: float) -> float:
        self._fraction = (self._fraction + GOLDEN) % 1.0
        if reason in ELSEWHERE:
            return now + limits.NOT_LEADER_SECONDS * self._fraction
        if reason in HOPELESS:
            wait = limits.HOPELESS_REDIAL_SECONDS * (0.5 + self._fraction)
        elif reason is CloseReason.FENCED_BY_NEWER_SESSION:
            wait = limits.FENCED_REDIAL_SECONDS * (0.5 + self._fraction)
        else:
            step = min(limits.REDIAL_MAX_SECONDS, limits.REDIAL_FIRST_SECONDS * 2.0 ** min(self._failures, 10))
            wait = step * (0.5 + self._fraction / 2)
            self._failures += 1
        return now + max(wait, min(advice, limits.HOPELESS_REDIAL_SECONDS))

    def _stream_opened(self, stream: int, now: float) -> None:
        if stream != self._dialling or self.state is not SessionState.CLOSED:
            return
        self._dialling = None
        self._dial_at = None
        self._stream = stream
        self._move(SessionStep.GREETED)
        self._set_deadline(now + limits.WELCOME_WAIT_SECONDS, "Hello: was not answered in time")
        lineage = self._lineage
        self._transmit(
            (
                Hello(
                    instance=self.instance,
                    peer_instance=lineage.peer_instance if lineage is not None else "",
                    version_min=self._versions[0],
                    version_max=self._versions[1],
                    agent_version=self._agent_version,
                    last_session=self.session,
                    last_term=self.seen_term,
                    received=self._received if lineage is not None else 0,
                    kinds=self._kinds,
                    credits=self._credits,
                    replicas=self._replicas,
                    api_reachable=self._api_reachable,
                    cluster_uid=self._cluster_uid,
                    mark=self._greeting_mark,
                    counter=self.sealed.counter,
                    seal=self.sealed.seal,
                    lease=self._lease_name,
                    ticket=self._ticket,
                    adopts=self._adopts,
                ),
            )
        )

    def _take_stranger(self, stream: int, frame: Frame, now: float) -> None:
        """Drop what comes on a stream that was given up (R6)."""

    def _reject_stranger(self, stream: int, reason: CloseReason, text: str) -> None:
        """Drop."""

    def _stranger_closed(self, stream: int, text: str, now: float) -> None:
        if stream == self._dialling:
            self._dialling = None
            self._dial_failed(text, now)

    def _closing(self) -> None:
        self._wanted = False
        self._dialling = None
        self._dial_at = None

    def _ended(self, reason: CloseReason | None, now: float, advice: float) -> float | None:
        self._renew_at = None
        self._asked = None
        self._lapse_told = True
        self._renewals.clear()
        self._dial_at = self._redial_at(reason, now, advice) if self._wanted else None
        return self._dial_at

    # --- greeting ----------------------------------------------------------------------------------------------

    def _frame_numbers(self) -> tuple[int, int]:
        return (0 if self.state is SessionState.GREETING else self.session), 0

    def _take_greeting(self, frame: Frame, now: float) -> None:
        match frame.control:
            case (Close(reason=reason, text=text, retry_after_seconds=advice, ticket=ticket),):
                self.offered_ticket = ticket
                self._end(reason, text, now, by_peer=True, advice=advice)
            case (Welcome() as welcome,) if not frame.messages:
                self._take_welcome(welcome, frame, now)
            case _:
                self._violation("frame: the first from the manager must be a Welcome or a Close, alone", now)

    def _take_welcome(self, welcome: Welcome, frame: Frame, now: float) -> None:
        if frame.term < self.seen_term:
            self._end(CloseReason.TERM_STALE, f"term: is {frame.term}, but {self.seen_term} was seen", now)
            return
        fault = self._fault(welcome, frame)
        if fault:
            self._violation(fault, now)
            return
        self.term = self.seen_term = frame.term
        self._heard_at = now
        self._lease = AgentLease()
        self._renew_every = welcome.renew_seconds
        # A manager with longer times answers less often; one with shorter ones ends the session before we do.
        self._silence = max(limits.LOST_SECONDS, least_lost(welcome.lease_seconds))
        lineage = self._lineage
        if not welcome.resume or lineage is None:
            lineage = Lineage(peer_instance=welcome.instance, first_session=welcome.session, term=frame.term)
        else:
            self._outbox.replay_from(welcome.received + 1)
        self._begin(welcome.session, lineage, resumed=welcome.resume)
        self._out.append(
            Welcomed(
                session=self.session,
                term=self.term,
                resumed=welcome.resume,
                version=welcome.version,
                origin=welcome.origin,
                peer_instance=welcome.instance,
                keeps_quota=welcome.keeps_quota,
            )
        )
        hello_again: tuple[Control, ...] = (self._renewal(now), CreditGrant(credits=self._credits))
        if welcome.resume:
            self._open()
            self._failures = 0
            self._flush(hello_again)
        else:
            self._received = self._told = frame.sequence - 1
            self._base_known = True
            self._set_deadline(None, "")
            self._transmit(hello_again)

    def _fault(self, welcome: Welcome, frame: Frame) -> str:
        """Say what is wrong with a Welcome; empty when nothing is."""
        lineage = self._lineage
        least, most = self._versions
        if welcome.session != frame.session:
            return f"Welcome.session: is {welcome.session} in a frame of session {frame.session}"
        if welcome.session <= self.session:
            return f"Welcome.session: must be above {self.session}, is {welcome.session}"
        if not least <= welcome.version <= most:
            return f"Welcome.version: must be between {least} and {most}, is {welcome.version}"
        if not welcome.resume:
            return "" if frame.sequence >= 1 else "sequence: must be 1 or more in a Welcome"
        if lineage is None or (lineage.peer_instance, lineage.term) != (welcome.instance, frame.term):
            return "Welcome.resume: only the process and term of the session before may resume it"
        if not self._outbox.can_replay_from(welcome.received + 1):
            first, last = self._outbox.first, self._outbox.transmitted
            return f"Welcome.received: {welcome.received} cannot be resumed from, {first} to {last} are kept"
        return ""

    # --- in a session ------------------------------------------------------------------------------------------

    def _admissible(self, frame: Frame, now: float) -> bool:
        if frame.term == self.term:
            self._heard_at = now
            return True
        if frame.term < self.term:
            self._end(CloseReason.TERM_STALE, f"term: is {frame.term}, but {self.term} was seen", now)
        else:
            self.seen_term = max(self.seen_term, frame.term)
            self._violation(f"term: is {frame.term} in a session of term {self.term}", now)
        return False

    def _take_control(self, control: Control, now: float) -> None:
        match control:
            case LeaseGranted(sent_at=sent_at, seconds=seconds, counter=counter, seal=seal):
                self._take_grant(sent_at, seconds, Sealed(counter, seal), now)
            case InventoryRequest(request=request, namespaces=namespaces):
                self._asked = request
                self._out.append(InventoryAsked(session=self.session, request=request, namespaces=namespaces))
            case _:
                self._violation(f"control: {type(control).__name__} is not the manager's to send", now)

    def _take_grant(self, sent_at: float, seconds: float, sealed: Sealed, now: float) -> None:
        if sent_at not in self._renewals:
            self._violation(f"LeaseGranted.sent_at: no renewal of this session was sent at {sent_at:g}", now)
            return
        while self._renewals and self._renewals[0] <= sent_at:
            self._renewals.popleft()
        self._count(sealed)
        self._lease = self._lease.granted(sent_at, seconds)
        if self._lease.until is None or self._lease.acknowledged_at is None or not self._lease.valid(now):
            return
        self._lapse_told = False
        self._out.append(
            LeaseExtended(session=self.session, acknowledged_at=self._lease.acknowledged_at, until=self._lease.until)
        )

    def _renewal(self, now: float) -> LeaseRenew:
        self._renewals.append(now)
        self._renew_at = now + self._renew_every
        self._greeting_mark = self._mark
        return LeaseRenew(sent_at=now, api_reachable=self._api_reachable, replicas=self._replicas, mark=self._mark)

    def _caught_up_by_frame(self) -> bool:
        return False
