"""An agent's and a manager's session joined by a bad network, for property tests.

Frames wait in flight until the network delivers them. A cut loses what is in flight or lets it arrive later, when
newer streams exist; frames with nothing but messages may arrive twice. `sent` and `came` keep what was said and heard
in each lineage (sessions joined by resumes), by the number of its first session.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from gatelift_wire.encoding.codec import decode_from_agent, decode_from_manager, encode_from_agent, encode_from_manager
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_core import SessionCore
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.messages import Frame, Message

Lineages = defaultdict[int, list[Message]]


@dataclass(slots=True)
class End:
    """One end and what it said and heard."""

    session: SessionCore
    lineage: int = 0
    sent: Lineages = field(default_factory=lambda: defaultdict(list))
    came: Lineages = field(default_factory=lambda: defaultdict(list))
    violations: list[str] = field(default_factory=list)


class Link:
    """The two ends and the network between."""

    def __init__(self, agent: AgentSession, manager: ManagerSession) -> None:
        self.agent_session, self.manager_session = agent, manager
        self.agent, self.manager = End(agent), End(manager)
        self.now = 0.0
        self.up = True
        self.numbers = 0
        self.requests = 0
        self.open_streams: set[int] = set()
        self.to_agent: deque[tuple[int, Frame]] = deque()
        self.to_manager: deque[tuple[int, Frame]] = deque()
        self.late: list[tuple[bool, int, Frame]] = []
        self._take(self.manager, manager.lead(1, 0.0))
        self._take(self.agent, agent.start(0.0))

    def say(self, end: End, message: Message) -> None:
        """Let an end send a message; it counts in its lineage unless it was dropped."""
        kept = end.session._lineage is not None
        outputs = end.session.send([message], self.now)
        if kept:
            end.sent[end.lineage].append(message)
        self._take(end, outputs)

    def deliver(self, end: End, *, twice: bool = False) -> bool:
        """Deliver the next frame to an end. False when nothing is in flight."""
        queue = self.to_agent if end is self.agent else self.to_manager
        if not queue:
            return False
        stream, frame = queue.popleft()
        for _ in range(2 if twice and not frame.control else 1):
            self._arrive(end, stream, frame)
        return True

    def cut(self, *, lose: bool) -> None:
        """Break every stream; what is in flight is lost or arrives later, on streams that are over."""
        if not lose:
            self.late += [(True, *one) for one in self.to_agent] + [(False, *one) for one in self.to_manager]
        self.to_agent.clear()
        self.to_manager.clear()
        streams, self.open_streams = sorted(self.open_streams), set()
        for stream in streams:
            event = wire.StreamClosed(stream_id=stream, text="cut")
            self._take(self.agent, self.agent.session.handle(event, self.now))
            self._take(self.manager, self.manager.session.handle(event, self.now))

    def arrive_late(self) -> None:
        """Let what a cut held back arrive, last first."""
        late, self.late = self.late, []
        for to_agent, stream, frame in reversed(late):
            self._arrive(self.agent if to_agent else self.manager, stream, frame)

    def wait(self, seconds: float) -> None:
        """Let time pass; both ends look at their deadlines."""
        self.now += seconds
        for end in (self.agent, self.manager):
            self._take(end, end.session.tick(self.now))

    def settle(self) -> None:
        """Heal the network and let both ends finish what they have to say."""
        self.up = True
        for _ in range(400):
            while self.deliver(self.manager) or self.deliver(self.agent):
                pass
            idle = self.agent.session.unacknowledged == self.manager.session.unacknowledged == 0
            if idle and self.agent.session.state is self.manager.session.state is wire.SessionState.OPEN:
                return
            self.wait(0.5)
        raise AssertionError(f"no rest: {self.agent.session.state}, {self.manager.session.state}")

    def _arrive(self, end: End, stream: int, frame: Frame) -> None:
        event = wire.FrameReceived(stream_id=stream, frame=frame)
        self._take(end, end.session.handle(event, self.now))

    def _take(self, end: End, outputs: list[wire.SessionOutput]) -> None:
        for output in outputs:
            match output:
                case wire.Transmit() | wire.CloseStream() | wire.OpenStream():
                    self._act(end, output)
                case wire.Welcomed(session=number, resumed=resumed) if not resumed:
                    end.lineage = number
                    end.sent[number].clear()
                    if end is self.manager:
                        self.requests += 1
                        self._take(end, self.manager_session.ask_inventory(self.requests, self.now))
                case wire.GreetingReceived(stream_id=stream):
                    self.numbers += 1
                    self._take(end, self.manager_session.welcome(stream, self.numbers, "origin", self.now))
                case wire.InventoryAsked(request=request):
                    self._take(end, self.agent_session.answer_inventory(request, [], self.now))
                case wire.LeaseRenewed():
                    self._take(end, self.manager_session.grant(self.now))
                case wire.Delivered(message=message):
                    end.came[end.lineage].append(message)
                case wire.SessionEnded(reason=reason, text=text) if reason is not None:
                    end.violations.append(f"{reason.name}: {text}")
                case _:
                    pass

    def _act(self, end: End, action: wire.Transmit | wire.CloseStream | wire.OpenStream) -> None:
        match action:
            case wire.OpenStream(stream_id=stream):
                self._dialled(stream)
            case wire.CloseStream(stream_id=stream) if stream in self.open_streams:
                self._hang_up(end, stream)
            case wire.Transmit(stream_id=stream, frame=frame) if stream in self.open_streams:
                if end is self.agent:
                    self.to_manager.append((stream, decode_from_agent(encode_from_agent(frame))))
                else:
                    self.to_agent.append((stream, decode_from_manager(encode_from_manager(frame))))
            case _:
                pass

    def _dialled(self, stream: int) -> None:
        if not self.up:
            event = wire.StreamClosed(stream_id=stream, text="refused")
            self._take(self.agent, self.agent.session.handle(event, self.now))
            return
        self.open_streams.add(stream)
        opened = wire.StreamOpened(stream_id=stream)
        self._take(self.manager, self.manager.session.handle(opened, self.now))
        self._take(self.agent, self.agent.session.handle(opened, self.now))

    def _hang_up(self, end: End, stream: int) -> None:
        """One end closes: what it wrote before still arrives, then the other hears of it."""
        self.open_streams.discard(stream)
        queue = self.to_agent if end is self.manager else self.to_manager
        peer = self.agent if end is self.manager else self.manager
        before = [one for one in queue if one[0] == stream]
        for one in before:
            queue.remove(one)
        for number, frame in before:
            self._arrive(peer, number, frame)
        self._take(peer, peer.session.handle(wire.StreamClosed(stream_id=stream), self.now))
