"""The one interface to clusters on one machine, whatever they are made of.

`load("local" | "embedded" | "kind" | "k3s")` returns a Provider. Its clusters are written down in the state directory
(`state`), so that `gatelift up` and `gatelift down` may be different processes, and each has an admin kubeconfig of
its own in `kubeconfigs/` that plain kubectl understands.
"""

from __future__ import annotations

import enum
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gatelift_sandbox.errors import SandboxError

PROVIDERS: Mapping[str, str] = {
    "local": "gatelift_sandbox.processes:LocalProvider",
    "embedded": "gatelift_sandbox.embedded.provider:EmbeddedProvider",
    "kind": "gatelift_sandbox.kind:KindProvider",
    "k3s": "gatelift_sandbox.k3s:K3sProvider",
}
"""Where each provider lives; loaded when asked for, so that one does not need the other's packages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a cluster has that a test may need."""

    real_api_server: bool
    real_scheduler: bool
    real_kubelet: bool
    resource_quota: bool
    pausable_api_server: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShape:
    """The nodes that a stand-in kubelet serves. Ignored where kubelets are real."""

    count: int = 1
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    extended: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """One running cluster: where it is and what it can do."""

    name: str
    provider: str
    kubeconfig: Path  # admin, mode 0600, usable with plain kubectl
    server: str  # URL as reached from this machine
    kubectl: Path | None
    capabilities: Capabilities
    host_address: str = "127.0.0.1"  # at which its API server reaches this machine, for webhooks
    logs: Path | None = None
    record: Path | None = None  # JSON lines of the stand-in kubelet, see `records`


def default_home() -> Path:
    """Return the state directory: `GATELIFT_HOME`, else `.gatelift` in the working directory."""
    return Path(os.environ.get("GATELIFT_HOME") or ".gatelift").resolve()


class ApiServerAction(enum.Enum):
    """What can be done to an API server. STOP and START keep its address and its data; PAUSE freezes it (SIGSTOP)."""

    STOP = "stop"
    KILL = "kill"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """What all providers are told.

    `detached`: the clusters outlive this process and end by `down` (of any process). Otherwise they end with it, even
    when it is killed with -9.
    """

    home: Path = field(default_factory=default_home)
    kubeconfigs: Path = Path("kubeconfigs")
    detached: bool = False
    nodes: NodeShape = NodeShape()
    audit: bool = False  # providers local and embedded: a line for each request in `Cluster.logs / "audit.log"`
    say: Callable[[str], None] = lambda _: None


class Provider(Protocol):
    """Makes and ends clusters. All errors are SandboxError."""

    name: str

    async def up(self, names: Sequence[str]) -> list[Cluster]:
        """Start clusters of these names at the same time: all are ready, or none is left and an error is raised."""
        ...

    async def down(self, names: Sequence[str] | None = None) -> list[str]:
        """End these clusters (None: all of this provider in the state directory); return the names of those ended."""
        ...

    async def running(self) -> list[Cluster]:
        """Return the clusters of this provider that the state directory knows and that live."""
        ...

    async def api_server(self, name: str, action: ApiServerAction) -> None:
        """Disturb the API server of a cluster. Returns when it is done; START and RESUME wait until it is ready."""
        ...


def load(name: str, settings: ProviderSettings | None = None) -> Provider:
    """Return the provider of this name; SandboxError names the choices if there is none."""
    place = PROVIDERS.get(name)
    if place is None:
        raise SandboxError(f"provider {name!r} is unknown: choose one of {', '.join(PROVIDERS)}")
    module, _, attribute = place.partition(":")
    provider: Provider = getattr(importlib.import_module(module), attribute)(settings or ProviderSettings())
    return provider
