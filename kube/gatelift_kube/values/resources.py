"""Kinds of the Kubernetes API and the paths under which they are served. Pure.

Named tuples, since they are keys of nearly every table: their hash and comparison take no Python code.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*").fullmatch
"""Nearly all names are those of DNS: nothing to encode, and `quote` costs more than all the rest of a path."""


def _segment(name: str) -> str:
    if _PLAIN(name) is not None:
        return name
    if name in (".", "..") or "/" in name or "%" in name:
        # An API server decodes before it routes: a slash that is encoded would reach a subresource all the same.
        raise ValueError(f"metadata.name: {name!r} is not a name that an object can have")
    return quote(name, safe="")


class Resource(NamedTuple):
    """One served kind: what is needed to build its URL and to name it to people."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return `v1` or `group/version`, as objects carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the URL path of the collection or the object; an empty `namespace` lists all namespaces.

        Names may come from another cluster, so they are encoded; ValueError for what no object is called (`.`, `..`,
        whatever holds `/` or `%`: Kubernetes' rule for names of all kinds), which would leave the collection.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class ObjectKey(NamedTuple):
    """Where an object lives; `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class ObjectRef(NamedTuple):
    """An object by kind and key. Its identity over time is its UID, which this does not carry."""

    resource: Resource
    key: ObjectKey

    @property
    def path(self) -> str:
        """Return the URL path of the object."""
        return self.resource.path(self.key.namespace, self.key.name)

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.key}"


KUEUE_VERSION = "v1beta2"
KUEUE_GROUP = "kueue.x-k8s.io"
GATELIFT_GROUP = "gatelift.dev"

POD = Resource("", "v1", "Pod", "pods")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
LIMIT_RANGE = Resource("", "v1", "LimitRange", "limitranges")
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
JOB = Resource("batch", "v1", "Job", "jobs")
PRIORITY_CLASS = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
RUNTIME_CLASS = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
CUSTOM_RESOURCE_DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)

WORKLOAD = Resource(KUEUE_GROUP, KUEUE_VERSION, "Workload", "workloads")
LOCAL_QUEUE = Resource(KUEUE_GROUP, KUEUE_VERSION, "LocalQueue", "localqueues")
CLUSTER_QUEUE = Resource(KUEUE_GROUP, KUEUE_VERSION, "ClusterQueue", "clusterqueues", namespaced=False)
COHORT = Resource(KUEUE_GROUP, KUEUE_VERSION, "Cohort", "cohorts", namespaced=False)
RESOURCE_FLAVOR = Resource(KUEUE_GROUP, KUEUE_VERSION, "ResourceFlavor", "resourceflavors", namespaced=False)
WORKLOAD_PRIORITY_CLASS = Resource(
    KUEUE_GROUP, KUEUE_VERSION, "WorkloadPriorityClass", "workloadpriorityclasses", namespaced=False
)
ADMISSION_CHECK = Resource(KUEUE_GROUP, KUEUE_VERSION, "AdmissionCheck", "admissionchecks", namespaced=False)
MULTIKUEUE_CONFIG = Resource(KUEUE_GROUP, KUEUE_VERSION, "MultiKueueConfig", "multikueueconfigs", namespaced=False)
MULTIKUEUE_CLUSTER = Resource(KUEUE_GROUP, KUEUE_VERSION, "MultiKueueCluster", "multikueueclusters", namespaced=False)
WORKER_CLUSTER = Resource(GATELIFT_GROUP, "v1alpha1", "WorkerCluster", "workerclusters", namespaced=False)
