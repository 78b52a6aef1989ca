"""Provider `kind`: clusters with real kubelets and containers, by the `kind` command and Docker.

`GATELIFT_KIND_IMAGE` and `GATELIFT_KIND_CONFIG` give node image and configuration, `GATELIFT_TEST_IMAGE` the shell
image of test pods, which is loaded into the nodes where Docker has it. Our clusters carry a prefix that is drawn anew
for each, so only what this state directory knows is ever deleted.
"""

from __future__ import annotations

import asyncio
import dataclasses
import ipaddress
import os
import secrets
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_fixed

from gatelift_sandbox import children, starting
from gatelift_sandbox.commands import require, run
from gatelift_sandbox.errors import MissingToolError, SandboxError, UnknownClusterError
from gatelift_sandbox.probes import Probe
from gatelift_sandbox.provider import ApiServerAction, Capabilities, Cluster, ProviderSettings
from gatelift_sandbox.state import ClusterEntry, SandboxState

CREATE_SECONDS_MAX = 480.0
"""8 s with a node image at hand, 10 s when two start at once; the rest is for a first pull of the image."""
DELETE_TRIES = 4
DELETE_PAUSE_SECONDS = 2.0
"""Between two tries to delete a cluster: Docker takes a second or two to remove a node."""
COMMAND_SECONDS_MAX = 180.0
READY_SECONDS_MAX = 300.0
"""A kubelet starts a static pod again within seconds, unless it backs off after several restarts."""
API_SERVER_GRACE_SECONDS = 2
"""A kube-apiserver on its way out waits for its watches to end; a sandbox does not."""
CLUSTERS_MAX = 5
NETWORK = "kind"
"""Docker's network on which kind puts its nodes."""
DEFAULT_TEST_IMAGE = "busybox:1.37"

CAPABILITIES = Capabilities(
    real_api_server=True,
    real_scheduler=True,
    real_kubelet=True,
    resource_quota=True,
    pausable_api_server=True,
)

_REAPER = Path(__file__).with_name("reap.py")
_MANIFEST = "/etc/kubernetes/manifests/kube-apiserver.yaml"
_ASIDE = "/etc/kubernetes/kube-apiserver.yaml.stopped"


def pod_image() -> str:
    """Return the image for test pods: any with /bin/sh and sleep."""
    return os.environ.get("GATELIFT_TEST_IMAGE") or DEFAULT_TEST_IMAGE


class KindProvider:
    """Starts and ends kind clusters of one node each."""

    name = "kind"

    def __init__(self, settings: ProviderSettings) -> None:
        self._settings = settings
        self._state = SandboxState(settings.home)

    async def up(self, names: Sequence[str]) -> list[Cluster]:
        """Start clusters at the same time; all are ready or none is left."""
        starting.check_names(names, CLUSTERS_MAX)
        await require_engine()
        for entry in self._state.left_over(self.name):
            await self._end(entry)
        return await starting.all_or_none(names, self._up, self.down)

    async def down(self, names: Sequence[str] | None = None) -> list[str]:
        """End these clusters, or all; return the names of those ended."""
        entries = [e for e in self._state.entries(self.name) if names is None or e.name in names]
        await asyncio.gather(*(self._end(entry) for entry in entries))
        return [entry.name for entry in entries]

    def inside(self, name: str) -> str:
        """Return the URL of a cluster's API server as containers on kind's network reach it."""
        return f"https://{_node(self._known(name))}:6443"

    async def running(self) -> list[Cluster]:
        """Return the clusters whose node runs."""
        entries = self._state.entries(self.name)
        if not entries:
            return []
        nodes = (await run(["docker", "ps", "--format", "{{.Names}}"], COMMAND_SECONDS_MAX)).split()
        return [entry.cluster() for entry in entries if _node(entry) in nodes]

    async def api_server(self, name: str, action: ApiServerAction) -> None:
        """Disturb the static pod of the kube-apiserver. Its kubelet restarts one that is paused for over a minute."""
        entry = self._known(name)
        match action:
            case ApiServerAction.STOP | ApiServerAction.KILL:
                await self._in_node(entry, f"mv {_MANIFEST} {_ASIDE}")
                if action is ApiServerAction.STOP:
                    await self._in_node(entry, f"pkill -TERM -x kube-apiserver; sleep {API_SERVER_GRACE_SECONDS}")
                await self._in_node(entry, "while pkill -KILL -x kube-apiserver; do sleep 0.1; done")
            case ApiServerAction.START:
                await self._in_node(entry, f"test ! -e {_ASIDE} || mv {_ASIDE} {_MANIFEST}")
                await self._ready(entry)
            case ApiServerAction.PAUSE:
                await self._in_node(entry, "pkill -STOP -x kube-apiserver")
            case ApiServerAction.RESUME:
                await self._in_node(entry, "pkill -CONT -x kube-apiserver")
                await self._ready(entry)

    def _known(self, name: str) -> ClusterEntry:
        entry = self._state.entry(name)
        if entry is None or entry.provider != self.name:
            raise UnknownClusterError(f"no cluster {name} of provider {self.name} in {self._state.clusters}")
        return entry

    async def _up(self, name: str) -> Cluster:
        started = time.monotonic()
        folder = self._state.claim(name)
        kubeconfig = (self._settings.kubeconfigs / f"{name}.yaml").resolve()
        await asyncio.to_thread(kubeconfig.parent.mkdir, parents=True, exist_ok=True)
        kind_name = f"gl-{secrets.token_hex(3)}-{name}"
        entry = self._new_entry(name, kind_name, kubeconfig)
        if not self._settings.detached:
            command = ["kind", "delete", "cluster", "--name", kind_name]
            reaper = [sys.executable, "-I", "-S", str(_REAPER), str(os.getpid()), *command]
            child = children.start(reaper, log=folder / "reaper.log", detached=True)
            entry = msgspec.structs.replace(entry, children={"reaper": child})
        self._state.save(entry)
        await run(_create(kind_name, kubeconfig), CREATE_SECONDS_MAX)
        await asyncio.to_thread(kubeconfig.chmod, 0o600)
        if await _has_image(pod_image()):
            await run(["kind", "load", "docker-image", pod_image(), "--name", kind_name], COMMAND_SECONDS_MAX)
        entry = msgspec.structs.replace(entry, server=_server(kubeconfig), host_address=await _gateway())
        self._state.save(entry)
        await starting.usable(kubeconfig, 1, READY_SECONDS_MAX)
        self._settings.say(f"{name}: ready after {time.monotonic() - started:.1f} s at {entry.server}")
        return entry.cluster()

    def _new_entry(self, name: str, kind_name: str, kubeconfig: Path) -> ClusterEntry:
        return ClusterEntry(
            name=name,
            provider=self.name,
            kubeconfig=str(kubeconfig),
            server="",
            kubectl=shutil.which("kubectl"),
            capabilities=dataclasses.asdict(CAPABILITIES),
            starter=children.this_process(),
            detached=self._settings.detached,
            facts={"kind": kind_name},
        )

    async def _ready(self, entry: ClusterEntry) -> None:
        async with Probe(Path(entry.kubeconfig)) as probe:
            await probe.wait("/readyz", lambda said: said == "ok", READY_SECONDS_MAX, lambda: "")

    async def _in_node(self, entry: ClusterEntry, script: str) -> None:
        await run(["docker", "exec", _node(entry), "sh", "-c", script], COMMAND_SECONDS_MAX, SandboxError)

    async def _end(self, entry: ClusterEntry) -> None:
        command = ["kind", "delete", "cluster", "--name", entry.facts["kind"]]
        # The reaper of a killed owner may be at it this moment; to delete what is gone succeeds.
        deleting = AsyncRetrying(
            retry=retry_if_exception_type(SandboxError),
            wait=wait_fixed(DELETE_PAUSE_SECONDS),
            stop=stop_after_attempt(DELETE_TRIES),
            reraise=True,
        )
        await deleting(run, command, COMMAND_SECONDS_MAX, SandboxError)
        if "reaper" in entry.children:
            await children.kill(entry.children["reaper"])
        await asyncio.to_thread(self._state.remove, entry.name)


async def require_engine() -> None:
    """Raise MissingToolError, in one sentence, unless `kind` and `docker` are there and the engine answers."""
    require("kind", "provider kind needs it, see https://kind.sigs.k8s.io, or choose --provider local")
    require("docker", "provider kind needs Docker, see https://docs.docker.com/engine/install, or --provider local")
    try:
        await run(["docker", "version", "--format", "{{.Server.Version}}"], COMMAND_SECONDS_MAX)
    except SandboxError as failure:
        raise MissingToolError(
            f"provider kind: Docker does not answer, start it or set DOCKER_HOST ({failure})"
        ) from None


def _create(kind_name: str, kubeconfig: Path) -> list[str]:
    """Return the command that makes a cluster; a given image wins over one in a given configuration, as kind has it."""
    command = ["kind", "create", "cluster", "--name", kind_name, "--kubeconfig", str(kubeconfig), "--wait", "60s"]
    for variable, flag in (("GATELIFT_KIND_CONFIG", "--config"), ("GATELIFT_KIND_IMAGE", "--image")):
        value = os.environ.get(variable, "")
        if value:
            command += [flag, value]
    return command


def _node(entry: ClusterEntry) -> str:
    return f"{entry.facts['kind']}-control-plane"


def _server(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


async def _has_image(image: str) -> bool:
    listed = await run(["docker", "images", "--quiet", image], COMMAND_SECONDS_MAX)
    return bool(listed.strip())


async def _gateway() -> str:
    """Return this machine's IPv4 address on kind's network, where the clusters reach its webhooks and manager."""
    template = "{{range .IPAM.Config}}{{.Gateway}} {{end}}"
    listed = await run(["docker", "network", "inspect", NETWORK, "--format", template], COMMAND_SECONDS_MAX)
    for address in listed.split():
        if ipaddress.ip_address(address.partition("/")[0]).version == 4:
            return address.partition("/")[0]
    raise SandboxError(
        "Docker's network `kind` has no IPv4 gateway: delete it (`docker network rm kind`), kind makes it"
    )
