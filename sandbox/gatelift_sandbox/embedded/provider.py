"""Provider `embedded`: each cluster is a process with an API server and its stand-ins, and one with stand-in nodes."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml
from tenacity import stop_after_delay

from gatelift_kube.process.waiting import until
from gatelift_sandbox import build, children, starting
from gatelift_sandbox.errors import SandboxError, StartError, UnknownClusterError
from gatelift_sandbox.probes import Probe
from gatelift_sandbox.provider import ApiServerAction, Capabilities, Cluster, NodeShape, ProviderSettings
from gatelift_sandbox.state import ClusterEntry, SandboxState

READY_SECONDS_MAX = 240.0
"""A cluster is up in about a second alone; several starting on a busy machine take some more."""
POLL_SECONDS = 0.02
CLUSTERS_MAX = 16
"""One needs about 60 MB."""
SERVER, KUBELET = "embedded", "kubelet"
CAPABILITIES = Capabilities(
    real_api_server=False,
    real_scheduler=False,
    real_kubelet=False,
    resource_quota=False,
    pausable_api_server=True,
)


class EmbeddedProvider:
    """Starts and ends embedded clusters."""

    name = "embedded"

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._state = SandboxState(settings.home)

    async def up(self, names: Sequence[str]) -> list[Cluster]:
        """Start clusters at the same time; all are ready or none is left."""
        starting.check_names(names, CLUSTERS_MAX)
        for entry in self._state.left_over(self.name):
            await self._end(entry)
        return await starting.all_or_none(names, self._up, self.down)

    async def down(self, names: Sequence[str] | None = None) -> list[str]:
        """End these clusters, or all; return the names of those ended."""
        entries = [e for e in self._state.entries(self.name) if names is None or e.name in names]
        await asyncio.gather(*(self._end(entry) for entry in entries))
        return [entry.name for entry in entries]

    async def running(self) -> list[Cluster]:
        """Return the clusters whose process lives (its API server may be down on purpose)."""
        entries = self._state.entries(self.name)
        return [e.cluster() for e in entries if SERVER in e.children and children.alive(e.children[SERVER])]

    async def api_server(self, name: str, action: ApiServerAction) -> None:
        """Take the API server down and up again.

        Its objects are in the memory of the process, which goes on; so KILL is the same as STOP.
        """
        entry = self._state.entry(name)
        if entry is None or entry.provider != self.name:
            raise UnknownClusterError(f"no cluster {name} of provider {self.name} in {self._state.clusters}")
        process = entry.children[SERVER]
        match action:
            case ApiServerAction.STOP | ApiServerAction.KILL:
                children.signal_child(process, signal.SIGUSR1)
                await self._answers(entry, wanted=False)
            case ApiServerAction.START:
                children.signal_child(process, signal.SIGUSR2)
                await self._answers(entry, wanted=True)
            case ApiServerAction.PAUSE:
                await children.pause(process)
            case ApiServerAction.RESUME:
                children.signal_child(process, signal.SIGCONT)
                await self._answers(entry, wanted=True)

    def memory_bytes(self, name: str) -> dict[str, int]:
        """Return the resident memory of each process of a cluster."""
        entry = self._state.entry(name)
        return {process: children.rss_bytes(child) for process, child in (entry.children if entry else {}).items()}

    async def _up(self, name: str) -> Cluster:
        started = time.monotonic()
        folder = self._state.claim(name)
        entry = self._new_entry(name, folder)
        self._state.save(entry)
        kubeconfig = Path(entry.kubeconfig)
        await asyncio.to_thread(kubeconfig.unlink, missing_ok=True)
        command = [sys.executable, "-m", "gatelift_sandbox.embedded", "--name", name, "--kubeconfig", str(kubeconfig)]
        command += ["--audit-log", str(folder / "audit.log")] if self._settings.audit else []
        entry = self._start(entry, SERVER, command, folder)
        await self._written(entry, folder)
        document = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
        entry = msgspec.structs.replace(entry, server=document["clusters"][0]["cluster"]["server"])
        if self._settings.nodes.count:
            entry = self._start(entry, KUBELET, kubelet_command(entry, self._settings.nodes), folder)
        self._state.save(entry)
        await starting.usable(kubeconfig, self._settings.nodes.count, READY_SECONDS_MAX, lambda: _ended(entry, folder))
        self._settings.say(f"{name}: ready after {time.monotonic() - started:.1f} s at {entry.server}")
        return entry.cluster()

    def _new_entry(self, name: str, folder: Path) -> ClusterEntry:
        return ClusterEntry(
            name=name,
            provider=self.name,
            kubeconfig=str((self._settings.kubeconfigs / f"{name}.yaml").resolve()),
            server="",
            kubectl=_kubectl(),
            logs=str(folder),
            record=str(folder / "record.jsonl"),
            capabilities=dataclasses.asdict(CAPABILITIES),
            starter=children.this_process(),
            detached=self._settings.detached,
        )

    def _start(self, entry: ClusterEntry, process: str, command: Sequence[str], folder: Path) -> ClusterEntry:
        child = children.start(command, log=folder / f"{process}.log", detached=entry.detached)
        entry = msgspec.structs.replace(entry, children=entry.children | {process: child})
        self._state.save(entry)
        return entry

    async def _written(self, entry: ClusterEntry, folder: Path) -> None:
        """Wait until the process has written the kubeconfig, which it does when it serves."""

        async def there() -> bool:
            if await asyncio.to_thread(Path(entry.kubeconfig).exists):
                return True
            if reason := _ended(entry, folder):
                raise StartError(reason)
            return False

        if not await until(there, POLL_SECONDS, stop_after_delay(READY_SECONDS_MAX)):
            raise StartError(f"{entry.name}: the embedded API server does not serve after {READY_SECONDS_MAX:.0f} s")

    async def _answers(self, entry: ClusterEntry, *, wanted: bool) -> None:
        async with Probe(Path(entry.kubeconfig)) as probe:

            async def as_wanted() -> bool:
                return (await probe.get("/readyz") == "ok") is wanted

            if not await until(as_wanted, POLL_SECONDS, stop_after_delay(READY_SECONDS_MAX)):
                state = "up" if wanted else "down"
                raise SandboxError(f"{entry.name}: the API server is not {state} after {READY_SECONDS_MAX:.0f} s")

    async def _end(self, entry: ClusterEntry) -> None:
        for process in (KUBELET, SERVER):
            if process in entry.children:
                await children.stop(entry.children[process])
        await asyncio.to_thread(self._state.remove, entry.name)


def kubelet_command(entry: ClusterEntry, nodes: NodeShape) -> list[str]:
    """Return the command line of the stand-in nodes of a cluster."""
    command = [sys.executable, "-m", "gatelift_sandbox.kubelet", "--kubeconfig", entry.kubeconfig]
    command += ["--cluster", entry.name, "--nodes", str(nodes.count), "--cpu", nodes.cpu, "--memory", nodes.memory]
    command += ["--pods", str(nodes.pods), "--record", str(entry.record)]
    for resource, amount in nodes.extended.items():
        command += ["--extended", f"{resource}={amount}"]
    return command


def _kubectl() -> str | None:
    """Return a kubectl: of the binaries that are there already, else of the PATH; none is built for this provider."""
    found = build.find()
    return str(found.kubectl) if found is not None else shutil.which("kubectl")


def _ended(entry: ClusterEntry, folder: Path) -> str:
    for process, child in entry.children.items():
        if not children.alive(child):
            log = folder / f"{process}.log"
            return f"{entry.name}: {process} ended while starting: {children.log_tail(log)} (whole log: {log})"
    return ""
