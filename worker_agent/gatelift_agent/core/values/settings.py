"""What a person decides about this agent, as values: mode, policy, capacity. Read once at start; see `config`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.values.resources import RESOURCE_FLAVOR, Resource


class AgentMode(enum.Enum):
    """Where the agent works."""

    REMOTE = "remote"  # a worker cluster: objects are made from templates
    LOCAL = "local"  # the management cluster, inside the manager's process: objects are the user's own


ANY = "*"
"""On a list: whatever it is called."""
VOLUMES = frozenset(
    {
        "clusterTrustBundle",
        "configMap",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
        "serviceAccountToken",
    }
)
"""Types of volumes, and of projected sources, that are of the pod's own namespace: no file server, no driver, no node.
A token is one of a service account that is on its list."""
SE_LINUX_TYPES = frozenset({"container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
"""Those that Pod Security's level Baseline takes."""
SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_syncookies",
    }
)
"""The safe ones, which Baseline takes; `tcp_rmem` and `tcp_wmem` came to it later than to many clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a worker lets be placed. Everything is denied unless named here; namespaces accept by a label of theirs.

    By default that is Pod Security's level Baseline, and what a pod names of its own namespace. `service_accounts` maps
    a pod's service account to the one it gets here. `denied_namespaces` are refused whatever their labels say.
    `tolerations`: keys; `*` is all but those of nodes in trouble and of their roles. `any_namespace` is for `local`
    alone, where the objects are the user's own.
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
    unconfined: bool = False
    capabilities: frozenset[str] = frozenset()
    sysctls: frozenset[str] = SYSCTLS
    se_linux_types: frozenset[str] = SE_LINUX_TYPES
    volumes: frozenset[str] = VOLUMES
    secrets: frozenset[str] = frozenset({ANY})
    image_pull_secrets: frozenset[str] = frozenset({ANY})
    persistent_volume_claims: frozenset[str] = frozenset({ANY})
    probe_hosts: frozenset[str] = frozenset()
    schedulers: frozenset[str] = frozenset({"default-scheduler"})
    runtime_classes: frozenset[str] = frozenset()
    tolerations: frozenset[str] = frozenset({ANY})
    tolerate_all: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NominalCapacity:
    """What the worker has of one flavor and resource (CPU in milli-units, all else in base units)."""

    flavor: str
    resource: str
    nominal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepFinished:
    """For how long what has ended stays at the worker to be looked at, 0: not at all; and how many objects do."""

    failed_seconds: float = 0.0
    succeeded_seconds: float = 0.0
    objects_max: int = 1000


TRAVELLING = tuple(kind.name for kind in SERVED if kind.travels)
"""Names of the kinds of which objects are made at workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """All that the machine is told about itself."""

    mode: AgentMode = AgentMode.REMOTE
    instance: str
    """Names this process; a new one for each start (resume is for the same two processes only, R6)."""
    own_namespace: str = "gatelift-system"
    lease: str = ""
    """Namespace and name of the Lease by which the agent's replicas take turns; `local` has its manager's lead."""
    agent_version: str = ""
    replicas: int = 1
    registry: Registry = SERVED
    """What is known of the kinds."""
    kinds: tuple[str, ...] = TRAVELLING
    """Which of them are taken here."""
    policy: Policy = field(default_factory=Policy)
    capacity: tuple[NominalCapacity, ...] = ()
    """Empty: the worker does no quota of its own, or that of its nodes."""
    capacity_from_nodes: bool = False
    """Where `capacity` is empty: it is what the nodes have, less what runs there."""
    adopts: bool = False
    """Pods that a driver makes here by itself are taken into its placement, once the webhook has put our gate on."""
    holds_quota: bool = False
    """What is stopped keeps its quota, here and at the manager, until it has stopped, whatever rule the manager has."""
    keep: KeepFinished = field(default_factory=KeepFinished)
    credits_max: int = 256
    """Un-applied placements at once: at 2 ms a create a quarter of a thousand is half a second of work."""
    shared_kinds: tuple[Resource, ...] = (RESOURCE_FLAVOR,)
    """Cluster-scoped kinds that are read besides namespaces, where the worker serves them."""
