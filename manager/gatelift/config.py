"""The manager's one configuration file: Kueue's `Configuration` as it is, plus a section `gatelift`.

Parsed and checked once, frozen. An unknown key is an error that names its path. Settings of the section `gatelift` can
also come from the environment: `GATELIFT_LISTEN=0.0.0.0:7443`, `GATELIFT_DISPATCH__OFFERS_AT_ONCE=5` (file wins over
default, environment wins over file). `gatelift check-config` prints the effective values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic.alias_generators import to_camel

from gatelift.durations import Seconds
from gatelift.introduction import LEASE_NAME, NAMESPACE
from gatelift.own_settings import Gatelift
from gatelift.selector_settings import NamespaceSelector, PodOptions
from gatelift_admission.values import amounts
from gatelift_kube.process.setting_types import (
    Flag,
    NamespaceName,
    NamespaceNameOrNone,
    Number,
    ObjectName,
    On,
    Whole,
    address,
)
from gatelift_kube.process.settings_file import ConfigError, Section, checked, parsed, read

__all__ = ["ConfigError", "Configuration", "load"]

POD_FRAMEWORK = "pod"
FRAMEWORKS_SERVED = (POD_FRAMEWORK, "batch/job")
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
FAST_RELEASE_GATES = ("PodIntegrationFastQuotaRelease", "FastQuotaReleaseInPodIntegration")
"""One gate, as KEP-6143 and as Kueue's code call it; on unless the file says otherwise."""
TOPOLOGY_GATE = "TopologyAwareScheduling"
GATES_SERVED = frozenset({"WorkloadPriorityClassDefaulting", "PriorityBoost", "ReclaimablePods", *FAST_RELEASE_GATES})
IN_USE = frozenset(
    {
        "apiVersion",
        "kind",
        "namespace",
        "manageJobsWithoutQueueName",
        "managedJobsNamespaceSelector",
        "integrations.frameworks",
        "integrations.externalFrameworks",
        "integrations.labelKeysToCopy",
        "integrations.podOptions",
        "clientConnection.qps",
        "clientConnection.burst",
        "metrics.bindAddress",
        "metrics.localQueueMetrics.enable",
        "health.healthProbeBindAddress",
        "webhook.port",
        "webhook.host",
        "leaderElection.leaderElect",
        "leaderElection.resourceNamespace",
        "leaderElection.resourceLock",
        "leaderElection.leaseDuration",
        "leaderElection.renewDeadline",
        "leaderElection.retryPeriod",
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
        "gatelift.metricsAuthentication",
        "gatelift.webhookClientCa",
        "gatelift.podMakers",
        "gatelift.enrolListen",
        "gatelift.apiInFlight",
        "gatelift.debugInvariants",
        "gatelift.admission",
        "gatelift.dispatch",
        "gatelift.advertise",
        "gatelift.release",
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

WRITES_MAX = 100_000
"""More writes a second than any API server takes: a limit above it is none, and infinity is no number to count with."""

INT32_MAX = 2**31 - 1
"""The largest of the numbers that Kueue keeps in 32 bits."""
TRANSFORMATIONS_MAX = 64
"""Kueue's limit on `resources.transformations`."""
FAIR_STRATEGIES = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
DISPATCHERS = (
    "scored",
    "kueue.x-k8s.io/multikueue-dispatcher-all-at-once",
    "kueue.x-k8s.io/multikueue-dispatcher-incremental",
)


_EXTERNAL = re.compile(r"[A-Za-z][A-Za-z0-9]*\.v[a-z0-9]+\.[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class Integrations(Section):
    """Which kinds are taken over."""

    frameworks: tuple[str, ...] = FRAMEWORKS_SERVED
    external_frameworks: tuple[str, ...] = ()
    label_keys_to_copy: tuple[str, ...] = ()
    pod_options: PodOptions = PodOptions()

    @field_validator("frameworks")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in FRAMEWORKS_OF_KUEUE:
                raise ValueError(f"{name!r} is no framework; known are {', '.join(FRAMEWORKS_OF_KUEUE)}")
        return value

    @field_validator("external_frameworks")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not _EXTERNAL.fullmatch(name):
                raise ValueError(
                    f"{name!r} is no kind; write it as Kind.version.group, like 'PipelineRun.v1.tekton.dev'"
                )
        return value


class ClientConnection(Section):
    """Limits of the manager's own writes: on average per second, and at once after a pause."""

    qps: Number = Field(default=300, ge=1, le=WRITES_MAX)
    burst: Whole = Field(default=500, ge=1, le=WRITES_MAX)


class LocalQueueMetrics(Section):
    """Metrics per LocalQueue: about 150 series for each that has had work."""

    enable: Flag = True
    local_queue_selector: NamespaceSelector | None = None


LEASE_NAMED = "leaderElection.resourceName"
METRICS_OFF = ("", "0")
"""Values of `metrics.bindAddress` that mean no port of its own, as in Kueue."""


class MetricsSection(Section):
    """Where metrics are served besides the health port, and which."""

    bind_address: str = ":8080"
    enable_cluster_queue_resources: Flag = False
    custom_labels: tuple[dict[str, str], ...] = ()
    local_queue_metrics: LocalQueueMetrics = LocalQueueMetrics()

    @field_validator("bind_address")
    @classmethod
    def _address(cls, value: str) -> str:
        return value if value in METRICS_OFF else address(value, host_needed=False)


class Health(Section):
    """Health endpoints."""

    health_probe_bind_address: str = ":8081"
    readiness_endpoint_name: str = "readyz"
    liveness_endpoint_name: str = "healthz"

    @field_validator("health_probe_bind_address")
    @classmethod
    def _address(cls, value: str) -> str:
        return address(value, host_needed=False)


class Webhook(Section):
    """The webhooks daemon."""

    port: Whole = Field(default=9443, ge=0, le=65535)
    host: str = ""
    cert_dir: str = ""

    @field_validator("host")
    @classmethod
    def _host(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9.:-]*", value):
            raise ValueError(f"{value!r} is no host name or address; write one, or nothing for all addresses")
        return value


class LeaderElection(Section):
    """Leader election; always on, since R2 and R3 rest on its terms."""

    leader_elect: On = True
    resource_name: ObjectName = LEASE_NAME
    resource_namespace: NamespaceNameOrNone = ""
    resource_lock: Literal["leases"] = "leases"
    lease_duration: Seconds = Field(default=15.0, le=3600)
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
    backoff_limit_count: Whole | None = Field(default=None, ge=0, le=INT32_MAX)
    backoff_base_seconds: Whole = Field(default=60, ge=0, le=INT32_MAX)
    backoff_max_seconds: Whole = Field(default=3600, ge=0, le=INT32_MAX)


class WaitForPodsReady(Section):
    """Eviction of what does not get ready.

    Without this section nobody waits: Kueue's default of 30 minutes costs a write per workload.
    """

    enable: Flag | None = None
    timeout: Seconds = 1800.0
    recovery_timeout: Seconds | None = None
    block_admission: Flag = False
    requeuing_strategy: RequeuingStrategy = RequeuingStrategy()


class FairSharingSection(Section):
    """Fair sharing between ClusterQueues."""

    enable: Flag | None = None
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

    step_size: Whole = Field(default=3, ge=1, le=INT32_MAX)


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


class Configuration(Section):
    """The whole file."""

    api_version: Literal["config.kueue.x-k8s.io/v1beta1", "config.kueue.x-k8s.io/v1beta2"] = (
        "config.kueue.x-k8s.io/v1beta2"
    )
    kind: Literal["Configuration"] = "Configuration"
    namespace: NamespaceName = NAMESPACE
    manage_jobs_without_queue_name: Flag = False
    managed_jobs_namespace_selector: NamespaceSelector | None = None
    integrations: Integrations = Integrations()
    client_connection: ClientConnection = ClientConnection()
    metrics: MetricsSection = MetricsSection()
    health: Health = Health()
    webhook: Webhook = Webhook()
    leader_election: LeaderElection = LeaderElection()
    internal_cert_management: dict[str, Any] | None = None
    controller: dict[str, Any] | None = None
    pprof_bind_address: str = ""
    wait_for_pods_ready: WaitForPodsReady | None = None
    fair_sharing: FairSharingSection | None = None
    admission_fair_sharing: dict[str, Any] | None = None
    object_retention_policies: ObjectRetentionPolicies = ObjectRetentionPolicies()
    multi_kueue: MultiKueue = MultiKueue()
    resources: Resources = Resources()
    queue_visibility: dict[str, Any] | None = None
    visibility: dict[str, Any] | None = None
    tls: dict[str, Any] | None = None
    feature_gates: dict[str, Flag] = {}
    gatelift: Gatelift = Field(default_factory=Gatelift)

    @field_validator("feature_gates")
    @classmethod
    def _one_gate_of_two_names(cls, value: dict[str, bool]) -> dict[str, bool]:
        said = {value[name] for name in FAST_RELEASE_GATES if name in value}
        if len(said) > 1:
            raise ValueError(f"{' and '.join(FAST_RELEASE_GATES)} are one gate, and say two things: leave one out")
        return value

    def without_effect(self) -> tuple[str, ...]:
        """Name what is set and accepted but does nothing in this version, so that nobody relies on it unseen."""
        ignored = [each for each in _idle(self, "") if each != LEASE_NAMED]
        if self.leader_election.resource_name != LEASE_NAME:
            ignored.append(f"{LEASE_NAMED}: the Lease is {LEASE_NAME}, whatever stands here, so that one manager leads")
        frameworks = self.integrations.frameworks
        ignored += [f"integrations.frameworks: {name}" for name in frameworks if name not in FRAMEWORKS_SERVED]
        switched = [name for name in FRAMEWORKS_SERVED if name != POD_FRAMEWORK]
        ignored += [f"integrations.frameworks: without {name}" for name in switched if name not in frameworks]
        gates = {name: f"featureGates.{name}" for name in self.feature_gates if name not in GATES_SERVED}
        if self.feature_gates.get(TOPOLOGY_GATE):
            gates[TOPOLOGY_GATE] += ": the gate of pods is set and taken off, and nothing is placed by topology"
        ignored += gates.values()
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
