"""Joins the manager's parts: one machine, one loop, the adapters around it, and the agent of `local` beside it.

Started by `gatelift manager`. Every task has a supervisor; one that fails ends the process, and what runs next rebuilds
everything from the management API.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import ssl
import sys
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import version

import structlog

from gatelift import introduction
from gatelift.adapters import agents_server, enrol_server, multikueue_clusters
from gatelift.adapters.agents_server import AgentsServer
from gatelift.adapters.authority_store import AuthorityStore
from gatelift.adapters.enrol_server import EnrolServer
from gatelift.adapters.known_addresses import KnownAddresses
from gatelift.adapters.kubernetes import ManagementApi, WriterNames
from gatelift.adapters.kueue_beside import StartRefusedError, refuse_beside_kueue
from gatelift.adapters.local_stream import LocalStream
from gatelift.adapters.metrics import ManagerMetrics
from gatelift.adapters.standing import mark_leader, origin_of
from gatelift.assembly import new_machine
from gatelift.config import METRICS_OFF, Configuration
from gatelift.core.api import commands, events
from gatelift.core.state.recovery_values import floors
from gatelift_admission.engine import is_compiled
from gatelift_agent.app import LocalAgent, start_local_agent
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.leader import LeaderElector
from gatelift_kube.api.noting import NotingTransport
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.budget import Budget, budget
from gatelift_kube.deciding.election import ElectionTimes
from gatelift_kube.deciding.writes import Create, Delete, EmitEvent, Patch
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.process import collector, descriptors
from gatelift_kube.process.clock import monotonic, wall
from gatelift_kube.process.machine_loop import MachineLoop
from gatelift_kube.process.repetitions import problems
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.serving import self_signed
from gatelift_kube.serving.metrics_access import MetricsAccess
from gatelift_kube.serving.status_server import ListenError, StatusServer
from gatelift_kube.values.resources import WORKER_CLUSTER

EXTEND_SECONDS = 1.0
"""How often the core is told how long the lead lasts: a tenth of the shortest lease in use."""

CLOCK_SECONDS = 30.0
"""How often the wall clock is read for texts."""

CONNECTIONS = 64

SESSIONS_PART, ENROLMENT_PART = 0.7, 0.2
"""Of the open files that are not kept back for the API; the rest is for health and metrics."""

SWITCH_SECONDS = 0.0001
"""How long a thread that decodes a large frame goes on while the event loop waits for the interpreter: each time that
the loop wakes up. Python's own 5 ms would be what other clusters notice of such a frame."""


@dataclass(slots=True, kw_only=True)
class Manager:
    """One manager process. `run` lives until `stop` is set, or raises what ended it."""

    config: Configuration
    cluster: ClusterConfig
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    on_listening: Callable[[Manager], None] = lambda _manager: None
    agents_port: int = 0
    enrol_port: int = 0
    status_address: str = ""
    metrics_address: str = ""
    _failure: str = ""

    async def run(self) -> None:
        """Serve until told to stop. Raises StartRefusedError when it may not start here, RuntimeError on a failure."""
        over_http = HttpTransport(self.cluster, connections=CONNECTIONS, user_agent="gatelift-manager")
        noting = NotingTransport(over_http, problems(structlog.get_logger("gatelift"), "a right is missing"))
        async with Client(noting) as client:
            await refuse_beside_kueue(client)
            origin = await origin_of(client)
            await _ManagerProcess(self, client, origin, lambda: noting.lacked).run()
        if self._failure:
            raise RuntimeError(self._failure)

    def fail(self, task: str, error: BaseException) -> None:
        """End the process because a task failed: its successor starts from the API."""
        self._failure = f"{task}: {type(error).__name__}: {error}"
        structlog.get_logger("gatelift").error("task failed", task=task, problem=self._failure, exc_info=error)
        self.stop.set()


class _ManagerProcess:
    """The parts of one run."""

    def __init__(self, manager: Manager, client: Client, origin: str, lacked: Callable[[], str]) -> None:
        config = manager.config
        self._manager = manager
        self._config = config
        self._client = client
        self._lacked = lacked
        self._log = structlog.get_logger("gatelift")
        self._metrics = ManagerMetrics(local_queues=config.metrics.local_queue_metrics.enable)
        self._access = MetricsAccess(client) if config.gatelift.metrics_authentication else None
        self._instance = f"{os.environ.get('POD_NAME', 'manager')}-{uuid.uuid4().hex[:8]}"
        self._machine = new_machine(config, origin, self._instance)
        self._loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
            self._machine, self._perform, tick=events.Ticked(), observe=self._handled
        )
        self._limits = _budget(config)
        identity = WriterNames(controller="gatelift.dev/manager", instance=self._instance)
        self._api = ManagementApi(client, self._loop.post, self._limits, identity, self._leads)
        names = config.gatelift.certificates.server_names
        self._authority = AuthorityStore(client, config.namespace, names, _utc_now, told=introduction.of(config).data())
        files = descriptors.raise_limit()
        sessions = agents_server.GATE.within(descriptors.share(files, part=SESSIONS_PART))
        known = KnownAddresses()
        self._agents = AgentsServer(self._loop.post, self._authority.server_credentials, limits=sessions, known=known)
        self._enrol = EnrolServer(
            self._loop.post,
            lambda: self._authority.state,
            self._authority.server_pair,
            self._leads,
            self._machine.core.links.expects,
            limits=enrol_server.GATE.within(descriptors.share(files, part=ENROLMENT_PART)),
            known=known,
        )
        election = config.leader_election
        self._elector = LeaderElector(
            manager.cluster,
            election.resource_namespace or config.namespace,
            introduction.LEASE_NAME,
            self._instance,
            on_acquired=self._acquired,
            on_lost=self._lost,
            times=ElectionTimes(
                lease_seconds=election.lease_duration,
                renew_seconds=election.renew_deadline,
                retry_seconds=election.retry_period,
            ),
            floors=_floors,
            counts=True,
            on_problem=problems(self._log, "not elected"),
            on_edited=problems(self._log, "Lease edited"),
        )
        self._local = LocalStream(self._loop.post)
        self._local_agent: LocalAgent | None = None
        self._supervisor = Supervisor(manager.fail)
        self._servers: list[StatusServer] = []

    async def run(self) -> None:
        gatelift = self._config.gatelift
        collector.tune()
        sys.setswitchinterval(SWITCH_SECONDS)
        self._log.info(
            "starting",
            version=version("gatelift"),
            compiled=is_compiled(),
            instance=self._instance,
            budget=self._limits.describe(),
            connections=self._agents.gate.limits.connections_max,
        )
        for text in self._config.without_effect():
            self._log.warning("accepted without effect in this version", setting=text)
        self._loop.post(events.ClockRead(unix_seconds=wall()))
        try:
            await self._authority.load()
            await self._elector.look(self._client)
            self._supervisor.spawn("authority", self._authority.keep_fresh())
            self._supervisor.spawn("core", self._loop.run())
            self._supervisor.spawn("clocks", self._keep_told())
            self._supervisor.spawn("MultiKueueClusters", multikueue_clusters.keep_told(self._client, self._leads))
            self._api.start(self._supervisor)
            await _listening("gatelift.listen", self._agents.start, gatelift.listen)
            await _listening("gatelift.enrolListen", self._enrol.start, gatelift.enrol_listen)
            status = await self._serve(self._config.health.health_probe_bind_address)
            if self._config.metrics.bind_address not in METRICS_OFF:
                tls = (
                    self_signed.context("gatelift-manager", dt.datetime.now(dt.UTC))
                    if self._access is not None
                    else None
                )
                self._manager.metrics_address = await self._serve(self._config.metrics.bind_address, tls)
            self._supervisor.spawn("candidacy", self._become_candidate())
            manager = self._manager
            manager.agents_port, manager.enrol_port = self._agents.port, self._enrol.port
            manager.status_address = status
            self._log.info("listening", agents=self._agents.port, enrolment=self._enrol.port, status=status)
            manager.on_listening(manager)
            await manager.stop.wait()
        finally:
            await self._end()

    async def _serve(self, address: str, tls: ssl.SSLContext | None = None) -> str:
        """Serve health and metrics at an address; both serve both, as the agent's, unless metrics are guarded."""
        server = StatusServer(self._metrics.registry, self._missing, self._refresh, access=self._access)
        await server.start(address, tls)
        self._servers.append(server)
        return server.address

    async def _end(self) -> None:
        self._log.info("stopping")
        await self._elector.stop()
        if self._local_agent is not None:
            await self._local_agent.stop()
        await self._agents.stop()
        await self._enrol.stop()
        for server in self._servers:
            await server.stop()
        left = await self._supervisor.stop()
        if left:
            self._log.warning("tasks did not end in time", tasks=left)

    # --- commands --------------------------------------------------------------------------------------------------

    def _handled(self, event: events.Event, seconds: float) -> None:
        self._metrics.handled(event, seconds)
        self._agents.handled(event, seconds)

    def _perform(self, command: commands.Command) -> None:
        self._metrics.performed(command)
        match command:
            case Create() | Patch() | Delete() | EmitEvent():
                self._api.write(command)
            case commands.SendToAgent():
                if not self._local.send(command):
                    self._agents.send(command)
            case commands.CloseAgentStream():
                if not self._local.close(command):
                    self._agents.close(command)
            case commands.Read() | commands.ReadAll() | commands.ListOutOfSight():
                self._api.read(command)
            case commands.ListAnew():
                self._api.list_anew()
            case commands.IssueCertificate():
                lifetime = dt.timedelta(seconds=self._config.gatelift.certificates.lifetime)
                self._enrol.issue(command, lifetime, _utc_now())
            case commands.AnswerEnrolment():
                self._enrol.answer(command)
            case commands.StepDown() | commands.SettleLease():
                self._lead(command)
            case commands.Note():
                self._note(command)

    def _lead(self, command: commands.StepDown | commands.SettleLease) -> None:
        if isinstance(command, commands.SettleLease):
            self._elector.settle(command.term, settled=command.settled)
            return
        self._log.error("stepping down", reason=command.reason)
        self._manager._failure = f"stepped down: {command.reason}"  # noqa: SLF001  # one object in two classes
        self._manager.stop.set()

    def _note(self, note: commands.Note) -> None:
        log = self._log.warning if note.level == "warning" else self._log.info
        about = {"workload": note.workload, "epoch": note.epoch, "cluster": note.cluster}
        log(note.text, **{key: value for key, value in about.items() if value}, **dict(note.fields))

    async def _become_candidate(self) -> None:
        """Run for leader only when every kind is listed: an inventory may be judged only then (R4)."""
        await self._api.wait_synced()
        collector.settle()
        self._elector.start()

    # --- standing --------------------------------------------------------------------------------------------------

    def _leads(self) -> bool:
        return self._elector.leads()

    def _acquired(self, term: int) -> None:
        self._log.info("leading", term=term)
        self._metrics.leader.set(term)
        standing = self._elector.standing
        self._log.info("its Lease", counter=standing.counter, warm=standing.warm)
        self._loop.post(events.LeadershipExtended(valid_until=standing.valid_until, counter=standing.counter))
        self._loop.post(
            events.LeadershipGained(
                term=term,
                warm=standing.warm,
                lease=self._elector.key,
                holder=self._instance,
                counter=standing.counter,
                tenures=standing.tenures,
                seal_key=self._authority.state.seal_key,
            )
        )
        self._supervisor.spawn("leader label", mark_leader(self._client, leads=True))
        self._supervisor.spawn("local agent", self._start_local(term))

    async def _start_local(self, term: int) -> None:
        self._local_agent = await start_local_agent(
            self._client,
            self._local,
            instance=f"{self._instance}-local",
            term=term,
            leads_until=self._elector.valid_until,
            shared=self._api.followed,
        )

    def _lost(self, reason: str) -> None:
        """Lead no more: nothing of this process counts any longer, so it ends and starts anew as a standby."""
        self._log.warning("no longer leading", reason=reason)
        self._loop.post(events.LeadershipLost())
        if not self._manager.stop.is_set():
            self._manager._failure = f"no longer leading: {reason}"  # noqa: SLF001  # one object in two classes
            self._manager.stop.set()

    async def _keep_told(self) -> None:
        clock_at = 0.0
        while True:
            await asyncio.sleep(EXTEND_SECONDS)
            if self._elector.leads():
                standing = self._elector.standing
                self._loop.post(events.LeadershipExtended(valid_until=standing.valid_until, counter=standing.counter))
            if monotonic() - clock_at >= CLOCK_SECONDS:
                clock_at = monotonic()
                self._loop.post(events.ClockRead(unix_seconds=wall()))

    def _missing(self) -> str:
        """Return why it is not ready, a line for each reason; what a missing right has nothing to do with goes on."""
        return "\n".join(each for each in (self._awaited(), self._api.not_served, self._lacked()) if each)

    def _awaited(self) -> str:
        kinds = self._api.waiting_kinds
        if kinds:
            return f"not listed yet: {', '.join(kinds)}"
        if self._elector.problem:
            return self._elector.problem
        return self._local_agent.missing if self._local_agent is not None else ""

    def _refresh(self) -> None:
        agent = self._local_agent
        self._metrics.refresh(
            self._machine,
            waiting=self._loop.waiting,
            writes_held=self._api.writes_held,
            at_home=agent.machine.world.gate_waits.by_queue if agent is not None else None,
        )


def _budget(config: Configuration) -> Budget:
    limits = config.client_connection
    return budget(per_second=limits.qps, burst=limits.burst, in_flight=config.gatelift.api_in_flight)


async def _floors(client: Client) -> tuple[int, int]:
    """Return the term that the next one must exceed, and the counter, as far as the clusters' objects know.

    A Lease that somebody deleted starts counting anew; and what a person says after a restore raises both.
    """
    found: list[WorkerCluster] = []
    async for page in client.list(WORKER_CLUSTER):
        found += [each.object for each in page.items if isinstance(each.object, WorkerCluster)]
    return floors(found)


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


__all__ = ["Manager", "StartRefusedError"]


async def _listening(setting: str, start: Callable[[str], Awaitable[None]], address: str) -> None:
    """Start a gRPC server; ListenError, by the setting that names its address, when that cannot be had."""
    try:
        await start(address)
    except RuntimeError as error:  # all that grpc says of an address that is taken or not ours
        raise ListenError(f"{setting}: {address} cannot be listened on; is it taken? choose another") from error
