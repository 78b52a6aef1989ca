"""Reads the owners of a pod for the walk of `ancestry`, keeps answers briefly, tells an owner of its pod."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from gatelift.webhooks.ancestry import NOBODYS, READ_SECONDS_MAX, REASONS, Ancestry, KnownKinds, OwnerStanding, Walk
from gatelift.webhooks.review import Question, controller_of
from gatelift_kinds.shared import unserved
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ForbiddenError, ImpossibleNameError, KubeError, NotFoundError
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.objects.meta import OwnerReference
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.values.resources import ObjectKey, ObjectRef

KEPT_SECONDS = 60.0
KEPT_MAX = 4096
READS_MAX = 8
"""At once for those who are vouched for, and again for all others, who so keep none of these waiting."""


class Ancestors:
    """Answers whose business a pod is. Without external frameworks nobody's but its own, and nothing is read."""

    def __init__(
        self,
        client: Client,
        kinds: KnownKinds | None = None,
        makers: frozenset[str] = frozenset(),
        *,
        record: Callable[[EmitEvent], None] = lambda _: None,
        clock: Clock = monotonic,
    ) -> None:
        """`makers`: who is known to name the true owner of a pod. `record` takes events."""
        self._client = client
        self._kinds = kinds or KnownKinds()
        self._makers = makers
        self._record = record
        self._clock = clock
        self._reads = {vouched: asyncio.Semaphore(READS_MAX) for vouched in (True, False)}
        self._kept: OrderedDict[tuple[str, bool], tuple[float, Ancestry]] = OrderedDict()

    def vouches(self, question: Question) -> bool:
        """Return whether who asks is known to name the true owner of a pod: only then the answer decides anything."""
        return bool(self._kinds.external) and question.username in self._makers

    async def of(self, question: Question) -> Ancestry:
        """Return where the walk from a new pod ends. Never raises: what is not read is said in the answer.

        An answer is kept, and a kept one given, only for who is vouched for and for the cluster's own controllers: what
        anybody else writes into a reference may be made true, or untrue, at any moment.
        """
        first = _controller(question)
        if not self._kinds.external or first is None:
            return NOBODYS
        vouched = self.vouches(question)
        if not vouched and not question.username.startswith(unserved.CLUSTERS_OWN):
            return await self._walk(question.namespace, first, vouched=vouched)
        kept = self._kept.get((first.uid, vouched))
        if kept is not None and self._clock() - kept[0] < KEPT_SECONDS:
            return kept[1]
        found = await self._walk(question.namespace, first, vouched=vouched)
        if found.standing is not OwnerStanding.UNREAD:
            self._keep((first.uid, vouched), found)
        return found

    def tell(self, question: Question, found: Ancestry) -> None:
        """Say at the pod's owner why its pod is queued by itself; nothing of a dry run, nor of what a user claims.

        A user reads the warning of his request. A controller reads none, and names its own object.
        """
        first = _controller(question)
        reason = REASONS.get(found.standing)
        by_controller = self.vouches(question) or question.username.startswith(unserved.CLUSTERS_OWN)
        if first is None or reason is None or not by_controller or question.dry_run:
            return
        resource = self._kinds.resource(first)
        if resource is not None:
            ref = ObjectRef(resource, ObjectKey(question.namespace, first.name))
            self._record(EmitEvent(ref=ref, uid=first.uid, warning=True, reason=reason, message=found.text))

    async def _walk(self, namespace: str, first: OwnerReference, *, vouched: bool) -> Ancestry:
        walk = Walk(self._kinds, first, vouched=vouched)
        try:
            async with asyncio.timeout(READ_SECONDS_MAX):
                while walk.asks is not None:
                    async with self._reads[vouched]:
                        await self._read(walk, ObjectRef(walk.asks, ObjectKey(namespace, walk.name)))
        except TimeoutError:
            walk.unread(f"was not read within {READ_SECONDS_MAX:g} s")
        return walk.end

    async def _read(self, walk: Walk, ref: ObjectRef) -> None:
        try:
            served = await self._client.get(ref, seconds=READ_SECONDS_MAX)
        except (NotFoundError, ImpossibleNameError):
            walk.unread("is not there")
        except ForbiddenError:
            walk.unread("may not be read, for want of the rights in deploy/components/owners")
        except KubeError:
            walk.unread("cannot be read now")
        else:
            walk.read(served.object.metadata)

    def _keep(self, key: tuple[str, bool], found: Ancestry) -> None:
        self._kept[key] = (self._clock(), found)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)


def _controller(question: Question) -> OwnerReference | None:
    found = controller_of(question.new)
    if found is None:
        return None
    api_version, kind, name, uid = found
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)
