"""Which process is at which end of a stream: dials, stream numbers, and what becomes of streams when a process dies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gatelift.core.api import events as manager_events
from gatelift_agent.core.values import events as agent_events
from gatelift_wire.values.inventory import InventoryChunk, InventoryRequest
from gatelift_wire.values.messages import (
    Bid,
    Close,
    Commit,
    Confirm,
    Evicted,
    Finished,
    Forget,
    Frame,
    Refused,
    Stop,
    Stopped,
)
from support.sim.clock import Timeline
from support.sim.faults import Faults
from support.sim.net import End, SimNet, SimStream

MOMENTOUS = (Bid, Commit, Confirm, Evicted, Finished, Forget, InventoryChunk, InventoryRequest, Refused, Stop, Stopped)
KEY_DIGEST = "the-approved-key"


class Switchboard:
    """Joins agents and managers; `managers` is whoever could answer a dial, the leader first."""

    def __init__(self, timeline: Timeline, faults: Faults, net: SimNet) -> None:
        self.net = net
        self.managers: list[Any] = []
        self.lists: dict[str, Callable[[InventoryChunk], tuple[InventoryChunk, ...]]] = {}
        """What becomes of the inventories of a cluster on the way, by name: of a worker that lies, or says nothing."""
        self._time = timeline
        self._faults = faults
        self._agents: dict[tuple[str, int], SimStream] = {}
        self._managers: dict[tuple[str, int], SimStream] = {}
        self._last = 0

    def dial(self, agent: Any, stream_id: int) -> None:
        """Connect an agent to whoever answers; it hears of it a little later."""
        way = self._time.between(0.001, 0.2)
        if agent.local:
            owner = next((each for each in self.managers if each.local is agent), None)
            if owner is not None:
                self._connect(agent, stream_id, owner)
            return

        def arrive() -> None:
            manager = self._answering()
            if agent.process.dead:
                return
            if manager is None or {agent.cluster.name, agent.name} & self.net.cut:
                agent.process.post(agent_events.ManagerStreamClosed(stream_id=stream_id, text="no connection"))
                return
            self._connect(agent, stream_id, manager)

        self._time.after(way, arrive)

    def _answering(self) -> Any:
        alive = [each for each in self.managers if not each.process.dead]
        if not alive:
            return None
        if len(alive) > 1 and self._faults.strikes("wrong_manager", self._time):
            return alive[self._time.rng.randrange(len(alive))]
        leading = [each for each in alive if each.elector.leads()]
        return leading[-1] if leading else alive[0]

    def _connect(self, agent: Any, stream_id: int, manager: Any) -> None:
        self._last += 1
        number = -self._last if agent.local else self._last
        stream = SimStream(
            cluster=agent.cluster.name if not agent.local else "local",
            agent_name=agent.name,
            agent=End(
                frame=lambda frame: agent.process.post(
                    agent_events.ManagerFrameArrived(stream_id=stream_id, frame=frame)
                ),
                closed=lambda text: agent.process.post(
                    agent_events.ManagerStreamClosed(stream_id=stream_id, text=text)
                ),
            ),
            manager=End(
                frame=lambda frame: manager.process.post(
                    manager_events.AgentFrameArrived(stream_id=number, frame=frame)
                ),
                closed=lambda text: manager.process.post(manager_events.AgentStreamClosed(stream_id=number, text=text)),
            ),
        )
        self._agents[agent.name, stream_id] = stream
        self._managers[manager.name, number] = stream
        self.net.join(stream)
        self._time.say("net", f"{agent.name} stream {stream_id} is {manager.name} stream {number}")
        cluster = "local" if agent.local else agent.cluster.known_as
        digest = "" if agent.local else KEY_DIGEST
        manager.process.post(manager_events.AgentStreamOpened(stream_id=number, cluster=cluster, key_digest=digest))
        agent.process.post(agent_events.ManagerStreamOpened(stream_id=stream_id))

    def from_agent(self, agent: Any, stream_id: int, frame: Frame) -> None:
        """Send a frame to the manager."""
        stream = self._agents.get((agent.name, stream_id))
        if stream is not None and not stream.agent.over:
            if stream.cluster in self.lists:
                frame = self._falsified(frame, self.lists[stream.cluster])
            self._told(agent.name, stream.cluster, frame)
            self._pass(agent, stream, stream.manager, frame)

    def from_manager(self, manager: Any, number: int, frame: Frame) -> None:
        """Send a frame to the agent."""
        stream = self._managers.get((manager.name, number))
        if stream is not None and not stream.manager.over:
            self._told(f"{manager.name} to {stream.cluster}", stream.cluster, frame)
            self._pass(manager.local if number < 0 else None, stream, stream.agent, frame)

    def _pass(self, local: Any, stream: SimStream, to: End, frame: Frame) -> None:
        if local is not None and local.local:  # inside one process: in order, at once, never lost
            self._time.after(0.0, lambda: None if to.over else to.frame(frame))
        else:
            self.net.send(stream, to, frame)

    def agent_hangs_up(self, agent: Any, stream_id: int) -> None:
        """End a stream from the agent's side."""
        stream = self._agents.pop((agent.name, stream_id), None)
        if stream is not None:
            self.net.hang_up(stream, stream.agent)

    def manager_hangs_up(self, manager: Any, number: int, close: Close) -> None:
        """End a stream from the manager's side, saying why."""
        stream = self._managers.pop((manager.name, number), None)
        if stream is None or stream.manager.over:
            return
        self.net.send(stream, stream.agent, Frame(session=0, control=(close,)))
        self.net.hang_up(stream, stream.manager)
        manager.process.post(manager_events.AgentStreamClosed(stream_id=number, text=close.text))

    def died(self, process: Any) -> None:
        """Break all streams of a process that is gone."""
        for known in (self._agents, self._managers):
            for key in [key for key in known if key[0] == process.name]:
                stream = known.pop(key)
                self.net.die(stream, stream.agent if known is self._agents else stream.manager)

    def _falsified(self, frame: Frame, lists: Callable[[InventoryChunk], tuple[InventoryChunk, ...]]) -> Frame:
        said = (lists(each) if isinstance(each, InventoryChunk) else (each,) for each in frame.control)
        return replace(frame, control=tuple(one for some in said for one in some))

    def _told(self, who: str, cluster: str, frame: Frame) -> None:
        said = [type(each).__name__ for each in (*frame.control, *frame.messages)]
        about = sorted({str(each.key) for each in frame.messages if hasattr(each, "key")})
        for each in (*frame.messages, *frame.control):
            if isinstance(each, MOMENTOUS):
                self._time.moment(f"{type(each).__name__} {cluster}")
        self._time.say(who, f"s{frame.session} #{frame.sequence} {' '.join(said)} {' '.join(about)}")
