"""Builders of the objects that tests of the manager's core start from: small, with defaults, changed by keywords."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

Doc = dict[str, Any]

NAMESPACE = "team"
MANAGED = "kueue.x-k8s.io/managed"
GATE = "kueue.x-k8s.io/admission"
GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""As the API server writes it on the create of a gated pod."""


@dataclass(frozen=True)
class PodBuilder:
    """A user's pod as the webhook leaves it."""

    name: str = "one"
    cpu: str = "1"
    queue: str = "main"
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    gates: tuple[str, ...] = (GATE,)

    def asking(self, *, cpu: int | str) -> PodBuilder:
        return replace(self, cpu=str(cpu))

    def named(self, name: str) -> PodBuilder:
        return replace(self, name=name)

    def annotated(self, **annotations: str) -> PodBuilder:
        return replace(self, annotations=annotations)

    def gated_by(self, *gates: str) -> PodBuilder:
        return replace(self, gates=(GATE, *gates))

    def of_class(self, name: str) -> PodBuilder:
        return replace(self, labels={"kueue.x-k8s.io/priority-class": name})

    def document(self) -> Doc:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": NAMESPACE,
                "labels": {"kueue.x-k8s.io/queue-name": self.queue, MANAGED: "true", **self.labels},
                "annotations": self.annotations,
                "finalizers": [MANAGED],
            },
            "spec": {
                "schedulingGates": [{"name": gate} for gate in self.gates],
                "containers": [{"name": "main", "image": "work", "resources": {"requests": {"cpu": self.cpu}}}],
                "restartPolicy": "Never",
            },
            "status": {"phase": "Pending", "conditions": [GATED]},
        }


def a_pod(name: str = "one") -> PodBuilder:
    return PodBuilder(name=name)


def a_job(name: str = "work", *, parallelism: int = 2, completions: int | None = None, cpu: str = "1") -> Doc:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"kueue.x-k8s.io/queue-name": "main"},
            "annotations": {},
        },
        "spec": {
            "suspend": True,
            "parallelism": parallelism,
            "completions": completions if completions is not None else parallelism,
            "managedBy": "kueue.x-k8s.io/multikueue",
            "template": {
                "metadata": {},
                "spec": {
                    "containers": [{"name": "main", "image": "work", "resources": {"requests": {"cpu": cpu}}}],
                    "restartPolicy": "Never",
                },
            },
        },
        "status": {},
    }


@dataclass(frozen=True)
class WorkloadBuilder:
    """A Workload without owner."""

    name: str = "bare"
    cpu: str = "1"
    count: int = 1
    active: bool = True

    def asking(self, *, cpu: int | str) -> WorkloadBuilder:
        return replace(self, cpu=str(cpu))

    def document(self) -> Doc:
        container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": self.cpu}}}
        template = {"spec": {"containers": [container]}}
        return {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": self.name, "namespace": NAMESPACE},
            "spec": {
                "queueName": "main",
                "active": self.active,
                "podSets": [{"name": "main", "count": self.count, "template": template}],
            },
        }


def a_workload(name: str = "bare") -> WorkloadBuilder:
    return WorkloadBuilder(name=name)


def kueue_object(kind: str, name: str, spec: Doc, *, namespace: str = "", annotations: Doc | None = None) -> Doc:
    metadata: Doc = {"name": name, "annotations": annotations or {}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def a_cluster_queue(*, cpu: int | str = 4, check: str = "", flavors: dict[str, int | str] | None = None) -> Doc:
    groups = [
        {
            "coveredResources": ["cpu"],
            "flavors": [
                {"name": name, "resources": [{"name": "cpu", "nominalQuota": str(quota)}]}
                for name, quota in (flavors or {"default": cpu}).items()
            ],
        }
    ]
    spec: Doc = {"namespaceSelector": {}, "resourceGroups": groups}
    if check:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": check}]}
    return kueue_object("ClusterQueue", "shared", spec)


def a_setting(
    *, cpu: int | str = 4, clusters: tuple[str, ...] = ("a", "b"), flavors: dict[str, int | str] | None = None
) -> list[Doc]:
    """Return the objects of a management cluster: `clusters` empty means a queue for `local`."""
    check = "dispatch" if clusters else ""
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        a_cluster_queue(cpu=cpu, check=check, flavors=flavors),
        kueue_object("LocalQueue", "main", {"clusterQueue": "shared"}, namespace=NAMESPACE),
    ]
    objects += [kueue_object("ResourceFlavor", name, {}) for name in (flavors or {"default": 0})]
    if check:
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "all"}
        controller = "kueue.x-k8s.io/multikueue"
        objects.append(kueue_object("AdmissionCheck", check, {"controllerName": controller, "parameters": parameters}))
        objects.append(kueue_object("MultiKueueConfig", "all", {"clusters": list(clusters)}))
    return objects
