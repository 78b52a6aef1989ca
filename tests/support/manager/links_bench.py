"""Links over an API in memory, with an agent's own session machine at the end of each stream; time is the test's."""

from __future__ import annotations

from collections.abc import Iterable

from gatelift.core.api import events
from gatelift.core.api.commands import AnswerEnrolment, CloseAgentStream, Command, IssueCertificate, Note, SendToAgent
from gatelift.core.api.wall import Wall
from gatelift.core.clusters.link_values import LinkOpened, PlaceCounts, Upcall, WriteIds
from gatelift.core.clusters.links import Links
from gatelift_kube.deciding.writes import Create, EmitEvent, ObjectSeen, Patch, Synced
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.leases import longest_right
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import limits
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.messages import Report
from gatelift_wire.values.refusals import CloseReason
from support.manager.worker_cluster_api import Api


class Manager:
    """Links over an Api, with an AgentSession at the end of each stream."""

    def __init__(self, api: Api, term: int = 1, instance: str = "m1", *, lost: float = limits.LOST_SECONDS) -> None:
        self.api = api
        self.now = 100.0
        wall = Wall()
        wall.read(1_800_000_000.0, self.now)
        self.links = Links(
            lambda: ManagerSession(instance=instance, lost_seconds=lost, lease_seconds=longest_right(lost)),
            WriteIds(),
            wall,
        )
        self.links.set_origin("origin-uid")
        self.agents: dict[int, AgentSession] = {}
        self.theirs: dict[int, int] = {}
        """Number of a stream here -> its number at the agent; a first one is 1 there."""
        self.upcalls: list[Upcall] = []
        self.closed: dict[int, CloseReason] = {}
        self.delivered: list[object] = []
        self.issued: list[IssueCertificate] = []
        self.notes: list[str] = []
        self.told: list[EmitEvent] = []
        self.answers: list[AnswerEnrolment] = []
        self.writes = 0
        self.hold_writes = False
        self.held: list[Patch | Create] = []
        self.inventory: tuple[InventoryEntry, ...] = ()
        self.unexplained = 0
        """How many placements dispatch finds charged and not listed when it compares an inventory."""
        self.compares = True
        """Whether dispatch comes to the end of the inventories that it gets."""
        for name in api.objects:
            self.event(ObjectSeen(WORKER_CLUSTER, api.get(name), b""))
        self.event(Synced(WORKER_CLUSTER))
        if term:
            self.event(events.LeadershipExtended(valid_until=1e9))
            self.event(events.LeadershipGained(term=term))

    def event(self, event: events.Event, revision: int = 7) -> list[Upcall]:
        before = len(self.upcalls)
        outcome = self.links.handle(event, self.now, record_revision=revision)
        self.upcalls += outcome.upcalls
        self.perform(outcome.commands)
        for upcall in outcome.upcalls:
            if isinstance(upcall, LinkOpened) and not upcall.resumed:
                self.explain(self.unexplained, upcall.cluster)
                if self.compares:
                    self.links.compared(upcall.cluster, upcall.session)
        return self.upcalls[before:]

    def explain(self, unexplained: int, cluster: str = "w1") -> None:
        """Let dispatch say how many placements are charged and not listed."""
        self.links.place_counts(cluster, PlaceCounts(placements=unexplained, offers=0, unexplained=unexplained))
        self.event(events.Ticked())

    def perform(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Patch() | Create() if self.hold_writes:
                    self.held.append(command)
                case Patch() | Create():
                    self.writes += 1
                    self.event(self.api.write(command))
                case SendToAgent():
                    agent = self.agents.get(command.stream_id)
                    if agent is not None:
                        stream_id = self.theirs.get(command.stream_id, 1)
                        received = wire.FrameReceived(stream_id=stream_id, frame=command.frame)
                        self.agent_says(command.stream_id, agent.handle(received, self.now))
                case CloseAgentStream():
                    self.closed[command.stream_id] = command.close.reason
                case IssueCertificate():
                    self.issued.append(command)
                case EmitEvent():
                    self.told.append(command)
                case Note():
                    self.notes.append(command.text)
                case AnswerEnrolment():
                    self.answers.append(command)
                case _:
                    pass

    def agent_says(self, stream: int, outputs: list[wire.SessionOutput]) -> None:
        for output in outputs:
            match output:
                case wire.Transmit():
                    self.event(events.AgentFrameArrived(stream_id=stream, frame=output.frame))
                case wire.InventoryAsked():
                    agent = self.agents[stream]
                    self.agent_says(stream, agent.answer_inventory(output.request, self.inventory, self.now))
                case wire.Delivered():
                    self.delivered.append(output.message)
                case _:
                    pass

    def dial(
        self,
        stream: int = 1,
        *,
        cluster: str = "w1",
        key: str = "k",
        agent: AgentSession | None = None,
        issued_at: float = 0.0,
    ) -> None:
        session = agent or AgentSession(instance=f"agent-{stream}")
        session.set_facts(credits_=5, api_reachable=True, replicas=1, kinds=("Pod",), now=self.now)
        session.start(self.now)
        self.agents[stream] = session
        self.event(events.AgentStreamOpened(stream_id=stream, cluster=cluster, key_digest=key, issued_at=issued_at))
        self.agent_says(stream, session.handle(wire.StreamOpened(stream_id=1), self.now))

    def dial_again(
        self, before: int, stream: int, *, cluster: str = "w1", key: str = "k", issued_at: float = 0.0
    ) -> None:
        """Break a stream and let the same process of an agent dial anew."""
        text = "the stream broke"
        agent = self.agents.pop(before)
        self.event(events.AgentStreamClosed(stream_id=before, text=text))
        agent.handle(wire.StreamClosed(stream_id=self.theirs.get(before, 1), text=text), self.now)
        opening: list[wire.OpenStream] = []
        while not opening:
            self.now += 1.0
            opening = [each for each in agent.tick(self.now) if isinstance(each, wire.OpenStream)]
        self.agents[stream], self.theirs[stream] = agent, opening[0].stream_id
        self.event(events.AgentStreamOpened(stream_id=stream, cluster=cluster, key_digest=key, issued_at=issued_at))
        self.agent_says(stream, agent.handle(wire.StreamOpened(stream_id=opening[0].stream_id), self.now))

    def report(self, stream: int, *messages: Report) -> None:
        self.agent_says(stream, self.agents[stream].send(messages, self.now))

    def pass_time(self, seconds: float, *, step: float = 1.0, agents: bool = False) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + step)
            if agents:
                for stream, agent in self.agents.items():
                    self.agent_says(stream, agent.tick(self.now))
            self.event(events.Ticked())

    def kinds(self) -> list[str]:
        return [type(upcall).__name__ for upcall in self.upcalls if type(upcall).__name__ != "ClusterChanged"]
