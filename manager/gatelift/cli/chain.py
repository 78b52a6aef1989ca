"""What stands in the way of a workload that waits: its queues, their checks, and the clusters of those.

Each link says what it is not and what to do. Read with the caller's own rights; what he may not see is left out, since
`explain` says in another place what that is. Neighbours: `explain` prints it.
"""

from __future__ import annotations

from typing import Any

from gatelift.core.clusters.multikueue_clusters import way_in
from gatelift_kinds.shared.markers import MULTIKUEUE_MANAGER
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ForbiddenError, NotFoundError
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import AdmissionCheck, ClusterQueue, LocalQueue, MultiKueueConfig, Workload
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    MULTIKUEUE_CONFIG,
    WORKER_CLUSTER,
    ObjectKey,
    ObjectRef,
    Resource,
)

ACTIVE, CONNECTED = "Active", "Connected"
CLUSTERS_MAX = 20
"""As many as a MultiKueueConfig of Kueue names."""


async def obstacles(client: Client, workload: Workload) -> tuple[str, ...]:
    """Return what a workload's way to a cluster lacks, one line each, from its queue on; nothing where all is well."""
    name = workload.spec.queue_name
    if not name:
        return ()
    local = await _read(client, LOCAL_QUEUE, name, workload.metadata.namespace)
    if not isinstance(local, LocalQueue):
        return (f"LocalQueue {name}: {local}",) if local else ()
    queue = await _read(client, CLUSTER_QUEUE, local.spec.cluster_queue)
    if not isinstance(queue, ClusterQueue):
        return (f"ClusterQueue {local.spec.cluster_queue}: {queue}",) if queue else ()
    found = [*_inactive("ClusterQueue", queue)]
    strategy = queue.spec.admission_checks_strategy
    for rule in strategy.admission_checks if strategy is not None else ():
        found += await _of_check(client, rule.name)
    return tuple(found)


async def _of_check(client: Client, name: str) -> list[str]:
    check = await _read(client, ADMISSION_CHECK, name)
    if not isinstance(check, AdmissionCheck):
        return [f"AdmissionCheck {name}: {check}"] if check else []
    found = [*_inactive("AdmissionCheck", check)]
    named = check.spec.parameters
    if check.spec.controller_name != MULTIKUEUE_MANAGER or named is None or not found:
        return found
    config = await _read(client, MULTIKUEUE_CONFIG, named.name)
    if not isinstance(config, MultiKueueConfig):
        return [*found, f"MultiKueueConfig {named.name}: {config}"] if config else found
    for cluster in config.spec.clusters[:CLUSTERS_MAX]:
        found += await _of_cluster(client, cluster)
    return found


async def _of_cluster(client: Client, name: str) -> list[str]:
    worker = await _read(client, WORKER_CLUSTER, name)
    if not isinstance(worker, WorkerCluster):
        return [f"cluster {name}: no WorkerCluster of that name: take it in: {way_in(name)}"] if worker else []
    said = conditions.find(worker.status.conditions, CONNECTED)
    if said is not None and said.status == conditions.TRUE:
        return []
    why = said.reason if said is not None else "no agent of it has connected yet"
    return [f"cluster {name}: not connected: {why} ('gatelift cluster list')"]


def _inactive(kind: str, found: ClusterQueue | AdmissionCheck) -> list[str]:
    said = conditions.find(found.status.conditions, ACTIVE)
    if said is None or said.status == conditions.TRUE:
        return []
    return [f"{kind} {found.metadata.name}: not active ({said.reason}): {said.message}"]


async def _read(client: Client, resource: Resource, name: str, namespace: str = "") -> Any:
    """Return an object, a text where it is not there, and "" where the caller may not read it."""
    try:
        return (await client.get(ObjectRef(resource, ObjectKey(namespace, name)))).object
    except NotFoundError:
        return "is not there"
    except ForbiddenError:
        return ""
