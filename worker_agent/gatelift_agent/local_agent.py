"""The agent of `local`: the same machine in the manager's process, on the manager's own objects and its own lead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import structlog

from gatelift_agent.adapters import leadership
from gatelift_agent.adapters.kubernetes import WorkerApi, at_home
from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.values import commands, events
from gatelift_agent.core.values.settings import AgentMode, AgentSettings, Policy
from gatelift_agent.runtime.perform import Performer
from gatelift_kinds.registry import SERVED
from gatelift_kube.api.client import Client
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.budget import Budget, budget
from gatelift_kube.deciding.election import ElectionTimes
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.process.machine_loop import MachineLoop
from gatelift_kube.process.tasks import Supervisor
from gatelift_wire.values.messages import Frame


class ManagerEnd(Protocol):
    """The manager's end of the in-memory stream: at most one at a time."""

    def open(self, peer: AgentEnd) -> None:
        """Connect."""
        ...

    def to_manager(self, frame: Frame) -> None:
        """Hand a frame to the manager."""
        ...

    def hang_up(self) -> None:
        """End the stream from the agent's side."""
        ...


@dataclass(slots=True)
class AgentEnd:
    """The agent's end of one stream."""

    stream_id: int
    post: Callable[[events.Event], None]
    over: bool = False

    def frame_arrived(self, frame: Frame) -> None:
        """Take a frame from the manager."""
        self.post(events.ManagerFrameArrived(stream_id=self.stream_id, frame=frame))

    def closed(self, text: str) -> None:
        """Take that the manager closed the stream."""
        self.end(text)

    def end(self, text: str) -> None:
        """Say once that the stream is over."""
        if not self.over:
            self.over = True
            self.post(events.ManagerStreamClosed(stream_id=self.stream_id, text=text))


class _StreamEnd:
    """Carries out the machine's stream commands on the in-memory stream."""

    def __init__(self, stream: ManagerEnd, post: Callable[[events.Event], None]) -> None:
        self._stream = stream
        self._post = post
        self._peer: AgentEnd | None = None

    def dial(self, stream_id: int) -> None:
        """Connect; the manager answers at once."""
        self._peer = AgentEnd(stream_id, self._post)
        self._stream.open(self._peer)
        self._post(events.ManagerStreamOpened(stream_id=stream_id))

    def send(self, stream_id: int, frame: Frame) -> None:
        """Hand a frame over."""
        if self._peer is not None and self._peer.stream_id == stream_id and not self._peer.over:
            self._stream.to_manager(frame)

    def close(self, stream_id: int, text: str = "") -> None:
        """Hang up."""
        if self._peer is not None and self._peer.stream_id == stream_id and not self._peer.over:
            self._peer.end(text or "closed")
            self._stream.hang_up()


class LocalAgent:
    """A running agent of `local`; made by `start_local_agent`.

    `failure` names the part that has ended, and why; "" while all run. A failure here does not end the manager, which
    serves all other clusters; its readiness tells of it.
    """

    def __init__(
        self,
        client: Client,
        stream: ManagerEnd,
        *,
        instance: str,
        leads_until: Callable[[], float],
        limits: Budget,
        clock: Clock,
        shared: Iterable[Reflector],
    ) -> None:
        self._leads_until = leads_until
        self._clock = clock
        self._supervisor = Supervisor(self._failed)
        self.failure = ""
        settings = AgentSettings(mode=AgentMode.LOCAL, instance=instance, policy=Policy(any_namespace=True))
        self.machine = AgentMachine(settings)
        self._api = WorkerApi(
            client,
            self._post,
            self._supervisor,
            own_namespace="kube-system",
            limits=limits,
            clock=clock,
            instance=instance,
            watched=at_home(SERVED),
            keeps_state=False,
            shared=shared,
            leads=self._leads,
            doubts=lambda: self.machine.world.nodes.in_question(clock()),
        )
        performer = Performer(
            api=self._api,
            stream=_StreamEnd(stream, self._post),
            install=_drop,
            refused=_drop,
            log=structlog.get_logger("gatelift.agent").bind(cluster="local"),
        )
        self._loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
            self.machine, performer, tick=events.AgentTicked(), clock=clock
        )

    @property
    def missing(self) -> str:
        """Return what keeps work at home from being served, for the manager's readiness; "" when nothing does."""
        if self.failure:
            return f"the agent of local has ended ({self.failure}); restart the manager"
        return "" if self.machine.world.ready else "not listed yet: what the agent of local needs"

    def start(self, term: int, settle_seconds: float) -> None:
        """Begin to act under the manager's term."""
        self._supervisor.spawn("core of local", self._loop.run())
        self._api.start()
        self._supervisor.spawn(
            "lead of local",
            leadership.keep_told(self._post, self._leads_until, self._leads),
        )
        self._post(events.AgentLeadershipGained(term=term, settle_seconds=settle_seconds))
        self._post(events.AgentLeadershipExtended(valid_until=self._leads_until()))

    def _leads(self) -> bool:
        return self._leads_until() > self._clock()

    async def stop(self) -> None:
        """End all tasks; writes under way are answered by nobody."""
        self._post(events.AgentLeadershipLost())
        await self._supervisor.stop()

    def _post(self, event: events.Event) -> None:
        self._loop.post(event)

    def _failed(self, task: str, error: BaseException) -> None:
        self.failure = f"{task}: {type(error).__name__}: {error}"
        structlog.get_logger("gatelift.agent.local").error(
            "task failed", task=task, problem=self.failure, exc_info=error
        )


async def start_local_agent(
    client: Client,
    stream: ManagerEnd,
    *,
    instance: str,
    term: int,
    leads_until: Callable[[], float],
    settle_seconds: float | None = None,
    limits: Budget | None = None,
    clock: Clock = monotonic,
    shared: Iterable[Reflector] = (),
) -> LocalAgent:
    """Start the agent of `local` under the manager's lead.

    `leads_until` says, on `clock`, until when the manager leads; `settle_seconds` how long a write of an earlier
    leader may still land (default: by the default election times; a first term proves nothing, since a Lease that
    somebody deleted counts anew). `shared` are reflectors of the same cluster that run in this process: what they
    mirror is not watched and kept a second time.
    """
    settle = leadership.settle_seconds(ElectionTimes()) if settle_seconds is None else settle_seconds
    agent = LocalAgent(
        client,
        stream,
        instance=instance,
        leads_until=leads_until,
        limits=limits or budget(),
        clock=clock,
        shared=shared,
    )
    agent.start(term, settle)
    return agent


def _drop(_command: commands.InstallCertificate | commands.IdentityRefused) -> None:
    """Drop: the in-memory stream has no certificate and no key."""
