"""One worker cluster as the manager deals with it: its streams, its session, its lease, and what its agent says.

What of this is recorded, and may be acted upon only then (rule R2), is `cluster_record`'s. Neighbours: `links` (routes
events here), `gatelift_wire.sessions.session` (the machine inside).
"""

from __future__ import annotations

from gatelift.core.api import informing
from gatelift.core.api.commands import CloseAgentStream, Note, SendToAgent
from gatelift.core.api.events import AgentStreamOpened
from gatelift.core.clusters import capacities, fencing, foreign_runs, identity, link_writes
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.cluster_record import ClusterRecord
from gatelift.core.clusters.link_values import (
    ClusterChanged,
    ClusterView,
    FencedByPerson,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinkRecovered,
    LinkState,
    LinkSuspect,
    PlaceCounts,
    PlacementsInventoried,
    Reported,
)
from gatelift.core.clusters.link_writes import StatusPurpose, Write
from gatelift.core.clusters.linking import Effects, Leading
from gatelift.core.clusters.renewals import Renewals
from gatelift.core.clusters.unheard import GREET_ANEW, Unheard
from gatelift_kube.deciding.writes import WriteDone, WriteFailed
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, Predecessor, WorkerCluster
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Capacity,
    CertificateRenewed,
    CertificateRequest,
    Close,
    DisconnectPolicy,
    Hello,
    Message,
)
from gatelift_wire.values.moments import soonest
from gatelift_wire.values.refusals import CloseReason


class Link:
    """One worker cluster. All methods return nothing; what they want is put into the `Effects` they are given."""

    def __init__(self, name: str, session: ManagerSession, leading: Leading) -> None:
        self.name = name
        self.record = ClusterRecord(name, session, leading)
        self._session = session
        self._leading = leading
        self._hello: Hello | None = None
        self._suspect = False
        self._fenced_told = (0, "")
        self._work_told = False
        self._requests: dict[int, int] = {}
        self._request = self._credits = 0
        self._open_session = self._resynced = 0
        self._capacity: Capacity | None = None
        self._unheard = Unheard()
        self.namespaces: frozenset[str] = frozenset()  # in which something is placed
        self._renewals = Renewals(name, leading)
        self._opened: dict[int, AgentStreamOpened] = {}
        self._view: tuple[tuple[object, ...], ClusterView] | None = None

    # --- what others ask -------------------------------------------------------------------------------------------

    @property
    def object(self) -> WorkerCluster | None:
        """The WorkerCluster as it is known, None when there is none."""
        return self.record.object

    @property
    def facts(self) -> Facts:
        """What its status is to say."""
        return self.record.facts

    @property
    def open_session(self) -> int:
        """The number of the session that is open, 0 when none is."""
        return self._open_session

    @property
    def certificate_requests(self) -> frozenset[int]:
        """Requests to the authority that are not answered yet."""
        return self._renewals.asked

    def state(self) -> LinkState:
        """Return the state of the cluster as counted here."""
        if self.record.lost_session is not None or self.facts.lost:
            return LinkState.LOST
        if self._suspect:
            return LinkState.SUSPECT
        return LinkState.CONNECTED if self._open_session else LinkState.UNKNOWN

    def view(self, now: float) -> ClusterView:
        """Return what dispatch and explain see; made anew only when that has changed, which it does rarely."""
        facts, open_ = self.facts, self._sendable(now)
        doubt = (
            self.record.comparison.unproven(self.facts),
            self.record.comparison.unproven_through(self.facts),
            self.record.vouching,
        )
        record = (self.record.fenced(), doubt, self._resynced)
        said = (self.object, self._hello, self._capacity, self._credits, self._open_session, self.state(), record)
        of = (open_, facts.api_reachable, facts.replicas, facts.foreign, facts.left_out, said)
        if self._view is None or self._view[0] != of:
            self._view = (of, self._make_view(open_=open_))
        return self._view[1]

    def _make_view(self, *, open_: bool) -> ClusterView:
        found, hello, capacity = self.object or WorkerCluster(), self._hello, self._capacity
        policy = found.spec.disconnect_policy
        fenced_through, fenced_by = self.record.fenced()
        return ClusterView(
            name=self.name,
            state=self.state(),
            session=self._open_session,
            open=open_,
            cordoned=found.spec.cordoned or not self.record.may_get_work(found),
            draining=found.spec.drain,
            kinds=frozenset(hello.kinds if hello else ()),
            accepted_namespaces=frozenset(capacity.namespaces) if capacity else None,
            allowed_namespaces=found.spec.allowed_namespaces,
            capacity=capacities.by_resource(capacity.entries if capacity else ()),
            credits=self._credits,
            labels=tuple(sorted(found.metadata.labels.items())),
            weight=found.spec.weight,
            policy=DisconnectPolicy(policy) if policy in {each.value for each in DisconnectPolicy} else None,
            api_reachable=self.facts.api_reachable,
            replicas=self.facts.replicas,
            predecessors=found.status.predecessors,
            fenced_through=fenced_through,
            fenced_by=fenced_by,
            resynced_session=self._resynced,
            unproven=self.record.comparison.unproven(self.facts),
            unproven_through=self.record.comparison.unproven_through(self.facts),
            vouching=self.record.vouching,
            foreign=foreign_runs.awaited(found, self.facts.foreign),
            left_out=bool(self.facts.left_out),
        )

    def counted(self, counts: PlaceCounts) -> bool:
        """Take how much is placed and offered here, and what the last inventory left open; False: no news."""
        before, self._unheard.undecided = (self.facts.counted(), self._unheard.due()), counts.undecided
        self.facts.place(counts.placements, counts.offers, counts.no_new_work)
        if self._open_session and counts.unexplained is not None:
            self.record.comparison.compared(self._resynced, counts.unexplained, self.facts)
        return before != (self.facts.counted(), self._unheard.due())

    def compared(self, session: int) -> None:
        """Take that dispatch is done with the inventory of a session."""
        if session == self._resynced:
            self.record.comparison.inventory_open = False

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do."""
        asks = self._unheard.due() if self._open_session else None  # who is away cannot be asked, and says all at once
        return soonest(self._session.next_deadline(), self.record.due(), self._renewals.due(), asks)

    # --- what happens ----------------------------------------------------------------------------------------------

    def lead(self, now: float, out: Effects) -> None:
        """Serve sessions under the term that was gained; every lease counts as renewed now.

        The longest grant that an earlier leader recorded counts as given now (P3).
        """
        self._suspect, self._fenced_told = False, (0, "")
        recorded = self.object.status.lease_seconds if self.object is not None else 0
        self._take(self._session.lead(self._leading.term, now, recorded_grant_seconds=recorded), now, out)
        out.upcalls += self.record.lead(now)
        self._pump(now, out)

    def step_down(self, now: float, out: Effects) -> None:
        """Close the session; nothing is written any more."""
        self._take(self._session.step_down("this manager no longer leads", now), now, out)
        self.record.step_down()

    def seen(self, found: WorkerCluster, now: float, out: Effects) -> None:
        """Take the WorkerCluster as it is now."""
        if higher := self.record.higher(found):  # R3
            out.upcalls += higher
            return
        anew = self.object is None or self.object.metadata.uid != found.metadata.uid
        self.record.adopt(found)
        if anew and self._session.is_lost:
            self.record.lost_session = self._session.session  # told once, and written to an object that is no more
        self._evict(now, out)
        out.upcalls.append(ClusterChanged(cluster=self.name))
        self._tell_fenced(out)
        self._pump(now, out)

    def unconfirmed(self, found: WorkerCluster, now: float, out: Effects) -> None:
        """Take that no leader has written the higher term of this version: it is written over."""
        for known in self.record.unconfirmed(found):
            self.seen(known, now, out)

    def gone(self, now: float, out: Effects) -> None:
        """Take that the WorkerCluster was deleted: its agent is not expected; if it is again, it lists what it has."""
        self.record.object, self.record.comparison.inventory_open = None, True
        self._evict(now, out)
        out.upcalls.append(ClusterChanged(cluster=self.name))

    def refusal(self, key_digest: str) -> Close | None:
        """Say why an agent with this key may not have a stream; None: it may."""
        found = self.object
        if found is None:
            text = f"no WorkerCluster {self.name}: run 'gatelift cluster add {self.name}'"
            return Close(reason=CloseReason.UNKNOWN_CLUSTER, text=text)
        if found.spec.revoked:
            text = f"{self.name} was revoked by a person; 'gatelift cluster add {self.name}' takes it in again"
            return Close(reason=CloseReason.REVOKED, text=text)
        if self.name != LOCAL_CLUSTER and (not key_digest or found.status.key_digest != key_digest):
            text = f"this key is not the one that was approved last for {self.name}; enrol the agent with a new token"
            return Close(reason=CloseReason.REVOKED, text=text)
        return None

    def opened(self, event: AgentStreamOpened, now: float, out: Effects) -> None:
        """Take a stream that may be served (`refusal` said nothing)."""
        self._opened[event.stream_id] = event
        self.stream(wire.StreamOpened(stream_id=event.stream_id), now, out)

    def closed(self, stream_id: int, text: str, now: float, out: Effects) -> None:
        """Take that a stream is over."""
        self._opened.pop(stream_id, None)
        self.stream(wire.StreamClosed(stream_id=stream_id, text=text), now, out)

    def extended(self, now: float, out: Effects) -> None:
        """Go on with what was held back while the own leader lease was not valid."""
        self._grant(now, out)
        self._pump(now, out)

    def stream(self, event: wire.SessionEvent, now: float, out: Effects) -> None:
        """Take what happened on a stream of this cluster."""
        self._take(self._session.handle(event, now), now, out)
        self._pump(now, out)

    def tick(self, now: float, out: Effects) -> None:
        """Do what a deadline that has passed asks for."""
        self._take(self._session.tick(now), now, out)
        self._renewals.ask(self.object, now, out)
        self._pump(now, out)

    def send(self, messages: tuple[Message, ...], now: float, out: Effects) -> int:
        """Send in order; return the sequence number of the first, 0 when the link is not open.

        Where the session had to cut one of them, the number is too high, which is the safe side for rule R4. Raises
        `WireViolation` for a message that the agent would refuse; nothing of all this was sent then.
        """
        if not messages or not self._sendable(now):
            return 0
        self._take(self._session.send(messages, now), now, out)
        return self._session.last_sequence - len(messages) + 1

    def remember(self, predecessors: tuple[Predecessor, ...], over: frozenset[PlacementKey], now: float) -> None:
        """Have what is remembered of vanished placements written at once: it has to outlive this process."""
        self.facts.predecessors, self.facts.predecessors_over = predecessors, over
        self.record.hurry(now)

    def certified(self, certificate: bytes, ca_bundle: bytes, text: str, now: float, out: Effects) -> None:
        """Take the authority's answer to a renewal that came over the stream."""
        if not certificate:
            out.commands.append(Note(level="warning", text=f"certificate not renewed: {text}", cluster=self.name))
            return
        self.send((CertificateRenewed(certificate=certificate, ca_bundle=ca_bundle),), now, out)
        self._pump(now, out)

    def certificate_answered(self, request_id: int) -> None:
        """Forget a request to the authority."""
        self._renewals.answered(request_id)

    def wrote(self, event: WriteDone | WriteFailed, now: float, out: Effects) -> None:
        """Take the outcome of the write in flight."""
        write = self.record.answered(event, now, out)
        if write is not None:
            self._take_effect(write, now, out)
            self._tell_fenced(out)
        self._pump(now, out)

    # --- what is written (R2) --------------------------------------------------------------------------------------

    def _pump(self, now: float, out: Effects) -> None:
        away = self.record.turned_away(now)  # looked at again with each newer object
        if away is not None:
            said = (away.stream_id, CloseReason.ANOTHER_AGENT, away.text)
            self._take(self._session.refuse(*said, now, ticket=away.ticket), now, out)
        self.record.pump(now, out)
        if self._open_session and self._unheard.greets_anew(now):
            self._end_streams(GREET_ANEW, now, out)

    def _tell_fenced(self, out: Effects) -> None:
        """Tell of a person's word once it stands in the status, whoever wrote it there and whoever saw the answer."""
        through, who = fenced = self.record.fenced()
        if fenced != self._fenced_told and through:
            out.upcalls.append(FencedByPerson(cluster=self.name, through_session=through, who=who))
        self._fenced_told = fenced

    def _evict(self, now: float, out: Effects) -> None:
        """End at once every stream that may not be served any more: revoked, deleted, another key approved."""
        for stream_id, opened in tuple(self._opened.items()):
            close = self.refusal(opened.key_digest)
            if close is not None:
                bad = wire.BadFrame(stream_id=stream_id, reason=close.reason, text=close.text)
                self._take(self._session.handle(bad, now), now, out)

    def _take_effect(self, write: Write, now: float, out: Effects) -> None:
        """Act on what is now written."""
        found = self.object or WorkerCluster()
        match write.purpose:
            case StatusPurpose.SESSION:
                # Another agent may have greeted meanwhile: what is written is not of it, so a number is written for it.
                greeting = self.record.greeting
                if greeting is not None and greeting.stream_id == write.stream_id:
                    self._welcome(greeting, found.status.session, now, out)
                else:
                    self._take(self._session.missed(now), now, out)
            case StatusPurpose.LOST:
                if self.record.lost_session is not None:
                    self.record.lost_session = None
                    out.upcalls.append(LinkLost(cluster=self.name))
            case StatusPurpose.ANSWER:
                refused = found.metadata.annotations.get(fencing.ANNOTATION_FENCE_REFUSED, "")
                if refused:
                    text = f"a person's word is refused: {refused}"
                    out.commands.append(Note(level="warning", text=text, cluster=self.name))
            case StatusPurpose.UNREACHABLE:
                out.upcalls.append(ClusterChanged(cluster=self.name))
                self._grant(now, out)
            case StatusPurpose.DOUBT:
                doubted, self.record.doubted_term = self.record.doubted_term, 0
                text = link_writes.doubted(doubted, self._leading.term)
                out.commands.append(Note(level="warning", text=text, cluster=self.name))
            case StatusPurpose.FENCED | StatusPurpose.PUT_BACK | StatusPurpose.INFO:
                self._settled(now, out)  # and a word is told from what the status says

    def _settled(self, now: float, out: Effects) -> None:
        """Go on after what was written of a doubt about who serves the cluster."""
        found = self.object
        gets_work = found is not None and self.record.may_get_work(found)
        if self._work_told != gets_work:
            self._work_told = gets_work
            out.upcalls.append(ClusterChanged(cluster=self.name))
        if 0 < self._open_session < identity.doubted_in(self.facts):
            text = "what is charged here was placed before this WorkerCluster was made; greet anew"
            self.break_off(text, now, out)

    def break_off(self, text: str, now: float, out: Effects) -> None:
        """End all streams of the cluster; its agent greets anew, and is asked what it has."""
        self.record.comparison.inventory_open = True
        self._end_streams(text, now, out)

    def _end_streams(self, text: str, now: float, out: Effects) -> None:
        for stream_id in tuple(self._opened):
            bad = wire.BadFrame(stream_id=stream_id, reason=CloseReason.SHUTTING_DOWN, text=text)
            self._take(self._session.handle(bad, now), now, out)

    def _welcome(self, greeting: wire.GreetingReceived, number: int, now: float, out: Effects) -> None:
        self.record.greeting, self.record.lost_session = None, None
        self.record.served(greeting.hello, now)
        self._hello, self._suspect = greeting.hello, False
        resume = greeting.resumable and self.record.comparison.may_resume(self.facts) and not self._unheard.resyncs
        if not resume:
            self.record.comparison.resyncs(number, self.facts)
        served = self._session.welcome(greeting.stream_id, number, self._leading.origin, now, resume_allowed=resume)
        self._take(served, now, out)

    # --- the session's outputs -------------------------------------------------------------------------------------

    def _take(self, outputs: list[wire.SessionOutput], now: float, out: Effects) -> None:
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
                    self._grant(now, out)
                case wire.AnotherGreeted():
                    self.record.beside(output.hello, now)
                case wire.CreditsGranted():
                    self._credits = output.credits
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
                self._take(self._session.ask_inventory(self._request, now, self.namespaces), now, out)
            case wire.InventoryReceived():
                self.facts.foreign = foreign_runs.read(output.foreign)
                self._unheard.inventoried(unheard=output.unheard)
                out.upcalls.append(self._inventoried(output))
            case wire.Opened():
                self._open_session, self.facts.session_open = output.session, True
                if not output.resumed:
                    self._resynced, self.record.comparison.awaited = output.session, True
                self._credits = self._credits or (self._hello.credits if self._hello else 0)
                out.upcalls.append(LinkOpened(cluster=self.name, session=output.session, resumed=output.resumed))
            case wire.SessionEnded():
                self._renewals.want(b"")
                self._open_session, self.record.renewal, self._credits = 0, None, 0
                self.facts.session_open = self.record.comparison.awaited = False
                out.upcalls.append(LinkBroken(cluster=self.name, session=output.session))
                out.commands.append(Note(level="info", text=f"session ended: {output.text}", cluster=self.name))
            case wire.SuspectReached():
                self._suspect = True
                out.upcalls.append(LinkSuspect(cluster=self.name))
            case wire.LostReached():
                self.record.lost_session, self._suspect = output.last_session, False
            case wire.HigherTermSeen():
                # One worker's word, so it is looked into: a write succeeds only if no other leader has written here.
                self.record.doubted_term = output.term
            case _:
                pass

    def _greeted(self, output: wire.GreetingReceived, now: float, out: Effects) -> None:
        self.facts.last_seen = self._leading.wall.text(now)
        recorded = self.object.status.session if self.object is not None else 0
        text = identity.too_high(output.hello, recorded)
        if text:
            refused = self._session.refuse(output.stream_id, CloseReason.SESSION_TOO_HIGH, text, now)
            self._take(refused, now, out)
            out.commands.append(Note(level="warning", text=f"greeting refused: {text}", cluster=self.name))
            return
        self.record.greeting = output
        self.facts.uses_certificate(self._opened[output.stream_id])
        self.record.hurry(now)

    def _delivered(self, output: wire.Delivered, now: float, out: Effects) -> None:
        message = output.message
        if isinstance(message, Capacity):
            self._capacity, self.facts.capacity = message, informing.StatedCapacity(message)
            self.facts.foreign = foreign_runs.read(message.foreign)
            self._unheard.said(unheard=message.unheard)
            out.upcalls.append(ClusterChanged(cluster=self.name))
        elif isinstance(message, CertificateRequest):
            self._renewals.want(message.request)
            self._renewals.ask(self.object, now, out)
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

    def _grant(self, now: float, out: Effects) -> None:
        """Answer the youngest renewal, if all that it says is written (P4) and this process may (R1)."""
        renewal = self.record.renewal
        if renewal is None or renewal.api_reachable != self.facts.api_reachable or not self._leading.valid(now):
            return
        if self.record.grants.needed > self.facts.lease_seconds:
            return  # P3: recorded with the session's number; an object that was made anew has none yet
        self.record.renewal = None
        recovered, self._suspect = self._suspect, False
        sealed = self._leading.counter.sealed(self.name)
        self._take(self._session.grant(now, sent_at=renewal.sent_at, sealed=sealed), now, out)
        if recovered:
            out.upcalls.append(LinkRecovered(cluster=self.name))

    def _sendable(self, now: float) -> bool:
        return self._open_session > 0 and self._session.state is wire.SessionState.OPEN and self._leading.valid(now)
