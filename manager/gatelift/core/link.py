"""One worker cluster as the manager deals with it: its session, its lease, and what WorkerCluster.status says of it.

Rule R2 lives here: what is concluded from silence (lost), what a person says (fenced), and each session number take
effect only after a write to `WorkerCluster.status` that is conditional on its resourceVersion. One write is in flight
at most; which comes next follows from the state alone (`_next_write`). Neighbours: `links` (routes events here),
`cluster_status` (the documents that are written), `gatelift_wire.session` (the machine inside).
"""

from __future__ import annotations

from dataclasses import replace

from gatelift.core import cluster_status
from gatelift.core.cluster_status import Facts
from gatelift.core.commands import CloseStream, IssueCertificate, Note, SendFrame
from gatelift.core.link_values import (
    LOCAL_CLUSTER,
    ClusterChanged,
    ClusterView,
    FencedByPerson,
    HigherTermRead,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinkRecovered,
    LinkState,
    LinkSuspect,
    PlacementsInventoried,
    Reported,
)
from gatelift.core.link_writes import Purpose, Write, changes_of, latest
from gatelift.core.linking import Leading, Outcome
from gatelift.core.long_grants import LongGrants
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.writes import WriteDone, WriteError, WriteFailed
from gatelift_wire import session as wire
from gatelift_wire.messages import (
    Capacity,
    CertificateRenewed,
    CertificateRequest,
    Close,
    DisconnectPolicy,
    Hello,
    Message,
)
from gatelift_wire.moments import soonest
from gatelift_wire.refusals import CloseReason
from gatelift_wire.session_manager import ManagerSession

INFO_SECONDS = 1.0
"""Facts that only people read (capacity, counts) are written at most this often."""

CERTIFICATE_SECONDS = 1.0
"""A certificate is signed for one cluster at most this often: agents renew in hours, tests in seconds."""

RETRY_SECONDS = 1.0
"""After a write that failed or whose outcome nobody knows: the watch brings the newer object within this, or we ask."""


class Link:
    """One worker cluster. All methods return nothing; what they want is put into the `Outcome` they are given."""

    def __init__(self, name: str, session: ManagerSession, leading: Leading) -> None:
        self.name = name
        self.object: WorkerCluster | None = None
        self.facts = Facts()
        self.held = True
        """Nothing is written for now, since this process may not; `extended` looks again."""
        self._session = session
        self._leading = leading
        self._hello: Hello | None = None
        self._greeting: wire.GreetingReceived | None = None
        self._lost_session: int | None = None
        self._suspect = False
        self._renewal: wire.LeaseRenewed | None = None
        self._requests: dict[int, int] = {}
        self._request = 0
        self._restored = False
        self._open_session = self._credits = 0
        self._capacity: Capacity | None = None
        self._write: Write | None = None
        self._written_session = 0
        self._not_before = self._certificate_not_before = 0.0
        self._certificates: set[int] = set()
        self._certificate_wanted = b""
        self._keys: dict[int, str] = {}
        self._doubted_term = 0
        self._grants = LongGrants(session)
        self._view: tuple[tuple[object, ...], ClusterView] | None = None

    # --- what others ask -------------------------------------------------------------------------------------------

    @property
    def write_id(self) -> int | None:
        """The id of the write in flight."""
        return self._write.write_id if self._write else None

    @property
    def open_session(self) -> int:
        """The number of the session that is open, 0 when none is."""
        return self._open_session

    @property
    def certificate_requests(self) -> frozenset[int]:
        """Requests to the authority that are not answered yet."""
        return frozenset(self._certificates)

    def state(self) -> LinkState:
        """Return the state of the cluster as counted here."""
        if self._lost_session is not None or self.facts.lost:
            return LinkState.LOST
        if self._suspect:
            return LinkState.SUSPECT
        return LinkState.CONNECTED if self._open_session else LinkState.UNKNOWN

    def view(self, now: float) -> ClusterView:
        """Return what dispatch and explain see; made anew only when that has changed, which it does rarely."""
        facts, open_ = self.facts, self._sendable(now)
        said = (self.object, self._hello, self._capacity, self._credits, self._open_session, self.state())
        of = (open_, facts.restored_session, facts.api_reachable, facts.replicas, said)
        if self._view is None or self._view[0] != of:
            self._view = (of, self._make_view(open_=open_))
        return self._view[1]

    def _make_view(self, *, open_: bool) -> ClusterView:
        found, hello, capacity = self.object or WorkerCluster(), self._hello, self._capacity
        policy = found.spec.disconnect_policy
        return ClusterView(
            name=self.name,
            state=self.state(),
            session=self._open_session,
            open=open_,
            cordoned=found.spec.cordoned or cluster_status.awaits_person(found, self.facts.restored_session),
            draining=found.spec.drain,
            kinds=frozenset(hello.kinds if hello else ()),
            accepted_namespaces=frozenset(capacity.namespaces) if capacity else None,
            allowed_namespaces=found.spec.allowed_namespaces,
            capacity=capacity.entries if capacity else (),
            credits=self._credits,
            labels=tuple(sorted(found.metadata.labels.items())),
            weight=found.spec.weight,
            policy=DisconnectPolicy(policy) if policy in {each.value for each in DisconnectPolicy} else None,
            api_reachable=self.facts.api_reachable,
            replicas=self.facts.replicas,
            predecessors=found.status.predecessors,
        )

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do."""
        write = None
        if self._write is None and not self.held:
            purpose = self._next_write()
            write = self._grants.due(self.facts) if purpose is None else self._due(purpose)
        certificate = self._certificate_not_before if self._certificate_wanted and not self._certificates else None
        return soonest(self._session.next_deadline(), write, certificate)

    # --- what happens ----------------------------------------------------------------------------------------------

    def lead(self, now: float, out: Outcome) -> None:
        """Serve sessions under the term that was gained; every lease counts as renewed now (design 7).

        The longest grant that an earlier leader recorded counts as given now (P3).
        """
        recorded = self.facts.lease_seconds
        self._take(self._session.lead(self._leading.term, now, recorded_grant_seconds=recorded), now, out)
        self._grants.led(now)
        self._pump(now, out)

    def step_down(self, now: float, out: Outcome) -> None:
        """Close the session; nothing is written any more."""
        self._take(self._session.step_down("this manager no longer leads", now), now, out)
        self._write = self._greeting = self._renewal = None
        self._doubted_term = 0
        self._grants.stepped_down()

    def seen(self, found: WorkerCluster, now: float, out: Outcome) -> None:
        """Take the WorkerCluster as it is now."""
        if found.status.term > self._leading.term > 0:
            # R3: somebody leads in a later term; whoever reads it steps down.
            out.upcalls.append(HigherTermRead(cluster=self.name, term=found.status.term))
            return
        self._adopt(found)
        self._evict(now, out)
        out.upcalls.append(ClusterChanged(cluster=self.name))
        self._pump(now, out)

    def gone(self, now: float, out: Outcome) -> None:
        """Take that the WorkerCluster object was deleted: its agent is not expected any more."""
        self.object = None
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

    def opened(self, stream_id: int, key_digest: str, now: float, out: Outcome) -> None:
        """Take a stream that may be served (`refusal` said nothing)."""
        self._keys[stream_id] = key_digest
        self.stream(wire.StreamOpened(stream_id=stream_id), now, out)

    def closed(self, stream_id: int, text: str, now: float, out: Outcome) -> None:
        """Take that a stream is over."""
        self._keys.pop(stream_id, None)
        self.stream(wire.StreamClosed(stream_id=stream_id, text=text), now, out)

    def extended(self, now: float, out: Outcome) -> None:
        """Go on with what was held back while the own leader lease was not valid."""
        self._grant(now, out)
        self._pump(now, out)

    def stream(self, event: wire.SessionEvent, now: float, out: Outcome) -> None:
        """Take what happened on a stream of this cluster."""
        self._take(self._session.handle(event, now), now, out)
        self._pump(now, out)

    def tick(self, now: float, out: Outcome) -> None:
        """Do what a deadline that has passed asks for."""
        self._take(self._session.tick(now), now, out)
        self._ask_certificate(now, out)
        self._pump(now, out)

    def send(self, messages: tuple[Message, ...], now: float, out: Outcome) -> int:
        """Send in order; return the sequence number of the first, 0 when the link is not open.

        Where the session had to cut one of them, the number is too high, which is the safe side for rule R4. Raises
        `WireViolation` for a message that the agent would refuse; nothing of all this was sent then.
        """
        if not messages or not self._sendable(now):
            return 0
        self._take(self._session.send(messages, now), now, out)
        return self._session.last_sequence - len(messages) + 1

    def certified(self, certificate: bytes, ca_bundle: bytes, text: str, now: float, out: Outcome) -> None:
        """Take the authority's answer to a renewal that came over the stream."""
        if not certificate:
            out.commands.append(Note(level="warning", text=f"certificate not renewed: {text}", cluster=self.name))
            return
        self.facts.certificate_issued_at = self._leading.wall.text(now)
        self.send((CertificateRenewed(certificate=certificate, ca_bundle=ca_bundle),), now, out)
        self._pump(now, out)

    def certificate_answered(self, request_id: int) -> None:
        """Forget a request to the authority."""
        self._certificates.discard(request_id)

    def wrote(self, event: WriteDone | WriteFailed, now: float, out: Outcome) -> None:
        """Take the outcome of the write in flight."""
        write = self._write
        if write is None or write.write_id != event.write_id:
            return
        self._write = None
        if isinstance(event, WriteFailed):
            self._not_before = now + RETRY_SECONDS
            if event.error in {WriteError.CONFLICT, WriteError.PRECONDITION}:
                self._doubted_term = 0
            elif event.error not in (WriteError.UNKNOWN, WriteError.NOT_DONE, WriteError.NOT_SENT):
                text = f"WorkerCluster status ({write.purpose.value}) could not be written: {event.message}"
                out.commands.append(Note(level="warning", text=text, cluster=self.name))
        elif isinstance(event.object, WorkerCluster):
            self.facts = replace(self.facts, **write.changes)
            self._adopt(event.object)
            self._not_before = now if write.purpose is not Purpose.INFO else now + INFO_SECONDS
            self._take_effect(write, now, out)
        self._pump(now, out)

    # --- writes (R2) -----------------------------------------------------------------------------------------------

    def _adopt(self, found: WorkerCluster) -> None:
        if self.object is None or self.object.metadata.uid != found.metadata.uid:
            self.facts.adopt(found)
        self.facts.adopt_certificate(found)
        if self._write is None or self._write.purpose is not Purpose.SESSION:  # not what we are writing ourselves
            self._grants.seen(self.facts, found.status.lease_seconds)
        self.facts.restored_session = max(self.facts.restored_session, found.status.restored_session)
        self.object = latest(self.object, found)
        self._written_session = max(self._written_session, found.status.session)

    def _evict(self, now: float, out: Outcome) -> None:
        """End at once every stream that may not be served any more: revoked, deleted, another key approved."""
        for stream_id, key_digest in tuple(self._keys.items()):
            close = self.refusal(key_digest)
            if close is not None:
                bad = wire.BadFrame(stream_id=stream_id, reason=close.reason, text=close.text)
                self._take(self._session.handle(bad, now), now, out)

    def _pump(self, now: float, out: Outcome) -> None:
        found = self.object
        if self._write is not None or found is None:
            return
        self.held = not self._leading.valid(now)
        if self.held or now < self._not_before:
            return
        self._grants.lower(self.facts, now)
        purpose = self._next_write()
        if purpose is None or now < self._due(purpose):
            return
        write_id = self._leading.ids.take()
        said = self._greeting if purpose is Purpose.SESSION else self._renewal
        changes = changes_of(purpose, found, self.facts, said, self._leading.term, self._written_session + 1)
        if purpose is Purpose.SESSION:
            changes["lease_seconds"] = max(self.facts.lease_seconds, self._grants.needed)
            if self._restored:
                changes["restored_session"] = changes["session"]
        stream_id = self._greeting.stream_id if self._greeting is not None else 0
        self._write = Write(write_id=write_id, purpose=purpose, changes=changes, stream_id=stream_id)
        facts = replace(self.facts, **changes)
        status = cluster_status.document(found, facts, self._leading.wall.text(now))
        out.commands.append(cluster_status.patch(write_id, found, status))

    def _due(self, purpose: Purpose) -> float:
        """Return when a write may go out; silence counts only when all grants are over that anybody gave (P3)."""
        return max(self._not_before, self._grants.silence_counts_at) if purpose is Purpose.LOST else self._not_before

    def _next_write(self) -> Purpose | None:
        found = self.object
        if found is None:
            return None
        if self._greeting is not None:
            return Purpose.SESSION
        if self._lost_session is not None:
            return Purpose.LOST
        if self._fence_asked(found):
            return Purpose.FENCED
        if self._renewal is not None and self.facts.api_reachable != self._renewal.api_reachable:
            return Purpose.UNREACHABLE
        if self._doubted_term:
            return Purpose.DOUBT
        return Purpose.INFO if cluster_status.differs(found, self.facts) else None

    def _fence_asked(self, found: WorkerCluster) -> bool:
        """Say whether a person's word counts: only for a LOST cluster, only about sessions that are over (R1, R2)."""
        asked = cluster_status.fence_wanted(found)
        through = found.status.fenced_through_session
        return self.state() is LinkState.LOST and through < asked <= self._written_session

    def _take_effect(self, write: Write, now: float, out: Outcome) -> None:
        """Act on what is now written."""
        found = self.object or WorkerCluster()
        match write.purpose:
            case Purpose.SESSION:
                # Another agent may have greeted meanwhile: what is written is not of it, so a number is written for it.
                if self._greeting is not None and self._greeting.stream_id == write.stream_id:
                    self._welcome(self._greeting, found.status.session, now, out)
            case Purpose.LOST:
                if self._lost_session is not None:
                    self._lost_session = None
                    out.upcalls.append(LinkLost(cluster=self.name))
            case Purpose.FENCED:
                through, who = found.status.fenced_through_session, found.status.fenced_by
                out.upcalls.append(FencedByPerson(cluster=self.name, through_session=through, who=who))
            case Purpose.UNREACHABLE:
                out.upcalls.append(ClusterChanged(cluster=self.name))
                self._grant(now, out)
            case Purpose.DOUBT:
                text = (
                    f"its agent says that it has seen term {self._doubted_term}, which nobody wrote here (ours is "
                    f"{self._leading.term}): it is not served; is it an agent of another or of a restored manager?"
                )
                self._doubted_term = 0
                out.commands.append(Note(level="warning", text=text, cluster=self.name))
            case Purpose.INFO:
                pass

    def _welcome(self, greeting: wire.GreetingReceived, number: int, now: float, out: Outcome) -> None:
        self._greeting, self._hello = None, greeting.hello
        self._suspect, self._lost_session = False, None
        resume = greeting.resumable and not self._restored
        self._take(
            self._session.welcome(greeting.stream_id, number, self._leading.origin, now, resume_allowed=resume),
            now,
            out,
        )

    # --- the session's outputs -------------------------------------------------------------------------------------

    def _take(self, outputs: list[wire.SessionOutput], now: float, out: Outcome) -> None:
        for output in outputs:
            match output:
                case wire.Transmit():
                    out.commands.append(SendFrame(stream_id=output.stream_id, frame=output.frame))
                case wire.CloseStream():
                    close = output.close or Close(reason=CloseReason.SHUTTING_DOWN)
                    out.commands.append(CloseStream(stream_id=output.stream_id, close=close))
                case wire.Delivered():
                    self._delivered(output, now, out)
                case wire.LeaseRenewed():
                    self._renewal, self.facts.replicas = output, output.replicas
                    self.facts.last_seen = self._leading.wall.text(now)
                    self._grant(now, out)
                case wire.CreditsGranted():
                    self._credits = output.credits
                    out.upcalls.append(ClusterChanged(cluster=self.name))
                case _:
                    self._turn(output, now, out)

    def _turn(self, output: wire.SessionOutput, now: float, out: Outcome) -> None:
        """Take what changes the session's own standing."""
        match output:
            case wire.GreetingReceived():
                self._greeting, self._not_before, self.facts.last_seen = output, now, self._leading.wall.text(now)
                self._restored = self.object is not None and cluster_status.is_restored(self.object, output.hello)
            case wire.GreetingEnded():
                self._greeting = None
            case wire.Welcomed(resumed=False):
                self._request += 1
                self._requests = {self._request: self._leading.record_revision}
                self._take(self._session.ask_inventory(self._request, now), now, out)
            case wire.InventoryReceived():
                out.upcalls.append(self._inventoried(output))
            case wire.Opened():
                self._open_session, self.facts.session_open = output.session, True
                if not output.resumed:
                    # The agent keeps the number before it answers the inventory; of a resumed session it may forget.
                    self.facts.opened_session = output.session
                self._credits = self._credits or (self._hello.credits if self._hello else 0)
                out.upcalls.append(LinkOpened(cluster=self.name, session=output.session, resumed=output.resumed))
            case wire.SessionEnded():
                self._certificate_wanted = b""
                self._open_session, self._renewal, self._credits = 0, None, 0
                self.facts.session_open = False
                out.upcalls.append(LinkBroken(cluster=self.name, session=output.session))
                out.commands.append(Note(level="info", text=f"session ended: {output.text}", cluster=self.name))
            case wire.SuspectReached():
                self._suspect = True
                out.upcalls.append(LinkSuspect(cluster=self.name))
            case wire.LostReached():
                self._lost_session, self._suspect = output.last_session, False
            case wire.HigherTermSeen():
                # One worker's word, so it is looked into: a write succeeds only if no other leader has written here.
                self._doubted_term = output.term
            case _:
                pass

    def _delivered(self, output: wire.Delivered, now: float, out: Outcome) -> None:
        message = output.message
        if isinstance(message, Capacity):
            self._capacity = self.facts.capacity = message
            out.upcalls.append(ClusterChanged(cluster=self.name))
        elif isinstance(message, CertificateRequest):
            self._certificate_wanted = message.request  # the latest counts
            self._ask_certificate(now, out)
        else:
            out.upcalls.append(
                Reported(cluster=self.name, session=output.session, sequence=output.sequence, message=message)  # type: ignore[arg-type]  # the session delivers reports only: other kinds are violations
            )

    def _ask_certificate(self, now: float, out: Outcome) -> None:
        """Have a certificate signed for the key that was approved; one at a time, since signing costs us and not it."""
        wanted = self._certificate_wanted
        if not wanted or self._certificates or now < self._certificate_not_before or self.object is None:
            return
        self._certificate_wanted, self._certificate_not_before = b"", now + CERTIFICATE_SECONDS
        # Negative: adapters number enrolment requests upwards, so the two never meet.
        request_id = -self._leading.ids.take()
        self._certificates.add(request_id)
        out.commands.append(
            IssueCertificate(
                request_id=request_id,
                cluster=self.name,
                request=wanted,
                key_digest=self.object.status.key_digest,
            )
        )

    def _inventoried(self, output: wire.InventoryReceived) -> PlacementsInventoried:
        return PlacementsInventoried(
            cluster=self.name,
            session=output.session,
            record_revision=self._requests.pop(output.request, 0),
            applied=output.applied,
            entries=output.entries,
            restored=self._restored,
        )

    def _grant(self, now: float, out: Outcome) -> None:
        """Answer the youngest renewal, if all that it says is written (P4) and this process may (R1)."""
        renewal = self._renewal
        if renewal is None or renewal.api_reachable != self.facts.api_reachable or not self._leading.valid(now):
            return
        if self._grants.needed > self.facts.lease_seconds:
            return  # P3: recorded with the session's number; an object that was made anew has none yet
        self._renewal = None
        recovered, self._suspect = self._suspect, False
        self._take(self._session.grant(now, sent_at=renewal.sent_at), now, out)
        if recovered:
            out.upcalls.append(LinkRecovered(cluster=self.name))

    def _sendable(self, now: float) -> bool:
        return self._open_session > 0 and self._session.state is wire.State.OPEN and self._leading.valid(now)
