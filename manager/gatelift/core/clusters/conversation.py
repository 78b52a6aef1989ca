"""The conversation with the agent of one cluster: what its session puts out, and what the agent has said in it.

Neighbours: `link` (opens and ends it, and acts on what is written), `cluster_record` (what of it is recorded before it
counts, rule R2), `cluster_views` (how it looks to dispatch), `gatelift_wire.sessions.session_manager` (the machine
inside).
"""

from __future__ import annotations

from gatelift.core.api import informing
from gatelift.core.api.commands import CloseAgentStream, Note, SendToAgent
from gatelift.core.api.events import AgentStreamOpened
from gatelift.core.clusters import foreign_runs, identity
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.cluster_record import ClusterRecord
from gatelift.core.clusters.link_values import (
    ClusterChanged,
    LinkBroken,
    LinkOpened,
    LinkRecovered,
    LinkState,
    LinkSuspect,
    PlacementsInventoried,
    Reported,
)
from gatelift.core.clusters.linking import Effects, Leading
from gatelift.core.clusters.renewals import Renewals
from gatelift.core.clusters.unheard import Unheard
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.messages import Capacity, CertificateRequest, Close, Hello
from gatelift_wire.values.refusals import CloseReason


class Conversation:
    """One cluster's, through all its streams. What it wants is put into the `Effects` that it is given."""

    def __init__(self, record: ClusterRecord, session: ManagerSession, leading: Leading) -> None:
        self.name = record.name
        self.hello: Hello | None = None
        self.suspect = False
        self.open_session = self.resynced = 0
        self.credits = self.version = 0
        self.capacity: Capacity | None = None
        self.unheard = Unheard()
        self.renewals = Renewals(record.name, leading)
        self.namespaces: frozenset[str] = frozenset()  # in which something is placed
        self.streams: dict[int, AgentStreamOpened] = {}
        self.record = record
        self._session = session
        self._leading = leading
        self._requests: dict[int, int] = {}
        self._request = 0

    @property
    def facts(self) -> Facts:
        """What the cluster's status is to say."""
        return self.record.facts

    def state(self) -> LinkState:
        """Return the state of the cluster as counted here."""
        if self.record.lost_session is not None or self.facts.lost:
            return LinkState.LOST
        if self.suspect:
            return LinkState.SUSPECT
        return LinkState.CONNECTED if self.open_session else LinkState.UNKNOWN

    def sendable(self, now: float) -> bool:
        """Say whether a message may be sent: the session is open, and this process may command."""
        return self.open_session > 0 and self._session.state is wire.SessionState.OPEN and self._leading.valid(now)

    def welcome(self, greeting: wire.GreetingReceived, number: int, now: float, out: Effects) -> None:
        """Begin the session of this number, which is written, with who greeted; resumed, or with an inventory."""
        self.record.greeting, self.record.lost_session = None, None
        self.record.served(greeting.hello, now)
        self.hello, self.suspect = greeting.hello, False
        resume = greeting.resumable and self.record.comparison.may_resume(self.facts) and not self.unheard.resyncs
        if not resume:
            self.record.comparison.resyncs(number, self.facts)
        served = self._session.welcome(greeting.stream_id, number, self._leading.origin, now, resume_allowed=resume)
        self.version = next((each.version for each in served if isinstance(each, wire.Welcomed)), self.version)
        self.take(served, now, out)

    def grant(self, now: float, out: Effects) -> None:
        """Answer the youngest renewal, if all that it says is written (P4) and this process may (R1)."""
        renewal = self.record.renewal
        if renewal is None or renewal.api_reachable != self.facts.api_reachable or not self._leading.valid(now):
            return
        if self.record.grants.needed > self.facts.lease_seconds:
            return  # P3: recorded with the session's number; an object that was made anew has none yet
        self.record.renewal = None
        recovered, self.suspect = self.suspect, False
        sealed = self._leading.counter.sealed(self.name)
        self.take(self._session.grant(now, sent_at=renewal.sent_at, sealed=sealed), now, out)
        if recovered:
            out.upcalls.append(LinkRecovered(cluster=self.name))

    def end_streams(self, text: str, now: float, out: Effects) -> None:
        """End all streams; the agent greets anew."""
        for stream_id in tuple(self.streams):
            bad = wire.BadFrame(stream_id=stream_id, reason=CloseReason.SHUTTING_DOWN, text=text)
            self.take(self._session.handle(bad, now), now, out)

    def take(self, outputs: list[wire.SessionOutput], now: float, out: Effects) -> None:
        """Take what the session has put out."""
        for output in outputs:
            match output:
                case wire.Transmit():
                    out.commands.append(SendToAgent(stream_id=output.stream_id, frame=output.frame))
                case wire.CloseStream():
                    close = output.close or Close(reason=CloseReason.SHUTTING_DOWN)
                    out.commands.append(CloseAgentStream(stream_id=output.stream_id, close=close))
                case wire.Delivered():
                    self._delivered(output, now, out)
                case wire.LeaseRenewed():
                    self.record.renewal, self.facts.replicas = output, output.replicas
                    self.facts.mark = max(self.facts.mark, output.mark)
                    self.facts.last_seen = self._leading.wall.text(now)
                    self.grant(now, out)
                case wire.AnotherGreeted():
                    self.record.beside(output.hello, now)
                case wire.CreditsGranted():
                    self.credits = output.credits
                    out.upcalls.append(ClusterChanged(cluster=self.name))
                case _:
                    self._turn(output, now, out)

    def _turn(self, output: wire.SessionOutput, now: float, out: Effects) -> None:
        """Take what changes the session's own standing."""
        match output:
            case wire.GreetingReceived():
                self._greeted(output, now, out)
            case wire.CounterShown():
                out.upcalls.append(self._leading.shown(self.name, output))
            case wire.GreetingEnded():
                self.record.greeting = None
            case wire.Welcomed(resumed=False):
                self._request += 1
                self._requests = {self._request: self._leading.record_revision}
                self.take(self._session.ask_inventory(self._request, now, self.namespaces), now, out)
            case wire.InventoryReceived():
                self.facts.foreign = foreign_runs.read(output.foreign)
                self.unheard.inventoried(unheard=output.unheard)
                out.upcalls.append(self._inventoried(output))
            case wire.Opened():
                self.open_session, self.facts.session_open = output.session, True
                if not output.resumed:
                    self.resynced, self.record.comparison.awaited = output.session, True
                self.credits = self.credits or (self.hello.credits if self.hello else 0)
                out.upcalls.append(LinkOpened(cluster=self.name, session=output.session, resumed=output.resumed))
            case wire.SessionEnded():
                self.renewals.want(b"")
                self.open_session, self.record.renewal, self.credits = 0, None, 0
                self.facts.session_open = self.record.comparison.awaited = False
                out.upcalls.append(LinkBroken(cluster=self.name, session=output.session))
                out.commands.append(Note(level="info", text=f"session ended: {output.text}", cluster=self.name))
            case wire.SuspectReached():
                self.suspect = True
                out.upcalls.append(LinkSuspect(cluster=self.name))
            case wire.LostReached():
                self.record.lost_session, self.suspect = output.last_session, False
            case wire.HigherTermSeen():
                # One worker's word, so it is looked into: a write succeeds only if no other leader has written here.
                self.record.doubted_term = output.term
            case _:
                pass

    def _greeted(self, output: wire.GreetingReceived, now: float, out: Effects) -> None:
        self.facts.last_seen = self._leading.wall.text(now)
        recorded = self.record.object.status.session if self.record.object is not None else 0
        text = identity.too_high(output.hello, recorded)
        if text:
            refused = self._session.refuse(output.stream_id, CloseReason.SESSION_TOO_HIGH, text, now)
            self.take(refused, now, out)
            out.commands.append(Note(level="warning", text=f"greeting refused: {text}", cluster=self.name))
            return
        self.record.greeting = output
        self.facts.uses_certificate(self.streams[output.stream_id])
        self.record.hurry(now)

    def _delivered(self, output: wire.Delivered, now: float, out: Effects) -> None:
        message = output.message
        if isinstance(message, Capacity):
            self.capacity, self.facts.capacity = message, informing.StatedCapacity(message)
            self.facts.foreign = foreign_runs.read(message.foreign)
            self.unheard.said(unheard=message.unheard)
            out.upcalls.append(ClusterChanged(cluster=self.name))
        elif isinstance(message, CertificateRequest):
            self.renewals.want(message.request)
            self.renewals.ask(self.record.object, now, out)
        else:
            out.upcalls.append(
                Reported(cluster=self.name, session=output.session, sequence=output.sequence, message=message)  # type: ignore[arg-type]  # the session delivers reports only: other kinds are violations
            )

    def _inventoried(self, output: wire.InventoryReceived) -> PlacementsInventoried:
        return PlacementsInventoried(
            cluster=self.name,
            session=output.session,
            record_revision=self._requests.pop(output.request, 0),
            applied=output.applied,
            entries=output.entries,
            unproven=self.record.comparison.unproven(self.facts),
            unproven_through=self.record.comparison.unproven_through(self.facts),
            unheard=output.unheard,
        )
