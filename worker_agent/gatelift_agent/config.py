"""The agent's one configuration file, checked once and frozen.

Every setting can also come from the environment: `GATELIFT_AGENT_CLUSTER=worker-1`, `GATELIFT_AGENT_TOKEN=...`,
`GATELIFT_AGENT_POLICY__HOST_NETWORK=true` (file wins over default, environment wins over file). An unknown key is an
error that names its path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from gatelift_admission.values import amounts
from gatelift_agent.core.values import settings as core
from gatelift_kube.deciding.election import ElectionTimes
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.process.setting_types import Flag, NamespaceName, Number, ObjectName, Quantity, Whole, address
from gatelift_kube.process.settings_file import ConfigError, EnvironmentSettings, Section, checked, read
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import RESOURCE_FLAVOR
from gatelift_wire.streams import identity
from gatelift_wire.values import limits, tokens
from gatelift_wire.values.release import ReleaseRule

__all__ = ["AgentConfiguration", "ConfigError", "load"]

WRITES_MAX = 100_000
"""More writes a second than any API server takes: a limit above it is none, and infinity is no number to count with."""

KEPT_SECONDS_MAX = 7 * 86400.0
"""A week: who wants to look at what failed longer than that copies it."""

KEPT_MAX = 10_000
"""Objects that are kept, each some ten kilobytes here and in the worker's etcd; its garbage collector of pods takes
those that have ended from 12,500 on."""

REPLICAS_MAX = 16
"""More replicas than this only cost Lease reads."""


class PolicySection(Section):
    """What may be placed here. Everything is denied unless it is named."""

    denied_namespaces: tuple[str, ...] = ("kube-system", "kube-public", "kube-node-lease")
    service_accounts: dict[str, str] = {"default": "default"}
    """Service accounts that pods may name, each with the one that they get here."""
    priority_classes: tuple[str, ...] = ()
    host_network: Flag = False
    host_pid: Flag = Field(default=False, alias="hostPID")
    host_ipc: Flag = Field(default=False, alias="hostIPC")
    host_ports: Flag = False
    host_path: Flag = False
    privileged: Flag = False
    unconfined: Flag = False
    """Containers without the confinement of seccomp or AppArmor; `privileged` lets them be, too."""
    capabilities: tuple[str, ...] = ()
    sysctls: tuple[str, ...] = tuple(sorted(core.SYSCTLS))
    se_linux_types: tuple[str, ...] = tuple(sorted(core.SE_LINUX_TYPES))
    volumes: tuple[str, ...] = tuple(sorted(core.VOLUMES))
    """Types of volumes, and of sources in a projected one."""
    secrets: tuple[str, ...] = (core.ANY,)
    """Secrets that volumes and environments may name; a name, a beginning that ends in `*`, or `*` for all."""
    image_pull_secrets: tuple[str, ...] = (core.ANY,)
    persistent_volume_claims: tuple[str, ...] = (core.ANY,)
    probe_hosts: tuple[str, ...] = ()
    """Other hosts than the pod that probes and hooks may name."""
    schedulers: tuple[str, ...] = ("default-scheduler",)
    runtime_classes: tuple[str, ...] = ()
    tolerations: tuple[str, ...] = (core.ANY,)
    """Keys; `*` is all but those that begin with `node-role.` or `node.kubernetes.io/`."""
    tolerate_all: Flag = False
    """A toleration without a key, which is of every taint."""


class CapacitySection(Section):
    """What the worker has of one flavor and resource."""

    flavor: ObjectName
    resource: str = Field(min_length=1)
    nominal: Quantity

    @field_validator("nominal")
    @classmethod
    def _quantity(cls, value: str | float) -> str | int | float:
        try:
            found = amounts.parse(value, "cpu")
        except amounts.QuantityError as error:
            raise ValueError(str(error)) from error
        if found < 0:
            raise ValueError(f"{value!r} is negative: write 0 or more")
        return value


class KeepFinishedSection(Section):
    """For how long what has ended stays here to be looked at, 0: it goes at once; and how much of it."""

    failed_seconds: Number = Field(default=3600.0, ge=0, le=KEPT_SECONDS_MAX)
    succeeded_seconds: Number = Field(default=0.0, ge=0, le=KEPT_SECONDS_MAX)
    objects_max: Whole = Field(default=1000, ge=0, le=KEPT_MAX)
    """Jobs and pods of their own; a Job's pods come along. Above it the oldest go first."""


class LeaderElectionSection(Section):
    """The Lease by which one of the agent's replicas acts."""

    name: ObjectName = "gatelift-agent"
    lease_seconds: Number = Field(default=15.0, le=3600)
    renew_seconds: Number = 10.0
    retry_seconds: Number = 2.0

    @model_validator(mode="after")
    def _ordered(self) -> LeaderElectionSection:
        self.times()
        return self

    def times(self) -> ElectionTimes:
        """Return the times; ValueError when they contradict each other."""
        return ElectionTimes(
            lease_seconds=self.lease_seconds, renew_seconds=self.renew_seconds, retry_seconds=self.retry_seconds
        )


class AgentConfiguration(EnvironmentSettings):
    """The whole file."""

    model_config = SettingsConfigDict(env_prefix="GATELIFT_AGENT_")

    cluster: str
    """Name of this worker cluster, as the manager expects it."""
    manager: str
    """Address (host:port) of the manager's session port."""
    enrol: str = ""
    """Address (host:port) of the manager's enrolment port: for the first certificate, and after a long cut."""
    token: str = Field(default="", repr=False)
    """Bootstrap token: used once, for the first certificate."""
    ca_file: str = ""
    """PEM bundle of the manager's CAs; without it the token's hash of the CA is what is trusted at first."""
    server_name: str = ""
    """Name expected in the manager's certificate, where it is not that of the address."""
    proxy: str = ""
    """HTTP CONNECT proxy (http://host:port) on the way to the manager."""
    identity_directory: str = ""
    """Directory for key and certificate; empty: they are kept in a Secret."""
    identity_secret: ObjectName = "gatelift-agent-identity"  # noqa: S105 - the name of a Secret
    namespace: NamespaceName = "gatelift-system"
    """The agent's own namespace: Lease, records, identity."""
    kinds: tuple[str, ...] = Field(default=core.TRAVELLING, min_length=1)
    policy: PolicySection = PolicySection()
    capacity: tuple[CapacitySection, ...] = Field(default=(), max_length=limits.CAPACITY_ENTRIES_MAX)
    keep_finished: KeepFinishedSection = KeepFinishedSection()
    """For how long objects of work that has ended stay here after the manager has its end."""
    credits: Whole = Field(default=256, ge=1, le=10_000)
    replicas: Whole = Field(default=1, ge=1, le=REPLICAS_MAX)
    watch_nodes: Flag = True
    capacity_from_nodes: Flag = True
    """Where `capacity` is empty: take what the nodes have, less what runs there; false: everything fits."""
    release: Literal["", "OnTerminal"] = ""
    """`OnTerminal`: what is stopped keeps its quota, here and at the manager, until it has stopped. Empty: its rule."""
    group_members: Literal["", "adopt"] = ""
    """`adopt`: pods that a driver makes here by itself are gated, and taken into its group as far as it declared them.
    Empty: they are nobody's."""
    group_members_address: str = "0.0.0.0:9443"
    """Where the API server asks for their gate."""
    group_members_url: str = ""
    """By which the API server comes there, `https://host:port`; empty: by the Service."""
    leader_election: LeaderElectionSection = LeaderElectionSection()
    api_per_second: Number = Field(default=500.0, gt=0, le=WRITES_MAX)
    api_in_flight: Whole = Field(default=32, ge=1, le=1024)
    health: str = "0.0.0.0:8081"
    metrics: str = ""
    """Address of the metrics; empty: beside health."""
    metrics_authentication: Flag = False
    """Give metrics by TLS to bearers of a token that may get the path /metrics alone; they need an address then."""

    @field_validator("cluster")
    @classmethod
    def _cluster_name(cls, value: str) -> str:
        try:
            name = identity.check_cluster_name(value)
        except identity.IdentityError as error:
            raise ValueError(str(error)) from error
        if name == LOCAL_CLUSTER:
            raise ValueError("'local' is the management cluster itself and needs no agent; choose another name")
        return name

    @field_validator("manager", "enrol", "health", "metrics", "group_members_address")
    @classmethod
    def _address(cls, value: str, info: ValidationInfo) -> str:
        if not value and info.field_name in {"enrol", "metrics"}:
            return value
        return address(value, host_needed=info.field_name in {"manager", "enrol"})

    @field_validator("capacity")
    @classmethod
    def _listed_once(cls, value: tuple[CapacitySection, ...]) -> tuple[CapacitySection, ...]:
        seen: set[tuple[str, str]] = set()
        for one in value:
            if (one.flavor, one.resource) in seen:
                raise ValueError(f"{one.resource} of flavor {one.flavor} is listed twice; add the two up in one entry")
            seen.add((one.flavor, one.resource))
        return value

    @field_validator("proxy")
    @classmethod
    def _http(cls, value: str) -> str:
        address = value.removeprefix("http://")
        port = whole(address.rpartition(":")[2])
        if value and (address == value or ":" not in address or port is None):
            raise ValueError(f"{value!r} is no HTTP proxy; write http://host:port")
        return value

    @field_validator("kinds")
    @classmethod
    def _known_kinds(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for kind in value:
            if kind not in core.TRAVELLING:
                raise ValueError(f"{kind!r} is not served; known are {', '.join(core.TRAVELLING)}")
        return value

    @field_validator("token")
    @classmethod
    def _token_form(cls, value: str) -> str:
        if value:
            tokens.parse(value)
        return value

    @model_validator(mode="after")
    def _guarded_metrics_have_a_port(self) -> AgentConfiguration:
        if self.metrics_authentication and not self.metrics:
            raise ValueError("metrics: must be an address where metricsAuthentication is true; write 0.0.0.0:8080")
        return self

    @model_validator(mode="after")
    def _token_names_us(self) -> AgentConfiguration:
        if self.token and tokens.parse(self.token).cluster != self.cluster:
            named = tokens.parse(self.token).cluster
            raise ValueError(f"token: is for cluster {named}, this is {self.cluster}; use the token of this cluster")
        return self

    def core_settings(self, instance: str, version: str) -> core.AgentSettings:
        """Return what the deciding core is told."""
        policy = self.policy
        return core.AgentSettings(
            instance=instance,
            own_namespace=self.namespace,
            lease=f"{self.namespace}/{self.leader_election.name}",
            agent_version=version,
            replicas=self.replicas,
            kinds=self.kinds,
            keep=core.KeepFinished(**self.keep_finished.model_dump()),
            credits_max=self.credits,
            policy=core.Policy(
                denied_namespaces=frozenset({*policy.denied_namespaces, self.namespace}),
                service_accounts=policy.service_accounts,
                priority_classes=frozenset(policy.priority_classes),
                host_network=policy.host_network,
                host_pid=policy.host_pid,
                host_ipc=policy.host_ipc,
                host_ports=policy.host_ports,
                host_path=policy.host_path,
                privileged=policy.privileged,
                unconfined=policy.unconfined,
                capabilities=frozenset(policy.capabilities),
                sysctls=frozenset(policy.sysctls),
                se_linux_types=frozenset(policy.se_linux_types),
                volumes=frozenset(policy.volumes),
                secrets=frozenset(policy.secrets),
                image_pull_secrets=frozenset(policy.image_pull_secrets),
                persistent_volume_claims=frozenset(policy.persistent_volume_claims),
                probe_hosts=frozenset(policy.probe_hosts),
                schedulers=frozenset(policy.schedulers),
                runtime_classes=frozenset(policy.runtime_classes),
                tolerations=frozenset(policy.tolerations),
                tolerate_all=policy.tolerate_all,
            ),
            capacity=tuple(
                core.NominalCapacity(
                    flavor=each.flavor, resource=each.resource, nominal=amounts.parse(each.nominal, each.resource)
                )
                for each in self.capacity
            ),
            capacity_from_nodes=self.counts_nodes,
            adopts=self.group_members == "adopt",
            holds_quota=self.release == ReleaseRule.ON_TERMINAL.value,
            shared_kinds=(RESOURCE_FLAVOR,),
        )

    @property
    def counts_nodes(self) -> bool:
        """Say whether the capacity is that of the nodes: by default, where none is listed and nodes are watched."""
        return self.capacity_from_nodes and self.watch_nodes and not self.capacity


def load(path: Path | None) -> AgentConfiguration:
    """Read and check the file (None: environment only). Raises ConfigError with one line per problem."""
    document = read(path)
    return checked(lambda: AgentConfiguration(**document), "GATELIFT_AGENT_")
