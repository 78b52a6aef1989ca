"""`gatelift cluster remove`: revokes a worker cluster, not before its work is over unless told to."""

from __future__ import annotations

import json

from gatelift.cli.connection import USAGE, CliError
from gatelift.cli.fencing import placements_left
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ForbiddenError
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


async def remove(client: Client, name: str, *, now: bool) -> str:
    """Revoke a cluster's certificate; return what is left to do, in words.

    Raises CliError while something is placed there, unless `now`: nobody could tell of its end any more.
    """
    if name == LOCAL_CLUSTER:
        raise CliError("name: 'local' is the management cluster itself and cannot be removed", USAGE)
    if not now:
        left = await placements_left(client, name)
        if left:
            raise CliError(
                f"{name}: {left} placements are left, and nobody could tell of their end: 'gatelift cluster cordon "
                f"{name}', wait until 'gatelift cluster list' shows none, or delete them; --now revokes it all the same"
            )
    body = {"spec": {"revoked": True, "approvedRequest": "", "tokenDigest": ""}}
    await client.patch(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)), json.dumps(body).encode())
    try:
        left = await placements_left(client, name)  # what was placed meanwhile, too
    except ForbiddenError:
        return f"when nothing is placed on it: kubectl delete workercluster {name}"
    if not left:
        return f"then: kubectl delete workercluster {name}"
    return (
        f"{left} placements are left and stay charged until you have made sure that nothing runs there, wait until it "
        f"is shown as Lost, and say: gatelift cluster fenced {name}"
    )
