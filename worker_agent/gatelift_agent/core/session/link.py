"""The session with the manager, as the machine uses it: outputs of `AgentSession` become commands, facts and messages.

R6 and the lease are the session's business; R1's other half is here: a session's end takes the right to start away
from all placements at once, because `confirmed_session` names a session that is no more.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_agent.core.beginning import rebuilding
from gatelift_agent.core.placement.placements import STARTING
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import doubts, foreign
from gatelift_agent.core.session import commits, inventory, members, orders, sizes, stops
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import commands, events
from gatelift_wire.sessions import session
from gatelift_wire.sessions.leases import Sealed
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.values.messages import Change, Commit, Confirm, Forget, Message, Stop
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.sizes import Resize
from gatelift_wire.values.violations import WireViolation

SLOW_SECONDS = 0.3
"""Write latency at which the credit level is halved: ten times what an idle API server needs."""

VERY_SLOW_SECONDS = 1.0
"""Write latency at which one eighth is left: creates would pile up to their time limit otherwise."""

StreamEvent = (
    events.ManagerStreamOpened | events.ManagerFrameArrived | events.FrameViolated | events.ManagerStreamClosed
)


_OF_PLACEMENTS = Stop | Commit | Change | Confirm | Forget | Resize
"""What may put right why a placement was set aside."""


class _SessionOver(Exception):  # noqa: N818 (no error of its own: it carries one out of a loop)
    """A message could not be taken, which has been told."""


class ManagerLink:
    """Drives the session. Commands are obeyed as they come; what is said goes out with `flush`."""

    def __init__(self, world: World, *, jitter: float = 0.0) -> None:
        self._world = world
        self._jitter = jitter
        self._session: AgentSession | None = None
        self._facts: tuple[int, bool] | None = None
        self._asked: int | None = None
        self.turned_away = ""
        """Why the manager lets this agent in no more before it has begun anew: another one serves the cluster."""

    def serve(self, world: World) -> None:
        """Work for a new world: this replica lost its lead and may gain it again."""
        self._world = world

    def start(self, last_session: int, last_term: int, sealed: Sealed, cluster_uid: str, now: float) -> None:
        """Dial the manager from now on; the numbers are what is kept in the worker."""
        if self._session is None:
            settings = self._world.settings
            self._session = AgentSession(
                instance=settings.instance,
                jitter=self._jitter,
                last_session=last_session,
                last_term=last_term,
                agent_version=settings.agent_version,
                adopts=settings.adopts,
            )
        self._session.recall(last_session, last_term, sealed)
        self._session.identify(cluster_uid, self._world.leadership.mark, self._world.settings.lease)
        self._tell_facts(now)
        self._carry_out(self._session.start(now), now)

    def set_mark(self, mark: int) -> None:
        """Take what the Lease counts now; it is said with the next renewal."""
        if self._session is not None:
            self._session.set_mark(mark)

    def drop(self, reason: CloseReason, text: str, now: float) -> None:
        """End the session and dial no more; the next one, if any, is not a resume."""
        if self._session is not None:
            self._carry_out(self._session.abort(reason, text, now), now)
            self._carry_out(self._session.close(reason, text, now), now)

    def take(self, event: StreamEvent, now: float) -> None:
        """Take what happened to a stream."""
        if self._session is None:
            return
        try:
            self._carry_out(self._session.handle(_session_event(event), now), now)
        except Exception as error:  # noqa: BLE001 (containment: what one stream says ends no process)
            self._failed(error, now)
        if self._world.standing.open:
            self._heard(self._session.heard)

    def _heard(self, number: int) -> None:
        """Go on with what waits until the manager has heard of it."""
        world = self._world
        for key, tracked in world.last_words.heard(number):
            placement = world.placements.get(key)
            if placement is not None:
                world.look_at(placement, tracked.name)

    def tick(self, now: float) -> None:
        """Do what is due: obey what had to wait, dial, renew, acknowledge."""
        if self._session is not None:
            try:
                commits.answer_late(self._world, now)
                stops.answer_late(self._world, now)
                self._carry_out(self._session.tick(now), now)
                self._answer_inventory(now)
            except Exception as error:  # noqa: BLE001 (containment: what one session says ends no process)
                self._failed(error, now)

    def _failed(self, error: Exception, now: float) -> None:
        """End the session in which an exception was raised; the next one begins with an inventory."""
        if self._session is None:
            return
        if not isinstance(error, _SessionOver):
            containment.session_failed(self._world, error, now)
        over = self._session.abort(CloseReason.SHUTTING_DOWN, containment.NOT_TAKEN, now, resumable=False)
        self._carry_out(over, now)

    def redial(self, now: float) -> None:
        """Dial now instead of later, if there is no stream."""
        if self._session is not None:
            self._carry_out(self._session.redial(now), now)

    def flush(self, now: float) -> None:
        """Hand over facts and what is to be said."""
        if self._session is None:
            self._world.outgoing.clear()
            return
        self._tell_facts(now)
        while self._world.outgoing:
            said, self._world.outgoing = self._world.outgoing, []
            self._send(said, now)
            self._world.last_words.sent(self._session.last_sequence)

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do."""
        return self._session.next_deadline() if self._session is not None else None

    def _send(self, messages: list[Message], now: float) -> None:
        if self._session is None:
            return
        try:
            self._carry_out(self._session.send(messages, now), now)
        except WireViolation:
            for message in messages:  # find the one that no peer would take; the others go
                try:
                    self._carry_out(self._session.send((message,), now), now)
                except WireViolation as error:
                    self._world.note("warning", f"{type(message).__name__} cannot be sent: {error}")

    def _tell_facts(self, now: float) -> None:
        if self._session is None:
            return
        world = self._world
        facts = (credits_of(world), world.api.reachable)
        if facts == self._facts:
            return
        self._facts = facts
        outputs = self._session.set_facts(
            credits_=facts[0],
            api_reachable=facts[1],
            replicas=world.settings.replicas,
            kinds=world.settings.kinds,
            now=now,
        )
        self._carry_out(outputs, now)

    def _carry_out(self, outputs: Iterable[session.SessionOutput], now: float) -> None:
        world = self._world
        for output in outputs:
            match output:
                case session.OpenStream(stream_id=stream_id):
                    world.commands.append(commands.OpenManagerStream(stream_id=stream_id))
                case session.Transmit(stream_id=stream_id, frame=frame):
                    world.commands.append(commands.SendToManager(stream_id=stream_id, frame=frame))
                case session.CloseStream(stream_id=stream_id, close=close):
                    text = f"{close.reason.value}: {close.text}" if close is not None else ""
                    world.commands.append(commands.CloseManagerStream(stream_id=stream_id, text=text))
                case session.Welcomed():
                    self._welcomed(output, now)
                case session.InventoryAsked(request=request, namespaces=namespaces):
                    self._asked = request
                    doubts.look_into(world, namespaces)
                    self._answer_inventory(now)
                case session.Opened(resumed=resumed):
                    self._opened(resumed=resumed)
                case session.Delivered(message=message):
                    # Before the outputs behind it: an inventory must hold what `applied` says was applied (R4).
                    self._obey(message, now)
                case session.LeaseExtended(until=until):
                    self._keep_counter(now)
                    self._extended(until, now)
                case session.SessionEnded(reason=reason, text=text):
                    self._asked = None
                    self._ended(now)
                    world.note("info", f"session ended: {text or 'the stream broke'}")
                    self._refused(reason, text)
                case session.GreetingEnded(reason=reason, text=text):
                    world.note("info", f"no session: {text or 'the stream broke'}")
                    self._refused(reason, text)
                case _:
                    pass  # LeaseLapsed: `starting` compares moments; the rest are the manager's

    def _obey(self, message: Message, now: float) -> None:
        """Take a message; an exception belongs to it, and ends the session unless it can be answered."""
        try:
            orders.obey(self._world, message, now)
            if self._world.contained.resting and isinstance(message, _OF_PLACEMENTS):
                for key in message.keys if isinstance(message, Confirm) else (message.key,):
                    self._world.contained.changed(key, now)
        except Exception as error:
            if not containment.message_failed(self._world, message, error, now):
                raise _SessionOver from error

    def _refused(self, reason: CloseReason | None, text: str) -> None:
        if reason is CloseReason.REVOKED:
            self._world.commands.append(commands.IdentityRefused(text=text or "revoked"))
        elif reason is CloseReason.ANOTHER_AGENT:
            self.turned_away = text or "another agent serves this cluster"
            self._world.note(
                "warning", f"turned away: {self.turned_away}; a cluster has one agent, uninstall the other"
            )

    def _welcomed(self, output: session.Welcomed, now: float) -> None:
        if not output.resumed:
            members.number_anew(self._world)
            sizes.forget_session(self._world)
        standing = self._world.standing
        standing.session, standing.keeps_quota, standing.version = output.session, output.keeps_quota, output.version
        if standing.origin != output.origin:
            rebuilding.change_origin(self._world, output.origin, now)
            if self._session is not None:
                self._session.forget_counter()
        self._world.keeper.remember(output.origin, output.session, output.term)

    def _answer_inventory(self, now: float) -> None:
        """Answer once the session's number is kept: a successor that knows a lower one counts as a restored worker."""
        standing = self._world.standing
        if self._session is None or self._asked is None or not self._world.keeper.remembers(standing.session):
            return
        request, self._asked = self._asked, None
        rebuilding.take_late(self._world, now)
        entries, left = inventory.entries(self._world, now), foreign.known(self._world, now)
        answer = self._session.answer_inventory(request, entries, now, left, unheard=self._world.unheard)
        self._carry_out(answer, now)

    def _opened(self, *, resumed: bool) -> None:
        world = self._world
        world.standing.open = True
        world.capacity_changed = True
        world.note("info", "session open", session=str(world.standing.session), resumed=str(resumed).lower())
        if resumed and not world.fresh:
            world.look_at_all()
            return
        world.fresh = False
        world.last_words.anew()
        for placement in tuple(world.placements.values()):
            reports.everything(world, placement)

    def _keep_counter(self, now: float) -> None:
        if self._session is not None:
            self._world.keeper.count(self._session.sealed, now)

    def _extended(self, until: float, now: float) -> None:
        standing = self._world.standing
        had = standing.lease_until > now
        standing.lease_until = until
        if not had:
            for placement in self._world.placements.values():
                if placement.state in STARTING:
                    self._world.look(placement.key)

    def _ended(self, now: float) -> None:
        standing = self._world.standing
        standing.open, standing.session, standing.lease_until = False, 0, 0.0
        standing.away_since = now
        self._world.look_at_all()


def credits_of(world: World) -> int:
    """Return how many un-applied placements this worker takes now: a level that falls with its API server."""
    if not world.api.reachable or not world.leadership.held:
        return 0
    level = world.settings.credits_max
    if world.api.throttled or world.api.latency_seconds >= VERY_SLOW_SECONDS:
        return max(1, level // 8)
    if world.api.latency_seconds >= SLOW_SECONDS:
        return max(1, level // 2)
    return level


def _session_event(event: StreamEvent) -> session.SessionEvent:
    match event:
        case events.ManagerStreamOpened(stream_id=stream_id):
            return session.StreamOpened(stream_id=stream_id)
        case events.ManagerFrameArrived(stream_id=stream_id, frame=frame):
            return session.FrameReceived(stream_id=stream_id, frame=frame)
        case events.FrameViolated(stream_id=stream_id, reason=reason, text=text):
            return session.BadFrame(stream_id=stream_id, reason=reason, text=text)
        case events.ManagerStreamClosed(stream_id=stream_id, text=text):
            return session.StreamClosed(stream_id=stream_id, text=text)
