"""Reasons and texts of the manager that people see, spelt as Kueue spells them where Kueue has them. No logic.

The engine's own texts (why no quota) are in `gatelift_admission.texts`. What one subject alone says stands beside it:
`conclusions.recovery_texts`, `conclusions.epoch_texts`, `rules.successor_texts`, `told.event_texts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.keys import PlacementKey

# Conditions of a Workload
QUOTA_RESERVED = "QuotaReserved"
ADMITTED = "Admitted"
EVICTED = "Evicted"
PREEMPTED = "Preempted"
REQUEUED = "Requeued"
FINISHED = "Finished"
REPLACEMENTS = "WaitingForReplacementPods"
NOBODY_REPLACED = "The group has finished: nobody is replaced any more"
BLOCKED_ON_GATES = "BlockedOnPreemptionGates"
DEACTIVATION_TARGET = "DeactivationTarget"
PODS_READY = "PodsReady"

# Reasons
NO_RESERVATION = "NoReservation"
PENDING_EVALUATION = "PendingEvaluation"
DISPATCH_HALTED = "DispatchHalted"
DISPATCH_GOES_ON = "Dispatch goes on: all that was waited for has been heard, or is waited for no longer"
NO_CLUSTER = "NoClusterAvailable"
GROWTH_WAITS = "GrowthWaits"
DEACTIVATED = "Deactivated"
DEACTIVATED_DUE_TO = "DeactivatedDueTo"
REQUEUING_LIMIT_EXCEEDED = "RequeuingLimitExceeded"
MAXIMUM_EXECUTION_TIME_EXCEEDED = "MaximumExecutionTimeExceeded"
PODS_READY_TIMEOUT = "PodsReadyTimeout"
WAIT_FOR_START = "WaitForStart"
WAIT_FOR_RECOVERY = "WaitForRecovery"
WAITING_FOR_PODS_READY = "WaitingForPodsReady"
RECOVERED = "Recovered"
MISCONFIGURED = "Misconfigured"
ADMISSION_CHECK = "AdmissionCheck"
BACKOFF_FINISHED = "BackoffFinished"
REACTIVATED = "Reactivated"
CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
CLUSTER_QUEUE_RESTARTED = "ClusterQueueRestarted"
LOCAL_QUEUE_RESTARTED = "LocalQueueRestarted"
FAILED_TO_START = "FailedToStart"

SUCCEEDED = "Succeeded"
FAILED = "Failed"

# Reasons of events
END_NOT_SHOWN = "EndNotShown"
QUOTA_RELEASED_BY_DEADLINE = "QuotaReleasedByDeadline"
END_NOT_WRITTEN = "EndNotWritten"
UPDATED_WORKLOAD = "UpdatedWorkload"
STARTED = "Started"  # also the reason of PodsReady=True
ADMISSION_CHECK_REJECTED = "AdmissionCheckRejected"

# Reasons of a Stop on the wire, and of conditions on stopped pods
WORKLOAD_DELETED = "WorkloadDeleted"
OWNER_DELETED = "OwnerDeleted"
LEFT_QUEUE = "Its user took it out of its queue"
NOT_LIVE = "NotLive"
NO_MATCHING_WORKLOAD = "NoMatchingWorkload"
RESIZED = "No matching Workload: the object asks for something else than was admitted; it is queued anew as it is now"
NO_SLOT_LEFT = (
    "Those that ran are over, and none of their slots is left for those that wait: it is queued anew for them"
)
SUSPENDED = "Suspended"
SUSPENDED_BY_USER = "The object was suspended while it was admitted; it is queued anew as it is now"
WORKLOAD_ADMITTED = "The workload is admitted"
WORKLOAD_HAS_NO_RESERVATION = "The workload has no reservation"
WORKLOAD_DEACTIVATED = "The workload is deactivated"
PODS_NOT_READY = "Not all pods are ready or succeeded"
PODS_NOT_RECOVERED = "At least one pod has failed, waiting for recovery"
PODS_ARE_READY = "All pods reached readiness and the workload is running"
OTHERS_NOT_READY = "waiting for all admitted workloads to be in PodsReady condition"
DELETED_AFTER_DEACTIVATION = "Its workload was deactivated, and objectRetentionPolicies keep it no longer"
RUNS_TOO_LONG = "exceeding the maximum execution time"
REQUEUED_TOO_OFTEN = "exceeding the maximum number of re-queuing retries"
WORKLOAD_REACTIVATED = "The workload was reactivated"
BACKOFF_WAS_FINISHED = "The workload backoff was finished"
CLUSTER_QUEUE_WAS_RESTARTED = "The ClusterQueue was restarted after being stopped"
LOCAL_QUEUE_WAS_RESTARTED = "The LocalQueue was restarted after being stopped"
FINISHED_ON_LOST = "its cluster is back and reports on the work; that is over and ignored"
NOT_WRITTEN_IN_TIME = "its status could not be written in time"
REPLACED_RECORD = "Previously: "

# Check states
PENDING = "Pending"
READY = "Ready"
RETRY = "Retry"
REJECTED = "Rejected"

PREDECESSOR_UNREACHABLE = "PredecessorUnreachable"
PREDECESSOR_NOT_STOPPED = "PredecessorNotStopped"
PREDECESSOR_FOREIGN = "PredecessorOfAnotherManager"
NO_QUEUE = "NoQueue"
UNREADABLE_TEMPLATE = "UnreadablePodTemplate"
TOO_MANY_OWNERS = "TooManyOwners"
EPOCH_AHEAD = "EpochAhead"
HELD = "gatelift.dev/Held"
"""Condition of a Workload that has a reservation and is held all the same; without one QuotaReserved says why."""
_NOT_MANAGED = "The owner is not managed by Kueue"
_NOBODY_WOULD_RUN = "The queue runs its work in this cluster, where nothing would run this"
_NOWHERE = "Its pods could not be told from others, and run uncharged"
KEPT_OUT = (
    (PREDECESSOR_UNREACHABLE, ""),
    (PREDECESSOR_NOT_STOPPED, ""),
    (PREDECESSOR_FOREIGN, ""),
    (UNREADABLE_TEMPLATE, ""),
    (TOO_MANY_OWNERS, ""),
    (EPOCH_AHEAD, ""),
    (WAITING_FOR_PODS_READY, ""),
    (MISCONFIGURED, _NOT_MANAGED),
    (MISCONFIGURED, _NOBODY_WOULD_RUN),
    (MISCONFIGURED, _NOWHERE),
)
"""Why a Workload is kept out of its queue, whatever quota there is: reasons, and how their messages begin."""


def not_recordable(cluster: str, key: PlacementKey, name: str) -> str:
    """Return what is said of a placement under a name that no object can have."""
    return (
        f"cluster {cluster} lists {plain(str(key), TOLD_CHARS_MAX)} as {plain(name, TOLD_CHARS_MAX)}, which cannot be "
        "recorded as it is said: it is remembered by what of it can be"
    )


TOLD_CHARS_MAX = 128
"""Of a name or key that cannot be true, in a text."""

NAMES_MAX = 10
"""Clusters that a text names; of more it says how many."""


def listing(names: list[str]) -> str:
    """Return some names, and how many there are besides."""
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{', '.join(names[:NAMES_MAX])}{more}"


RECORD_PUT_BACK = "RecordPutBack"
OWNER_PUT_BACK = "OwnerPutBack"
OWNER_PUT_BACK_TEXT = (
    "it says no longer for which object, or group of pods, it was made (annotations gatelift.dev/owner and "
    "kueue.x-k8s.io/is-group-workload); that is written back: a Workload goes with what it was made for, and is nobody "
    "else's; to end what runs, delete the Workload, its object or its pods"
)


def record_put_back(cluster: str, epoch: int) -> str:
    """Return what people are told of a status that does not say any more what is held for its Workload."""
    where = f"placed on {cluster} as epoch {epoch}" if cluster else f"admitted as epoch {epoch}"
    return (
        f"its status says no longer what Gatelift wrote: it is {where}, stays charged, and its status is written back; "
        "to stop it, deactivate the Workload (spec.active: false) or delete its object"
    )


def term_put_back(term: int, ours: int) -> str:
    """Return what people are told of a record that names a term which no leader has had."""
    return (
        f"its status says that it was written in term {term}, and the Lease says that no leader has come further than "
        f"{ours}: somebody else wrote it, and it is put back; nothing that runs is touched by that"
    )


def numbers_put_back(edited: str) -> str:
    """Return what people are told of numbers in a WorkerCluster's status that its leader has not written."""
    return (
        f"its status says {edited}, which no leader has written or nobody can have come to: somebody else wrote it, "
        "and it is put back; nothing that runs is touched by that"
    )


def admitted_on(cluster: str) -> str:
    """Return the message of a MultiKueue check that is Ready."""
    return f'The workload was admitted on "{cluster}"'


def reset_check(previous: str, retried: str = "") -> str:
    """Return the message of a check after an eviction; `retried` says why it had to be given up."""
    return f"Reset to Pending after eviction. Previously: {f'{RETRY} ({retried})' if retried else previous}"


def evicted_by_checks(checks: Iterable[tuple[str, str]]) -> str:
    """Return the message of Evicted for checks (name, message) in state Retry."""
    return f"Evicted due to {_checks_in_state(RETRY, checks)}"


def evicted_by_pending_checks(checks: Iterable[tuple[str, str]]) -> str:
    """Return the message of Evicted for checks (name, message) that are Pending again; ours, Kueue has none."""
    return f"Evicted due to {_checks_in_state(PENDING, checks)}"


def rejected_by_checks(checks: Iterable[tuple[str, str]]) -> str:
    """Return why a workload is deactivated of which checks (name, message) say Rejected."""
    return _checks_in_state(REJECTED, checks)


def _checks_in_state(state: str, checks: Iterable[tuple[str, str]]) -> str:
    said = [f'"{name}" ({message})' for name, message in checks]
    return f"AdmissionCheck{'s' if len(said) > 1 else ''} in {state} state: {'; '.join(said)}"


def deactivated_due_to(cause: str) -> str:
    """Return the message of Evicted for a workload that was deactivated for a reason of ours."""
    return f"{WORKLOAD_DEACTIVATED} due to {cause}"


def not_ready_in_time(key: str) -> str:
    """Return the message of Evicted for a workload whose pods did not get ready in time."""
    return f"Exceeded the PodsReady timeout {key}"


def refused_by(cluster: str, reason: str, text: str) -> str:
    """Return why a chosen cluster did not run the workload."""
    return f'Cluster "{cluster}" refused the placement: {plain(reason)}{f": {plain(text)}" if text else ""}'


def evicted_on(cluster: str, reason: str, text: str) -> str:
    """Return why a cluster ended the workload on its own."""
    return f'Workload evicted on cluster "{cluster}": {plain(reason)}{f": {plain(text)}" if text else ""}'


def gone_from(cluster: str) -> str:
    """Return the message for a placement that its cluster does not know any more."""
    return f'The placement on cluster "{cluster}" no longer exists'


def fenced_by(cluster: str, who: str) -> str:
    """Return the message for a placement on a cluster that a person declared fenced."""
    return f'Cluster "{cluster}" was declared fenced by {who}'


def stopped_by_itself(cluster: str) -> str:
    """Return the message for a placement whose cluster says stopped without having been asked."""
    return f'Cluster "{cluster}" stopped the placement without being asked to'


def not_managed_by_kueue(why: str) -> str:
    """Return why an object goes to no worker cluster, in Kueue's words; `why` has the way out."""
    return f"{_NOT_MANAGED}: {why}"


def nobody_would_run(why: str) -> str:
    """Return why an object is not let go in its own cluster; `why` has the way out."""
    return f"{_NOBODY_WOULD_RUN}: {why}"


def let_go_nowhere(why: str) -> str:
    """Return why an object is let go in no cluster; `why` has the way out."""
    return f"{_NOWHERE}: {why}"


def unreachable(cluster: str) -> str:
    """Return the text shown while the cluster of a placement is lost."""
    return f'Cluster "{cluster}" is unreachable; the work there may be running and its quota stays charged'


def unreadable_template(which: str) -> str:
    """Return why a Workload waits of which nobody can tell what it asks for; `which` names the field and the error."""
    return f"{which}; write a PodTemplateSpec there, or delete the Workload: one that its object asks for is made anew"


def unheard(cluster: str) -> str:
    """Return the text shown while a placement is not listed and may run unseen: on a node, or in a namespace."""
    return (
        f'Cluster "{cluster}" does not list it, and not all its nodes were heard of since its agent started, or the '
        "agent cannot list a namespace with work; the work there may be running and its quota stays charged until each "
        "node was heard of, or is gone, and each namespace is listed"
    )


def policy_not_served(policy: str) -> str:
    """Return the text for who asks for a disconnect policy that is not acted on."""
    return (
        f"disconnect policy {policy} is not acted on in this version: if its cluster is lost, the work stays there and "
        "charged (policy wait) until the cluster is back or a person declares it fenced"
    )


def no_cluster(why_not: Mapping[str, str]) -> str:
    """Return the message of a workload that has quota but no cluster that takes it, each cluster with its reason."""
    if not why_not:
        return "No worker cluster is configured for this queue"
    return "No worker cluster can take it: " + "; ".join(f"{name}: {why}" for name, why in sorted(why_not.items()))


def end_not_shown(kind: str, why: str) -> str:
    """Return the message of the Warning event EndNotShown: the work is over and the object cannot say so."""
    return f"The work is over, its Workload says how; the status of this {kind} cannot be written: {why}"


def end_not_written(why: str) -> str:
    """Return the message of the Warning event EndNotWritten, and when it is tried again."""
    return (
        f"Its placement is over and this Workload cannot say so, so it stays charged; it is tried again: {plain(why)}"
    )


def words_left_out(cluster: str) -> str:
    """Return what stands in an end for the words of a cluster that the API server did not take."""
    return f'What cluster "{cluster}" said of it was refused by the API server and is left out'


def finished_unshown(message: str, why: str) -> str:
    """Return the message of Finished when the user's object does not show the end."""
    return f"{f'{message} ' if message else ''}(not shown at the user's object: {why})"


def priority_class_changed(key: str) -> str:
    """Return the message of the event UpdatedWorkload after another class was taken over."""
    return f"Updated workload priority class: {key}"


def priority_class_missing(name: str) -> str:
    """Return the message of the Warning event WorkloadPriorityClassNotFound."""
    return f"WorkloadPriorityClass {name!r} not found; create it or correct the label kueue.x-k8s.io/priority-class"


def queue_gone_in_use(name: str) -> str:
    """Say that a ClusterQueue was taken away under its work, and the way out."""
    return (
        f"ClusterQueue {name} is gone while Workloads hold quota of it: what it had borrowed is lent to nobody until "
        "they have ended; make it anew in its cohort, or delete them"
    )


def no_room_to_grow(why_not: Mapping[str, str]) -> str:
    """Return the message of a growth that has quota, and not its cluster's word: no other one is asked."""
    return "its cluster cannot take that: " + "; ".join(f"{name}: {why}" for name, why in sorted(why_not.items()))


def growth_waits(cluster: str, why: str) -> str:
    """Return what people are told of a growth that waits for the cluster on which its work runs."""
    return f'It grows what runs on cluster "{cluster}", and waits for that: {why}'


def growth_over(cluster: str, seconds: float, *, moves: bool) -> str:
    """Return what people are told where a cluster has had no room for a growth for as long as that was to wait."""
    end = (
        "all of it is queued anew, for other clusters" if moves else "it keeps the size that it has until that changes"
    )
    return f'Cluster "{cluster}" had no room for the size that is wanted for {seconds:g} s: {end}'


def flavor_too_small(counts: str) -> str:
    """Return what people are told where a chain is queued anew for another flavor."""
    return f"Its flavor can never have room for {counts}, and another one has: all of it is queued anew"


def growth_not_ready(cluster: str, seconds: float) -> str:
    """Return what people are told where what a growth added is given back."""
    return (
        f'Not all pods of the larger size were ready on cluster "{cluster}" within {seconds:g} s: it has the size of '
        "before, and the larger one is tried again later"
    )


def size_ahead(cluster: str, named: int, number: int) -> str:
    """Return what people are told where a cluster lists a later size than a record has."""
    return (
        f"Cluster {cluster} lists size {named} of it, and its record is of size {number}: it is charged for what that "
        f"lets run, and no other size is told. Raise the annotation gatelift.dev/size above {named} to go on"
    )
