"""Gatelift on sandbox clusters: manifests, identities with least privilege, and the daemons as processes of this host.

Used by `gatelift demo`, `gatelift up`, the end-to-end tests and the benches, so that all of them run what a user runs.
Every daemon authenticates as its own ServiceAccount with the RBAC of `deploy/`; nobody is cluster admin but the person.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from tenacity import stop_never

from gatelift.cli.manifests import ACCEPTING, MANAGEMENT, WORKER, InstallPart, agent_binding, load_manifests
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.deciding.errors import AlreadyExistsError, KubeError, NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.process.waiting import may_heal, until
from gatelift_kube.values.resources import LEASE, WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_sandbox import applying, children, ports
from gatelift_sandbox.errors import SandboxError
from gatelift_sandbox.provider import Cluster
from gatelift_sandbox.proxy import Proxy

SYSTEM = "gatelift-system"
MANAGER, MANAGER_ACCOUNT = "manager", "gatelift-manager"
AGENT_ACCOUNT = "gatelift-agent"
READY_SECONDS = 180.0
"""A daemon that is not ready by then has failed. A cold start takes two seconds of a processor, and half a minute where
ten others want it too."""
ENROL_SECONDS = 180.0
CONNECT_SECONDS = 180.0
VERB_SECONDS = 120.0
"""For one verb: mostly the start of Python, see above."""
POLL_SECONDS = 0.1
TOKEN_SECONDS = 24 * 3600
PROGRAM = ("-m", "gatelift.cli.main")
METRICS_BESIDE_HEALTH = {"bindAddress": "0"}
"""Several managers share this host: their metrics are at their health address, and no fixed port is taken."""


@dataclass(slots=True, kw_only=True)
class InstalledProcess:
    """One process of an installation."""

    name: str
    command: list[str]
    log: Path
    status: str  # host:port of its health endpoint
    child: children.Child | None = None

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.child is not None and children.alive(self.child)


@dataclass(slots=True, kw_only=True)
class Installation:
    """One management cluster and its workers. `say` tells people what is being done."""

    folder: Path
    management: Cluster
    workers: Sequence[Cluster]
    namespaces: Sequence[str] = ("default",)
    crds: Path | None = None
    """Kueue's own CRDs instead of ours for the group kueue.x-k8s.io, where given."""
    manager_settings: Mapping[str, Any] = field(default_factory=dict)
    agent_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of each daemon that is started from now on, besides what this process has."""
    program: Sequence[str] = PROGRAM
    """How Python runs `gatelift`: daemons and verbs."""
    detached: bool = False
    say: Callable[[str], None] = lambda _text: None
    daemons: dict[str, InstalledProcess] = field(default_factory=dict)
    proxies: dict[str, Proxy] = field(default_factory=dict)
    _ports: dict[str, int] = field(default_factory=dict)
    _sessions: dict[str, int] = field(default_factory=dict)  # of each worker when its agent or a manager was started
    _restarting: asyncio.Lock = field(default_factory=asyncio.Lock)

    # --- installing ------------------------------------------------------------------------------------------------

    async def install(self) -> None:
        """Apply CRDs, RBAC and policies everywhere, make identities, and start nothing. Raises SandboxError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        await asyncio.gather(self._install_management(), *(self._install_worker(each) for each in self.workers))

    async def _install_management(self) -> None:
        self.say(f"{self.management.name}: CRDs, access, policies")
        async with await self.admin(self.management) as client:
            await applying.apply(client, self._crds())
            await applying.apply(client, load_manifests(*(part for part in MANAGEMENT if part is not InstallPart.CRDS)))
            for namespace in self.namespaces:
                await applying.apply(client, [_namespace(namespace)])
            await _free_lease(client, MANAGER_ACCOUNT)
            for account in (MANAGER_ACCOUNT, "gatelift-webhooks"):
                await self._identity(client, self.management, account)

    async def _install_worker(self, cluster: Cluster) -> None:
        self.say(f"{cluster.name}: access of the agent, accepted namespaces")
        async with await self.admin(cluster) as client:
            await applying.apply(client, load_manifests(*WORKER))
            for namespace in self.namespaces:
                accepting = _namespace(namespace, ACCEPTING)
                await applying.apply(client, [accepting, agent_binding(namespace)])
            await _free_lease(client, AGENT_ACCOUNT)
            await self._identity(client, cluster, AGENT_ACCOUNT)

    def _crds(self) -> list[dict[str, Any]]:
        ours = load_manifests(InstallPart.CRDS)
        if self.crds is None:
            return ours
        kueue = [each for each in applying.folder(self.crds) if each["kind"] == "CustomResourceDefinition"]
        names = {each["metadata"]["name"] for each in kueue}
        return [each for each in ours if each["metadata"]["name"] not in names] + kueue

    async def _identity(self, client: Client, cluster: Cluster, account: str, holder: str = "") -> None:
        """Write a kubeconfig that authenticates as a ServiceAccount by a token of its own.

        `holder` names it where several processes share an account, so that an audit log tells them apart.
        """
        path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS},
        }
        answer = await client.raw("POST", path, body=json.dumps(request).encode())
        token = json.loads(answer)["status"]["token"]
        admin = yaml.safe_load(cluster.kubeconfig.read_text())
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster.name, "cluster": admin["clusters"][0]["cluster"]}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": account, "context": {"cluster": cluster.name, "user": account}}],
            "current-context": account,
        }
        _write_private(self.kubeconfig(cluster, holder or account), yaml.safe_dump(document))

    # --- daemons ---------------------------------------------------------------------------------------------------

    async def start_webhooks(self) -> InstalledProcess:
        """Start the webhooks daemon and wait until it serves and the API server knows of it."""
        port, host = self._port("webhooks"), self.management.host_address
        settings = {"webhook": {"port": port, "host": host}, "health": self._health("webhooks")}
        config = self._config("webhooks", settings)
        url = f"https://{host}:{port}"
        return await self._start("webhooks", self.management, "gatelift-webhooks", "webhooks", config, "--url", url)

    async def start_manager(self, name: str = MANAGER) -> InstalledProcess:
        """Start a manager and wait until it is ready (leader or standby). Another than the first has its own token."""
        listen = {
            "listen": f"127.0.0.1:{self._port(name + '-agents')}",
            "enrolListen": f"127.0.0.1:{self._port(name + '-enrol')}",
        }
        given = dict(self.manager_settings)
        gatelift = {**listen, **given.pop("gatelift", {})}
        settings = {"health": self._health(name), "metrics": METRICS_BESIDE_HEALTH, **given, "gatelift": gatelift}
        holder = MANAGER_ACCOUNT if name == MANAGER else name
        if not self.kubeconfig(self.management, holder).exists():
            async with await self.admin(self.management) as client:
                await self._identity(client, self.management, MANAGER_ACCOUNT, holder)
        await self._note_sessions(*(worker.name for worker in self.workers))
        daemon = await self._start(name, self.management, holder, "manager", self._config(name, settings))
        for proxy in self.proxies.values():
            proxy.retarget("127.0.0.1", self._port(name + "-agents"))
        return daemon

    async def start_agent(self, cluster: Cluster, manager: str = MANAGER) -> InstalledProcess:
        """Start a worker's agent; a first start enrols it: token, approval, certificate."""
        name = f"agent-{cluster.name}"
        folder = self.folder / name
        settings: dict[str, Any] = {
            "cluster": cluster.name,
            "manager": f"127.0.0.1:{await self._proxy_port(cluster, manager)}",
            "enrol": f"127.0.0.1:{self._port(manager + '-enrol')}",
            "serverName": "localhost",
            "identityDirectory": str(folder),
            "health": self._address(name),
            **self.agent_settings.get(cluster.name, {}),
        }
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
            settings["token"] = await self._token(cluster.name)
        config = self.folder / f"{name}.yaml"
        _write_private(config, yaml.safe_dump(settings))
        daemon = self._new_daemon(name, cluster, AGENT_ACCOUNT, "agent", config)
        self._launch(daemon)
        await self._approve(cluster.name, daemon)
        await self._wait_ready(daemon)
        return daemon

    async def wait_connected(self, *names: str) -> None:
        """Wait until a manager counts these worker clusters as connected, by sessions younger than its last start.

        What a manager that was killed had written of its own sessions is no answer.
        """
        async with await self.admin(self.management) as client:
            for name in names:

                async def connected(name: str = name) -> bool:
                    status = await _status(client, name)
                    return conditions.is_true(status.conditions, "Connected") and status.session > self._sessions.get(
                        name, 0
                    )

                await self._until(connected, CONNECT_SECONDS, f"{name} connects")

    def kill(self, daemon: InstalledProcess) -> None:
        """End a daemon as a crash does (SIGKILL)."""
        self.signal(daemon, signal.SIGKILL)

    def signal(self, daemon: InstalledProcess, number: signal.Signals) -> None:
        """Send a signal to a daemon, if it runs."""
        if daemon.child is not None:
            children.signal_child(daemon.child, number)

    async def restart(self, daemon: InstalledProcess, *, if_: Callable[[], bool] = lambda: True) -> None:
        """Start a daemon again, as it was started; what still runs of it is ended. One restart at a time.

        `if_` is asked when its turn has come: meanwhile somebody else may have restarted it.
        """
        async with self._restarting:
            if not if_():
                return
            if daemon.child is not None:
                await children.stop(daemon.child)
            await self._note_sessions(*self._cut_off_by(daemon))
            self._launch(daemon)
            await self._wait_ready(daemon)

    async def end(self, name: str) -> None:
        """End a daemon for good, after a restart of it that is under way; a paused one as well."""
        async with self._restarting:
            daemon = self.daemons.pop(name)
            if daemon.child is not None:
                await children.stop(daemon.child)

    async def stop(self) -> None:
        """End all daemons and proxies."""
        running = [each.child for each in self.daemons.values() if each.child is not None]
        await asyncio.gather(*(children.stop(child) for child in running))
        for proxy in self.proxies.values():
            await proxy.stop()
        self.daemons.clear()
        self.proxies.clear()

    # --- details ---------------------------------------------------------------------------------------------------

    async def admin(self, cluster: Cluster) -> Client:
        """Return a client with the rights of the person who made the cluster."""
        return Client.connect(await from_kubeconfig(str(cluster.kubeconfig)), user_agent="gatelift-sandbox")

    def kubeconfig(self, cluster: Cluster, holder: str) -> Path:
        """Return the path of a daemon's kubeconfig, by its account, or by its name where several share an account."""
        return self.folder / f"{cluster.name}-{holder}.kubeconfig"

    def gatelift(self, *arguments: str) -> list[str]:
        """Return the command line of a verb of `gatelift` as the person of the management cluster."""
        return [sys.executable, *self.program, "--kubeconfig", str(self.management.kubeconfig), *arguments]

    async def verb(self, *arguments: str, seconds: float = VERB_SECONDS) -> str:
        """Run a verb and return what it printed. Raises SandboxError: its one line when it fails, or that it hangs."""
        process = await asyncio.create_subprocess_exec(
            *self.gatelift(*arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(seconds):
                out, problem = await process.communicate()
        except TimeoutError as error:
            raise SandboxError(f"gatelift {' '.join(arguments)}: not over within {seconds:g} s") from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise SandboxError(f"gatelift {' '.join(arguments)}: {problem.decode().strip()}")
        return out.decode()

    async def _token(self, cluster: str) -> str:
        return (await self.verb("cluster", "add", cluster, "--token-only")).strip()

    async def _approve(self, cluster: str, daemon: InstalledProcess) -> None:
        """Approve the agent's key once it has asked; a cluster that is approved already is left alone."""

        async def approved() -> bool:
            if not daemon.alive:
                raise SandboxError(f"{daemon.name} ended: {children.log_tail(daemon.log)}")
            async with await self.admin(self.management) as client:
                served = json.loads((await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", cluster)))).raw)
            if served.get("status", {}).get("keyDigest"):
                return True
            key = served.get("status", {}).get("enrolment", {}).get("keyDigest")
            if not key:
                return False
            await self.verb("cluster", "approve", cluster, "--key", key)
            return True

        await self._until(approved, ENROL_SECONDS, f"{cluster} asks for its certificate")

    def _cut_off_by(self, daemon: InstalledProcess) -> list[str]:
        """Return the workers whose sessions end with a daemon: an agent's own, all with a manager."""
        agents = {f"agent-{worker.name}": worker.name for worker in self.workers}
        if daemon.name in agents:
            return [agents[daemon.name]]
        return list(agents.values()) if daemon.name.startswith(MANAGER) else []

    async def _note_sessions(self, *names: str) -> None:
        async with await self.admin(self.management) as client:
            for name in names:
                self._sessions[name] = await self._session(client, name)

    async def _session(self, client: Client, name: str) -> int:
        """Return the number of a worker's latest session, 0 before its first one. Raises SandboxError or KubeError."""
        found: list[int] = []

        async def read() -> bool:
            try:
                served = await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
            except NotFoundError:
                found.append(0)
            else:
                found.append(served.object.status.session if isinstance(served.object, WorkerCluster) else 0)
            return True

        await self._until(read, CONNECT_SECONDS, f"the session of {name} is read")
        return found[0]

    async def _proxy_port(self, cluster: Cluster, manager: str) -> int:
        if self.detached:
            return self._port(manager + "-agents")
        proxy = self.proxies.get(cluster.name)
        if proxy is None:
            proxy = self.proxies[cluster.name] = Proxy("127.0.0.1", self._port(manager + "-agents"))
            await proxy.start()
        return proxy.port

    async def _start(
        self, name: str, cluster: Cluster, holder: str, verb: str, config: Path, *options: str
    ) -> InstalledProcess:
        daemon = self._new_daemon(name, cluster, holder, verb, config)
        daemon.command += options
        self._launch(daemon)
        await self._wait_ready(daemon)
        return daemon

    def _new_daemon(self, name: str, cluster: Cluster, holder: str, verb: str, config: Path) -> InstalledProcess:
        kubeconfig = str(self.kubeconfig(cluster, holder))
        command = [sys.executable, *self.program, "--kubeconfig", kubeconfig, verb, "--config", str(config)]
        daemon = InstalledProcess(
            name=name, command=command, log=self.folder / f"{name}.log", status=self._address(name)
        )
        self.daemons[name] = daemon
        return daemon

    def _launch(self, daemon: InstalledProcess) -> None:
        self.say(f"starting {daemon.name}")
        own = {key: value for key, value in os.environ.items() if not key.startswith("GATELIFT_")}
        environment = {**own, **self.environment}
        daemon.child = children.start(daemon.command, log=daemon.log, detached=self.detached, environment=environment)

    async def _wait_ready(self, daemon: InstalledProcess) -> None:
        async def ready() -> bool:
            if not daemon.alive:
                raise SandboxError(f"{daemon.name} ended: {children.log_tail(daemon.log)}")
            return await _answers(f"http://{daemon.status}/readyz")

        await self._until(ready, READY_SECONDS, f"{daemon.name} is ready")

    async def _until(self, done: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
        """Wait for something in another process. What a busy API server cannot answer now is asked again."""
        try:
            async with asyncio.timeout(seconds):
                await until(done, POLL_SECONDS, stop_never, heals=may_heal)
        except TimeoutError as error:
            raise SandboxError(f"not within {seconds:g} s: {what}; logs are in {self.folder}") from error

    def _config(self, name: str, settings: Mapping[str, Any]) -> Path:
        path = self.folder / f"{name}.yaml"
        head = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
        path.write_text(yaml.safe_dump({**head, **settings}, sort_keys=False))
        return path

    def _health(self, name: str) -> dict[str, str]:
        return {"healthProbeBindAddress": self._address(name)}

    def _address(self, name: str) -> str:
        return f"127.0.0.1:{self._port(name + '-status')}"

    def _port(self, name: str) -> int:
        if name not in self._ports:
            self._ports[name] = ports.free()
        return self._ports[name]


async def _status(client: Client, name: str) -> WorkerClusterStatus:
    """Return what a manager wrote of a worker cluster; an empty status where it cannot be read."""
    try:
        served = await client.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
    except KubeError:
        return WorkerClusterStatus()
    return served.object.status if isinstance(served.object, WorkerCluster) else WorkerClusterStatus()


async def _answers(url: str) -> bool:
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session,
            session.get(url) as response,
        ):
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


async def _free_lease(client: Client, name: str) -> None:
    """Make the Lease of a daemon that never ran here, held by nobody: one that is not there would be waited for."""
    metadata = {"name": name, "namespace": SYSTEM}
    document = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": {}}
    with suppress(AlreadyExistsError):
        await client.create(LEASE, SYSTEM, json.dumps(document).encode())


def _namespace(name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
