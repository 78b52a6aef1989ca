"""What a MultiKueueCluster is told: that its credentials are not used, and how the cluster of its name comes in. Pure.

Here a cluster is reached by an agent of its own, which a WorkerCluster of the same name stands for. Neighbours:
`adapters.multikueue_clusters` writes it, `gatelift explain` follows it.
"""

from __future__ import annotations

from gatelift.core.clusters.cluster_facts import CONNECTED
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import MultiKueueCluster
from gatelift_kube.objects.meta import Condition

ACTIVE = "Active"
NO_AGENT = "NoAgent"
NOT_CONNECTED = "NotConnected"
_NOT_USED = "spec.clusterSource is not used: no credentials of other clusters are needed here"


def told(found: MultiKueueCluster, worker: WorkerCluster | None, now: str) -> tuple[Condition, ...]:
    """Return the conditions that it should have, the same tuple where it has them; `now` is an RFC 3339 text."""
    status, reason, message = _activity(found.metadata.name, worker)
    active = Condition(
        type=ACTIVE,
        status=status,
        reason=reason,
        message=f"{message}; {_NOT_USED}",
        observed_generation=found.metadata.generation,
    )
    return conditions.put(found.status.conditions, active, now)


def _activity(name: str, worker: WorkerCluster | None) -> tuple[str, str, str]:
    if worker is None:
        return conditions.FALSE, NO_AGENT, f"Take the cluster in by an agent of its own: {way_in(name)}"
    said = conditions.find(worker.status.conditions, CONNECTED)
    if said is not None and said.status == conditions.TRUE:
        return conditions.TRUE, ACTIVE, f"The agent of WorkerCluster {name} is connected"
    why = f" ({said.reason})" if said is not None else ""
    return conditions.FALSE, NOT_CONNECTED, f"The agent of WorkerCluster {name} is not connected{why}"


def way_in(name: str) -> str:
    """Return the command that takes a cluster in."""
    return f"gatelift cluster add {name}"
