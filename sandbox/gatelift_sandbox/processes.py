"""Provider `local`: real control planes as processes of this machine. Command lines are in `control_plane`."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gatelift_sandbox import build, children, control_plane, pki, ports, starting
from gatelift_sandbox.control_plane import API_SERVER, ETCD, KUBELET, START_ORDER, Layout, Ports
from gatelift_sandbox.errors import StartError, UnknownClusterError
from gatelift_sandbox.probes import Probe
from gatelift_sandbox.provider import ApiServerAction, Capabilities, Cluster, ProviderSettings
from gatelift_sandbox.state import ClusterEntry, SandboxState

READY_SECONDS_MAX = 240.0
"""A cluster is up in about 4 s alone on two cores, in 12 s when five start at once on a busy machine."""
CLASH_RETRIES_MAX = 3
"""Somebody else may take a port between our choosing it and its use; thrice in a row is no accident."""
CLUSTERS_MAX = 8
"""One needs about half a gigabyte; more on one machine is a mistake in a loop."""

API_SERVER_GRACE_SECONDS = 2.0
"""A kube-apiserver on its way out waits a minute for its watches to end; a sandbox does not."""

CAPABILITIES = Capabilities(
    real_api_server=True,
    real_scheduler=True,
    real_kubelet=False,
    resource_quota=True,
    pausable_api_server=True,
)


class LocalProvider:
    """Starts and ends clusters of kube-apiserver, etcd, kube-controller-manager, kube-scheduler and stand-in nodes."""

    name = "local"

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._state = SandboxState(settings.home)

    async def up(self, names: Sequence[str]) -> list[Cluster]:
        """Start clusters at the same time; all are ready or none is left."""
        starting.check_names(names, CLUSTERS_MAX)
        await self._sweep()
        binaries = await asyncio.to_thread(build.ensure, self._settings.say)
        return await starting.all_or_none(names, lambda name: self._up(name, binaries), self.down)

    async def down(self, names: Sequence[str] | None = None) -> list[str]:
        """End these clusters, or all; return the names of those ended."""
        entries = [e for e in self._state.entries(self.name) if names is None or e.name in names]
        await asyncio.gather(*(self._end(entry) for entry in entries))
        return [entry.name for entry in entries]

    async def running(self) -> list[Cluster]:
        """Return the clusters whose etcd lives (an API server may be stopped on purpose)."""
        return [
            e.cluster()
            for e in self._state.entries(self.name)
            if ETCD in e.children and children.alive(e.children[ETCD])
        ]

    async def api_server(self, name: str, action: ApiServerAction) -> None:
        """Stop, kill, start, pause or resume a kube-apiserver; its port and data stay."""
        entry = self._entry(name)
        process = entry.children[API_SERVER]
        match action:
            case ApiServerAction.STOP:
                await children.stop(process, API_SERVER_GRACE_SECONDS)
            case ApiServerAction.KILL:
                await children.kill(process)
            case ApiServerAction.PAUSE:
                await children.pause(process)
            case ApiServerAction.RESUME:
                children.signal_child(process, signal.SIGCONT)
                await self._ready(_layout(entry), process)
            case ApiServerAction.START:
                if not children.alive(process):
                    binaries = await asyncio.to_thread(build.ensure, self._settings.say)
                    entry = self._start(entry, API_SERVER, binaries)
                await self._ready(_layout(entry), entry.children[API_SERVER])

    async def back_up(self, name: str, to: Path) -> None:
        """Copy the data of a cluster's etcd, which stands still meanwhile: what a crash at that moment would leave."""
        entry = self._entry(name)
        etcd = entry.children[ETCD]
        try:
            await children.pause(etcd)
            await asyncio.to_thread(shutil.copytree, _layout(entry).data, to)
        finally:
            children.signal_child(etcd, signal.SIGCONT)

    async def restore(self, name: str, from_: Path) -> None:
        """Put a copy of etcd's data back: the whole control plane ends, and starts from it."""
        entry = self._entry(name)
        layout, binaries = _layout(entry), await asyncio.to_thread(build.ensure, self._settings.say)
        mine = [process for process in START_ORDER if process in entry.children]
        for process in reversed(mine):
            await children.stop(entry.children[process])
        await asyncio.to_thread(shutil.rmtree, layout.data)
        await asyncio.to_thread(shutil.copytree, from_, layout.data)
        for process in mine[:2]:
            entry = self._start(entry, process, binaries)
        await self._ready(layout, *(entry.children[process] for process in mine[:2]))
        for process in mine[2:]:
            entry = self._start(entry, process, binaries)

    def memory_bytes(self, name: str) -> dict[str, int]:
        """Return the resident memory of each process of a cluster."""
        return {process: children.rss_bytes(child) for process, child in self._entry(name).children.items()}

    def _entry(self, name: str) -> ClusterEntry:
        entry = self._state.entry(name)
        if entry is None or entry.provider != self.name:
            raise UnknownClusterError(f"no cluster {name} of provider {self.name} in {self._state.clusters}")
        return entry

    async def _up(self, name: str, binaries: build.Binaries) -> Cluster:
        for attempt in range(1, CLASH_RETRIES_MAX + 1):
            try:
                return await self._up_once(name, binaries)
            except StartError as failure:
                if "address already in use" not in str(failure) or attempt == CLASH_RETRIES_MAX:
                    raise
                self._settings.say(f"{name}: a port was taken meanwhile, trying others")
                await self.down([name])
        raise AssertionError("the loop returns or raises")

    async def _up_once(self, name: str, binaries: build.Binaries) -> Cluster:
        started = time.monotonic()
        folder = self._state.claim(name)
        layout = Layout(name=name, folder=folder, ports=_free_ports(), audit=self._settings.audit)
        entry = self._new_entry(layout, binaries)
        self._state.save(entry)
        await asyncio.to_thread(control_plane.write_files, layout)
        pki.write_private(Path(entry.kubeconfig), layout.kubeconfig("admin").read_bytes())
        for process in START_ORDER[:2]:
            entry = self._start(entry, process, binaries)
        await self._ready(layout, *(entry.children[process] for process in START_ORDER[:2]))
        for process in START_ORDER[2:]:
            if process != KUBELET or self._settings.nodes.count:
                entry = self._start(entry, process, binaries)
        await self._usable(entry)
        self._settings.say(f"{name}: ready after {time.monotonic() - started:.1f} s at {layout.server}")
        return entry.cluster()

    def _new_entry(self, layout: Layout, binaries: build.Binaries) -> ClusterEntry:
        return ClusterEntry(
            name=layout.name,
            provider=self.name,
            kubeconfig=str((self._settings.kubeconfigs / f"{layout.name}.yaml").resolve()),
            server=layout.server,
            kubectl=str(binaries.kubectl),
            logs=str(layout.logs),
            record=str(layout.record),
            capabilities=dataclasses.asdict(CAPABILITIES),
            starter=children.this_process(),
            detached=self._settings.detached,
            facts={
                "etcd": str(layout.ports.etcd),
                "etcd_peer": str(layout.ports.etcd_peer),
                "api": str(layout.ports.api),
                "folder": str(layout.folder),
                "audit": "yes" if layout.audit else "",
            },
        )

    def _start(self, entry: ClusterEntry, process: str, binaries: build.Binaries) -> ClusterEntry:
        layout = _layout(entry)
        command = control_plane.command(process, layout, binaries, self._settings.nodes)
        child = children.start(command, log=layout.log(process), detached=entry.detached)
        entry = msgspec.structs.replace(entry, children=entry.children | {process: child})
        self._state.save(entry)
        return entry

    async def _ready(self, layout: Layout, *needed: children.Child) -> None:
        async with Probe(layout.kubeconfig("admin")) as probe:
            names = (ETCD, API_SERVER) if len(needed) > 1 else (API_SERVER,)
            watched = dict(zip(names, needed, strict=True))
            await probe.wait("/readyz", lambda said: said == "ok", READY_SECONDS_MAX, lambda: _ended(layout, watched))

    async def _usable(self, entry: ClusterEntry) -> None:
        layout = _layout(entry)
        count = self._settings.nodes.count
        await starting.usable(
            layout.kubeconfig("admin"), count, READY_SECONDS_MAX, lambda: _ended(layout, entry.children)
        )

    async def _sweep(self) -> None:
        """Remove what owners that have ended left behind: their processes are gone, their folders are not."""
        for entry in self._state.left_over(self.name):
            await self._end(entry)

    async def _end(self, entry: ClusterEntry) -> None:
        # in this order nobody waits for a server that has ended, and etcd closes its files last
        for process in reversed(START_ORDER):
            if process in entry.children:
                await children.stop(entry.children[process])
        await asyncio.to_thread(self._state.remove, entry.name)


def _ended(layout: Layout, watched: dict[str, children.Child]) -> str:
    for process, child in watched.items():
        if not children.alive(child):
            log = layout.log(process)
            return f"{layout.name}: {process} ended while starting: {children.log_tail(log)} (whole log: {log})"
    return ""


def _layout(entry: ClusterEntry) -> Layout:
    facts = entry.facts
    ports = Ports(etcd=int(facts["etcd"]), etcd_peer=int(facts["etcd_peer"]), api=int(facts["api"]))
    return Layout(name=entry.name, folder=Path(facts["folder"]), ports=ports, audit=bool(facts["audit"]))


def _free_ports() -> Ports:
    return Ports(etcd=ports.free(), etcd_peer=ports.free(), api=ports.free())
