"""Keeps the condition Active of MultiKueueClusters, while we lead: nothing else here reads them.

Looked at every half minute and not watched: nothing is decided by them, and where their CRD is not there, as in a
cluster that never had Kueue, there is nothing to tell.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

import msgspec
import structlog

from gatelift.core.api import documents
from gatelift.core.clusters.multikueue_clusters import told
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import KubeError, NotFoundError
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import MultiKueueCluster
from gatelift_kube.process.clock import wall
from gatelift_kube.process.repetitions import Repetitions
from gatelift_kube.values import timestamps
from gatelift_kube.values.resources import MULTIKUEUE_CLUSTER, WORKER_CLUSTER, ObjectKey, ObjectRef

EVERY_SECONDS = 30.0
"""A person who made one reads the warning at once, and its condition when he comes to look why a queue is inactive."""


async def keep_told(client: Client, leads: Callable[[], bool]) -> None:
    """Tell all MultiKueueClusters what is so, again and again, while `leads` says that we lead."""
    log, repetitions = structlog.get_logger("gatelift"), Repetitions()
    while True:
        await asyncio.sleep(EVERY_SECONDS)
        if not leads():
            continue
        try:
            await tell(client)
        except KubeError as error:
            if repetitions.untold(str(error)) is not None:
                log.warning("MultiKueueClusters are not told how they are", problem=str(error))


async def tell(client: Client) -> None:
    """Write the condition of each that has another one. KubeError where that cannot be done now."""
    try:
        found = [one.object async for page in client.list(MULTIKUEUE_CLUSTER) for one in page.items]
    except NotFoundError:
        return
    if not found:
        return
    workers = {
        one.object.metadata.name: one.object
        async for page in client.list(WORKER_CLUSTER)
        for one in page.items
        if isinstance(one.object, WorkerCluster)
    }
    for cluster in found:
        if not isinstance(cluster, MultiKueueCluster):
            continue
        name = cluster.metadata.name
        wanted = told(cluster, workers.get(name), timestamps.to_text(math.trunc(wall())))
        if wanted is not cluster.status.conditions:
            metadata = {"uid": cluster.metadata.uid, "resourceVersion": cluster.metadata.resource_version}
            body = {"metadata": metadata, "status": {"conditions": documents.conditions(wanted)}}
            ref = ObjectRef(MULTIKUEUE_CLUSTER, ObjectKey("", name))
            await client.patch(ref, msgspec.json.encode(body), subresource="status")
