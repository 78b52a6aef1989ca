"""Reasons and messages of the events on users' objects and their Workloads, spelt as Kueue spells them. Pure.

Conditions, and reasons that stand in both, are in `texts`. Neighbour: `telling` (decides which).
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_kube.values.plain_text import plain

PREEMPTED_WORKLOAD = "PreemptedWorkload"
CREATED_WORKLOAD = "CreatedWorkload"
DELETED_WORKLOAD = "DeletedWorkload"
STOPPED = "Stopped"
FINISHED_WORKLOAD = "FinishedWorkload"
EVICTED_DUE_TO = "EvictedDueTo"
MULTIKUEUE = "MultiKueue"
DISPATCHED = "Dispatched"
CLUSTER_UNREACHABLE = "ClusterUnreachable"
UPDATED_ADMISSION_CHECK = "UpdatedAdmissionCheck"

WORKLOAD_IS_DELETED = "Workload is deleted"
NOT_ADMITTED = "Not admitted by cluster queue"


def dispatched(cluster: str) -> str:
    """Return the message of the event on a user's object that says where it runs."""
    return f'Dispatched to cluster "{cluster}"'


EXCESS_DELETED = "ExcessPodDeleted"
EXCESS = "Excess pod deleted: the group has as many as it is to have without it"
OWNERS_ADDED = "OwnerReferencesAdded"
NOT_COMPOSED = "ErrWorkloadCompose"
"""Reasons of events as Kueue spells them; this one where no Workload can be made of what is there."""
WORKLOAD_NAME_CONFLICT = "WorkloadNameConflict"
GROUP_IS_OVER = "GroupFinished"
GROUP_OVER = (
    "the group has finished, and nothing more of it is started: delete this pod, or make it in another group; kept, it "
    "is one of the next group of that name, should one be made once this group's Workload is deleted"
)
GROUP_SHAPE_MISMATCH = "GroupShapeMismatch"
"""At a pod of a group that has none of its roles."""


def owners_added(named: int) -> str:
    """Return the message of the event OwnerReferencesAdded; `named`: how many objects the Workload names now."""
    return f"Added owner references: the Workload names {named} pods now"


def admitted_event(cluster_queue: str, waited: float) -> str:
    """Return the message of the event Admitted; `waited` seconds since the reservation."""
    return f"Admitted by ClusterQueue {cluster_queue}, wait time since reservation was {waited:.0f}s"


def not_created(why: str) -> str:
    """Return the message of the event on a user's object whose Workload the API server does not take."""
    return f"Its Workload cannot be made, which is tried again: {plain(why)}"


def created_workload(key: str) -> str:
    """Return the message of the event CreatedWorkload."""
    return f"Created Workload: {key}"


def checks_say(said: Iterable[tuple[str, str]]) -> str:
    """Return the message of the event UpdatedAdmissionCheck, of name and message of each check."""
    return "; ".join(f"{name}: {message}" for name, message in said)


def deleted_workload(key: str) -> str:
    """Return the message of the event DeletedWorkload."""
    return f"Deleted not matching Workload: {key}"


def started(cluster_queue: str) -> str:
    """Return the message of the event Started."""
    return f"Admitted by clusterQueue {cluster_queue}"


def finished_workload(key: str) -> str:
    """Return the message of the event FinishedWorkload."""
    return f"Workload '{key}' is declared finished"
