"""What the manager has to know of its surroundings: its identity, a Kueue beside it, its own pod's label."""

from __future__ import annotations

import json
import os

import structlog

from gatelift_kube import timestamps
from gatelift_kube.client import Client
from gatelift_kube.clock import wall
from gatelift_kube.errors import ApiError, KubeError, NotFoundError
from gatelift_kube.objects.core import Lease
from gatelift_kube.resources import LEASE, NAMESPACE, POD, ObjectKey, ObjectRef

KUEUE_LEASE = ObjectRef(LEASE, ObjectKey("kueue-system", "c1f6bfd2.kueue.x-k8s.io"))
"""What a Kueue controller of the same cluster elects its leader by."""

KUEUE_LEASE_SECONDS = 60.0
"""A Lease renewed within this belongs to a controller that runs: Kueue renews every few seconds."""

LEADER_LABEL = "gatelift.dev/leader"
"""The agents' Service selects the leader's pod by it."""


class StartRefusedError(Exception):
    """The manager may not run here; the text says why and the way out."""


async def origin_of(client: Client) -> str:
    """Return the identity of this management cluster: the UID of its namespace kube-system."""
    served = await client.get(ObjectRef(NAMESPACE, ObjectKey("", "kube-system")))
    return served.object.metadata.uid


async def refuse_beside_kueue(client: Client) -> None:
    """Raise StartRefusedError when a Kueue controller runs in this cluster: two would admit the same workloads."""
    try:
        served = await client.get(KUEUE_LEASE)
    except NotFoundError:
        return
    except ApiError as error:
        if error.status != 403:
            raise
        structlog.get_logger("gatelift").warning("cannot look for a Kueue controller", problem=str(error))
        return
    lease = served.object
    if not isinstance(lease, Lease) or not lease.spec.holder_identity or not lease.spec.renew_time:
        return
    if wall() - timestamps.to_seconds(lease.spec.renew_time) < KUEUE_LEASE_SECONDS:
        raise StartRefusedError(
            f"a Kueue controller runs in this cluster (Lease {KUEUE_LEASE.key}, held by {lease.spec.holder_identity}): "
            "scale it to 0 first: kubectl -n kueue-system scale deployment kueue-controller-manager --replicas=0"
        )


async def mark_leader(client: Client, *, leads: bool) -> None:
    """Label the own pod, when there is one, so that the agents' Service reaches the leader."""
    name, namespace = os.environ.get("POD_NAME"), os.environ.get("POD_NAMESPACE")
    if not name or not namespace:
        return
    body = {"metadata": {"labels": {LEADER_LABEL: "true" if leads else None}}}
    try:
        await client.patch(ObjectRef(POD, ObjectKey(namespace, name)), json.dumps(body).encode())
    except KubeError as error:
        structlog.get_logger("gatelift").warning("own pod not labelled as leader", problem=str(error))
