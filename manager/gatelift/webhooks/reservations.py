"""Whether an object's Workload holds quota: then its queue's name stays. Reads the Workload, and keeps nothing.

Asked only when a queue's name is changed or taken off, or what a run that begins takes with it; that is rare. An answer
can be old as soon as it is given: what is admitted at that very moment and leaves its queue the manager stops.
"""

from __future__ import annotations

from typing import Any

from gatelift.webhooks.owners import READ_SECONDS_MAX
from gatelift_kinds import job_fixed, markers, rules
from gatelift_kinds.names import workload_name
from gatelift_kube.client import Client
from gatelift_kube.conditions import is_true
from gatelift_kube.errors import KubeError, NotFoundError
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.resources import WORKLOAD, ObjectKey, ObjectRef, Resource


class ReservationUnknownError(Exception):
    """The Workload cannot be read; the text is one line for the user."""


class Reservations:
    """Answers for the Workloads of queued objects."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def kept_by(self, resource: Resource, namespace: str, old: dict[str, Any], new: dict[str, Any]) -> str:
        """Return the Workload that holds quota while what it was given for is changed, "" if none.

        ReservationUnknownError.
        """
        before, after = rules.marks(old).get(markers.QUEUE_NAME, ""), rules.marks(new).get(markers.QUEUE_NAME, "")
        if not before or (before == after and not _is_late(old, new)):
            return ""
        meta = old.get("metadata") or {}
        name = workload_name(resource.kind, resource.group, str(meta.get("name", "")), str(meta.get("uid", "")))
        try:
            served = await self._client.get(ObjectRef(WORKLOAD, ObjectKey(namespace, name)), seconds=READ_SECONDS_MAX)
        except NotFoundError:
            return ""
        except KubeError as error:
            raise ReservationUnknownError(f"its Workload {name} cannot be read now ({error}): try again") from error
        return name if _holds_quota(served.object) else ""


def _is_late(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Say whether a Job that waits is changed in what its run takes with it, should that begin at this moment."""
    return bool((old.get("spec") or {}).get("suspend")) and bool(job_fixed.changes(old, new))


def _holds_quota(workload: object) -> bool:
    if not isinstance(workload, Workload):
        return False
    conditions = workload.status.conditions
    return is_true(conditions, "QuotaReserved") and not is_true(conditions, "Finished")
