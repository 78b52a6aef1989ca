"""A Kueue that runs beside the manager: the start is refused, for two would admit the same workloads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from gatelift.webhooks.configuration import MUTATING, VALIDATING
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.deciding.errors import ForbiddenError, KubeError, NotFoundError
from gatelift_kube.objects.core import Lease, Pod
from gatelift_kube.process.clock import wall
from gatelift_kube.values import timestamps
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import LEASE, POD, WORKLOAD, ObjectKey, ObjectRef

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

KUEUE_NAMESPACE = "kueue-system"
"""Where Kueue's manifests install it, and no tenant writes. Elsewhere it is asked what the holder of a Lease may do."""

KUEUE_ACCOUNT = "kueue-controller-manager"
"""The ServiceAccount of Kueue's manifests."""

_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class StartRefusedError(Exception):
    """The manager may not run here; the text says why and the way out."""


class _Said(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct):
    status: _Said = msgspec.field(default_factory=_Said)


async def refuse_beside_kueue(client: Client, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
    """Raise StartRefusedError when a Kueue controller runs in this cluster: two would admit the same workloads.

    It is looked for in all namespaces, and runs where its Lease was renewed just now, or is while we look, and where
    whoever holds it may write what Kueue writes: a Lease of that name is any tenant's to make, that right is not.
    We are elected by one of another name. Kueue's webhooks without a controller are warned of: it was scaled to zero.
    """
    found = await _kueue_leases(client)
    running = {key: lease for key, lease in found.items() if _renewed_just_now(lease)}
    if len(running) < len(found):
        await pause(MOVES_SECONDS)
        later = await _kueue_leases(client)
        running |= {key: lease for key, lease in later.items() if key not in found or lease.spec != found[key].spec}
    for key, lease in running.items():
        holder = plain(lease.spec.holder_identity or "")
        if await _may_admit(client, key.namespace, lease):
            raise StartRefusedError(
                f"a Kueue controller runs in this cluster (Lease {key}, held by {holder}): scale it "
                f"to 0 first: kubectl -n {key.namespace} scale deployment kueue-controller-manager --replicas=0"
            )
        structlog.get_logger("gatelift").warning(
            "a Lease of Kueue's name is kept by somebody who may not do a Kueue's work: nothing waits for it",
            lease=str(key),
            holder=holder,
            way_out=f"kubectl -n {key.namespace} delete lease {key.name}",
        )
    await _warn_of_webhooks(client)


async def _may_admit(client: Client, namespace: str, lease: Lease) -> bool:
    """Say whether the controller that holds a Lease may write the status of Workloads anywhere; if unknown, it may."""
    if namespace == KUEUE_NAMESPACE:
        return True
    wanted = {"group": WORKLOAD.group, "resource": WORKLOAD.plural, "subresource": "status", "verb": "update"}
    account = f"system:serviceaccount:{namespace}:{await _account_of(client, namespace, lease)}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": account, "groups": groups, "resourceAttributes": wanted},
    }
    try:
        answer = await client.raw("POST", _ACCESS_REVIEWS, body=msgspec.json.encode(review))
    except ForbiddenError as error:
        structlog.get_logger("gatelift").warning("cannot ask what a Kueue controller may do", problem=str(error))
        return True
    said = msgspec.json.decode(answer, type=_Review).status
    return said.allowed and not said.denied


async def _account_of(client: Client, namespace: str, lease: Lease) -> str:
    """Return the ServiceAccount of the pod that holds a Lease; that of Kueue's manifests where there is no such pod.

    Controllers of Kueue's kind hold a Lease as `<name of the pod>_<a number of their own>`.
    """
    name = (lease.spec.holder_identity or "").partition("_")[0]
    try:
        pod = (await client.get(ObjectRef(POD, ObjectKey(namespace, name)))).object if name else None
    except KubeError:
        return KUEUE_ACCOUNT  # none of that name, no name of a pod at all, or one that nobody can read
    return (pod.spec.service_account_name if isinstance(pod, Pod) else "") or KUEUE_ACCOUNT


async def _kueue_leases(client: Client) -> dict[ObjectKey, Lease]:
    """Return the Leases of Kueue controllers that somebody holds."""
    found: dict[ObjectKey, Lease] = {}
    try:
        async for page in client.list(LEASE, Selection(fields=f"metadata.name={KUEUE_LEASE}")):
            for served in page.items:
                lease = served.object
                key = ObjectKey(lease.metadata.namespace, lease.metadata.name)
                if isinstance(lease, Lease) and key.name == KUEUE_LEASE and lease.spec.holder_identity:
                    found[key] = lease
    except ForbiddenError as error:
        structlog.get_logger("gatelift").warning("cannot look for a Kueue controller", problem=str(error))
    return found


def _renewed_just_now(lease: Lease) -> bool:
    renewed = lease.spec.renew_time  # a time to come is no renewal: such a Lease is watched
    return renewed is not None and abs(wall() - timestamps.to_seconds(renewed)) < KUEUE_LEASE_SECONDS


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
