"""Joins the agent's parts: one machine, one loop, the adapters around it.

`Agent` is the daemon of a worker cluster (`gatelift agent`); `start_local_agent` starts the same machine inside the
manager's process for the cluster `local`, joined by an in-memory stream. Every task has a supervisor; one that fails
ends the process, and what runs next rebuilds everything from the cluster.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import ssl
import uuid
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_fixed

from gatelift_agent.adapters import leadership
from gatelift_agent.adapters.enrolment import Enrolment, EnrolmentError, read_bundle
from gatelift_agent.adapters.identity_store import (
    DirectoryStore,
    IdentityStore,
    IdentityStoreError,
    SecretStore,
)
from gatelift_agent.adapters.kubernetes import WorkerApi
from gatelift_agent.adapters.manager_client import ManagerClient
from gatelift_agent.adapters.members_gate import GateSettings, MembersGate
from gatelift_agent.adapters.metrics import AgentMetrics
from gatelift_agent.adapters.targets import Endpoint
from gatelift_agent.config import AgentConfiguration
from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.seeing import unlisted
from gatelift_agent.core.values import commands, events
from gatelift_agent.local_agent import LocalAgent, start_local_agent
from gatelift_agent.runtime.perform import Performer
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.leader import LeaderElector
from gatelift_kube.deciding.budget import budget
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX
from gatelift_kube.process import collector
from gatelift_kube.process.clock import boottime
from gatelift_kube.process.machine_loop import MachineLoop
from gatelift_kube.process.repetitions import problems
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_kube.process.waiting import failure
from gatelift_kube.serving import self_signed
from gatelift_kube.serving.metrics_access import MetricsAccess
from gatelift_kube.serving.status_server import StatusServer

CONNECTIONS = 64
REFUSED_SECONDS = 30.0
"""How long a refused enrolment waits before it is tried again: a person has to do something first."""

RENEWAL_LOOK_SECONDS = 60.0
"""How often the certificate's age is looked at; a renewal that was not answered is asked for again this often."""


@dataclass(slots=True, kw_only=True)
class Agent:
    """One agent process. `run` lives until `stop` is set, or raises what ended it."""

    config: AgentConfiguration
    cluster: ClusterConfig
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    on_listening: Callable[[Agent], None] = lambda _agent: None
    status_address: str = ""
    failure: str = ""

    async def run(self) -> None:
        """Serve until told to stop. Raises EnrolmentError for settings that cannot work, RuntimeError on a failure."""
        bundle = read_bundle(self.config.ca_file)
        async with Client.connect(self.cluster, connections=CONNECTIONS, user_agent="gatelift-agent") as client:
            await _AgentProcess(self, client, bundle).run()
        if self.failure:
            raise RuntimeError(self.failure)

    def fail(self, task: str, error: BaseException) -> None:
        """End the process because a task failed: its successor starts from the cluster."""
        self.failure = f"{task}: {type(error).__name__}: {error}"
        structlog.get_logger("gatelift.agent").error("task failed", task=task, problem=self.failure, exc_info=error)
        self.stop.set()


class _AgentProcess:
    """The parts of one run."""

    def __init__(self, agent: Agent, client: Client, ca_bundle: bytes) -> None:
        config = agent.config
        self._agent = agent
        self._config = config
        self._client = client
        self._log = structlog.get_logger("gatelift.agent").bind(cluster=config.cluster)
        self._metrics = AgentMetrics()
        self._access = MetricsAccess(client) if config.metrics_authentication else None
        self._instance = f"{os.environ.get('POD_NAME', config.cluster)}-{uuid.uuid4().hex[:8]}"
        self._supervisor = Supervisor(agent.fail)
        self._machine = AgentMachine(
            config.core_settings(self._instance, version("gatelift")), jitter=_jitter(self._instance)
        )
        enrol = Endpoint(address=config.enrol, server_name=config.server_name, proxy=config.proxy)
        self._enrolment = Enrolment(
            _store(config, client),
            config.cluster,
            enrol if config.enrol else None,
            config.token,
            ca_bundle,
            utc_now=_utc_now,
        )
        self._limits = budget(per_second=config.api_per_second, in_flight=config.api_in_flight)
        target = Endpoint(address=config.manager, server_name=config.server_name, proxy=config.proxy)
        self._stream = ManagerClient(self._post, target, self._enrolment.ready, self._enrolment.unreached)
        self._api = WorkerApi(
            client,
            self._post,
            self._supervisor,
            own_namespace=config.namespace,
            limits=self._limits,
            clock=boottime,
            instance=self._instance,
            watch_nodes=config.watch_nodes,
            count_nodes=config.counts_nodes,
            leads=self._leads,
            adopts=config.group_members == "adopt",
            doubts=lambda: self._machine.world.nodes.in_question(boottime()),
        )
        self._gate = _gate(config, client)
        performer = Performer(
            api=self._api,
            stream=self._stream,
            install=self._install,
            refused=self._identity_refused,
            observe=self._performed,
            log=self._log,
        )
        self._loop: MachineLoop[events.Event, commands.Command] = MachineLoop(
            self._machine, performer, tick=events.AgentTicked(), clock=boottime, observe=self._metrics.handled
        )
        self._times = config.leader_election.times()
        self._elector = LeaderElector(
            agent.cluster,
            config.namespace,
            config.leader_election.name,
            self._instance,
            on_acquired=self._acquired,
            on_lost=self._lost,
            times=self._times,
            clock=boottime,
            counts=True,
            user_agent="gatelift-agent-elector",
            on_problem=problems(self._log, "not elected"),
            on_edited=problems(self._log, "Lease edited"),
        )
        self._free_term = leadership.UNKNOWN_TERM
        self._taking_over: asyncio.Task[None] | None = None
        self._enrolling: asyncio.Task[None] | None = None
        self._servers: list[StatusServer] = []

    async def run(self) -> None:
        config = self._config
        collector.tune()
        self._log.info(
            "starting",
            version=version("gatelift"),
            instance=self._instance,
            budget=self._limits.describe(),
        )
        try:
            self._supervisor.spawn("core", self._loop.run())
            self._api.start()
            self._supervisor.spawn("lead", self._keep_told())
            self._supervisor.spawn("certificate", self._keep_certificate())
            self._agent.status_address = await self._serve(config.health)
            if config.metrics:
                tls = self_signed.context("gatelift-agent", dt.datetime.now(dt.UTC)) if self._access else None
                await self._serve(config.metrics, tls)
            if self._gate is not None:
                await self._gate.start()
                self._supervisor.spawn("gate of members", self._gate.run())
            name = config.leader_election.name
            self._free_term = await leadership.vacant_term(self._client, config.namespace, name)
            self._elector.start()
            self._log.info("listening", status=self._agent.status_address)
            self._agent.on_listening(self._agent)
            await self._agent.stop.wait()
        finally:
            await self._end()

    async def _serve(self, address: str, tls: ssl.SSLContext | None = None) -> str:
        server = StatusServer(
            self._metrics.registry, self._missing, self._refresh, access=self._access, but=self._left_out
        )
        await server.start(address, tls)
        self._servers.append(server)
        return server.address

    async def _end(self) -> None:
        """Stop acting, wait for the last write, and only then give the Lease back (R8)."""
        self._log.info("stopping")
        if self._taking_over is not None:
            self._taking_over.cancel()
        self._post(events.AgentLeadershipLost())
        await self._stream.stop()
        if await self._api.drained(WRITE_SECONDS_MAX):
            await self._elector.stop()
        else:
            self._log.warning("writes are still under way; the lease is left to run out")
        if self._gate is not None:
            await self._gate.stop()
        for server in self._servers:
            await server.stop()
        left = await self._supervisor.stop()
        if left:
            self._log.warning("tasks did not end in time", tasks=left)

    # --- leadership ---------------------------------------------------------------------------------------------

    def _leads(self) -> bool:
        return self._elector.leads()

    def _acquired(self, term: int) -> None:
        self._log.info("leading", term=term)
        self._taking_over = self._supervisor.spawn("take over", self._take_over(term))

    async def _take_over(self, term: int) -> None:
        """Get an identity first: without one there is nobody to act for."""

        def tell(state: RetryCallState) -> None:
            self._enrolment.waiting_for = str(failure(state))
            self._log.error("no identity", problem=str(failure(state)))

        refused = retry_if_exception_type((EnrolmentError, IdentityStoreError))
        await AsyncRetrying(retry=refused, wait=wait_fixed(REFUSED_SECONDS), before_sleep=tell)(self._enrolment.ready)
        if self._elector.term == term:
            mark = leadership.found_mark(self._elector.standing)
            self._post(leadership.gained(term, self._free_term, self._times, mark))
            self._post(events.AgentLeadershipExtended(valid_until=self._elector.valid_until()))

    def _lost(self, reason: str) -> None:
        self._log.warning("no longer leading", reason=reason)
        for task in (self._taking_over, self._enrolling):
            if task is not None:
                task.cancel()
        self._post(events.AgentLeadershipLost())

    async def _keep_told(self) -> None:
        elector = self._elector
        await leadership.keep_told(self._post, elector.valid_until, elector.leads, lambda: elector.standing.counter)

    # --- certificate --------------------------------------------------------------------------------------------

    async def _keep_certificate(self) -> None:
        while True:
            await asyncio.sleep(min(RENEWAL_LOOK_SECONDS, max(1.0, self._enrolment.renew_in())))
            if self._enrolment.usable() and self._enrolment.renew_in() <= 0:
                self._post(events.CertificateDue(request=self._enrolment.signing_request()))
                await asyncio.sleep(RENEWAL_LOOK_SECONDS)

    def _install(self, command: commands.InstallCertificate) -> None:
        spawn("install certificate", self._install_certificate(command))

    def _identity_refused(self, command: commands.IdentityRefused) -> None:
        if self._enrolling is not None and not self._enrolling.done():
            return
        if self._enrolment.refused(command.text):
            self._enrolling = self._supervisor.spawn("enrol anew", self._enrol_anew())

    async def _enrol_anew(self) -> None:
        try:
            await self._enrolment.enrol_anew()
        except (EnrolmentError, IdentityStoreError) as error:
            self._log.error("not enrolled anew", problem=str(error))  # the next refusal tries again
        else:
            self._post(events.IdentityReplaced())

    async def _install_certificate(self, command: commands.InstallCertificate) -> None:
        try:
            await self._enrolment.install(command.certificate, command.ca_bundle)
        except (EnrolmentError, IdentityStoreError) as error:
            self._log.error("certificate not installed", problem=str(error))

    # --- looking in ---------------------------------------------------------------------------------------------

    def _post(self, event: events.Event) -> None:
        self._loop.post(event)

    def _performed(self, command: commands.Command) -> None:
        self._metrics.performed(command, self._machine, boottime())

    def _missing(self) -> str:
        if self._elector.problem or not self._elector.leads():
            return self._elector.problem  # without one a standby is ready to take over
        if not self._enrolment.usable():
            return f"not enrolled: {self._enrolment.waiting_for or 'asking'}"
        if self._machine.turned_away and not self._machine.connected:
            return ""  # as a standby; else a rollout that gives its Lease another name would wait for itself
        if not self._machine.world.ready:
            return "not all objects are listed yet"
        return ""

    def _left_out(self) -> str:
        gate = self._gate.problem if self._gate is not None else ""
        return gate or unlisted.summary(self._machine.world)

    def _refresh(self) -> None:
        health = self._api.health
        self._metrics.refresh(
            self._machine,
            latency_seconds=health.latency_seconds,
            reachable=health.reachable,
            writes_held=self._api.writes_held,
            waiting=self._loop.waiting,
        )


def _store(config: AgentConfiguration, client: Client) -> IdentityStore:
    if config.identity_directory:
        return DirectoryStore(Path(config.identity_directory))
    return SecretStore(client, config.namespace, config.identity_secret)


def _gate(config: AgentConfiguration, client: Client) -> MembersGate | None:
    """Return the gate of what drivers make here; None where that is left alone."""
    if config.group_members != "adopt":
        return None
    url = config.group_members_url
    names = (urlsplit(url).hostname or "",) if url else ()
    settings = GateSettings(
        namespace=config.namespace, address=config.group_members_address, url=url, names=tuple(filter(None, names))
    )
    return MembersGate(client, settings)


def _jitter(instance: str) -> float:
    """Spread agents by their names: nothing here needs to be unpredictable."""
    return zlib.crc32(instance.encode()) / 2**32


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


__all__ = ["Agent", "LocalAgent", "start_local_agent"]
