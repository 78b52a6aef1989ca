"""What a person decides about this agent, as values: mode, policy, capacity. Read once at start; see `config`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from gatelift_kube.resources import RESOURCE_FLAVOR, Resource


class Mode(enum.Enum):
    """Where the agent works."""

    REMOTE = "remote"  # a worker cluster: objects are made from templates
    LOCAL = "local"  # the management cluster, inside the manager's process: objects are the user's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a worker lets be placed. Everything is denied unless named here; namespaces accept by a label of theirs.

    `service_accounts` maps a pod's service account to the one it gets here. `denied_namespaces` are refused whatever
    their labels say. `any_namespace` is for `local` alone, where the objects are the user's own.
    """

    any_namespace: bool = False
    denied_namespaces: frozenset[str] = frozenset({"kube-system", "kube-public", "kube-node-lease"})
    service_accounts: Mapping[str, str] = field(default_factory=lambda: {"default": "default"})
    priority_classes: frozenset[str] = frozenset()
    host_network: bool = False
    host_pid: bool = False
    host_ipc: bool = False
    host_ports: bool = False
    host_path: bool = False
    privileged: bool = False
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FlavorCapacity:
    """What the worker has of one flavor and resource (CPU in milli-units, all else in base units)."""

    flavor: str
    resource: str
    nominal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All that the machine is told about itself."""

    mode: Mode = Mode.REMOTE
    instance: str
    """Names this process; a new one for each start (resume is for the same two processes only, R6)."""
    own_namespace: str = "gatelift-system"
    lease: str = ""
    """Namespace and name of the Lease by which the agent's replicas take turns; `local` has its manager's lead."""
    agent_version: str = ""
    replicas: int = 1
    kinds: tuple[str, ...] = ("Pod", "Job")
    policy: Policy = field(default_factory=Policy)
    capacity: tuple[FlavorCapacity, ...] = ()
    """Empty: the worker does no quota of its own."""
    credits_max: int = 256
    """Un-applied placements at once: at 2 ms a create a quarter of a thousand is half a second of work."""
    shared_kinds: tuple[Resource, ...] = (RESOURCE_FLAVOR,)
    """Cluster-scoped kinds that are read besides namespaces, where the worker serves them."""
