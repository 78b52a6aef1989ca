"""What the manager has to know of its surroundings: its identity, and its own pod's label."""

from __future__ import annotations

import json
import os

import structlog

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.values.resources import NAMESPACE, POD, ObjectKey, ObjectRef

LEADER_LABEL = "gatelift.dev/leader"
"""The agents' Service selects the leader's pod by it."""


async def origin_of(client: Client) -> str:
    """Return the identity of this management cluster: the UID of its namespace kube-system."""
    served = await client.get(ObjectRef(NAMESPACE, ObjectKey("", "kube-system")))
    return served.object.metadata.uid


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
