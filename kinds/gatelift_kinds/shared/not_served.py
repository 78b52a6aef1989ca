"""What Kueue's API and ours can ask for and this version does not do: one table, as data. Pure.

`asked_for` answers from it whoever writes such an object, `docs/not-served.md` is made from it
(`scripts/not_served.py`), and a test walks Kueue's markers and the fields of all CRDs: each is read by something, or
stands here. Kinds that carry a queue's name in vain are in `unserved`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from gatelift_kinds.shared import markers
from gatelift_wire.values.keys import ANNOTATION_DISCONNECT
from gatelift_wire.values.messages import DisconnectPolicy

EACH = "*"
"""In a path: each item of a list."""
EVERY_KEY = frozenset({"labels", "annotations"})
"""Parts of a path below which names are keys of a map."""

Path = tuple[str, ...]


class Treatment(enum.Enum):
    """What happens to an object that asks for it."""

    REFUSED = "refused"
    """A hard constraint: taken, the work would run against what was asked for."""
    WARNED = "warned of"
    """A wish: the work runs without it, and who asked is told."""
    LEFT = "left as it is"
    """Nobody asks for it by hand: controllers of Kueue write it, or it has no meaning without something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotServedRow:
    """One row. `text` is the rule and the way out; `values`, if there are any, are those that ask for it."""

    kinds: tuple[str, ...]
    path: Path
    answer: Treatment
    text: str
    values: tuple[Any, ...] = ()
    by_rule: bool = False
    """Said by the rules of the kind, which know what else it depends on."""


_META = ("metadata", "annotations")
_TEMPLATE = ("spec", "template", *_META)
_WORK = ("Job", "Pod")
_NOT_HERE = "nodes are chosen by the scheduler of the cluster that runs it"
_REQUIRED = f"a required topology is not served by this version, {_NOT_HERE}: use affinity, or ask for a preferred one"
_PREFERRED = f"is not acted on: {_NOT_HERE}; affinity and topologySpreadConstraints are"
_OF_TOPOLOGY = "has a meaning beside a topology alone, and none is served by this version"
_PREBUILT = "prebuilt Workloads are not served but for groups of pods: leave it out, and the Workload is made for you"
_NO_PARENT = (
    "nothing that is served holds pods back by this, and nobody would take the pod's gate off: leave it out, and the "
    "pod waits in the queue that it names"
)
_CLAIMS = (
    "claimed devices are not counted against quota, and not served by this version: "
    "ask for devices in the containers' resources, or do not queue it"
)
NODE_NAME = (
    "names a node of this cluster, and another one runs the Job: "
    "use nodeSelector or affinity, or a queue that runs work here"
)
USERS_GATE = (
    "is a gate that nobody here takes off where another cluster runs the Job: each of its pods waits at it until "
    "somebody takes it off there"
)
_WRITTEN = "is written by controllers of Kueue, for each other"
_NO_CREDENTIALS = (
    "is not used: no credentials of other clusters are needed here. "
    "Take the cluster in by an agent of its own: gatelift cluster add NAME"
)
_FAILOVER = (
    "is not acted on in this version: what runs on a lost cluster stays there and charged (policy wait) until the "
    "cluster is back, or a person says: gatelift cluster fenced NAME"
)


def _noted(key: str, answer: Treatment, text: str, *, values: tuple[Any, ...] = ()) -> tuple[NotServedRow, ...]:
    """Return the rows of an annotation of pods: on a pod, and on the template of a Job."""
    return (
        NotServedRow(kinds=("Pod",), path=(*_META, key), answer=answer, text=text, values=values),
        NotServedRow(kinds=("Job",), path=(*_TEMPLATE, key), answer=answer, text=text, values=values),
    )


def _labelled(key: str, text: str) -> tuple[NotServedRow, ...]:
    return tuple(
        NotServedRow(kinds=_WORK, path=("metadata", part, key), answer=Treatment.REFUSED, text=text, by_rule=True)
        for part in ("labels", "annotations")
    )


def _left(key: str, text: str, *, part: str = "annotations", kinds: tuple[str, ...] = _WORK) -> NotServedRow:
    return NotServedRow(kinds=kinds, path=("metadata", part, key), answer=Treatment.LEFT, text=text)


def _field(kind: str, path: str, answer: Treatment, text: str, *values: Any) -> NotServedRow:
    return NotServedRow(kinds=(kind,), path=tuple(path.split(".")), answer=answer, text=text, values=values)


_REQUEST = f"spec.podSets.{EACH}.topologyRequest"
_ASSIGNED = f"status.admission.podSetAssignments.{EACH}"

TABLE: tuple[NotServedRow, ...] = (
    *_noted(markers.REQUIRED_TOPOLOGY, Treatment.REFUSED, _REQUIRED),
    *_noted(markers.SLICE_REQUIRED_TOPOLOGY, Treatment.REFUSED, _REQUIRED),
    *_labelled(markers.PREBUILT_WORKLOAD, _PREBUILT),
    NotServedRow(
        kinds=("Pod",),
        path=(*_META, markers.POD_SUSPENDING_PARENT),
        answer=Treatment.REFUSED,
        text=_NO_PARENT,
        by_rule=True,
    ),
    NotServedRow(
        kinds=("Pod",),
        path=(*_META, markers.ELASTIC_JOB),
        answer=Treatment.REFUSED,
        text="is not supported for pods: use it on a Job or a RayCluster",
        by_rule=True,
    ),
    *(
        NotServedRow(kinds=(kind,), path=path, answer=Treatment.REFUSED, text=_CLAIMS, by_rule=True)
        for kind, path in (
            ("Pod", ("spec", "resourceClaims")),
            ("Job", ("spec", "template", "spec", "resourceClaims")),
        )
    ),
    NotServedRow(
        kinds=("Job",),
        path=("spec", "template", "spec", "nodeName"),
        answer=Treatment.REFUSED,
        text=NODE_NAME,
        by_rule=True,
    ),
    _field("Workload", f"{_REQUEST}.required", Treatment.REFUSED, _REQUIRED),
    _field("Workload", f"{_REQUEST}.podSetSliceRequiredTopology", Treatment.REFUSED, _REQUIRED),
    *_noted(markers.PREFERRED_TOPOLOGY, Treatment.WARNED, _PREFERRED),
    *_noted(markers.UNCONSTRAINED_TOPOLOGY, Treatment.WARNED, _PREFERRED, values=("true",)),
    *_noted(
        markers.SAFE_TO_DELETE,
        Treatment.WARNED,
        "is not acted on: a pod on a node that is gone stays until its cluster, or a person, deletes it",
        values=("true",),
    ),
    *(
        NotServedRow(
            kinds=(kind,),
            path=(*path, "schedulingGates", EACH, "name"),
            answer=Treatment.WARNED,
            text="is a gate that nothing here takes off: the pod waits at it until somebody does",
            values=values,
        )
        for kind, path, values in (
            ("Pod", ("spec",), (markers.ELASTIC_JOB,)),
            ("Job", ("spec", "template", "spec"), (markers.TOPOLOGY_GATE, markers.ELASTIC_JOB)),
        )
    ),
    NotServedRow(
        kinds=("Job",),
        path=("spec", "template", "spec", "schedulingGates", EACH, "name"),
        answer=Treatment.WARNED,
        text=USERS_GATE,
        by_rule=True,
    ),
    NotServedRow(
        kinds=("Job",),
        path=(*_META, markers.ELASTIC_JOB),
        answer=Treatment.WARNED,
        text="is not acted on: the Job keeps the size with which it was admitted; to change it, suspend the Job first",
        values=("true",),
    ),
    NotServedRow(
        kinds=_WORK,
        path=(*_META, ANNOTATION_DISCONNECT),
        answer=Treatment.WARNED,
        text=_FAILOVER,
        values=(DisconnectPolicy.FAILOVER.value, DisconnectPolicy.UNFENCED.value),
    ),
    _field("Workload", f"{_REQUEST}.preferred", Treatment.WARNED, _PREFERRED),
    _field("Workload", f"{_REQUEST}.unconstrained", Treatment.WARNED, _PREFERRED, True),
    _field(
        "Workload",
        "spec.preemptionGates",
        Treatment.WARNED,
        "are not acted on: the workload preempts as its queue allows; set spec.active to false to hold it back",
    ),
    _field(
        "ClusterQueue",
        "spec.admissionScope.admissionMode",
        Treatment.WARNED,
        "admission fair sharing is not served by this version: usage of the past counts for nothing",
        "UsageBasedAdmissionFairSharing",
    ),
    _field(
        "ClusterQueue",
        "spec.concurrentAdmissionPolicy",
        Treatment.WARNED,
        "is not acted on: a workload waits for all flavors by itself, and takes the first that it fits",
    ),
    _field(
        "LocalQueue",
        "spec.fairSharing",
        Treatment.WARNED,
        "admission fair sharing is not served by this version: LocalQueues of one ClusterQueue weigh the same",
    ),
    _field(
        "ResourceFlavor",
        "spec.topologyName",
        Treatment.WARNED,
        f"is not acted on: {_NOT_HERE}, and quota is counted without its nodes",
    ),
    _field(
        "AdmissionCheck",
        "spec.controllerName",
        Treatment.WARNED,
        "is a controller of Kueue's that is not part of Gatelift: work that needs this check waits until something "
        "else sets its state in the Workload's status",
        "kueue.x-k8s.io/provisioning-request",
    ),
    _field(
        "MultiKueueConfig",
        "spec.quotaManagement",
        Treatment.WARNED,
        "is not acted on: the quota of a ClusterQueue is what its manifest says",
        "Automated",
    ),
    _field(
        "MultiKueueConfig",
        f"spec.clusters.{EACH}",
        Treatment.WARNED,
        "is the management cluster itself, and nothing is dispatched to it: give its work a queue without this check",
        "local",
    ),
    _field("MultiKueueCluster", "spec.clusterSource", Treatment.WARNED, _NO_CREDENTIALS),
    _field(
        "WorkerCluster",
        "spec.drain",
        Treatment.WARNED,
        "keeps new work away, like cordoned; what runs there is not moved in this version: "
        "delete it, or deactivate its Workloads (spec.active: false)",
        True,
    ),
    _field(
        "WorkerCluster",
        "spec.disconnectPolicy",
        Treatment.WARNED,
        _FAILOVER,
        DisconnectPolicy.FAILOVER.value,
        DisconnectPolicy.UNFENCED.value,
    ),
    *_noted(
        markers.POD_SET_GROUP_NAME, Treatment.LEFT, "a Job and a pod are one pod set: there is none to group it with"
    ),
    *_noted(markers.SLICE_SIZE, Treatment.LEFT, _OF_TOPOLOGY),
    *_noted(markers.POD_INDEX_OFFSET, Treatment.LEFT, _OF_TOPOLOGY),
    *(
        _field("Workload", f"{_REQUEST}.{name}", Treatment.LEFT, _OF_TOPOLOGY)
        for name in ("podIndexLabel", "subGroupIndexLabel", "subGroupCount", "podSetSliceSize")
    ),
    _left(markers.LOCAL_QUEUE_NAME, "is set on no Job's pods: their Job names it", part="labels", kinds=("Job",)),
    _left(
        markers.CLUSTER_QUEUE_NAME, "is set on no Job's pods: its LocalQueue names it", part="labels", kinds=("Job",)
    ),
    _left(markers.TOPOLOGY_POD, _OF_TOPOLOGY, part="labels", kinds=("Pod",)),
    _left(markers.MULTIKUEUE_ORIGIN, _WRITTEN, part="labels", kinds=("Pod", "Job", "Workload")),
    _left(markers.CONCURRENT_ADMISSION_PARENT, _WRITTEN, part="labels", kinds=("Workload",)),
    _left(markers.WORKLOAD, _WRITTEN, kinds=("Job", "Workload")),
    *(
        _left(key, _WRITTEN, kinds=("Pod", "Job", "Workload"))
        for key in (
            markers.STOPPING,
            markers.IS_GROUP_WORKLOAD,
            markers.SLICE_NAME,
            markers.SLICE_REPLACEMENT,
            markers.MULTIKUEUE_ORIGIN_UID,
            markers.MULTIKUEUE_WORKER_POD,
            markers.JOB_OWNER_KIND,
            markers.JOB_OWNER_NAME,
            markers.COMPONENT_INDEX,
            markers.NODE_TO_REPLACE,
        )
    ),
    _field("Workload", f"{_ASSIGNED}.topologyAssignment", Treatment.LEFT, _WRITTEN),
    _field("Workload", f"{_ASSIGNED}.delayedTopologyRequest", Treatment.LEFT, _WRITTEN),
    _field("Workload", "status.preemptionGates", Treatment.LEFT, _WRITTEN),
    _field("Workload", "status.unhealthyNodes", Treatment.LEFT, _WRITTEN),
    *(
        _field(
            kind,
            "status.fairSharing.admissionFairSharingStatus",
            Treatment.LEFT,
            "admission fair sharing is not served",
        )
        for kind in ("ClusterQueue", "LocalQueue")
    ),
)


def refusal(key: str) -> str:
    """Return the text with which the rules of a kind refuse a marker, or a field by its name. KeyError: no row."""
    for entry in TABLE:
        if entry.by_rule and entry.path[-1] == key:
            return entry.text
    raise KeyError(key)
