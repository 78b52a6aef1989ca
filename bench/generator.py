"""Kueue's generator loads: what queues there are, and which workloads arrive when.

Figures are those of Kueue's performance suite (test/performance/scheduler). `admission_memory` plays them on the engine
alone, `admission_load` on a real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.core import Container, PodSpec, PodTemplate, ResourceRequirements
from gatelift_kube.objects.kueue import (
    BorrowWithinCohort,
    ClusterQueue,
    ClusterQueueSpec,
    FlavorQuotas,
    FlavorResource,
    PodSet,
    Preemption,
    ResourceGroup,
    Workload,
    WorkloadSpec,
)
from gatelift_kube.objects.meta import LabelSelector, ObjectMeta

FLAVOR = "default"
NOMINAL = 20
"""CPUs of each queue."""
BORROWING = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of workloads of a load: how many per queue, one every `every` seconds, running for `runs` seconds."""

    name: str
    count: int
    cpu: int
    priority: int
    every: float
    runs: float


@dataclass(frozen=True, slots=True)
class Load:
    """A generator load."""

    name: str
    cohorts: int
    queues: int
    """Per cohort."""
    kinds: tuple[Kind, ...]
    nominal: int = NOMINAL

    @property
    def workloads(self) -> int:
        """How many arrive in all."""
        return self.cohorts * self.queues * sum(kind.count for kind in self.kinds)

    @property
    def cpus(self) -> int:
        """Quota of all queues."""
        return self.nominal * self.cohorts * self.queues


@dataclass(frozen=True, slots=True)
class Arrival:
    """One workload: `at` seconds after the start it is created in `queue`."""

    at: float
    queue: str
    kind: Kind
    number: int

    @property
    def name(self) -> str:
        """A name that no other workload of the load has."""
        return f"{self.queue}-{self.kind.name}-{self.number:05}"


BASELINE = Load(
    "baseline",
    5,
    6,
    (
        Kind("small", 350, 1, 50, 0.1, 0.2),
        Kind("medium", 100, 5, 100, 0.5, 0.5),
        Kind("large", 50, 20, 200, 1.2, 1.0),
    ),
)
LARGE_SCALE = Load(
    "large",
    10,
    100,
    (
        Kind("small", 35, 1, 50, 0.06, 0.15),
        Kind("medium", 11, 5, 100, 0.3, 0.35),
        Kind("large", 4, 20, 200, 0.7, 0.7),
    ),
)


def scaled(load: Load, share: float) -> Load:
    """Return the same load for a share of its time: as many queues, at the same pace, fewer workloads of each class."""
    return replace(load, kinds=tuple(replace(kind, count=max(1, round(kind.count * share))) for kind in load.kinds))


def cluster_queues(load: Load) -> Iterator[ClusterQueue]:
    """Yield the queues, cohort by cohort; an Arrival names its queue as they are named here."""
    quota = FlavorResource("cpu", str(load.nominal), str(BORROWING))
    group = ResourceGroup(("cpu",), (FlavorQuotas(FLAVOR, (quota,)),))
    policy = Preemption("LowerPriority", "Any", BorrowWithinCohort())
    for cohort in range(load.cohorts):
        for number in range(load.queues):
            spec = ClusterQueueSpec(
                f"cohort-{cohort}", namespace_selector=LabelSelector(), resource_groups=(group,), preemption=policy
            )
            yield ClusterQueue(ObjectMeta(name=f"{cohort}-{number}"), spec)


def sets_of(load: Load) -> Iterator[list[Arrival]]:
    """Yield the classes of each queue: what one hand of Kueue's generator makes, which waits before each create.

    So `at` is when it is made where creates take no time.
    """
    for queue in cluster_queues(load):
        for kind in load.kinds:
            name = queue.metadata.name
            yield [Arrival((number + 1) * kind.every, name, kind, number) for number in range(kind.count)]


def arrivals(load: Load) -> Iterator[Arrival]:
    """Yield what arrives, queue by queue and class by class."""
    for one in sets_of(load):
        yield from one


def workload_spec(arrival: Arrival) -> WorkloadSpec:
    """Return what a workload asks for: one pod with one container."""
    container = Container("c", ResourceRequirements({"cpu": str(arrival.kind.cpu)}))
    sets = (PodSet(template=PodTemplate(spec=PodSpec((container,)))),)
    return WorkloadSpec(sets, arrival.queue, priority=arrival.kind.priority)


def document(kind: str, name: str, spec: Any, namespace: str = "") -> dict[str, Any]:
    """Return an object of Kueue's group as it is sent to an API server."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": msgspec.json.decode(msgspec.json.encode(spec)),
    }


def workload_document(arrival: Arrival, namespace: str) -> bytes:
    """Return a Workload without owner, as Kueue's generator makes it."""
    made = document("Workload", arrival.name, workload_spec(arrival), namespace)
    made["spec"]["podSets"][0] |= {"name": "main", "count": 1}
    return msgspec.json.encode(made)


def workload_of(served: Served) -> Workload:
    """Return the Workload of an answer."""
    if not isinstance(served.object, Workload):
        raise TypeError(f"the answer is no Workload: {served.object!r}")
    return served.object
