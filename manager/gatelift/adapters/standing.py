"""What the manager has to know of its surroundings: its identity, a Kueue beside it, its own pod's label."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable

import structlog

from gatelift.webhooks.configuration import MUTATING, VALIDATING
from gatelift_kube import timestamps
from gatelift_kube.client import Client, Selection
from gatelift_kube.clock import wall
from gatelift_kube.errors import ForbiddenError, KubeError, NotFoundError
from gatelift_kube.objects.core import Lease
from gatelift_kube.resources import LEASE, NAMESPACE, POD, ObjectKey, ObjectRef

KUEUE_LEASE = "c1f6bfd2.kueue.x-k8s.io"
"""The name of the Lease by which Kueue's controllers elect their leader, in whatever namespace they are installed."""

KUEUE_LEASE_SECONDS = 60.0
"""A Lease renewed within this belongs to a controller that runs: Kueue renews every few seconds."""

MOVES_SECONDS = 6.0
"""How long an older one is watched: three of Kueue's renewals, by whatever clock it writes their times."""

KUEUE_WEBHOOKS = (
    ObjectRef(MUTATING, ObjectKey("", "kueue-mutating-webhook-configuration")),
    ObjectRef(VALIDATING, ObjectKey("", "kueue-validating-webhook-configuration")),
)

LEADER_LABEL = "gatelift.dev/leader"
"""The agents' Service selects the leader's pod by it."""


class StartRefusedError(Exception):
    """The manager may not run here; the text says why and the way out."""


async def origin_of(client: Client) -> str:
    """Return the identity of this management cluster: the UID of its namespace kube-system."""
    served = await client.get(ObjectRef(NAMESPACE, ObjectKey("", "kube-system")))
    return served.object.metadata.uid


async def refuse_beside_kueue(
    client: Client, own: ObjectKey, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Raise StartRefusedError when a Kueue controller runs in this cluster: two would admit the same workloads.

    It is looked for in all namespaces, and runs where its Lease was renewed just now, or is while we look. `own`: the
    Lease that we are elected by. Kueue's webhooks without a controller are warned of: it was scaled to zero.
    """
    found = await _kueue_leases(client, own)
    running = {key: lease for key, lease in found.items() if _renewed_just_now(lease)}
    if found and not running:
        await pause(MOVES_SECONDS)
        later = await _kueue_leases(client, own)
        running = {key: lease for key, lease in later.items() if key in found and lease.spec != found[key].spec}
    for key, lease in running.items():
        raise StartRefusedError(
            f"a Kueue controller runs in this cluster (Lease {key}, held by {lease.spec.holder_identity}): scale it "
            f"to 0 first: kubectl -n {key.namespace} scale deployment kueue-controller-manager --replicas=0"
        )
    await _warn_of_webhooks(client)


async def _kueue_leases(client: Client, own: ObjectKey) -> dict[ObjectKey, Lease]:
    """Return the Leases of Kueue controllers that somebody holds."""
    found: dict[ObjectKey, Lease] = {}
    try:
        async for page in client.list(LEASE, Selection(fields=f"metadata.name={KUEUE_LEASE}")):
            for served in page.items:
                lease = served.object
                key = ObjectKey(lease.metadata.namespace, lease.metadata.name)
                if isinstance(lease, Lease) and key.name == KUEUE_LEASE and key != own and lease.spec.holder_identity:
                    found[key] = lease
    except ForbiddenError as error:
        structlog.get_logger("gatelift").warning("cannot look for a Kueue controller", problem=str(error))
    return found


def _renewed_just_now(lease: Lease) -> bool:
    renewed = lease.spec.renew_time
    return renewed is not None and wall() - timestamps.to_seconds(renewed) < KUEUE_LEASE_SECONDS


async def _warn_of_webhooks(client: Client) -> None:
    log = structlog.get_logger("gatelift")
    for ref in KUEUE_WEBHOOKS:
        try:
            await client.get(ref)
        except NotFoundError:
            continue
        except ForbiddenError as error:
            log.warning("cannot look for Kueue's webhooks", problem=str(error))
            continue
        way_out = f"kubectl delete {ref.resource.kind.lower()} {ref.key.name}"
        log.warning("Kueue's webhooks are there and ask a Kueue that does not run", found=str(ref), way_out=way_out)


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
