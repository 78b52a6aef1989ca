"""What CRDs need beyond the types: limits, defaults, CEL rules, columns, and fields of Kueue's interface unused by us.

Names, limits and columns are those of Kueue's v1beta2 API, so that its manifests apply unchanged.
"""
# ruff: noqa: E501 - a CEL expression is one line

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripts.crd_schema import ANYTHING, TIME, Schema, StructFacts

from gatelift_admission.feed.validation_workload import POD_SET_GROUP_NAME_MAX
from gatelift_kube.objects import gatelift as ours
from gatelift_kube.objects import kueue as q
from gatelift_kube.objects.conditions import CONDITIONS_MAX
from gatelift_kube.objects.core import Taint, Toleration
from gatelift_kube.objects.gatelift_bounds import BOUNDS, CAPACITY_MAX, LABEL, NAME, PREDECESSORS_MAX
from gatelift_kube.objects.meta import Condition

POD_SET_NAME: Schema = {"maxLength": 63, "pattern": LABEL}
CHECK_NAME: Schema = {"minLength": 1, "maxLength": 316}
CLUSTER_NAME: Schema = {"maxLength": 256}
LONG: Schema = {"format": "int64"}
RESERVED = "has({0}.status) && has({0}.status.conditions) && {0}.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')"
ADMITTED = RESERVED.replace("QuotaReserved", "Admitted")
ANY_TIME = f"!({RESERVED.format('oldSelf')}) || !({RESERVED.format('self')})"
"""What a rule for the time while quota is reserved says of all other times."""
POD_SETS_MAX = 18
EFFECTS = "['NoSchedule', 'PreferNoSchedule', 'NoExecute']"


def rule(expression: str, message: str) -> dict[str, str]:
    """Return one CEL rule."""
    return {"rule": expression, "message": message}


def rules(*pairs: tuple[str, str]) -> dict[str, Any]:
    """Return CEL rules as a part of a schema."""
    return {"x-kubernetes-validations": [rule(*pair) for pair in pairs]}


def keyed(limit: int, *keys: str, least: int = 0) -> Schema:
    """Return what makes a list a map by these fields (default: name)."""
    least_items: Schema = {"minItems": least} if least else {}
    return {
        **least_items,
        "maxItems": limit,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys or ("name",)),
    }


def atomic(limit: int, least: int = 0) -> Schema:
    """Return what makes a list one value."""
    least_items: Schema = {"minItems": least} if least else {}
    return {**least_items, "maxItems": limit, "x-kubernetes-list-type": "atomic"}


def choice(*values: str, default: str | None = None) -> Schema:
    """Return an enumeration."""
    return {"enum": list(values)} | ({} if default is None else {"default": default})


def one_of(value: str, reason: str) -> tuple[str, str]:
    """Return a rule that a field cannot change."""
    return (f"self{value} == oldSelf{value}", reason)


def bounded(kind: type, more: Mapping[str, Schema] | None = None) -> StructFacts:
    """Return the facts of a type whose bounds the writer shares (`gatelift_bounds`), and what only a CRD says."""
    more = more or {}
    names = {*BOUNDS[kind], *more}
    return StructFacts(fields={name: {**BOUNDS[kind].get(name, {}), **more.get(name, {})} for name in sorted(names)})


CONDITIONS: Schema = keyed(CONDITIONS_MAX, "type")
TOLERATIONS: Schema = atomic(8) | rules(
    ("self.all(x, has(x.key) || (has(x.operator) && x.operator == 'Exists'))", "without a key the operator must be Exists"),
    ("self.all(x, !has(x.tolerationSeconds) || (has(x.effect) && x.effect == 'NoExecute'))", "tolerationSeconds needs the effect NoExecute"),
    ("self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])", "the operator must be Equal or Exists"),
    ("self.all(x, !has(x.value) || !has(x.operator) || x.operator != 'Exists')", "with the operator Exists there is no value"),
    (f"self.all(x, !has(x.effect) || x.effect in {EFFECTS})", "the effect must be NoSchedule, PreferNoSchedule or NoExecute"),
)  # fmt: skip
STOP_POLICY: Schema = choice("None", "Hold", "HoldAndDrain", default="None")
FAIR_SHARE: Schema = {
    "type": "object",
    "description": "What it borrows, weighed; shown where fair sharing is on.",
    "required": ["weightedShare"],
    "properties": {
        "weightedShare": {
            "type": "integer",
            "format": "int64",
            "description": "The largest share of a resource that is borrowed, in thousandths, divided by the weight.",
        }
    },
}
NOT_SERVED: Schema = {"description": "Not acted on here: see docs/not-served.md."}
TOPOLOGY: dict[str, Schema] = {
    **{
        name: NOT_SERVED | {"type": "string", "maxLength": 317}
        for name in ("required", "preferred", "podIndexLabel", "podSetSliceRequiredTopology", "subGroupIndexLabel")
    },
    "unconstrained": NOT_SERVED | {"type": "boolean"},
    **{name: NOT_SERVED | {"type": "integer", "format": "int32"} for name in ("podSetSliceSize", "subGroupCount")},
}
PREEMPTION_GATES: Schema = {
    **NOT_SERVED,
    "type": "array",
    **keyed(8),
    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 63}}},
}

FACTS: dict[type, StructFacts] = {
    Condition: StructFacts(
        fields={
            "type": {"maxLength": 316},
            "status": choice("True", "False", "Unknown"),
            "reason": {"minLength": 1, "maxLength": 1024},
            "message": {"maxLength": 32768},
            "observedGeneration": {"format": "int64", "minimum": 0},
        },
        required=("lastTransitionTime", "message", "reason"),
        omit=("lastProbeTime",),
    ),
    Toleration: StructFacts(fields={"tolerationSeconds": LONG}),
    Taint: StructFacts(extra={"timeAdded": TIME | {"description": "Of taints of nodes; has no meaning here."}}),
    q.FlavorResource: StructFacts(required=("nominalQuota",)),
    q.FlavorQuotas: StructFacts(fields={"name": NAME, "resources": keyed(64, least=1)}, required=("resources",)),
    q.ResourceGroup: StructFacts(
        fields={"coveredResources": atomic(64, least=1), "flavors": keyed(64, least=1)},
        items={"coveredResources": {"maxLength": 317}},
        required=("coveredResources", "flavors"),
        merge=rules(
            (
                "self.flavors.all(f, size(f.resources) == size(self.coveredResources))",
                "each flavor must have a quota for each of coveredResources, in the same order",
            )
        ),
    ),
    q.FlavorFungibility: StructFacts(
        fields={
            "whenCanBorrow": choice("MayStopSearch", "TryNextFlavor", default="MayStopSearch"),
            "whenCanPreempt": choice("MayStopSearch", "TryNextFlavor", default="TryNextFlavor"),
            "preference": choice("BorrowingOverPreemption", "PreemptionOverBorrowing"),
        },
        merge=rules(
            (
                "!has(self.preference) || (self.whenCanBorrow == 'TryNextFlavor' && self.whenCanPreempt == 'TryNextFlavor')",
                "preference has a meaning only if whenCanBorrow and whenCanPreempt are both TryNextFlavor",
            )
        ),
    ),
    q.BorrowWithinCohort: StructFacts(fields={"policy": choice("Never", "LowerPriority", default="Never")}),
    q.Preemption: StructFacts(
        fields={
            "withinClusterQueue": choice("Never", "LowerPriority", "LowerOrNewerEqualPriority", default="Never"),
            "reclaimWithinCohort": choice("Never", "LowerPriority", "Any", default="Never"),
            "borrowWithinCohort": {"default": {}},
        },
        merge=rules(
            (
                "self.reclaimWithinCohort != 'Never' || !has(self.borrowWithinCohort) || self.borrowWithinCohort.policy == 'Never'",
                "borrowWithinCohort needs reclaimWithinCohort to be other than Never",
            )
        ),
    ),
    q.AdmissionCheckRule: StructFacts(
        fields={"name": CHECK_NAME, "onFlavors": {"maxItems": 64, "x-kubernetes-list-type": "set"}},
        items={"onFlavors": NAME},
    ),
    q.AdmissionChecksStrategy: StructFacts(
        fields={"admissionChecks": keyed(64, least=1)}, required=("admissionChecks",)
    ),
    q.FairSharing: StructFacts(fields={"weight": {"default": 1}}),
    q.ClusterQueueSpec: StructFacts(
        fields={
            "cohortName": NAME,
            "queueingStrategy": choice("StrictFIFO", "BestEffortFIFO", default="BestEffortFIFO"),
            "namespaceSelector": {"x-kubernetes-map-type": "atomic"},
            "resourceGroups": atomic(16),
            "flavorFungibility": {"default": {}},
            "preemption": {"default": {}},
            "stopPolicy": STOP_POLICY,
        },
        extra={
            "admissionScope": {
                **NOT_SERVED,
                "type": "object",
                "required": ["admissionMode"],
                "properties": {
                    "admissionMode": {"type": "string"}
                    | choice("UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing")
                },
            },
            "concurrentAdmissionPolicy": ANYTHING | NOT_SERVED,
        },
        merge=rules(
            (
                "has(self.cohortName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit))))",
                "borrowingLimit needs a cohort: name one or drop the limit",
            ),
            (
                "has(self.cohortName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.lendingLimit))))",
                "lendingLimit needs a cohort: name one or drop the limit",
            ),
        ),
    ),
    q.FlavorUsage: StructFacts(fields={"name": NAME, "resources": keyed(64)}, required=("resources",)),
    q.QueueStatus: StructFacts(
        fields={"conditions": CONDITIONS, "flavorsReservation": keyed(64), "flavorsUsage": keyed(64)},
        extra={
            "fairSharing": {
                **FAIR_SHARE,
                "properties": {**FAIR_SHARE["properties"], "admissionFairSharingStatus": ANYTHING | NOT_SERVED},
            }
        },
    ),
    q.LocalQueueSpec: StructFacts(
        fields={
            "clusterQueue": NAME | rules(one_of("", "clusterQueue is immutable: make another LocalQueue")),
            "stopPolicy": STOP_POLICY,
        },
    ),
    q.CohortSpec: StructFacts(fields={"parentName": NAME, "resourceGroups": atomic(16)}),
    q.Cohort: StructFacts(
        extra={"status": {"type": "object", "description": "Cohort.status.", "properties": {"fairSharing": FAIR_SHARE}}}
    ),
    q.ResourceFlavorSpec: StructFacts(
        fields={
            "nodeLabels": {"maxProperties": 8, "x-kubernetes-map-type": "atomic"},
            "nodeTaints": atomic(8)
            | rules(
                (f"self.all(x, x.effect in {EFFECTS})", "the effect must be NoSchedule, PreferNoSchedule or NoExecute")
            ),
            "tolerations": TOLERATIONS,
            "topologyName": NAME,
        },
        merge=rules(
            (
                "!has(self.topologyName) || (has(self.nodeLabels) && size(self.nodeLabels) > 0)",
                "a topology needs nodeLabels",
            ),
            (
                "!has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)",
                "topologyName is immutable once set",
            ),
        ),
    ),
    q.WorkloadPriorityClass: StructFacts(fields={"description": {"maxLength": 2048}}, required=("value",)),
    q.AdmissionCheckParameters: StructFacts(
        fields={
            "apiGroup": {"minLength": 1, **NAME},
            "kind": {"minLength": 1, "maxLength": 63, "pattern": "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$"},
            "name": {"minLength": 1, **POD_SET_NAME},
        },
        required=("apiGroup", "kind", "name"),
    ),
    q.AdmissionCheckSpec: StructFacts(
        fields={
            "controllerName": {"minLength": 1, "maxLength": 253}
            | rules(one_of("", "controllerName is immutable: make another AdmissionCheck"))
        },
        required=("controllerName",),
    ),
    q.ConditionsStatus: StructFacts(fields={"conditions": CONDITIONS}),
    q.MultiKueueConfigSpec: StructFacts(
        fields={
            "clusters": atomic(20, least=1)
            | rules(("self.all(i, self.exists_one(j, j == i))", "each cluster may be named once"))
        },
        items={"clusters": CLUSTER_NAME},
        extra={"quotaManagement": NOT_SERVED | {"type": "string"} | choice("Manual", "Automated")},
        required=("clusters",),
    ),
    q.KubeConfigSource: StructFacts(
        fields={
            "location": {"minLength": 1, "maxLength": 256},
            "locationType": choice("Secret", "Path", default="Secret"),
        },
        required=("location",),
    ),
    q.ClusterProfileReference: StructFacts(fields={"name": {"minLength": 1, "maxLength": 256}}, required=("name",)),
    q.ClusterSource: StructFacts(
        merge=rules(
            ("has(self.kubeConfig) != has(self.clusterProfileRef)", "exactly one of kubeConfig and clusterProfileRef")
        ),
    ),
    q.MultiKueueClusterSpec: StructFacts(required=("clusterSource",)),
    q.PodSet: StructFacts(
        fields={
            "name": POD_SET_NAME | {"default": "main"},
            "count": {"default": 1, "minimum": 0},
            "minCount": {"minimum": 1, "description": "With how many pods it may run at least; not set: with all."},
        },
        required=("template",),
        merge=rules(("!has(self.minCount) || self.minCount <= self.count", "minCount may not be above count")),
    ),
    q.TopologyRequest: StructFacts(
        fields={"podSetGroupName": {"maxLength": POD_SET_GROUP_NAME_MAX}},
        extra=TOPOLOGY,
        merge={"x-kubernetes-preserve-unknown-fields": True},
    ),
    q.PriorityClassRef: StructFacts(
        fields={
            "group": choice("kueue.x-k8s.io", "scheduling.k8s.io"),
            "kind": choice("WorkloadPriorityClass", "PriorityClass"),
            "name": {"minLength": 1, **NAME},
        },
        required=("group", "kind", "name"),
        merge=rules(
            (
                "(self.group == 'scheduling.k8s.io') == (self.kind == 'PriorityClass')",
                "PriorityClass is of the group scheduling.k8s.io, WorkloadPriorityClass of kueue.x-k8s.io",
            )
        ),
    ),
    q.WorkloadSpec: StructFacts(
        fields={
            "podSets": keyed(POD_SETS_MAX, least=1)
            | rules(("self.filter(p, has(p.minCount)).size() <= 1", "at most one pod set may have a minCount")),
            "queueName": NAME,
            "active": {"default": True},
            "maximumExecutionTimeSeconds": {"minimum": 1},
        },
        extra={"preemptionGates": PREEMPTION_GATES},
        merge=rules(
            (
                "!has(self.priorityClassRef) || has(self.priority)",
                "a priorityClassRef needs the priority that it stands for",
            )
        ),
    ),
    q.PodSetAssignment: StructFacts(
        fields={"name": POD_SET_NAME | {"default": "main"}, "count": {"minimum": 0}},
        items={"flavors": NAME},
        extra={
            "delayedTopologyRequest": NOT_SERVED | {"type": "string"} | choice("Pending", "Ready"),
            "topologyAssignment": ANYTHING | NOT_SERVED,
        },
    ),
    q.Admission: StructFacts(fields={"clusterQueue": NAME, "podSetAssignments": keyed(POD_SETS_MAX)}),
    q.PodSetUpdate: StructFacts(fields={"name": POD_SET_NAME, "tolerations": TOLERATIONS}),
    q.AdmissionCheckState: StructFacts(
        fields={
            "name": CHECK_NAME,
            "state": choice("Pending", "Ready", "Retry", "Rejected"),
            "message": {"maxLength": 32768},
            "requeueAfterSeconds": {"minimum": 0},
            "retryCount": {"minimum": 0},
            "podSetUpdates": atomic(POD_SETS_MAX),
        },
        required=("lastTransitionTime", "message", "state"),
    ),
    q.ReclaimablePod: StructFacts(fields={"name": POD_SET_NAME, "count": {"minimum": 0}}, required=("count",)),
    q.RequeueState: StructFacts(fields={"count": {"minimum": 0}}),
    q.EvictionCount: StructFacts(
        fields={"reason": {"maxLength": 316}, "underlyingCause": {"maxLength": 316}, "count": {"minimum": 0}},
        required=("count", "underlyingCause"),
    ),
    q.PodSetResources: StructFacts(fields={"name": POD_SET_NAME}),
    q.SchedulingStats: StructFacts(fields={"evictions": keyed(256, "reason", "underlyingCause")}),
    q.WorkloadStatus: StructFacts(
        fields={
            "conditions": CONDITIONS,
            "admissionChecks": keyed(8),
            "clusterName": CLUSTER_NAME,
            "nominatedClusterNames": atomic(20),
            "reclaimablePods": keyed(POD_SETS_MAX),
            "resourceRequests": keyed(POD_SETS_MAX),
        },
        items={"nominatedClusterNames": CLUSTER_NAME},
        extra={
            "preemptionGates": {
                **NOT_SERVED,
                "type": "array",
                **keyed(8),
                "items": {**ANYTHING, "required": ["name"], "properties": {"name": {"type": "string"}}},
            },
            "unhealthyNodes": {
                **NOT_SERVED,
                "type": "array",
                **keyed(8),
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string", "maxLength": 63}},
                },
            },
        },
        merge=rules(
            (
                "!has(oldSelf.clusterName) || !has(self.clusterName) || oldSelf.clusterName == self.clusterName",
                "clusterName is immutable once set: it may only be cleared",
            ),
            (
                "!has(self.clusterName) || !has(self.nominatedClusterNames) || size(self.nominatedClusterNames) == 0",
                "clusterName and nominatedClusterNames exclude each other",
            ),
        ),
    ),
    # What each write to a Workload is asked: first what is cheap to tell and nearly always true. With the conditions first,
    # these rules were the most costly part of a write.
    q.Workload: StructFacts(
        merge=rules(
            (
                f"!has(self.status) || !has(self.status.admission) || size(self.spec.podSets) == size(self.status.admission.podSetAssignments) || !({RESERVED.format('self')})",
                "the admission must assign each pod set while QuotaReserved is True",
            ),
            (
                f"(size(self.spec.podSets) == size(oldSelf.spec.podSets) && self.spec.podSets.all(p, oldSelf.spec.podSets.exists(o, o.name == p.name && p.count <= o.count))) || {ANY_TIME}",
                "podSets are immutable while quota is reserved: counts may only shrink",
            ),
            (
                f"(has(self.spec.queueName) ? has(oldSelf.spec.queueName) && self.spec.queueName == oldSelf.spec.queueName : !has(oldSelf.spec.queueName)) || {ANY_TIME}",
                "queueName is immutable while quota is reserved",
            ),
            (
                f"(has(self.spec.priorityClassRef) ? has(oldSelf.spec.priorityClassRef) && self.spec.priorityClassRef.group == oldSelf.spec.priorityClassRef.group && (self.spec.priorityClassRef.group != 'scheduling.k8s.io' || self.spec.priorityClassRef.name == oldSelf.spec.priorityClassRef.name) : !has(oldSelf.spec.priorityClassRef)) || {ANY_TIME}",
                "priorityClassRef is immutable while quota is reserved, but for another WorkloadPriorityClass",
            ),
            (
                f"(has(self.spec.maximumExecutionTimeSeconds) ? self.spec.maximumExecutionTimeSeconds : 0) == (has(oldSelf.spec.maximumExecutionTimeSeconds) ? oldSelf.spec.maximumExecutionTimeSeconds : 0) || !({ADMITTED.format('oldSelf')}) || !({ADMITTED.format('self')})",
                "maximumExecutionTimeSeconds is immutable while the workload is admitted",
            ),
        ),
    ),
    ours.WorkerClusterSpec: StructFacts(
        fields={
            "weight": {"default": 1, "minimum": 0, "maximum": 1000},
            "allowedNamespaces": {"maxItems": 1000, "x-kubernetes-list-type": "set"},
            "disconnectPolicy": choice("", "wait", "failover", "unfenced"),
            "approvedRequest": {"maxLength": 128},
            "tokenDigest": {"maxLength": 128},
        },
        items={"allowedNamespaces": POD_SET_NAME},
        merge=rules(
            (
                "!has(oldSelf.revoked) || !oldSelf.revoked || self.revoked",
                "revoked cannot be taken back: remove the WorkerCluster and add it again",
            )
        ),
    ),
    ours.FlavorCapacity: bounded(ours.FlavorCapacity),
    ours.ForeignRunStatus: bounded(ours.ForeignRunStatus),
    ours.Predecessor: bounded(ours.Predecessor),
    ours.EnrolmentRequest: StructFacts(fields={"keyDigest": {"maxLength": 128}, "tokenDigest": {"maxLength": 128}}),
    ours.WorkerClusterStatus: bounded(
        ours.WorkerClusterStatus,
        {
            "capacity": keyed(CAPACITY_MAX, "flavor", "resource"),
            "predecessors": keyed(PREDECESSORS_MAX, "workloadUID", "epoch"),
            "conditions": CONDITIONS,
        },
    ),
    ours.WorkerCluster: StructFacts(
        merge=rules(
            (
                "self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
                "the name must be a DNS label of at most 63 characters: it becomes a part of the agent's certificate",
            )
        ),
    ),
}
