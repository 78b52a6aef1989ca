"""What the sessions of both ends share: states, numbering, acknowledgements, window, farewell. Pure.

Neighbours: `session` (words and promises), `session_agent` and `session_manager` (greeting, lease, inventory),
`outbox` (what is not acknowledged). Subclasses fill in the hooks; nothing outside calls an underscored name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from gatelift_wire.sessions.cutting import fit_all
from gatelift_wire.sessions.outbox import Outbox, OutboxFull
from gatelift_wire.sessions.session import (
    LIVE,
    TABLE,
    BadFrame,
    CloseStream,
    Delivered,
    FrameReceived,
    GreetingEnded,
    Opened,
    OpenStream,
    SessionEnded,
    SessionEvent,
    SessionOutput,
    SessionState,
    SessionStep,
    StreamClosed,
    StreamOpened,
    Transmit,
)
from gatelift_wire.values import limits
from gatelift_wire.values.messages import Close, Control, Frame, Message
from gatelift_wire.values.moments import soonest
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import IllegalUse

RESUMABLE_AFTER = frozenset({None, CloseReason.FENCED_BY_NEWER_SESSION, CloseReason.SHUTTING_DOWN})
"""Ends of a session after which both outboxes still mean something. All others say that one end's view is not to be
trusted or not to be used (LOST: H12), so they are emptied.
"""


ACTIONS = (OpenStream, Transmit, CloseStream)

CARRYING = frozenset({SessionState.OPEN, SessionState.DRAINING})
"""States in which messages may arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Sessions that follow each other by resume: between which processes, since which session, in which term."""

    peer_instance: str
    first_session: int
    term: int


class SessionCore(ABC):
    """One end of a session. See `gatelift_wire.sessions.session` for how to drive it."""

    TAKEN: ClassVar[dict[SessionState, frozenset[type]]]
    """Controls that the peer may send in each state; any other is a protocol violation."""

    TAKES: ClassVar[frozenset[type]]
    """Messages that come from the peer: reports at the manager, commands at the agent."""

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.state = SessionState.CLOSED
        self.live = False
        """There is a session with a number (it may not carry messages yet: see `state`)."""
        self.session = 0
        self.term = 0
        self._stream: int | None = None
        self._outbox = Outbox()
        self._received = 0
        self._base_known = False
        self._told = 0
        self._acknowledge_at: float | None = None
        self._deadline: float | None = None
        self._deadline_text = ""
        self._farewell: Close | None = None
        self._resumed = False
        self._resynced = False
        self._lineage: Lineage | None = None
        self._out: list[SessionOutput] = []
        self._due: float | None = None
        self._due_known = False
        """`_due` is the earliest of `_deadlines`: both ends ask after every event, and few events concern a session."""

    # --- the doors ---------------------------------------------------------------------------------------------

    @property
    def last_sequence(self) -> int:
        """Number of the message queued last in the life of this process."""
        return self._outbox.last

    @property
    def heard(self) -> int:
        """Number up to which the peer has acknowledged all, in a session whose outbox was not emptied since."""
        return self._outbox.first - 1

    @property
    def unacknowledged(self) -> int:
        """How many messages are kept because the peer has not acknowledged them."""
        return len(self._outbox)

    def handle(self, event: SessionEvent, now: float) -> list[SessionOutput]:
        """Take what happened to a stream. Deadlines that have passed are looked at first."""
        self._expire(now)
        match event:
            case StreamOpened(stream_id=stream):
                self._stream_opened(stream, now)
            case FrameReceived(stream_id=stream, frame=frame):
                if stream == self._stream:
                    self._take_frame(frame, now)
                else:
                    self._take_stranger(stream, frame, now)
            case BadFrame(stream_id=stream, reason=reason, text=text):
                if stream == self._stream:
                    self._end(reason, text, now)
                else:
                    self._reject_stranger(stream, reason, text)
            case StreamClosed(stream_id=stream, text=text):
                if stream == self._stream:
                    self._end(None, text, now, broken=True)
                else:
                    self._stranger_closed(stream, text, now)
        return self._take_out()

    def tick(self, now: float) -> list[SessionOutput]:
        """Do what is due. Harmless when nothing is."""
        due = self.next_deadline()
        if due is None or now < due:
            return []
        self._expire(now)
        return self._take_out()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do; None: only an event can change anything."""
        if not self._due_known:
            self._due, self._due_known = soonest(*self._deadlines()), True
        return self._due

    def send(self, messages: Iterable[Message], now: float) -> list[SessionOutput]:
        """Queue messages; they go out now if the session is open and the window allows.

        Dropped when no resume is possible any more (see `session`). A full outbox ends the session
        (`OUTBOX_FULL`, then resync). Raises `WireViolation` or `TooLarge` for a message that the peer would refuse,
        with nothing queued.
        """
        parts = fit_all(messages)
        self._expire(now)
        if self._lineage is not None:
            try:
                for message, weight in parts:
                    self._outbox.append(message, weight)
            except OutboxFull as full:
                self._overflow(str(full), now)
            self._flush()
        return self._take_out()

    def close(self, reason: CloseReason, text: str, now: float) -> list[SessionOutput]:
        """Say farewell: what the window allows, then Close; the peer hangs up, or `DRAIN_SECONDS` pass."""
        self._expire(now)
        self._closing()
        if self.state in {SessionState.RESUMING, SessionState.RESYNCING, SessionState.OPEN}:
            self._farewell = Close(reason=reason, text=text)
            self._flush()
            self._move(SessionStep.FAREWELL)
            self._transmit((self._farewell,))
            self._set_deadline(now + limits.DRAIN_SECONDS, "")
        elif self.state is SessionState.GREETING:
            self._end(reason, text, now)
        return self._take_out()

    def abort(self, reason: CloseReason, text: str, now: float, *, resumable: bool = True) -> list[SessionOutput]:
        """End the session or greeting at once, with a typed Close.

        What may be resumed follows from the reason; nothing when not `resumable`: something that came was not taken.
        """
        self._expire(now)
        self._end(reason, text, now)
        if not resumable or reason not in RESUMABLE_AFTER:
            self._forget_lineage()
        return self._take_out()

    # --- hooks -------------------------------------------------------------------------------------------------

    @abstractmethod
    def _stream_opened(self, stream: int, now: float) -> None:
        """Take a stream that opened."""

    @abstractmethod
    def _take_stranger(self, stream: int, frame: Frame, now: float) -> None:
        """Take a frame of a stream that is not the present one: dropped (R6), unless it greets the manager."""

    @abstractmethod
    def _reject_stranger(self, stream: int, reason: CloseReason, text: str) -> None:
        """Take nonsense on a stream that is not the present one."""

    @abstractmethod
    def _stranger_closed(self, stream: int, text: str, now: float) -> None:
        """Take the end of a stream that is not the present one."""

    @abstractmethod
    def _take_greeting(self, frame: Frame, now: float) -> None:
        """Take a frame that came on the present stream in GREETING."""

    @abstractmethod
    def _admissible(self, frame: Frame, now: float) -> bool:
        """Say whether a frame of the present session may be looked at; if not, the hook has ended the session."""

    @abstractmethod
    def _take_control(self, control: Control, now: float) -> None:
        """Take a control that `TAKEN` allows, other than Close."""

    @abstractmethod
    def _caught_up_by_frame(self) -> bool:
        """Say whether any frame of the peer ends RESUMING (manager: it proves that Welcome arrived)."""

    @abstractmethod
    def _closing(self) -> None:
        """Prepare for this end's own farewell."""

    @abstractmethod
    def _ended(self, reason: CloseReason | None, now: float, advice: float) -> float | None:
        """Clean up after a session or greeting; returns when the agent dials again."""

    def _deadlines(self) -> Iterable[float | None]:
        """All moments at which `_expire` has something to do."""
        return (self._deadline, self._acknowledge_at)

    def _expire(self, now: float) -> None:
        """Look at deadlines. Roles look at their own first."""
        if self._deadline is not None and now >= self._deadline:
            self._deadline_passed(now)
        if self._acknowledge_at is not None and now >= self._acknowledge_at:
            self._transmit(())

    # --- receiving ---------------------------------------------------------------------------------------------

    def _take_frame(self, frame: Frame, now: float) -> None:
        if self.state is SessionState.GREETING:
            self._take_greeting(frame, now)
            return
        if frame.session < self.session:
            return  # R6: of an earlier session
        if frame.session > self.session:
            self._violation(f"session: must be {self.session}, is {frame.session}", now)
            return
        if not (self._admissible(frame, now) and self._numbers_hold(frame, now) and self._kinds_hold(frame, now)):
            return
        if self.state is SessionState.RESUMING and self._caught_up_by_frame():
            self._open()
        # Messages first: an inventory that is asked for in the same frame must hold what they did (R4). Only where a
        # control of this frame may be what lets messages flow at all do they come after it.
        early = self.state in CARRYING
        if early and not self._take_messages(frame, now):
            return
        farewell: Close | None = None
        for control in frame.control:
            if isinstance(control, Close):
                farewell = control
            else:
                self._take_control(control, now)
                if not self.live:
                    return
        if not early and not self._take_messages(frame, now):
            return
        self._flush()
        if farewell is not None:
            self._peer_farewell(farewell, now)

    def _numbers_hold(self, frame: Frame, now: float) -> bool:
        """Check sequence and acknowledgement of a frame. The first frame after a resync says where numbers begin."""
        if not self._base_known:
            self._received = self._told = max(0, frame.sequence - 1)
            self._base_known = True
        expected = self._received + 1
        if frame.sequence > expected:
            self._violation(f"sequence: must be {expected}, is {frame.sequence}; messages between are missing", now)
        elif frame.sequence < max(1, expected - limits.OUTBOX_MESSAGES_MAX):
            self._violation(f"sequence: is {frame.sequence}, older than any replay; expected {expected}", now)
        elif not self._outbox.acknowledge(frame.acknowledged):
            self._violation(
                f"acknowledged: is {frame.acknowledged}, but only {self._outbox.transmitted} were ever sent", now
            )
        else:
            return True
        return False

    def _kinds_hold(self, frame: Frame, now: float) -> bool:
        taken = self.TAKEN[self.state]
        for control in frame.control:
            if type(control) not in taken:
                self._violation(f"control: {type(control).__name__} has no place in {self.state.value}", now)
                return False
        for message in frame.messages:
            if type(message) not in self.TAKES:
                self._violation(f"messages: {type(message).__name__} does not travel in this direction", now)
                return False
        return True

    def _take_messages(self, frame: Frame, now: float) -> bool:
        if not frame.messages:
            return True
        if self.state not in CARRYING:
            self._violation(f"messages: have no place in {self.state.value}", now)
            return False
        again = False
        for sequence, message in enumerate(frame.messages, start=frame.sequence):
            if sequence <= self._received:
                again = True  # a duplicate: the acknowledgement was lost, so it is said again
                continue
            self._received = sequence
            self._out.append(Delivered(session=self.session, sequence=sequence, message=message))
        if again or self._received - self._told >= limits.ACK_EVERY:
            self._transmit(())
        elif self._acknowledge_at is None:
            self._acknowledge_at = now + limits.ACK_DELAY_SECONDS
        return True

    def _peer_farewell(self, farewell: Close, now: float) -> None:
        if self._told < self._received:
            self._transmit(())
        self._end(farewell.reason, farewell.text, now, by_peer=True, advice=farewell.retry_after_seconds)

    # --- sending -----------------------------------------------------------------------------------------------

    def _frame_numbers(self) -> tuple[int, int]:
        """Session and term of the frames this end writes."""
        return self.session, self.term

    def _transmit(
        self, control: tuple[Control, ...], sequence: int | None = None, batch: tuple[Message, ...] = ()
    ) -> None:
        if self._stream is None:
            return
        session, term = self._frame_numbers()
        frame = Frame(
            session=session,
            term=term,
            sequence=self._outbox.sent + 1 if sequence is None else sequence,
            acknowledged=self._received,
            control=control,
            messages=batch,
        )
        self._told = self._received
        self._acknowledge_at = None
        self._out.append(Transmit(stream_id=self._stream, frame=frame))

    def _flush(self, control: tuple[Control, ...] = ()) -> None:
        """Send what waits, if messages may flow; controls ride on the first frame."""
        while self.state is SessionState.OPEN:
            sequence, batch = self._outbox.take_unsent()
            if not batch:
                break
            self._transmit(control, sequence, batch)
            control = ()
        if control:
            self._transmit(control)

    def _overflow(self, text: str, now: float) -> None:
        if self.live:
            self._end(CloseReason.OUTBOX_FULL, text, now)
        self._forget_lineage()

    # --- moving ------------------------------------------------------------------------------------------------

    def _move(self, step: SessionStep) -> None:
        following = TABLE[self.state].get(step)
        if following is None:
            raise IllegalUse(f"session: {step.value} has no place in {self.state.value}")
        self.state = following
        self.live = following in LIVE

    def _set_deadline(self, at: float | None, text: str) -> None:
        self._deadline, self._deadline_text = at, text

    def _deadline_passed(self, now: float) -> None:
        if self.state is SessionState.DRAINING:
            self._end(None, "", now)
        else:
            self._end(CloseReason.PROTOCOL_VIOLATION, self._deadline_text, now)

    def _begin(self, session: int, lineage: Lineage, *, resumed: bool) -> None:
        """Enter a session: the outbox is already replayed or is cleared here."""
        self.session = session
        self._lineage = lineage
        self._resumed = resumed
        self._farewell = None
        if not resumed:
            self._outbox.clear()
            self._received = self._told = 0
            self._base_known = self._resynced = False
        self._move(SessionStep.RESUMED if resumed else SessionStep.RESYNCED)

    def _open(self) -> None:
        self._move(SessionStep.CAUGHT_UP)
        self._resynced = True
        self._set_deadline(None, "")
        self._out.append(Opened(session=self.session, resumed=self._resumed))

    def _violation(self, text: str, now: float) -> None:
        self._end(CloseReason.PROTOCOL_VIOLATION, text, now)

    def _end(
        self,
        reason: CloseReason | None,
        text: str,
        now: float,
        *,
        by_peer: bool = False,
        broken: bool = False,
        advice: float = 0.0,
    ) -> None:
        """End the session or greeting, whatever the state; tells the peer why unless it said so or the stream broke."""
        stream = self._stream
        if self.state is SessionState.CLOSED or stream is None:
            return
        said = self._farewell
        if said is not None and reason is None:
            reason, text = said.reason, said.text
        if not broken:
            if reason is not None and not by_peer and said is None:
                said = Close(reason=reason, text=text)
                self._transmit((said,))
            self._out.append(CloseStream(stream_id=stream, close=None if by_peer else said))
        was_live = self.live
        self._move(SessionStep.ENDED)
        self._stream = None
        self._farewell = None
        self._acknowledge_at = None
        self._set_deadline(None, "")
        if was_live and (reason not in RESUMABLE_AFTER or not self._resynced):
            # A resync that was cut short is begun anew: the other end may count it as through and resume, and then
            # nobody would ever compare (the inventory was lost on its way).
            self._forget_lineage()
        retry_at = self._ended(reason, now, advice)
        if was_live:
            self._out.append(SessionEnded(session=self.session, reason=reason, text=text, by_peer=by_peer))
        else:
            self._out.append(GreetingEnded(stream_id=stream, reason=reason, text=text, retry_at=retry_at))

    def _forget_lineage(self) -> None:
        self._lineage = None
        self._outbox.clear()

    def _take_out(self) -> list[SessionOutput]:
        """Return actions, then upcalls: a core may call back from an upcall without overtaking what was transmitted.

        All doors end here: whatever they have done, deadlines are counted anew when somebody asks.
        """
        self._due_known = False
        if len(self._out) < 2:  # as nearly always: nothing to put in order
            out, self._out = self._out, []
            return out
        actions: list[SessionOutput] = []
        upcalls: list[SessionOutput] = []
        for output in self._out:
            (actions if isinstance(output, ACTIONS) else upcalls).append(output)
        self._out.clear()
        return actions + upcalls
