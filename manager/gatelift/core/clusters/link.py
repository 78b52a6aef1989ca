"""One worker cluster as the manager deals with it: what happens to it, and what follows once that is written.

What is recorded, and may be acted upon only then (rule R2), is `cluster_record`'s. Neighbours: `links` (routes events
here), `conversation` (what its agent says), `cluster_views` (how it looks), `stream_refusals` (who gets no stream),
`gatelift_wire.sessions.session_manager` (the machine inside).
"""

from __future__ import annotations

from gatelift.core.api.commands import Note
from gatelift.core.api.events import AgentStreamOpened
from gatelift.core.clusters import fencing, identity, link_writes, stream_refusals
from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.cluster_record import ClusterRecord
from gatelift.core.clusters.cluster_views import RememberedView
from gatelift.core.clusters.conversation import Conversation
from gatelift.core.clusters.link_values import (
    ClusterChanged,
    ClusterView,
    FencedByPerson,
    LinkLost,
    PlaceCounts,
)
from gatelift.core.clusters.link_writes import StatusPurpose, Write
from gatelift.core.clusters.linking import Effects, Leading
from gatelift.core.clusters.unheard import GREET_ANEW
from gatelift_kube.deciding.writes import WriteDone, WriteFailed
from gatelift_kube.objects.gatelift import Predecessor, WorkerCluster
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    CertificateRenewed,
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
        self._conversation = Conversation(self.record, session, leading)
        self._view = RememberedView(self._conversation)
        self._fenced_told = (0, "")
        self._work_told = False

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
        return self._conversation.open_session

    def placed_in(self, namespaces: frozenset[str]) -> None:
        """Take in which namespaces something is placed: the agent is asked about these."""
        self._conversation.namespaces = namespaces

    @property
    def certificate_requests(self) -> frozenset[int]:
        """Requests to the authority that are not answered yet."""
        return self._conversation.renewals.asked

    def view(self, now: float) -> ClusterView:
        """Return what dispatch and explain see."""
        return self._view.at(now)

    def counted(self, counts: PlaceCounts) -> bool:
        """Take how much is placed and offered here, and what the last inventory left open; False: no news."""
        unheard = self._conversation.unheard
        before, unheard.undecided = (self.facts.counted(), unheard.due()), counts.undecided
        self.facts.place(counts.placements, counts.offers, counts.no_new_work)
        if self.open_session and counts.unexplained is not None:
            self.record.comparison.compared(self._conversation.resynced, counts.unexplained, self.facts)
        return before != (self.facts.counted(), unheard.due())

    def compared(self, session: int) -> None:
        """Take that dispatch is done with the inventory of a session."""
        if session == self._conversation.resynced:
            self.record.comparison.inventory_open = False

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do."""
        # Who is away cannot be asked, and says all at once.
        asks = self._conversation.unheard.due() if self.open_session else None
        return soonest(self._session.next_deadline(), self.record.due(), self._conversation.renewals.due(), asks)

    # --- what happens ----------------------------------------------------------------------------------------------

    def lead(self, now: float, out: Effects) -> None:
        """Serve sessions under the term that was gained; every lease counts as renewed now.

        The longest grant that an earlier leader recorded counts as given now (P3).
        """
        self._conversation.suspect, self._fenced_told = False, (0, "")
        recorded = self.object.status.lease_seconds if self.object is not None else 0
        self._conversation.take(self._session.lead(self._leading.term, now, recorded_grant_seconds=recorded), now, out)
        out.upcalls += self.record.lead(now)
        self._pump(now, out)

    def step_down(self, now: float, out: Effects) -> None:
        """Close the session; nothing is written any more."""
        self._conversation.take(self._session.step_down("this manager no longer leads", now), now, out)
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

    def opened(self, event: AgentStreamOpened, now: float, out: Effects) -> None:
        """Take a stream that may be served (`stream_refusals` had none)."""
        self._conversation.streams[event.stream_id] = event
        self.stream(wire.StreamOpened(stream_id=event.stream_id), now, out)

    def closed(self, stream_id: int, text: str, now: float, out: Effects) -> None:
        """Take that a stream is over."""
        self._conversation.streams.pop(stream_id, None)
        self.stream(wire.StreamClosed(stream_id=stream_id, text=text), now, out)

    def extended(self, now: float, out: Effects) -> None:
        """Go on with what was held back while the own leader lease was not valid."""
        self._conversation.grant(now, out)
        self._pump(now, out)

    def stream(self, event: wire.SessionEvent, now: float, out: Effects) -> None:
        """Take what happened on a stream of this cluster."""
        self._conversation.take(self._session.handle(event, now), now, out)
        self._pump(now, out)

    def tick(self, now: float, out: Effects) -> None:
        """Do what a deadline that has passed asks for."""
        self._conversation.take(self._session.tick(now), now, out)
        self._conversation.renewals.ask(self.object, now, out)
        self._pump(now, out)

    def send(self, messages: tuple[Message, ...], now: float, out: Effects) -> int:
        """Send in order; return the sequence number of the first, 0 when the link is not open.

        Where the session had to cut one of them, the number is too high, which is the safe side for rule R4. Raises
        `WireViolation` for a message that the agent would refuse; nothing of all this was sent then.
        """
        if not messages or not self._conversation.sendable(now):
            return 0
        self._conversation.take(self._session.send(messages, now), now, out)
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
        self._conversation.renewals.answered(request_id)

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
            self._conversation.take(self._session.refuse(*said, now, ticket=away.ticket), now, out)
        self.record.pump(now, out)
        if self.open_session and self._conversation.unheard.greets_anew(now):
            self._conversation.end_streams(GREET_ANEW, now, out)

    def _tell_fenced(self, out: Effects) -> None:
        """Tell of a person's word once it stands in the status, whoever wrote it there and whoever saw the answer."""
        through, who = fenced = self.record.fenced()
        if fenced != self._fenced_told and through:
            out.upcalls.append(FencedByPerson(cluster=self.name, through_session=through, who=who))
        self._fenced_told = fenced

    def _evict(self, now: float, out: Effects) -> None:
        """End at once every stream that may not be served any more: revoked, deleted, another key approved."""
        for stream_id, opened in tuple(self._conversation.streams.items()):
            close = stream_refusals.of_agent(self.name, self.object, opened.key_digest)
            if close is not None:
                bad = wire.BadFrame(stream_id=stream_id, reason=close.reason, text=close.text)
                self._conversation.take(self._session.handle(bad, now), now, out)

    def _take_effect(self, write: Write, now: float, out: Effects) -> None:
        """Act on what is now written."""
        found = self.object or WorkerCluster()
        match write.purpose:
            case StatusPurpose.SESSION:
                # Another agent may have greeted meanwhile: what is written is not of it, so a number is written for it.
                greeting = self.record.greeting
                if greeting is not None and greeting.stream_id == write.stream_id:
                    self._conversation.welcome(greeting, found.status.session, now, out)
                else:
                    self._conversation.take(self._session.missed(now), now, out)
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
                self._conversation.grant(now, out)
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
        if 0 < self.open_session < identity.doubted_in(self.facts):
            text = "what is charged here was placed before this WorkerCluster was made; greet anew"
            self.break_off(text, now, out)

    def break_off(self, text: str, now: float, out: Effects) -> None:
        """End all streams of the cluster; its agent greets anew, and is asked what it has."""
        self.record.comparison.inventory_open = True
        self._conversation.end_streams(text, now, out)
