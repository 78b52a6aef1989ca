"""The nodes of a stand-in kubelet: registered, kept alive by lease and status, lost and back on request. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from gatelift_kube.deciding.writes import Create, Patch, WriteError
from gatelift_kube.values.resources import LEASE, NODE, ObjectKey, ObjectRef
from gatelift_sandbox.kubelet import documents
from gatelift_sandbox.kubelet.documents import LEASE_NAMESPACE, NodeSettings

LEASE_RENEW_SECONDS = 10.0
"""A kubelet's default: a quarter of the lease."""
STATUS_SECONDS = 60.0
"""A kubelet repeats an unchanged status every five minutes; once a minute heals what a test has done to it."""
RETRY_SECONDS = 1.0


@dataclass(slots=True)
class _Thing:
    """The Node object or its Lease: whether it is there, and when it is to be written next."""

    ref: ObjectRef
    every: float
    due: float
    there: bool = False
    write_id: int | None = None


class StandInNode:
    """One node. While `lost` it writes nothing; the machine treats its pods accordingly."""

    def __init__(self, settings: NodeSettings, now: float) -> None:
        name = settings.name
        self.settings = settings
        self.lost = False
        self._node = _Thing(ObjectRef(NODE, ObjectKey("", name)), STATUS_SECONDS, now)
        self._lease = _Thing(ObjectRef(LEASE, ObjectKey(LEASE_NAMESPACE, name)), LEASE_RENEW_SECONDS, now)

    def set_lost(self, lost: bool, now: float) -> None:
        """Cut the node off, or bring it back; back, it reports at once."""
        if self.lost and not lost:
            self._node.due = self._lease.due = now
        self.lost = lost

    def next_moment(self) -> float:
        """Return when something is to be written, inf while lost or while everything due is under way."""
        if self.lost:
            return inf
        return min((thing.due for thing in (self._node, self._lease) if thing.write_id is None), default=inf)

    def writes(self, now: float, wall: float, new_id: Callable[[], int]) -> list[Create | Patch]:
        """Return what is due now."""
        found: list[Create | Patch] = []
        for thing in (self._node, self._lease):
            if self.lost or thing.write_id is not None or thing.due > now:
                continue
            thing.write_id = new_id()
            thing.due = now + thing.every
            found.append(self._write(thing, thing.write_id, wall))
        return found

    def done(self, write_id: int) -> None:
        """Note that a write happened."""
        for thing in (self._node, self._lease):
            if thing.write_id == write_id:
                thing.there, thing.write_id = True, None

    def failed(self, write_id: int, error: WriteError, now: float) -> None:
        """Note that a write failed, and whether the object is there."""
        for thing in (self._node, self._lease):
            if thing.write_id == write_id:
                thing.write_id = None
                thing.there = error is WriteError.ALREADY_EXISTS or (thing.there and error is not WriteError.NOT_FOUND)
                thing.due = now if error is WriteError.ALREADY_EXISTS else now + RETRY_SECONDS

    def _write(self, thing: _Thing, write_id: int, wall: float) -> Create | Patch:
        if thing is self._node:
            if thing.there:
                body = documents.node_status(self.settings, wall)
                return Patch(write_id=write_id, ref=thing.ref, body=body, subresource="status")
            return Create(write_id=write_id, ref=thing.ref, body=documents.node(self.settings, wall))
        if thing.there:
            return Patch(write_id=write_id, ref=thing.ref, body=documents.lease_renewal(wall))
        return Create(write_id=write_id, ref=thing.ref, body=documents.lease(self.settings.name, wall))
