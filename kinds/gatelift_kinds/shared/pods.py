"""Where pods are: over, holding resources, on their way out. Pure. Shared by the kinds whose work is pods."""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_kube.objects.core import Pod
from gatelift_wire.values.messages import PodSetCounts

SUCCEEDED = "Succeeded"


def over(pod: Pod) -> bool:
    """Return whether the kubelet (or who speaks for it) has said a terminal phase."""
    return pod.status.phase in {SUCCEEDED, "Failed"}


def unbound_and_deleting(pod: Pod) -> bool:
    """Return whether it was deleted before it got a node: no container of it ran or will."""
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


def ready(pod: Pod) -> bool:
    """Return whether its condition Ready is True."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)


def holds_resources(pod: Pod) -> bool:
    """Return whether it occupies a node, or still can: neither over nor deleted before it was bound."""
    return not over(pod) and not unbound_and_deleting(pod)


def leaves(pod: Pod) -> bool:
    """Return whether its deletion was accepted, or it is over: nothing starts it again."""
    return pod.metadata.deletion_timestamp is not None or over(pod)


def count_pods(pod_set: str, pods: Iterable[Pod]) -> PodSetCounts:
    """Return the counts of the pods of one pod set.

    Each pod is one of active (not being deleted), terminating (both hold resources, together `remaining`), succeeded,
    failed, or nothing (deleted before it was bound).
    """
    active = ready_count = succeeded = failed = terminating = 0
    for pod in pods:
        if pod.status.phase == SUCCEEDED:
            succeeded += 1
        elif pod.status.phase == "Failed":
            failed += 1
        elif unbound_and_deleting(pod):
            continue
        elif pod.metadata.deletion_timestamp is not None:
            terminating += 1
        else:
            active += 1
            ready_count += ready(pod)
    return PodSetCounts(
        name=pod_set,
        active=active,
        ready=ready_count,
        succeeded=succeeded,
        failed=failed,
        terminating=terminating,
        remaining=active + terminating,
    )
