"""Identifiers with the prefix `kueue.x-k8s.io/` that Gatelift reads or writes, and which of them travel. Pure.

Our own prefix `gatelift.dev/` is in `gatelift_wire.keys`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_kube.numbers import whole

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
MANAGED = "kueue.x-k8s.io/managed"  # label on pods that were taken over, and the finalizer that they carry
MANAGED_VALUE = "true"
ADMISSION_GATE = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"  # scheduling gate, and the annotation that asks for it
POD_GROUP_NAME = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
POD_SUSPENDING_PARENT = "kueue.x-k8s.io/pod-suspending-parent"
ROLE_HASH = "kueue.x-k8s.io/role-hash"
RETRIABLE_IN_GROUP = "kueue.x-k8s.io/retriable-in-group"
PREBUILT_WORKLOAD = "kueue.x-k8s.io/prebuilt-workload-name"
WORKLOAD = "kueue.x-k8s.io/workload"
POD_SET = "kueue.x-k8s.io/podset"
LOCAL_QUEUE_NAME = "kueue.x-k8s.io/local-queue-name"
CLUSTER_QUEUE_NAME = "kueue.x-k8s.io/cluster-queue-name"
JOB_UID = "kueue.x-k8s.io/job-uid"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
MAX_EXECUTION_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
MAX_EXECUTION_SECONDS_MOST = 2**31 - 1
JOB_MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
JOB_SYNC_COMPLETIONS = "kueue.x-k8s.io/job-completions-equal-parallelism"
STOPPING = "kueue.x-k8s.io/stopping"
ADMISSION_GATED_BY = "kueue.x-k8s.io/admission-gated-by"
RESOURCE_IN_USE = "kueue.x-k8s.io/resource-in-use"  # finalizer on Workloads, ClusterQueues and ResourceFlavors

MULTIKUEUE_MANAGER = "kueue.x-k8s.io/multikueue"
"""`spec.managedBy` of a Job that runs elsewhere; also the controller name of MultiKueue admission checks."""

BUILTIN_JOB_CONTROLLER = "kubernetes.io/job-controller"
"""`spec.managedBy` of a Job that its own cluster runs, said aloud."""

DEFAULT_LOCAL_QUEUE = "default"
DEFAULT_PRIORITY_CLASS = "default"
REPLACED_WHEN_ENDED = "Failed"
"""`spec.podReplacementPolicy` of Jobs that run: a pod that stops still runs and is charged, so none is beside it."""

DEFAULT_POD_SET = "main"

PROVISIONING_PREFIX = "provreq.kueue.x-k8s.io/"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LABEL_VALUE_LENGTH_MAX = 63
"""Limit of the API server on label values; markers with longer values are left out."""

_HOME_DOMAINS = frozenset({"kueue.x-k8s.io", "gatelift.dev", "provreq.kueue.x-k8s.io"})


def travelling(marks: Mapping[str, str]) -> dict[str, str]:
    """Return the labels or annotations that go to a worker with an object.

    Kueue's and our own markers speak to the management cluster's controllers and stay at home: at the worker they would
    hand the object to a Kueue that may run there, or forge our ownership labels, which the agent adds itself.
    """
    return {
        key: value for key, value in marks.items() if key.partition("/")[0] not in _HOME_DOMAINS and key != LAST_APPLIED
    }


def group_name(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the pod group's name, "" if none: the annotation, or the label if that is absent or empty."""
    return annotations.get(POD_GROUP_NAME) or labels.get(POD_GROUP_NAME, "")


def prebuilt_name(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the name of the prebuilt Workload, "" if none, read like a group name."""
    return annotations.get(PREBUILT_WORKLOAD) or labels.get(PREBUILT_WORKLOAD, "")


def max_execution_seconds(labels: Mapping[str, str]) -> int | None:
    """Return the execution limit in seconds, None when absent or not from 1 on (refused by the webhook).

    What is longer than a Workload can say is the longest that it can: 68 years.
    """
    seconds = whole(labels.get(MAX_EXECUTION_SECONDS, ""))
    return min(seconds, MAX_EXECUTION_SECONDS_MOST) if seconds else None
