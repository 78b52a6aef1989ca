"""Short builders of the objects that admission tests feed to the engine, and one loop that runs it until it rests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gatelift_admission.engine import Engine
from gatelift_admission.values.model import Decision, EngineSettings, Reserve
from gatelift_kube.objects.core import Container, PodSpec, PodTemplate, Quantity, ResourceRequirements
from gatelift_kube.objects.kueue import (
    Admission,
    ClusterQueue,
    ClusterQueueSpec,
    FlavorQuotas,
    FlavorResource,
    LocalQueue,
    LocalQueueSpec,
    PodSet,
    ResourceFlavor,
    ResourceFlavorSpec,
    ResourceGroup,
    TopologyRequest,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition, LabelSelector, ObjectMeta
from gatelift_kube.values.resources import ObjectKey

CYCLES_MAX = 10_000
"""Calls of `cycle` after which a test says that the engine does not come to rest."""


def group(**flavors: Mapping[str, Quantity]) -> ResourceGroup:
    """Return a resource group from `flavor={resource: nominal}`."""
    first = next(iter(flavors.values()))
    return ResourceGroup(
        tuple(first),
        tuple(
            FlavorQuotas(name, tuple(FlavorResource(resource, nominal) for resource, nominal in quotas.items()))
            for name, quotas in flavors.items()
        ),
    )


def cluster_queue(name: str, *groups: ResourceGroup, **spec: object) -> ClusterQueue:
    """Return a ClusterQueue that selects all namespaces."""
    fields: dict[str, object] = {"namespace_selector": LabelSelector(), "resource_groups": groups, **spec}
    return ClusterQueue(ObjectMeta(name=name, uid=name), ClusterQueueSpec(**fields))  # type: ignore[arg-type]  # fields by name


def local_queue(name: str, cluster_queue: str, namespace: str = "ns", stop: str | None = None) -> LocalQueue:
    """Return a LocalQueue."""
    return LocalQueue(ObjectMeta(name=name, namespace=namespace, uid=name), LocalQueueSpec(cluster_queue, stop))


def flavor(name: str, **spec: object) -> ResourceFlavor:
    """Return a ResourceFlavor."""
    return ResourceFlavor(ObjectMeta(name=name, uid=name), ResourceFlavorSpec(**spec))  # type: ignore[arg-type]  # by name


def pod_set(
    name: str = "main",
    count: int = 1,
    requests: Mapping[str, Quantity] | None = None,
    min_count: int | None = None,
    pod_group: str = "",
    **spec: object,
) -> PodSet:
    """Return a pod set of pods with one container."""
    container = Container("c", ResourceRequirements(dict(requests or {})))
    template = PodTemplate(spec=PodSpec(containers=(container,), **spec))  # type: ignore[arg-type]  # by name
    return PodSet(name, count, min_count, template, TopologyRequest(pod_group) if pod_group else None)


def workload(
    uid: str,
    *pod_sets: PodSet,
    queue: str = "lq",
    namespace: str = "ns",
    priority: int | None = None,
    created: int = 0,
    version: int = 1,
    active: bool = True,
    annotations: Mapping[str, str] | None = None,
    status: WorkloadStatus | None = None,
) -> Workload:
    """Return a Workload; `created` is in seconds after an arbitrary start."""
    minutes, seconds = divmod(created, 60)
    return Workload(
        ObjectMeta(
            name=uid,
            namespace=namespace,
            uid=uid,
            resource_version=str(version),
            creation_timestamp=f"2026-01-01T{minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z",
            annotations=dict(annotations or {}),
        ),
        WorkloadSpec(tuple(pod_sets), queue, None, priority, active),
        status or WorkloadStatus(),
    )


def reserved_status(admission: Admission, *, admitted: bool = True, **more: object) -> WorkloadStatus:
    """Return the status of a workload that holds `admission`."""
    conditions = [Condition("QuotaReserved", "True", "QuotaReserved")]
    if admitted:
        conditions.append(Condition("Admitted", "True", "Admitted"))
    return WorkloadStatus(conditions=tuple(conditions), admission=admission, **more)  # type: ignore[arg-type]  # by name


def engine_with(*objects: object, settings: EngineSettings | None = None) -> Engine:
    """Return an engine that knows namespace `ns` and all `objects`."""
    engine = Engine(settings or EngineSettings())
    engine.namespace_changed("ns", {})
    for one in objects:
        if isinstance(one, ClusterQueue):
            engine.cluster_queue_changed(one)
        elif isinstance(one, LocalQueue):
            engine.local_queue_changed(one)
        elif isinstance(one, ResourceFlavor):
            engine.flavor_changed(one)
        elif isinstance(one, Workload):
            engine.workload_changed(one, 0.0)
        else:
            raise TypeError(f"nothing feeds a {type(one).__name__}")
    return engine


def simple_engine(*more: object, cpu: str = "10", **spec: object) -> Engine:
    """Return an engine with queue `cq` of `cpu` in flavor `default`, and LocalQueue `ns/lq`."""
    queue = cluster_queue("cq", group(default={"cpu": cpu}), **spec)
    return engine_with(flavor("default"), queue, local_queue("lq", "cq"), *more)


def rest(engine: Engine, now: float = 0.0, budget: int = 100) -> list[Decision]:
    """Run cycles until nothing is left to do; return all decisions."""
    decisions: list[Decision] = []
    for _ in range(CYCLES_MAX):
        result = engine.cycle(now, budget)
        decisions += result.decisions
        if not result.more:
            return decisions
    raise AssertionError("the engine does not come to rest")


def reserved(decisions: Sequence[Decision]) -> list[str]:
    """Return the UIDs of the reservations, in the order in which they were decided."""
    return [one.uid for one in decisions if isinstance(one, Reserve)]


LQ = ObjectKey("ns", "lq")
