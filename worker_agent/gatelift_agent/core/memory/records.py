"""A placement's final state as it is kept in a ConfigMap while the manager cannot be told. Values and their JSON."""

from __future__ import annotations

import msgspec

from gatelift_agent.core.placement.placements import EndingKind, Placement, PlacementEnding, PlacementState, Tracked
from gatelift_kinds.registry import Registry
from gatelift_kube.objects.core import raw_status
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.rules import measure
from gatelift_wire.values.told import FailedContainer
from gatelift_wire.values.violations import WireViolation

STATUS_BYTES_MAX = 16 * 1024
"""A pod's status has a few kilobytes; a longer one is left out of the record, its outcome is not."""


OBJECT_BYTES = 512
"""About what an object takes besides its status."""
OBJECTS_BYTES_MAX = 256 * 1024
"""Of one record, by what its objects say: those beyond are left out, and what succeeded of several has its own."""


class _RecordedObject(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str
    status: str = ""
    pod_set: str = ""
    user: str = ""


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    uid: str
    epoch: int
    kind: str
    namespace: str
    name: str
    ending: str
    reason: str = ""
    message: str = ""
    succeeded: bool = False
    refusal: str = Refusal.INVALID.value
    failed: FailedContainer | None = None
    objects: tuple[_RecordedObject, ...] = ()


_DECODER = msgspec.json.Decoder(_Record)


def data_key(key: PlacementKey) -> str:
    """Return the key of a record inside its ConfigMap."""
    return f"{key.uid}.{key.epoch}"


def encode(placement: Placement) -> str:
    """Return the final state of a placement that has ended, as JSON."""
    ending = placement.ending or PlacementEnding(kind=EndingKind.STOPPED)
    return msgspec.json.encode(
        _Record(
            uid=placement.key.uid,
            epoch=placement.key.epoch,
            kind=placement.kind,
            namespace=placement.namespace,
            name=placement.name,
            ending=ending.kind.value,
            reason=ending.reason,
            message=ending.message,
            succeeded=ending.succeeded,
            refusal=ending.refusal.value,
            failed=placement.failed,
            objects=_objects(placement),
        )
    ).decode()


def decode(kinds: Registry, text: str) -> Placement | None:
    """Return the placement of a record, ended and with its objects' last status; None when it cannot be read."""
    try:
        record = _DECODER.decode(text)
        ending = PlacementEnding(
            kind=EndingKind(record.ending),
            reason=record.reason,
            message=record.message,
            succeeded=record.succeeded,
            refusal=Refusal(record.refusal),
        )
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    kind = kinds.named(record.kind)
    if kind is None:
        return None
    placement = Placement(
        key=PlacementKey(record.uid, record.epoch),
        kind=record.kind,
        namespace=record.namespace,
        name=record.name,
        state=PlacementState.STOPPED,
        ending=ending,
        failed=_tellable(record.failed),
        objects_wanted=len(record.objects),
    )
    for one in record.objects:
        placement.objects[one.name] = Tracked(
            ref=ObjectRef(kind.resource, ObjectKey(record.namespace, one.name)),
            uid=one.uid,
            user_uid=one.user,
            pod_set=one.pod_set,
            raw=b'{"status":' + (one.status.encode() or b"{}") + b"}",
        )
    return placement


def _tellable(failed: FailedContainer | None) -> FailedContainer | None:
    """Return what a record says of a container, None where somebody has made of it what the wire does not take."""
    if failed is None:
        return None
    try:
        measure(failed)
    except WireViolation:
        return None
    return failed


def _objects(placement: Placement) -> tuple[_RecordedObject, ...]:
    found: list[_RecordedObject] = []
    left = OBJECTS_BYTES_MAX
    for tracked in placement.objects.values():
        one = _object(tracked)
        left -= len(one.status) + OBJECT_BYTES
        if tracked.uid and left > 0:
            found.append(one)
    return tuple(found)


def _object(tracked: Tracked) -> _RecordedObject:
    status = raw_status(tracked.raw) if tracked.raw else b""
    text = status.decode() if len(status) <= STATUS_BYTES_MAX else ""
    return _RecordedObject(
        name=tracked.name, uid=tracked.uid, status=text, pod_set=tracked.pod_set, user=tracked.user_uid
    )
