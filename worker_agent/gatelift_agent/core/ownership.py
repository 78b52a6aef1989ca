"""Whose an object is. Nothing is touched unless its origin, its workload UID and its own UID match (design 3, rule 6).

`local` objects are the user's own: they carry our labels only from the lift on.
"""

from __future__ import annotations

import enum

from gatelift_kinds import markers
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_wire import limits
from gatelift_wire.keys import FINALIZER_REPORT, LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID, PlacementKey

ANNOTATION_POD_SET = "gatelift.dev/pod-set"
ANNOTATION_OBJECTS = "gatelift.dev/objects"
"""How many objects the placement has: without it a restart could take a part for the whole."""


LABEL_JOB_NAME = "batch.kubernetes.io/job-name"
"""Put on the pods of a Job by its controller; it stays when the Job is deleted and leaves them as orphans."""


_DIGITS_MAX = 18
"""A number in a label or annotation with more digits is nobody's: the wire carries 63 bits."""


class Owner(enum.Enum):
    """Whose an object of the wanted name is."""

    OURS = "this placement's"
    LEFTOVER = "ours, of another attempt or workload"
    FOREIGN = "somebody else's"


def key_of(meta: ObjectMeta) -> PlacementKey | None:
    """Return the placement that an object's labels name, None when they name none."""
    uid, epoch = meta.labels.get(LABEL_WORKLOAD_UID, ""), meta.labels.get(LABEL_EPOCH, "")
    if not uid or len(uid) > limits.UID_MAX or len(epoch) > _DIGITS_MAX or not epoch.isascii() or not epoch.isdigit():
        return None
    return PlacementKey(uid, int(epoch)) if int(epoch) >= 1 else None


def owner(meta: ObjectMeta, key: PlacementKey, origin: str) -> Owner:
    """Return whose an object is that stands where the placement wants one."""
    if meta.labels.get(LABEL_ORIGIN) != origin or not origin:
        return Owner.FOREIGN
    found = key_of(meta)
    if found is None:
        return Owner.FOREIGN
    return Owner.OURS if found == key else Owner.LEFTOVER


def is_child(meta: ObjectMeta) -> bool:
    """Say whether a controller made the object (a Job's pod): it is counted, and ended only once its maker is gone.

    A Job that is deleted with the policy Orphan leaves pods without an owner; the name of the Job stays on them.
    """
    if LABEL_JOB_NAME in meta.labels:
        return True
    owners = meta.owner_references
    return bool(owners) and any(reference.controller for reference in owners)


def keeps_report(meta: ObjectMeta) -> bool:
    """Say whether our finalizer is on it: its final state is not acknowledged yet."""
    return FINALIZER_REPORT in meta.finalizers


def objects_wanted(meta: ObjectMeta) -> int:
    """Return how many objects the placement of this object has, 1 when it does not say."""
    text = meta.annotations.get(ANNOTATION_OBJECTS, "1")
    if len(text) > _DIGITS_MAX or not text.isascii() or not text.isdigit():
        return 1
    return min(max(int(text), 1), limits.OBJECTS_MAX)


def pod_set(meta: ObjectMeta) -> str:
    """Return the pod set of an object: as our annotation says, or the label that its pods carry."""
    return meta.annotations.get(ANNOTATION_POD_SET) or meta.labels.get(markers.POD_SET, "") or markers.DEFAULT_POD_SET
