"""Whether an object's Workload holds quota, and elsewhere: then its queue's name stays, and what that cluster has.

Reads the Workload, and keeps nothing.

Asked only when a queue's name is changed or taken off, or the size of a group, or what a run that begins takes with it;
that is rare. An answer
can be old as soon as it is given: what is admitted at that very moment and leaves its queue the manager stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.webhooks.owners import READ_SECONDS_MAX
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import markers, rules
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ImpossibleNameError, KubeError, NotFoundError, UndecodableError
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef


class ReservationUnknownError(Exception):
    """The Workload cannot be read; the text is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The Workload that holds quota for an object, and the other cluster whose it is to run, "" where there is none."""

    workload: str = ""
    cluster: str = ""


NONE = Reservation()


class Reservations:
    """Answers for the Workloads of queued objects."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def kept_by(self, kind: Kind[Any], namespace: str, old: dict[str, Any], new: dict[str, Any]) -> Reservation:
        """Return the Workload that holds quota while what it was given for is changed. ReservationUnknownError."""
        before, after = rules.marks(old).get(markers.QUEUE_NAME, ""), rules.marks(new).get(markers.QUEUE_NAME, "")
        depends = before != after or kind.held_changes(old, new) or kind.depends_on_quota(old, new)
        if not before or not depends:
            return NONE
        try:
            name = kind.workload_name(read_object(kind.resource, msgspec.json.encode(old)))
        except UndecodableError as error:
            raise ReservationUnknownError(f"it cannot be told which Workload is its own ({error})") from error
        try:
            served = await self._client.get(ObjectRef(WORKLOAD, ObjectKey(namespace, name)), seconds=READ_SECONDS_MAX)
        except (NotFoundError, ImpossibleNameError):
            return NONE
        except KubeError as error:
            raise ReservationUnknownError(f"its Workload {name} cannot be read now ({error}): try again") from error
        return _reservation(name, served.object)


def _reservation(name: str, workload: object) -> Reservation:
    if not isinstance(workload, Workload):
        return NONE
    conditions = workload.status.conditions
    if not is_true(conditions, "QuotaReserved") or is_true(conditions, "Finished"):
        return NONE
    cluster = workload.status.cluster_name or ""
    return Reservation(workload=name, cluster="" if cluster == LOCAL_CLUSTER else cluster)
