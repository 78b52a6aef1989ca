"""Whether a manager leads, by its Lease: what objects say is as old as the last one that led.

Neighbours: `clusters`, `listing` and `explain` say it beside what they show. Read with the caller's own rights; who may
not read the Lease is told nothing.
"""

from __future__ import annotations

import datetime as dt

from gatelift.cli.render import age
from gatelift.cli.sentences import say
from gatelift.introduction import LEASE_NAME, NAMESPACE
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ApiError, NotFoundError
from gatelift_kube.objects.core import Lease
from gatelift_kube.values import timestamps
from gatelift_kube.values.resources import LEASE, ObjectKey, ObjectRef

LEADERS_LEASE = ObjectRef(LEASE, ObjectKey(NAMESPACE, LEASE_NAME))
OFF_SECONDS = 30.0
"""By how much the clocks of the caller and of the manager may differ: less is taken for no difference."""
FORBIDDEN = 403


async def absent(client: Client, now: dt.datetime) -> str:
    """Return the sentence that says that no manager leads, "" while one does or where that cannot be seen."""
    try:
        lease = (await client.get(LEADERS_LEASE)).object
    except NotFoundError:
        return _said("there is none")
    except ApiError as error:
        if error.status == FORBIDDEN:
            return ""
        raise
    return absent_by(lease, now) if isinstance(lease, Lease) else ""


def absent_by(lease: Lease, now: dt.datetime) -> str:
    """Return that sentence as the Lease has it."""
    spec = lease.spec
    if not spec.holder_identity:
        return _said(f"was given back {age(spec.renew_time, now)} ago" if spec.renew_time else "nobody holds it")
    try:
        until = timestamps.to_seconds(spec.renew_time or "") + (spec.lease_duration_seconds or 0)
    except ValueError:
        return _said("nobody has renewed it")
    if until + OFF_SECONDS >= now.timestamp():
        return ""
    return _said(f"{spec.holder_identity} renewed it {age(spec.renew_time, now)} ago")


async def tell_if_absent(client: Client) -> bool:
    """Say on standard error that no manager leads; True if that is so."""
    text = await absent(client, dt.datetime.now(dt.UTC))
    if text:
        say(f"gatelift: {text}", err=True)
    return bool(text)


def _said(why: str) -> str:
    return (
        f"no manager leads (Lease {LEADERS_LEASE.key}: {why}): nothing is decided, and what is shown is what the last "
        f"one wrote; see its log: kubectl -n {NAMESPACE} logs deployment/gatelift-manager"
    )
