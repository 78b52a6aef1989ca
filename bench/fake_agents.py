"""Several real agent machines in one process, each on a cluster in memory and on a real gRPC stream with mTLS.

`python -m bench.fake_agents FILE`: FILE is JSON (`Plan`) with the manager's address and the identities. Prints `ready`
when all machines run, and lives until its standard input ends. Whether they are connected is seen in the manager.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import msgspec
import structlog
import uvloop

from bench.fake_worker import FakeWorker
from gatelift_agent.adapters.identity_store import Identity
from gatelift_agent.adapters.manager_client import ManagerClient
from gatelift_agent.adapters.targets import Endpoint
from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.values import commands, events
from gatelift_agent.core.values.settings import AgentSettings, NominalCapacity
from gatelift_agent.runtime.perform import Performer
from gatelift_kube.process import collector
from gatelift_kube.process.clock import boottime
from gatelift_kube.process.machine_loop import MachineLoop
from gatelift_kube.process.tasks import Supervisor

LEAD_SECONDS = 24 * 3600.0
"""A fake agent has no rival: it leads for longer than any bench runs."""


class AgentIdentity(msgspec.Struct, frozen=True):
    """One agent: its cluster, and PEM texts."""

    cluster: str
    key: str
    certificate: str


class Plan(msgspec.Struct, frozen=True):
    """What a process of fake agents is told."""

    manager: str
    bundle: str
    namespace: str
    run_seconds: float
    flavor: str
    cpu_millis: int
    agents: tuple[AgentIdentity, ...]


class FakeAgent:
    """One agent."""

    def __init__(self, plan: Plan, own: AgentIdentity, supervisor: Supervisor) -> None:
        identity = Identity(key=own.key.encode(), certificate=own.certificate.encode(), bundle=plan.bundle.encode())

        async def known() -> Identity:
            return identity

        machine = AgentMachine(
            AgentSettings(
                instance=own.cluster,
                capacity=(NominalCapacity(flavor=plan.flavor, resource="cpu", nominal=plan.cpu_millis),),
            )
        )
        stream = ManagerClient(self._post, Endpoint(address=plan.manager, server_name="localhost"), known)
        worker = FakeWorker(self._post, plan.namespace, plan.run_seconds)
        performer = Performer(api=worker, stream=stream, install=_keep_old)
        self._loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
            machine, performer, tick=events.AgentTicked(), clock=boottime
        )
        supervisor.spawn(f"agent {own.cluster}", self._loop.run())
        self._post(events.AgentLeadershipGained(term=1, settle_seconds=0.0))
        self._post(events.AgentLeadershipExtended(valid_until=boottime() + LEAD_SECONDS))

    def _post(self, event: events.Event) -> None:
        self._loop.post(event)


def _keep_old(_command: commands.InstallCertificate) -> None:
    """Take no new certificate: those given outlive the bench."""


async def serve(path: Path) -> None:
    """Run until standard input ends."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),  # standard output is a pipe that nobody reads on
    )
    plan = msgspec.json.decode(await asyncio.to_thread(path.read_bytes), type=Plan)
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def failed(task: str, error: BaseException) -> None:
        if not ended.done():
            ended.set_exception(RuntimeError(f"{task}: {type(error).__name__}: {error}"))

    supervisor = Supervisor(failed)
    agents = [FakeAgent(plan, own, supervisor) for own in plan.agents]
    sys.stdout.write(f"ready {len(agents)}\n")
    sys.stdout.flush()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _end, ended)
    try:
        await ended
    finally:
        await supervisor.stop()


def _end(ended: asyncio.Future[None]) -> None:
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    if not ended.done():
        ended.set_result(None)


if __name__ == "__main__":
    collector.tune()
    uvloop.run(serve(Path(sys.argv[1])))
