"""Reasons and messages that people see on objects, spelt as Kueue spells them. Literal facts, no logic."""

from __future__ import annotations

from typing import Final

CONDITION_MESSAGE_MAX: Final = 32768
EVENT_MESSAGE_MAX: Final = 1024
_CUT: Final = " ..."

QUOTA_RESERVED: Final = "QuotaReserved"
ADMITTED: Final = "Admitted"
WAITING_FOR_QUOTA: Final = "WaitingForQuota"
EXCEEDS_MAX_QUOTA: Final = "ExceedsMaxQuota"
NO_MATCHING_FLAVOR: Final = "NoMatchingFlavor"
PENDING_EVALUATION: Final = "PendingEvaluation"
MISCONFIGURED: Final = "Misconfigured"
SUSPENDED: Final = "Suspended"
DEACTIVATED: Final = "Deactivated"
ADMISSION_GATED: Final = "AdmissionGated"
WAITING_FOR_PREEMPTED: Final = "WaitingForPreemptedWorkloads"
PREEMPTED: Final = "Preempted"
CLUSTER_QUEUE_STOPPED: Final = "ClusterQueueStopped"
LOCAL_QUEUE_STOPPED: Final = "LocalQueueStopped"

_NOT_QUEUED: Final = frozenset({SUSPENDED, DEACTIVATED, ADMISSION_GATED})

WORKLOAD_ADMITTED: Final = "The workload is admitted"
NO_RESERVATION: Final = "The workload has no reservation"


def faulty(error: str) -> str:
    """Return what is said of a workload that could not be looked at."""
    return f"It cannot be decided on ({error}, a mistake of Gatelift's: see its log): it is set aside and tried again"


WAITING: Final = "Workload is pending evaluation in the scheduling queue"
BYPASSED: Final = "Bypassed scheduling evaluation because an equivalent workload recently failed"
LOST_TO_ANOTHER: Final = "Workload no longer fits after processing another workload"
OVERLAPPING: Final = "Workload has overlapping preemption targets with another workload"
DEFERRED: Final = f"{OVERLAPPING}, but will fit after these preemptions complete"
CHECKS_FAILED: Final = "The workload has failed admission checks"
NAMESPACE_MISMATCH: Final = "workload namespace doesn't match ClusterQueue selector"
WORKLOAD_DEACTIVATED: Final = "The workload is deactivated"
CLUSTER_QUEUE_IS_STOPPED: Final = "The ClusterQueue is stopped"
LOCAL_QUEUE_IS_STOPPED: Final = "The LocalQueue is stopped"
BEHIND_SLICE: Final = "Waits for another slice of the same workload: a later one, or the one that holds the quota"
BEHIND: Final = (PENDING_EVALUATION, BEHIND_SLICE)
OTHER_POD_SETS: Final = "the pod sets are not those of the slice that it replaces"
GATE_CLEARED: Final = "AdmissionGatedBy cleared, waiting for quota reservation"

CQ_READY: Final = "Can admit new workloads"
CQ_TERMINATING: Final = "Can't admit new workloads; clusterQueue is terminating"
LQ_READY: Final = "Can submit new workloads to localQueue"
LQ_STOPPED: Final = "LocalQueue is stopped"
LQ_NO_CLUSTER_QUEUE: Final = "Can't submit new workloads to clusterQueue"


def cut(message: str, limit: int) -> str:
    """Return `message` within `limit` characters, ending in ` ...` where it was cut."""
    return message if len(message) <= limit else message[: limit - len(_CUT)] + _CUT


def quota_reserved(cluster_queue: str) -> str:
    """Return the message of QuotaReserved=True."""
    return f"Quota reserved in ClusterQueue {cluster_queue}"


def quota_reserved_event(cluster_queue: str, wait_seconds: float, considered: str) -> str:
    """Return the message of the Normal event QuotaReserved."""
    text = f"Quota reserved in ClusterQueue {cluster_queue}, wait time since queued was {wait_seconds:.0f}s"
    return cut(f"{text}; Flavors considered: {considered}" if considered else text, EVENT_MESSAGE_MAX)


def insufficient_unused(resource: str, flavor: str, more: str) -> str:
    """Return why a flavor does not fit now."""
    return f"insufficient unused quota for {resource} in flavor {flavor}, {more} more needed"


def insufficient_maximum(resource: str, flavor: str, assumed: str, request: str, most: str) -> str:
    """Return why a flavor can never fit."""
    return (
        f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests ({assumed})"
        f" + current podset request ({request}) > maximum capacity ({most})"
    )


def untolerated_taint(key: str, value: str, effect: str, flavor: str) -> str:
    """Return why a flavor's taint excludes a pod set."""
    return f"untolerated taint {{{key} {value} {effect} <nil>}} in flavor {flavor}"


def affinity_mismatch(flavor: str) -> str:
    """Return why a flavor's labels exclude a pod set."""
    return f"flavor {flavor} doesn't match node affinity"


def flavor_not_found(flavor: str) -> str:
    """Return why a flavor is skipped that has no object."""
    return f"flavor {flavor} not found"


def not_pinned(flavor: str, resource: str) -> str:
    """Return why a flavor is skipped when an assignment is made again for the flavors found before."""
    return f"skipping flavor {flavor} as it is not found in the nomination mapping for resource {resource}"


def not_original(flavor: str, original: str) -> str:
    """Return why a flavor is skipped for a slice whose chain is charged in another one."""
    return f"could not assign {flavor} flavor since the original workload is assigned: {original}"


def resource_unavailable(resource: str) -> str:
    """Return why a resource that no group covers cannot be granted."""
    return f"resource {resource} unavailable in ClusterQueue"


def cannot_assign(pod_set: str, reasons: list[str]) -> str:
    """Return the part of the assignment message about one pod set."""
    return f"couldn't assign flavors to pod set {pod_set}: {', '.join(sorted(reasons))}"


def pending_preemption(assignment: str, count: int) -> str:
    """Return the message of a workload that waits for `count` others to stop."""
    return cut(f"{assignment}. Pending the preemption of {count} workload(s)", CONDITION_MESSAGE_MAX)


def out_of_reach(assignment: str, count: int) -> str:
    """Return the message of a workload that `count` others stand in the way of, none of whom can be stopped now."""
    return (
        f"{assignment}. Waits for {count} workload(s) on clusters that are not connected, which cannot be preempted now"
    )


def preempted(preemptor: str, why: str, paths: tuple[str, str]) -> str:
    """Return the message of a victim: `preemptor` as `identity` gives it, paths of preemptor and preemptee."""
    return cut(
        f"Preempted to accommodate a workload ({preemptor}) due to {why}; preemptor path: {paths[0]}; "
        f"preemptee path: {paths[1]}",
        CONDITION_MESSAGE_MAX,
    )


def preempts(key: str, uid: str, queue: str, priorities: str) -> str:
    """Return the message of the event PreemptedWorkload on the preemptor; `queue` is the victim's ClusterQueue."""
    return cut(f"Preempted workload {key} (UID: {uid}) in ClusterQueue {queue}{priorities}", EVENT_MESSAGE_MAX)


def preempted_event(message: str, priorities: str) -> str:
    """Return the message of the event Preempted on the victim: that of its condition, and who had which priority."""
    return cut(message, EVENT_MESSAGE_MAX - len(priorities)) + priorities


def priorities(preemptor: tuple[int, int], preemptee: tuple[int, int]) -> str:
    """Return how events of a preemption end; each as (effective, base)."""
    said = [f"effective priority: {now} (base: {base}, boost: {now - base})" for now, base in (preemptor, preemptee)]
    return f"; preemptor {said[0]}; preemptee {said[1]}"


def identity(uid: str, job_uid: str) -> str:
    """Return how messages about preemption name a workload."""
    return f"UID: {uid or 'UNKNOWN'}, JobUID: {job_uid or 'UNKNOWN'}"


def missing(kind: str, name: str) -> str:
    """Return the message for a pending workload whose queue has no object."""
    return f"{kind} {name} doesn't exist"


def inactive(kind: str, name: str) -> str:
    """Return the message for a pending workload whose queue does not admit."""
    return f"{kind} {name} is inactive"


def ends_when_queued(said: tuple[str, str] | None, kept_out: tuple[tuple[str, str], ...]) -> bool:
    """Return whether a text gives a reason not to be in a queue: one that is over for what is in one.

    `kept_out`: reasons of the caller's own, as in `EngineSettings`.
    """
    if said is None:
        return False
    if said[0] in _NOT_QUEUED or (said[0] == MISCONFIGURED and said[1].endswith("doesn't exist")) or said == BEHIND:
        return True
    return any(said[0] == reason and said[1].startswith(begins) for reason, begins in kept_out)


def gone_while_reserved(kind: str, name: str) -> str:
    """Return the message for a reserved workload whose queue was deleted."""
    return f"{kind} {name} is terminating or missing"


def stopped_while_reserved(kind: str, name: str) -> str:
    """Return the message for a reserved, not admitted workload whose queue was put on hold."""
    return f"{kind} {name} is stopped"


def gated_by(gates: str) -> str:
    """Return the message for a workload that its own annotation keeps out of the queue."""
    return f"Admission is gated by: {gates}"


def invalid_resources(error: str) -> str:
    """Return the message for a workload whose resources cannot be read or contradict each other."""
    return cut(f"resources validation failed: {error}", CONDITION_MESSAGE_MAX)


def invalid_value(path: str, resources: list[str], rule: str) -> str:
    """Return what is wrong with a field because of these resources, as the API server's validation says it."""
    names = ",".join(f'"{name}"' for name in resources)
    return f"{path}: Invalid value: [{names}]: {rule}"


def aggregate(errors: list[str]) -> str:
    """Return one error as it is and several as a list, as Kubernetes' aggregates print them."""
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


def outside_limit_ranges(broken: list[str]) -> str:
    """Return the message for constraints of LimitRanges that are not kept."""
    return cut(f"resources didn't satisfy LimitRange constraints: {aggregate(broken)}", CONDITION_MESSAGE_MAX)


def claims_devices(pod_set: str) -> str:
    """Return the message for pods that claim devices, which nobody would charge."""
    return (
        f"podSet {pod_set}: spec.resourceClaims: claimed devices are not counted against quota and not served by this "
        "version: ask for devices in the containers' resources"
    )
