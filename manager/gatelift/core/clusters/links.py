"""Sessions of all worker clusters: routes events to the `Link` of their cluster, and answers what the machine asks.

Implements `link_values.Links`. The machine passes `LeadershipGained` only when its own lists are complete, since an
inventory may be judged only then (rule R4: *Forget lost*). Neighbours: `link_index` (which link an event is for),
`contained_steps` (takes each step apart), `stream_refusals`, `local_cluster`, `enrolment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from gatelift.core.api import events
from gatelift.core.api.commands import AnswerEnrolment, CloseAgentStream, EnrolmentVerdict, Note
from gatelift.core.api.counter import Counter
from gatelift.core.api.wall import Wall
from gatelift.core.clusters import stream_refusals
from gatelift.core.clusters.contained_steps import ContainedSteps
from gatelift.core.clusters.enrolment import Enrolments, EnrolmentSettings
from gatelift.core.clusters.link import Link
from gatelift.core.clusters.link_index import LinkIndex
from gatelift.core.clusters.link_values import ClusterView, LinksOutcome, PlaceCounts, Sent, WriteIds
from gatelift.core.clusters.linking import Effects, Leading
from gatelift.core.clusters.local_cluster import LocalCluster
from gatelift.core.clusters.owed_steps import LEAD, SEEN
from gatelift.core.records import given
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, Synced, WriteDone, WriteFailed
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, Predecessor, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import tokens
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Close, Message
from gatelift_wire.values.moments import soonest
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import WireViolation

STREAMS_MAX = 4096
"""Streams open at once: a thousand agents, each with a few that are being replaced."""

LEADERSHIP = (events.LeadershipGained, events.LeadershipExtended, events.LeadershipLost)

NewSession = Callable[[], ManagerSession]
"""Makes the session machine of one cluster; the application gives it the instance id and the times."""


class Links:
    """All worker clusters. Nothing here waits or calls back; see `link_values.Links` for the promises."""

    def __init__(
        self, new_session: NewSession, ids: WriteIds, wall: Wall, *, enrolments: Enrolments | None = None
    ) -> None:
        self._new_session = new_session
        self._enrolments = enrolments or Enrolments(ids, EnrolmentSettings())
        self._leading = Leading(ids=ids, wall=wall)
        contained: Contained[str] = Contained()
        self._index = LinkIndex(contained)
        self._steps = ContainedSteps(self._index, contained)
        self._local = LocalCluster(self._leading)
        self._links = self._index.links
        self._views: dict[str, ClusterView] = {}  # as of the event handled last, and what was done with a link since
        self._now = 0.0

    def set_origin(self, origin: str) -> None:
        """Take the identity of this management cluster (UID of its namespace kube-system); before any stream."""
        self._leading.origin = origin

    def handle(self, event: events.Event, now: float, *, record_revision: int) -> LinksOutcome:
        """Take an event; see `link_values.Links.handle`."""
        self._leading.record_revision = record_revision
        self._now = now
        self._views.clear()
        out = Effects()
        try:
            self._take(event, now, out)
        except Exception as error:
            if isinstance(event, LEADERSHIP):
                raise  # it has no culprit: nobody leads who is not sure of his own lead
            self._steps.failed(type(event).__name__, error, now, out)
            out.commands += self._enrolments.not_taken()
        return LinksOutcome(commands=tuple(out.commands), upcalls=tuple(out.upcalls))

    def _take(self, event: events.Event, now: float, out: Effects) -> None:
        match event:
            case events.LeadershipGained() | events.LeadershipExtended() | events.LeadershipLost():
                self._leadership(event, now, out)
            case (
                events.AgentStreamOpened()
                | events.AgentFrameArrived()
                | events.StreamViolated()
                | events.AgentStreamClosed()
            ):
                self._stream(event, now, out)
            case events.BreakOff():
                self._steps.break_off(event.cluster, event.text, now, out)
            case events.TermUnconfirmed():
                link = self._links.get(event.found.metadata.name)
                if link is not None:
                    step = partial(link.unconfirmed, event.found)
                    self._steps.owing(link, SEEN, step, now, out)
            case events.EnrolmentAsked():
                self._enrolment(event, now, out)
            case events.CertificateIssued():
                self._certified(event, now, out)
            case events.Ticked():
                self._tick(now, out)
            case ObjectSeen() | ObjectGone() | Synced():
                self._object(event, now, out)
            case WriteDone() | WriteFailed():
                self._wrote(event, now, out)
            case _:
                pass

    def _stream(self, event: events.StreamEvent, now: float, out: Effects) -> None:
        match event:
            case events.AgentStreamOpened():
                self._stream_opened(event, now, out)
            case events.AgentFrameArrived():
                arrived = wire.FrameReceived(stream_id=event.stream_id, frame=event.frame)
                self._on_stream(event.stream_id, arrived, now, out)
            case events.StreamViolated():
                reason = CloseReason.TOO_LARGE if event.too_large else CloseReason.PROTOCOL_VIOLATION
                bad = wire.BadFrame(stream_id=event.stream_id, reason=reason, text=event.text)
                self._on_stream(event.stream_id, bad, now, out)
            case events.AgentStreamClosed():
                link = self._links.get(self._index.streams.pop(event.stream_id, ""))
                if link is not None:
                    step = partial(link.closed, event.stream_id, event.text)
                    self._steps.owing(link, f"stream {event.stream_id} is over", step, now, out)

    def owns_write(self, write_id: int) -> bool:
        """Say whether this outstanding write is one of the links'."""
        owners = (self._index, self._local, self._enrolments)
        return any(each.owns_write(write_id) for each in owners)

    def send(self, cluster: str, messages: Iterable[Message], now: float) -> Sent:
        """Send in order, or not at all when the link is not open."""
        link = self._links.get(cluster)
        if link is None:
            return Sent()
        out = Effects()
        self._views.pop(cluster, None)
        try:
            first = link.send(tuple(messages), now, out)
        except WireViolation as violation:
            text = f"not sent, the agent could not take it: {violation}"
            return Sent(commands=(Note(level="warning", text=text, cluster=cluster),), refused=str(violation))
        self._index.refresh(link)
        session = link.open_session if first else 0
        return Sent(commands=tuple(out.commands), session=session, first_sequence=first)

    def place_counts(self, cluster: str, counts: PlaceCounts) -> None:
        """Note how much is there, for the status; see `link_values.Links.place_counts`."""
        link = self._links.get(cluster)
        self._views.pop(cluster, None)
        if link is not None and link.counted(counts):
            self._index.refresh(link)

    def placed_in(self, cluster: str, namespaces: frozenset[str]) -> None:
        """Take in which namespaces something is placed; see `link_values.Links.placed_in`."""
        link = self._links.get(cluster)
        if link is not None:
            link.placed_in(namespaces)

    def compared(self, cluster: str, session: int) -> None:
        """Take that dispatch is done with an inventory; see `link_values.Links.compared`."""
        link = self._links.get(cluster)
        self._views.pop(cluster, None)
        if link is not None:
            link.compared(session)

    def remember(self, cluster: str, predecessors: tuple[Predecessor, ...], over: frozenset[PlacementKey]) -> None:
        """Have what is remembered of vanished placements written."""
        link = self._links.get(cluster)
        if link is not None and (link.facts.predecessors, link.facts.predecessors_over) != (predecessors, over):
            self._views.pop(cluster, None)
            link.remember(predecessors, over, self._now)
            self._index.refresh(link)

    def given(self, cluster: str, placed: PlacementKey, namespace: str, name: str) -> str:
        """Return the mark of what is given to a cluster; "" where there is no key."""
        return given.mark(self._leading.counter.key, self._leading.origin, cluster, placed, ObjectKey(namespace, name))

    def state(self, cluster: str) -> ClusterView | None:
        """Return the view, as of the event handled last, of a cluster that has a WorkerCluster."""
        view = self._views.get(cluster)
        if view is not None:
            return view
        link = self._links.get(cluster)
        if link is None or link.object is None:
            return None
        view = self._views[cluster] = link.view(self._now)
        return view

    def clusters(self) -> tuple[str, ...]:
        """Return the names of all WorkerClusters, sorted."""
        return tuple(sorted(name for name, link in self._links.items() if link.object is not None))

    def counted(self, found: WorkerCluster) -> WorkerCluster:
        """Return a WorkerCluster with what its status counts as; see `link_values.Links.counted`."""
        known = self.worker_cluster(found.metadata.name)
        if known is None or known.metadata.uid != found.metadata.uid:
            return found
        return msgspec.structs.replace(found, status=known.status)

    def worker_cluster(self, cluster: str) -> WorkerCluster | None:
        """Return the object as it is known."""
        link = self._links.get(cluster)
        return link.object if link is not None else None

    def expects(self, cluster: str, token: str) -> bool:
        """Say whether a token is the one that was printed last for a cluster: who shows it is looked at first."""
        found = self.worker_cluster(cluster)
        return found is not None and tokens.matches(token, found.spec.token_digest)

    def next_deadline(self) -> float | None:
        """Return the moment at which a tick has something to do."""
        at = self._index.next_deadline(self._now)
        return soonest(self._local.retry_at, at, self._steps.owed.next_time())

    # --- events ----------------------------------------------------------------------------------------------------

    def _leadership(
        self,
        event: events.LeadershipGained | events.LeadershipExtended | events.LeadershipLost,
        now: float,
        out: Effects,
    ) -> None:
        leading = self._leading
        if isinstance(event, events.LeadershipExtended):
            leading.valid_until = event.valid_until
            leading.counter.has_recorded(event.counter)
            for link in self._links.values():
                if link.record.held and leading.valid(now):
                    self._steps.apart(link, link.extended, now, out)
            return
        if isinstance(event, events.LeadershipGained):
            leading.term = event.term
            leading.counter = Counter.of(event, leading.origin)
            for link in self._index.each():
                self._steps.owing(link, LEAD, link.lead, now, out)
            self._make_local(now, out)
            return
        leading.term, leading.valid_until = 0, 0.0
        for link in self._index.each():
            self._steps.apart(link, link.step_down, now, out)
        self._index.forget_writes()
        self._steps.owed.clear()
        self._local.step_down()

    def _stream_opened(self, event: events.AgentStreamOpened, now: float, out: Effects) -> None:
        refusal = self._refusal(event, now)
        if refusal is not None:
            out.commands.append(CloseAgentStream(stream_id=event.stream_id, close=refusal))
            return
        self._index.streams[event.stream_id] = event.cluster
        link = self._links[event.cluster]
        self._steps.apart(link, partial(link.opened, event), now, out)

    def _refusal(self, event: events.AgentStreamOpened, now: float) -> Close | None:
        if not self._leading.valid(now):
            return stream_refusals.of_standby(event.cluster)
        found = self.worker_cluster(event.cluster)
        if event.cluster == LOCAL_CLUSTER and found is None:
            return stream_refusals.before_local_is_made()
        if self._steps.owed.owes(event.cluster, LEAD):
            return stream_refusals.not_taken()
        refusal = stream_refusals.of_agent(event.cluster, found, event.key_digest)
        if refusal is None and len(self._index.streams) >= STREAMS_MAX:
            return stream_refusals.too_many()
        return refusal

    def _enrolment(self, event: events.EnrolmentAsked, now: float, out: Effects) -> None:
        if not self._leading.valid(now):
            text = "this manager is a standby; ask again"
            out.commands.append(
                AnswerEnrolment(request_id=event.request_id, verdict=EnrolmentVerdict.PENDING, text=text)
            )
            return
        found = self.worker_cluster(event.cluster)
        out.commands += self._enrolments.asked(event, found, self._leading.wall.unix(now))

    def _on_stream(self, stream_id: int, event: wire.SessionEvent, now: float, out: Effects) -> None:
        link = self._index.of_stream(stream_id)
        if link is not None:
            self._steps.apart(link, partial(link.stream, event), now, out)

    def _object(self, event: ObjectSeen | ObjectGone | Synced, now: float, out: Effects) -> None:
        if isinstance(event, Synced):
            self._local.synced()
            self._make_local(now, out)
            return
        found = event.object
        if not isinstance(found, WorkerCluster):
            return
        name = found.metadata.name
        link = self._links.get(name)
        if isinstance(event, ObjectGone):
            if link is not None:
                self._steps.owing(link, SEEN, link.gone, now, out)
            if name == LOCAL_CLUSTER:
                self._make_local(now, out)
            return
        if link is None:
            link = self._links[name] = Link(name, self._new_session(), self._leading)
            if self._leading.term:
                self._steps.owed.owe(name, LEAD, link.lead, now)  # once its object is known
        self._steps.owing(link, SEEN, partial(_seen, link, found), now, out)
        if self._steps.owed.owes(name, LEAD) and not self._steps.owed.owes(name, SEEN):
            self._steps.owing(link, LEAD, link.lead, now, out)

    def _wrote(self, event: WriteDone | WriteFailed, now: float, out: Effects) -> None:
        if self._enrolments.owns_write(event.write_id):
            out.commands += self._enrolments.wrote(event)
            if isinstance(event, WriteDone) and isinstance(event.object, WorkerCluster):
                self._object(ObjectSeen(WORKER_CLUSTER, event.object, event.raw), now, out)
            return
        if self._local.owns_write(event.write_id):
            self._local.wrote(event, now)
            return
        link = self._index.take_write(event.write_id)
        if link is not None and self._steps.apart(link, partial(link.wrote, event), now, out):
            link.record.write_unknown(event.write_id, now)
            self._index.refresh(link)
            if isinstance(event, WriteDone) and isinstance(event.object, WorkerCluster):
                self._object(ObjectSeen(WORKER_CLUSTER, event.object, event.raw), now, out)

    def _certified(self, event: events.CertificateIssued, now: float, out: Effects) -> None:
        if self._enrolments.owns_request(event.request_id):
            found = self.worker_cluster(self._enrolments.cluster_of(event.request_id))
            out.commands += self._enrolments.issued(event, found)
            return
        link = self._index.take_certificate(event.request_id)
        if link is not None:
            link.certificate_answered(event.request_id)
            step = partial(link.certified, event.certificate, event.ca_bundle, event.text)
            self._steps.apart(link, step, now, out)

    def _tick(self, now: float, out: Effects) -> None:
        self._local.tick(self.worker_cluster(LOCAL_CLUSTER), now, out)
        self._steps.take_owed(now, out)
        for name in self._index.take_due(now):
            link = self._links.get(name)
            if link is not None:
                self._steps.apart(link, link.tick, now, out)

    def _make_local(self, now: float, out: Effects) -> None:
        self._local.make(self.worker_cluster(LOCAL_CLUSTER), now, out)


def _seen(link: Link, found: WorkerCluster, now: float, out: Effects) -> None:
    """Let a link take a version; one that raises is news when it is taken again."""
    before = link.object
    try:
        link.seen(found, now, out)
    except Exception:
        link.record.object = before
        raise
