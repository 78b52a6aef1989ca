"""Identifiers with the prefix `kueue.x-k8s.io/`, in use or in the table `not_served`, and which of them travel. Pure.

Our own prefix `gatelift.dev/` is in `gatelift_wire.values.keys`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gatelift_kube.values.numbers import whole

QUEUE_NAME = "kueue.x-k8s.io/queue-name"
MANAGED = "kueue.x-k8s.io/managed"  # label on pods that were taken over, and the finalizer that they carry
MANAGED_VALUE = "true"
ADMISSION_GATE = "kueue.x-k8s.io/admission"
TOPOLOGY_GATE = "kueue.x-k8s.io/topology"
GATES_OF_ADMISSION = (ADMISSION_GATE, TOPOLOGY_GATE)
"""What a lift takes off, and the webhook sets: the second where the configuration says so, as in Kueue. The first one
alone says that a pod is held back."""
ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"  # scheduling gate, and the annotation that asks for it
DYNAMICALLY_SIZED = "kueue.x-k8s.io/dynamically-sized-job"  # what KEP-77 calls that annotation once, and Kueue never
POD_GROUP_NAME = "kueue.x-k8s.io/pod-group-name"
POD_GROUP_TOTAL_COUNT = "kueue.x-k8s.io/pod-group-total-count"
POD_GROUP_ROLE = "kueue.x-k8s.io/pod-group-role"  # label: which of the sets that a driver declared (KEP-976, story 3)
POD_GROUP_SETS = "kueue.x-k8s.io/pod-group-sets"  # annotation of that driver
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
REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
UNCONSTRAINED_TOPOLOGY = "kueue.x-k8s.io/podset-unconstrained-topology"
SLICE_REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-slice-required-topology"
SLICE_SIZE = "kueue.x-k8s.io/podset-slice-size"
POD_SET_GROUP_NAME = "kueue.x-k8s.io/podset-group-name"
POD_INDEX_OFFSET = "kueue.x-k8s.io/pod-index-offset"
TOPOLOGY_POD = "kueue.x-k8s.io/tas"
SAFE_TO_DELETE = "kueue.x-k8s.io/safe-to-forcefully-delete"
POD_GROUP_FAST_ADMISSION = "kueue.x-k8s.io/pod-group-fast-admission"
POD_GROUP_SERVING = "kueue.x-k8s.io/pod-group-serving"
POD_GROUP_POD_INDEX = "kueue.x-k8s.io/pod-group-pod-index"
POD_GROUP_POD_INDEX_LABEL = "kueue.x-k8s.io/pod-group-pod-index-label"
IS_GROUP_WORKLOAD = "kueue.x-k8s.io/is-group-workload"
SCALE_UP_STRATEGY = "kueue.x-k8s.io/elastic-job-scale-up-strategy"  # how much of a growth is taken at once (KEP-12100)
SLICE_NAME = "kueue.x-k8s.io/workload-slice-name"
SLICE_REPLACEMENT = "kueue.x-k8s.io/workload-slice-replacement-for"
CONCURRENT_ADMISSION_PARENT = "kueue.x-k8s.io/concurrent-admission-parent"
MULTIKUEUE_ORIGIN = "kueue.x-k8s.io/multikueue-origin"
MULTIKUEUE_ORIGIN_UID = "kueue.x-k8s.io/multikueue-origin-uid"
MULTIKUEUE_WORKER_POD = "kueue.x-k8s.io/multikueue-worker-workload-pod"
JOB_OWNER_KIND = "kueue.x-k8s.io/job-owner-gvk"
JOB_OWNER_NAME = "kueue.x-k8s.io/job-owner-name"
COMPONENT_INDEX = "kueue.x-k8s.io/component-workload-index"
NODE_TO_REPLACE = "alpha.kueue.x-k8s.io/node-to-replace"
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
