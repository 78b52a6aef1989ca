"""An agent as a container of our own image on kind's network, in the place of the process that a sandbox starts.

It is held as its Deployment holds it: nobody's user, a file system that is read only, no capabilities; its identity is
in its Secret. To take it off the network is to cut it off from its manager and from its API server at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from testcontainers.core.container import DockerContainer

from gatelift_agent.adapters.identity_store import DirectoryStore, SecretStore
from gatelift_kube.values.resources import SECRET, ObjectKey, ObjectRef
from gatelift_sandbox import children
from gatelift_sandbox.installation import AGENT_ACCOUNT, SYSTEM
from gatelift_sandbox.kind import NETWORK, KindProvider
from gatelift_sandbox.proxy import Proxy
from support.e2e.world import World

IDENTITY = "gatelift-agent-identity"
FOLDER = "/etc/gatelift"
COMMAND = ["--kubeconfig", f"{FOLDER}/kubeconfig", "agent", "--config", f"{FOLDER}/agent.yaml"]


@dataclass(frozen=True, slots=True)
class ContainedAgent:
    """One that runs."""

    container: DockerContainer

    async def cut(self) -> None:
        """Take it off the network: what is open hangs, what is new fails."""
        await asyncio.to_thread(self._network().disconnect, self.container.get_container_id())

    async def mend(self) -> None:
        """Put it on the network again."""
        await asyncio.to_thread(self._network().connect, self.container.get_container_id())

    async def says(self, *command: str) -> str:
        """Return what a program in it prints."""
        done = await asyncio.to_thread(self.container.exec, list(command))
        assert done.exit_code == 0, done.output
        return done.output.decode()

    def _network(self) -> Any:
        return self.container.get_docker_client().client.networks.get(NETWORK)


@contextlib.asynccontextmanager
async def in_place(world: World, name: str, image: str) -> AsyncIterator[ContainedAgent]:
    """Let the agent of a worker be a container; at the end it is a process again, which connects anew."""
    installation, cluster = world.installation, world.clusters[name]
    daemon = installation.daemons[f"agent-{name}"]
    road = Proxy("127.0.0.1", installation.proxies[name].port)
    await road.start(cluster.host_address)
    folder = installation.folder / f"contained-{name}"
    _configure(world, name, folder, f"{cluster.host_address}:{road.port}")
    identity = ObjectRef(SECRET, ObjectKey(SYSTEM, IDENTITY))
    kept = await DirectoryStore(installation.folder / daemon.name).load()
    assert kept is not None, "the agent is enrolled"
    await SecretStore(world.clients[name], SYSTEM, IDENTITY).save(kept)
    await installation.end(daemon.name)
    container = _container(image, folder)
    log: children.Child | None = None
    try:
        await asyncio.to_thread(container.start)
        follow = ["docker", "logs", "--follow", container.get_container_id()]
        log = children.start(follow, log=installation.folder / f"contained-{name}.log", detached=False)
        yield ContainedAgent(container)
    finally:
        await asyncio.to_thread(container.stop)
        if log is not None:
            await children.stop(log)
        await road.stop()
        await world.clients[name].delete(identity)
        installation.daemons[daemon.name] = daemon
        await installation.restart(daemon)


def _configure(world: World, name: str, folder: Path, manager: str) -> None:
    """Write what the agent had, as it is seen from kind's network."""
    installation = world.installation
    assert isinstance(world.provider, KindProvider)
    settings = yaml.safe_load((installation.folder / f"agent-{name}.yaml").read_text())
    for each in ("token", "enrol", "identityDirectory", "health"):  # it is enrolled; its default port is its own here
        settings.pop(each, None)
    kubeconfig = yaml.safe_load(installation.kubeconfig(world.clusters[name], AGENT_ACCOUNT).read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = world.provider.inside(name)
    folder.mkdir(mode=0o755)
    for path, content in (("agent.yaml", {**settings, "manager": manager}), ("kubeconfig", kubeconfig)):
        (folder / path).write_text(yaml.safe_dump(content))
        (folder / path).chmod(0o644)  # for the image's user; the folder around all of this is ours alone


def _container(image: str, folder: Path) -> DockerContainer:
    container = DockerContainer(image).with_command(COMMAND).with_volume_mapping(folder, FOLDER)
    held = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges"]}
    return container.with_tmpfs_mount("/tmp", "size=16m").with_kwargs(network=NETWORK, **held)  # noqa: S108 (as deployed)
