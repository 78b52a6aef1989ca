"""Provider `k3s`: one k3s container a cluster, by testcontainers. Its kubelet is real, its server is one process.

`GATELIFT_K3S_IMAGE` names the image. testcontainers' own reaper ends the containers of an owner that was killed
(unless it is switched off); detached clusters are started without it and are found again by the container's id.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
import yaml

from gatelift_sandbox import children, pki, starting
from gatelift_sandbox.errors import UnknownClusterError, UnsupportedError
from gatelift_sandbox.k3s_engine import DockerEngine, Started
from gatelift_sandbox.provider import ApiServerAction, Capabilities, Cluster, ProviderSettings
from gatelift_sandbox.state import ClusterEntry, SandboxState

DEFAULT_IMAGE = "rancher/k3s:v1.33.4-k3s1"
"""A named version, since `latest` is another one tomorrow."""
READY_SECONDS_MAX = 120.0
CLUSTERS_MAX = 5

CAPABILITIES = Capabilities(
    real_api_server=True,
    real_scheduler=True,
    real_kubelet=True,
    resource_quota=True,
    pausable_api_server=True,
)


class ContainerEngine(Protocol):
    """What is used of a container engine (`DockerEngine`). Blocking; raises SandboxError only."""

    def start(self, image: str, *, detached: bool) -> Started:
        """Start a k3s container and wait until its node is there."""
        ...

    def gateway(self, container_id: str) -> str:
        """Return the address at which a container reaches this machine."""
        ...

    def running(self) -> set[str]:
        """Return the ids of the running containers."""
        ...

    def pause(self, container_id: str, *, paused: bool) -> None:
        """Freeze a container or let it go on."""
        ...

    def remove(self, container_id: str) -> None:
        """End and remove a container; one that is not there is fine."""
        ...


class K3sProvider:
    """Starts and ends k3s containers."""

    name = "k3s"

    def __init__(self, settings: ProviderSettings, connect: Callable[[], ContainerEngine] = DockerEngine) -> None:
        self._settings = settings
        self._state = SandboxState(settings.home)
        self._connect = connect
        self._image = os.environ.get("GATELIFT_K3S_IMAGE") or DEFAULT_IMAGE

    async def up(self, names: Sequence[str]) -> list[Cluster]:
        """Start clusters at the same time; all are ready or none is left."""
        starting.check_names(names, CLUSTERS_MAX)
        engine = await asyncio.to_thread(self._connect)
        for entry in self._state.left_over(self.name):
            await self._end(engine, entry)
        return await starting.all_or_none(names, lambda name: self._up(engine, name), self.down)

    async def down(self, names: Sequence[str] | None = None) -> list[str]:
        """End these clusters, or all; return the names of those ended."""
        entries = [e for e in self._state.entries(self.name) if names is None or e.name in names]
        if entries:
            engine = await asyncio.to_thread(self._connect)
            await asyncio.gather(*(self._end(engine, entry) for entry in entries))
        return [entry.name for entry in entries]

    async def running(self) -> list[Cluster]:
        """Return the clusters whose container runs."""
        entries = self._state.entries(self.name)
        if not entries:
            return []
        engine = await asyncio.to_thread(self._connect)
        ids = await asyncio.to_thread(engine.running)
        return [entry.cluster() for entry in entries if entry.facts.get("container") in ids]

    async def api_server(self, name: str, action: ApiServerAction) -> None:
        """Pause or resume the whole container: API server, kubelet and all else of k3s share one process.

        A stopped container would come back at another port, so that is refused (UnsupportedError).
        """
        entry = self._state.entry(name)
        if entry is None or entry.provider != self.name:
            raise UnknownClusterError(f"no cluster {name} of provider {self.name} in {self._state.clusters}")
        if action not in (ApiServerAction.PAUSE, ApiServerAction.RESUME):
            raise UnsupportedError(
                f"provider k3s cannot {action.value} an API server alone: use local or kind for that"
            )
        engine = await asyncio.to_thread(self._connect)
        await asyncio.to_thread(engine.pause, entry.facts["container"], paused=action is ApiServerAction.PAUSE)

    async def _up(self, engine: ContainerEngine, name: str) -> Cluster:
        started = time.monotonic()
        self._state.claim(name)
        kubeconfig = (self._settings.kubeconfigs / f"{name}.yaml").resolve()
        entry = self._new_entry(name, kubeconfig)
        self._state.save(entry)
        container = await asyncio.to_thread(engine.start, self._image, detached=self._settings.detached)
        entry = msgspec.structs.replace(entry, facts={"container": container.container_id})
        self._state.save(entry)
        await asyncio.to_thread(pki.write_private, kubeconfig, container.kubeconfig)
        server = str(yaml.safe_load(container.kubeconfig)["clusters"][0]["cluster"]["server"])
        gateway = await asyncio.to_thread(engine.gateway, container.container_id)
        entry = msgspec.structs.replace(entry, server=server, host_address=gateway)
        self._state.save(entry)
        await starting.usable(kubeconfig, 1, READY_SECONDS_MAX)
        self._settings.say(f"{name}: ready after {time.monotonic() - started:.1f} s at {server}")
        return entry.cluster()

    def _new_entry(self, name: str, kubeconfig: Path) -> ClusterEntry:
        return ClusterEntry(
            name=name,
            provider=self.name,
            kubeconfig=str(kubeconfig),
            server="",
            kubectl=shutil.which("kubectl"),
            capabilities=dataclasses.asdict(CAPABILITIES),
            starter=children.this_process(),
            detached=self._settings.detached,
        )

    async def _end(self, engine: ContainerEngine, entry: ClusterEntry) -> None:
        if "container" in entry.facts:
            await asyncio.to_thread(engine.remove, entry.facts["container"])
        await asyncio.to_thread(self._state.remove, entry.name)
