"""Why an agent may not have a stream, in the words that it is told and with the ways out. Pure.

Neighbours: `links` (asks when a stream is opened), `link` (asks again of those that are open).
"""

from __future__ import annotations

from gatelift.core.api import events
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_wire.values.messages import Close
from gatelift_wire.values.refusals import CloseReason


def of_agent(cluster: str, found: WorkerCluster | None, key_digest: str) -> Close | None:
    """Say why an agent with this key may not have a stream of a cluster; None: it may."""
    if found is None:
        text = f"no WorkerCluster {cluster}: run 'gatelift cluster add {cluster}'"
        return Close(reason=CloseReason.UNKNOWN_CLUSTER, text=text)
    if found.spec.revoked:
        text = f"{cluster} was revoked by a person; 'gatelift cluster add {cluster}' takes it in again"
        return Close(reason=CloseReason.REVOKED, text=text)
    if cluster != LOCAL_CLUSTER and (not key_digest or found.status.key_digest != key_digest):
        text = f"this key is not the one that was approved last for {cluster}; enrol the agent with a new token"
        return Close(reason=CloseReason.REVOKED, text=text)
    return None


def of_standby(cluster: str) -> Close:
    """Return what an agent is told by a process that does not lead."""
    if cluster == LOCAL_CLUSTER:  # its agent is of this process, which took the Lease and has yet to list
        return Close(reason=CloseReason.SHUTTING_DOWN, text="what is there is being listed")
    return Close(reason=CloseReason.NOT_LEADER, text="this manager is a standby")


def before_local_is_made() -> Close:
    """Return what the agent of `local` is told at the first start: it is asked to come back at once."""
    return Close(reason=CloseReason.SHUTTING_DOWN, text="WorkerCluster local is being made")


def not_taken() -> Close:
    """Return what an agent is told while its cluster has yet to hear that this process leads."""
    return Close(reason=CloseReason.SHUTTING_DOWN, text=events.NOT_TAKEN)


def too_many() -> Close:
    """Return what an agent is told while as many streams are open as may be."""
    return Close(reason=CloseReason.SHUTTING_DOWN, text="too many streams are open", retry_after_seconds=30.0)
