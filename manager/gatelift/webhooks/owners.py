"""Whether a pod's owner is queued, and who makes its pods. Reads the owner, keeps the answer briefly.

That a pod names a queued Job as its controller says nothing by itself: anybody writes that of a new pod, also of a Job
that waits. The pods of a Job, which its charge counts, are those that the controller of Jobs makes (decision 63).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from gatelift.webhooks.review import controller_of
from gatelift_kinds.registry import SERVED
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ImpossibleNameError, KubeError, NotFoundError
from gatelift_kube.objects.meta import OwnerReference
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.values.resources import ObjectKey, ObjectRef

READ_SECONDS_MAX = 3.0
"""Shorter than the API server waits for us, so that the refusal has our text."""
KEPT_SECONDS = 60.0
"""A queue's name on a Job may be added while it is suspended only, that is before its controller makes pods."""
KEPT_MAX = 4096


class OwnerUnknownError(Exception):
    """The owner cannot be read; the text is one line for the user."""


class Owners:
    """Answers for controller owners of a kind that we know (batch/v1 Job); others are nobody we queue."""

    def __init__(self, client: Client, clock: Clock = monotonic) -> None:
        self._client = client
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, bool]] = OrderedDict()

    async def managed(self, namespace: str, document: dict[str, Any], *, by_controller: bool) -> bool:
        """Return whether the object's controller is queued. OwnerUnknownError: it is a Job that cannot be read.

        `by_controller`: the controller of Jobs asks, of which alone an answer is kept: before its first pod the Job may
        still be given a queue, or lose it.
        """
        owner = controller_of(document)
        if owner is None:
            return False
        api_version, kind, name, uid = owner
        resource = SERVED.resource_of(OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid))
        if resource not in SERVED.makers:
            return False
        ref = ObjectRef(resource, ObjectKey(namespace, name))
        if not by_controller:
            return await self._read(ref, uid)
        kept = self._kept.get(uid)
        if kept is not None and self._clock() - kept[0] < KEPT_SECONDS:
            return kept[1]
        answer = await self._read(ref, uid)
        self._kept[uid] = (self._clock(), answer)
        self._kept.move_to_end(uid)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return answer

    async def _read(self, ref: ObjectRef, uid: str) -> bool:
        owner = f"its owner, {ref.resource.kind} {ref.key.name},"
        try:
            served = await self._client.get(ref, seconds=READ_SECONDS_MAX)
        except (NotFoundError, ImpossibleNameError) as error:
            raise OwnerUnknownError(f"{owner} is not there: make the pod without that owner") from error
        except KubeError as error:
            raise OwnerUnknownError(f"{owner} cannot be read now ({error}): try again") from error
        found = served.object
        kind = SERVED.of(ref.resource, found) if found.metadata.uid == uid else None
        return kind is not None and isinstance(found, kind.struct) and bool(kind.queue_name(found))
