"""The manager's one configuration file: Kueue's `Configuration` as it is, plus a section `gatelift`.

Parsed and checked once, frozen. An unknown key is an error that names its path. Settings of the section `gatelift` can
also come from the environment: `GATELIFT_LISTEN=0.0.0.0:7443`, `GATELIFT_DISPATCH__OFFERS_AT_ONCE=5` (file wins over
default, environment wins over file). `gatelift check-config` prints the effective values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel
from pydantic_settings import SettingsConfigDict

from gatelift.durations import parse_duration
from gatelift_admission import amounts
from gatelift_admission.model import WAKE_PERIOD, WAKE_PERIOD_MAX
from gatelift_kube.settings_file import ConfigError, EnvironmentSettings, Section, checked, parsed, read
from gatelift_wire.leases import longest_right, start_right_seconds
from gatelift_wire.limits import LEASE_SECONDS, LEASE_SECONDS_MAX, LOST_SECONDS, SUSPECT_SECONDS, WRITE_SECONDS

__all__ = ["ConfigError", "Configuration", "load"]

Seconds = Annotated[float, BeforeValidator(parse_duration)]
"""A duration in seconds, written as Go writes them."""

FRAMEWORKS_SERVED = ("pod", "batch/job")
FRAMEWORKS_OF_KUEUE = (
    *FRAMEWORKS_SERVED,
    "deployment",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "jobset.x-k8s.io/jobset",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "kubeflow.org/jaxjob",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
    "sparkoperator.k8s.io/sparkapplication",
)
GATES_SERVED = frozenset({"WorkloadPriorityClassDefaulting", "PriorityBoost"})
IN_USE = frozenset(
    {
        "apiVersion",
        "kind",
        "namespace",
        "manageJobsWithoutQueueName",
        "managedJobsNamespaceSelector",
        "integrations.frameworks",
        "clientConnection.qps",
        "clientConnection.burst",
        "metrics.bindAddress",
        "metrics.localQueueMetrics.enable",
        "health.healthProbeBindAddress",
        "webhook.port",
        "webhook.host",
        "leaderElection",
        "multiKueue.dispatcherName",
        "fairSharing",
        "waitForPodsReady.enable",
        "waitForPodsReady.timeout",
        "waitForPodsReady.recoveryTimeout",
        "waitForPodsReady.blockAdmission",
        "waitForPodsReady.requeuingStrategy",
        "resources.excludeResourcePrefixes",
        "resources.quotaCheckStrategy",
        "resources.transformations",
        "objectRetentionPolicies",
        "featureGates",
        "gatelift.listen",
        "gatelift.enrolListen",
        "gatelift.apiInFlight",
        "gatelift.debugInvariants",
        "gatelift.admission",
        "gatelift.dispatch",
        "gatelift.advertise",
        "gatelift.leases.renew",
        "gatelift.leases.suspectAfter",
        "gatelift.leases.lostAfter",
        "gatelift.certificates.lifetime",
        "gatelift.certificates.renewByKeyFor",
        "gatelift.certificates.tokenLifetime",
        "gatelift.certificates.serverNames",
    }
)
"""Paths that something reads. Everything else that a file sets is named by `without_effect`: what is not listed here
cannot be forgotten."""

TRANSFORMATIONS_MAX = 64
"""Kueue's limit on `resources.transformations`."""
FAIR_STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
DISPATCHERS = (
    "scored",
    "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    "kueue.x-k8s.io/multikueue-dispatcher-incremental",
)


class NamespaceSelector(Section):
    """metav1.LabelSelector over namespaces."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[dict[str, Any], ...] = ()


class Integrations(Section):
    """Which kinds are taken over."""

    frameworks: tuple[str, ...] = FRAMEWORKS_SERVED
    external_frameworks: tuple[str, ...] = ()
    label_keys_to_copy: tuple[str, ...] = ()
    pod_options: dict[str, Any] | None = None

    @field_validator("frameworks")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in FRAMEWORKS_OF_KUEUE:
                raise ValueError(f"{name!r} is no framework; known are {', '.join(FRAMEWORKS_OF_KUEUE)}")
        return value


class ClientConnection(Section):
    """Limits of the manager's own writes: on average per second, and at once after a pause."""

    qps: float = Field(default=300, gt=0)
    burst: int = Field(default=500, ge=1)


class LocalQueueMetrics(Section):
    """Metrics per LocalQueue: about 150 series for each that has had work."""

    enable: bool = True
    local_queue_selector: NamespaceSelector | None = None


class Metrics(Section):
    """Where metrics are served besides the health port, and which."""

    bind_address: str = ":8080"
    enable_cluster_queue_resources: bool = False
    local_queue_metrics: LocalQueueMetrics = LocalQueueMetrics()


class Health(Section):
    """Health endpoints."""

    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str = "readyz"
    liveness_endpoint_name: str = "healthz"


class Webhook(Section):
    """The webhooks daemon."""

    port: int = 9443
    host: str = ""
    cert_dir: str = ""


class LeaderElection(Section):
    """Leader election; always on, since R2 and R3 rest on its terms."""

    leader_elect: Literal[True] = True
    resource_name: str = "gatelift-manager"
    resource_namespace: str = ""
    resource_lock: Literal["leases"] = "leases"
    lease_duration: Seconds = 15.0
    renew_deadline: Seconds = 10.0
    retry_period: Seconds = 2.0

    @model_validator(mode="after")
    def _ordered(self) -> LeaderElection:
        if not self.lease_duration > self.renew_deadline > 2 * self.retry_period > 0:
            raise ValueError(
                "leaseDuration must be above renewDeadline, and that above twice retryPeriod; found "
                f"{self.lease_duration:g}, {self.renew_deadline:g} and {self.retry_period:g} seconds"
            )
        return self


class RequeuingStrategy(Section):
    """Backoff after a PodsReady time-out."""

    timestamp: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit_count: int | None = Field(default=None, ge=0)
    backoff_base_seconds: int = Field(default=60, ge=0)
    backoff_max_seconds: int = Field(default=3600, ge=0)


class WaitForPodsReady(Section):
    """Eviction of what does not get ready.

    Without this section nobody waits: Kueue's default of 30 minutes costs a write per workload.
    """

    enable: bool | None = None
    timeout: Seconds = 1800.0
    recovery_timeout: Seconds | None = None
    block_admission: bool = False
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()


class FairSharing(Section):
    """Fair sharing between ClusterQueues."""

    enable: bool | None = None
    preemption_strategies: tuple[Literal["LessThanOrEqualToFinalShare", "LessThanInitialShare"], ...] = ()

    @field_validator("preemption_strategies")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        allowed = (FAIR_STRATEGIES, FAIR_STRATEGIES[:1], FAIR_STRATEGIES[1:], ())
        if value not in allowed:
            raise ValueError(
                f"{', '.join(value)} is not allowed; use LessThanOrEqualToFinalShare, LessThanInitialShare, or both "
                "in that order"
            )
        return value

    def strategies(self) -> tuple[str, ...]:
        """Return the strategies in order, both unless the file says otherwise; none if it is switched off."""
        return () if self.enable is False else self.preemption_strategies or FAIR_STRATEGIES


class RetentionOfWorkloads(Section):
    """How long finished workloads are kept; None means for ever."""

    after_finished: Seconds | None = None
    after_deactivated_by_kueue: Seconds | None = None


class ObjectRetentionPolicies(Section):
    """Retention of objects."""

    workloads: RetentionOfWorkloads = RetentionOfWorkloads()


class IncrementalDispatcher(Section):
    """Settings of the incremental dispatcher."""

    step_size: int = Field(default=3, ge=1)


class MultiKueue(Section):
    """Kueue's multi-cluster section."""

    gc_interval: Seconds = 60.0
    origin: str = "multikueue"
    worker_lost_timeout: Seconds = 900.0
    dispatcher_name: str = "scored"
    external_frameworks: tuple[dict[str, str], ...] = ()
    cluster_profile: dict[str, Any] | None = None
    incremental_dispatcher_config: IncrementalDispatcher | None = None

    @field_validator("dispatcher_name")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in DISPATCHERS and not re.fullmatch(r"[a-z0-9.-]+/[A-Za-z0-9._-]+", value):
            raise ValueError(f"must be one of {', '.join(DISPATCHERS)}, or domain/name of a controller of your own")
        return value


class ResourceTransformation(Section):
    """One resource counted in terms of others (KEP-2937)."""

    input: str = Field(min_length=1)
    strategy: Literal["Retain", "Replace"] = "Retain"
    multiply_by: str = ""
    outputs: dict[str, str] = {}

    @field_validator("outputs", mode="before")
    @classmethod
    def _quantities(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for name, quantity in value.items():
            try:
                amounts.nano(str(quantity))
            except amounts.QuantityError as error:
                raise ValueError(f"{name}: {error}") from None
        return {name: str(quantity) for name, quantity in value.items()}


class Resources(Section):
    """How resources of pods count."""

    exclude_resource_prefixes: tuple[str, ...] = ()
    transformations: tuple[ResourceTransformation, ...] = Field(default=(), max_length=TRANSFORMATIONS_MAX)
    device_class_mappings: tuple[dict[str, Any], ...] = ()
    quota_check_strategy: Literal["BlockUndeclared", "IgnoreUndeclared"] = "BlockUndeclared"

    @field_validator("transformations")
    @classmethod
    def _one_each(cls, value: tuple[ResourceTransformation, ...]) -> tuple[ResourceTransformation, ...]:
        seen: set[str] = set()
        for one in value:
            if one.input in seen:
                raise ValueError(f"input {one.input} has two entries; put all its outputs into one")
            seen.add(one.input)
        return value


class Dispatch(Section):
    """How clusters are chosen."""

    offers_at_once: int = Field(default=3, ge=1, le=64)
    bid_seconds: Seconds = 0.3
    hold_seconds: Seconds = 30.0


class Admission(Section):
    """How the admission engine looks again at what waits (decision 12)."""

    wake_period: Seconds = Field(default=WAKE_PERIOD, ge=0, le=60)
    wake_period_max: Seconds = Field(default=WAKE_PERIOD_MAX, ge=0, le=60)


class Leases(Section):
    """Leases of agents (design 7): each time is longer than the one before."""

    renew: Seconds = Field(default=10.0, ge=1, le=3600)
    suspect_after: Seconds = Field(default=SUSPECT_SECONDS, validate_default=True)
    lost_after: Seconds = Field(default=LOST_SECONDS, le=LEASE_SECONDS_MAX, validate_default=True)
    stop_after: Seconds = Field(default=2400.0, validate_default=True)

    @field_validator("suspect_after")
    @classmethod
    def _after_renewals(cls, value: float, info: ValidationInfo) -> float:
        renew = info.data.get("renew")
        if renew is not None and value <= renew:
            raise ValueError(f"must be above renew ({renew:g} s), or each renewal counts as missed before it is due")
        return value

    @field_validator("lost_after")
    @classmethod
    def _after_suspicion(cls, value: float, info: ValidationInfo) -> float:
        suspect = info.data.get("suspect_after")
        if suspect is not None and longest_right(value) < suspect:
            least = max(suspect * LOST_SECONDS / LEASE_SECONDS, start_right_seconds(suspect))
            raise ValueError(
                f"must be at least {math.ceil(least)} s with suspectAfter {suspect:g} s: an agent that is not suspect "
                f"may start work, and its last write ({WRITE_SECONDS:g} s) is to be over before it counts as lost"
            )
        return value

    @field_validator("stop_after")
    @classmethod
    def _after_loss(cls, value: float, info: ValidationInfo) -> float:
        lost = info.data.get("lost_after")
        if lost is not None and value <= lost:
            raise ValueError(f"must be above lostAfter ({lost:g} s): what runs outlasts the connection")
        return value


class Certificates(Section):
    """Certificates of agents."""

    lifetime: Seconds = Field(default=24 * 3600.0, ge=60)
    renew_by_key_for: Seconds = 30 * 24 * 3600.0
    token_lifetime: Seconds = Field(default=24 * 3600.0, ge=60, le=30 * 24 * 3600.0)
    server_names: tuple[str, ...] = ("localhost", "127.0.0.1")

    @field_validator("server_names")
    @classmethod
    def _names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[0-9a-fA-F:.]+|(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", name):
                raise ValueError(f"{name!r} is no host name or address; write what agents dial, without the port")
        return value


class Gatelift(EnvironmentSettings):
    """Our own section."""

    model_config = SettingsConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        env_prefix="GATELIFT_",
        env_nested_delimiter="__",
    )

    listen: str = "0.0.0.0:7443"
    enrol_listen: str = "0.0.0.0:7444"
    advertise: str = ""
    api_in_flight: int = Field(default=64, ge=1, le=1024)
    debug_invariants: bool = False

    @field_validator("listen", "enrol_listen", "advertise")
    @classmethod
    def _address(cls, value: str) -> str:
        port = value.rpartition(":")[2]
        if value and not (":" in value and port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError(f"{value!r} is no address; write host:port")
        return value

    admission: Admission = Admission()
    dispatch: Dispatch = Dispatch()
    leases: Leases = Leases()
    certificates: Certificates = Certificates()


class Configuration(Section):
    """The whole file."""

    api_version: Literal["config.kueue.x-k8s.io/v1beta1", "config.kueue.x-k8s.io/v1beta2"] = (
        "config.kueue.x-k8s.io/v1beta2"
    )
    kind: Literal["Configuration"] = "Configuration"
    namespace: str = "gatelift-system"
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: NamespaceSelector | None = None
    integrations: Integrations = Integrations()
    client_connection: ClientConnection = ClientConnection()
    metrics: Metrics = Metrics()
    health: Health = Health()
    webhook: Webhook = Webhook()
    leader_election: LeaderElection = LeaderElection()
    internal_cert_management: dict[str, Any] | None = None
    controller: dict[str, Any] | None = None
    wait_for_pods_ready: WaitForPodsReady | None = None
    fair_sharing: FairSharing | None = None
    admission_fair_sharing: dict[str, Any] | None = None
    object_retention_policies: ObjectRetentionPolicies = ObjectRetentionPolicies()
    multi_kueue: MultiKueue = MultiKueue()
    resources: Resources = Resources()
    queue_visibility: dict[str, Any] | None = None
    visibility: dict[str, Any] | None = None
    tls: dict[str, Any] | None = None
    feature_gates: dict[str, bool] = {}
    gatelift: Gatelift = Field(default_factory=Gatelift)

    @field_validator("namespace")
    @classmethod
    def _namespace(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
            raise ValueError(f"{value!r} is no namespace; use lower-case letters, digits and '-', at most 63")
        return value

    def without_effect(self) -> tuple[str, ...]:
        """Name what is set and accepted but does nothing in this version, so that nobody relies on it unseen."""
        ignored = list(_idle(self, ""))
        frameworks = self.integrations.frameworks
        ignored += [f"integrations.frameworks: {name}" for name in frameworks if name not in FRAMEWORKS_SERVED]
        ignored += [f"integrations.frameworks: without {name}" for name in FRAMEWORKS_SERVED if name not in frameworks]
        ignored += [f"featureGates.{name}" for name in self.feature_gates if name not in GATES_SERVED]
        if self.multi_kueue.dispatcher_name != "scored":
            ignored.append("multiKueue.dispatcherName: only 'scored' is served in this version")
        return tuple(ignored)


def _idle(section: BaseModel, prefix: str) -> Iterator[str]:
    """Yield the paths that are set and that nothing reads; a section of which nothing is read is one path."""
    for name in sorted(section.model_fields_set):
        path = prefix + to_camel(name)
        if path in IN_USE:
            continue
        value = getattr(section, name)
        if isinstance(value, BaseModel) and any(used.startswith(f"{path}.") for used in IN_USE):
            yield from _idle(value, f"{path}.")
        elif value is not None:
            yield path


def load(path: Path | None) -> Configuration:
    """Read and check the file (None: defaults and environment only).

    Raises ConfigError with one line per problem: path of the key, what is wrong, the way out.
    """
    document = read(path)
    return checked(lambda: Configuration.model_validate(document), "GATELIFT_")


def read_text(text: str) -> Configuration:
    """Check the text of a file, as `load` does."""
    document = parsed(text, "the manager's ConfigMap")
    return checked(lambda: Configuration.model_validate(document), "GATELIFT_")
