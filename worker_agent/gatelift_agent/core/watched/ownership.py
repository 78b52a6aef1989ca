"""Whose an object is. Nothing is touched unless its origin, its workload UID and its own UID match.

`local` objects are the user's own: they carry our labels only from the lift on.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import Registry
from gatelift_kinds.shared import markers, placed_mark
from gatelift_kinds.shared.placed_mark import Mark
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Pod, PodSpec
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import Resource
from gatelift_wire.values import limits
from gatelift_wire.values.keys import (
    FINALIZER_REPORT,
    LABEL_EPOCH,
    LABEL_MADE_HERE,
    LABEL_ORIGIN,
    LABEL_WORKLOAD_UID,
    PlacementKey,
    is_uid,
)

ANNOTATION_POD_SET = "gatelift.dev/pod-set"
ANNOTATION_OBJECTS = "gatelift.dev/objects"
"""How many objects the placement has: without it a restart could take a part for the whole."""


ANNOTATION_USER_UID = "gatelift.dev/user-uid"
"""UID of the user's object that a worker's object stands for: another one may have its name by now."""

ANNOTATION_JOINED = "gatelift.dev/joined"
"""On what came to a placement that was live: it had no slot from the commit on."""

ANNOTATION_USER_GATES = "gatelift.dev/user-gates"
"""The gates of their user that an object came with, where its kind gathers: what else holds it was added here."""

ANNOTATION_KIND = "gatelift.dev/kind"
"""Name of the kind of a placement whose objects come and go: objects of one resource are of several kinds."""

ANNOTATION_PLACED_AS = "gatelift.dev/placed-as"
"""Whose an object at a worker is, said once more: origin, workload UID and epoch with `/` between them.

Labels are what people edit. After a restart this tells what was placed, and the labels are put back."""


_PLACED_AS_PARTS = 3


class Ownership(enum.Enum):
    """Whose an object of the wanted name is."""

    OURS = "this placement's"
    LEFTOVER = "ours, of another attempt or workload"
    FOREIGN = "somebody else's"


def key_of(meta: ObjectMeta) -> PlacementKey | None:
    """Return the placement that an object's labels name, None when they name none."""
    return _key(meta.labels.get(LABEL_WORKLOAD_UID, ""), meta.labels.get(LABEL_EPOCH, ""))


def placed_as(kinds: Registry, obj: KubeObject) -> tuple[str, PlacementKey] | None:
    """Return origin and placement of a worker's object: by its mark, our annotation, or the labels of one without it.

    Only the mark is nobody's to change; one that says two things says nothing.
    """
    own = _own_marks(obj, () if isinstance(obj, Pod) else kinds.specs(obj))
    if len(own) == 1:
        return own.pop()
    meta = obj.metadata
    parts = meta.annotations.get(ANNOTATION_PLACED_AS, "").split("/")
    marked = _key(parts[1], parts[2]) if len(parts) == _PLACED_AS_PARTS else None
    origin, key = (parts[0], marked) if marked is not None else (meta.labels.get(LABEL_ORIGIN, ""), key_of(meta))
    return (origin, key) if origin and key is not None else None


def every_name(kinds: Registry, obj: KubeObject) -> set[tuple[str, PlacementKey]]:
    """Return all origins and placements that an object names, by whatever of it: it may be of any of them."""
    found = {(mark.origin, mark.key) for mark in marks(kinds, obj)} | _own_marks(obj, kinds.specs(obj))
    labelled, placed = key_of(obj.metadata), placed_as(kinds, obj)
    if labelled is not None:
        found.add((obj.metadata.labels.get(LABEL_ORIGIN, ""), labelled))
    return found | {placed} if placed is not None else found


def _own_marks(obj: KubeObject, specs: Iterable[PodSpec]) -> set[tuple[str, PlacementKey]]:
    """Return the runs for which an object says by its marks that it was placed, or let go, itself."""
    meta = obj.metadata
    if isinstance(obj, Pod):
        every = placed_mark.read(obj.spec.tolerations)
        return {(mark.origin, mark.key) for mark in every if placed_mark.is_of_pod(mark, meta)}
    every = _read(specs)
    return {(mark.origin, mark.key) for mark in every if mark.job == meta.name and mark.job_uid in {"", meta.uid}}


def _read(specs: Iterable[PodSpec]) -> tuple[Mark, ...]:
    return tuple(dict.fromkeys(mark for spec in specs for mark in placed_mark.read(spec.tolerations)))


def placed_as_text(origin: str, key: PlacementKey) -> str:
    """Return what `placed_as` reads."""
    return f"{origin}/{key.uid}/{key.epoch}"


def hides(kinds: Registry, obj: KubeObject) -> bool:
    """Say whether an object is ours by its marks and not shown by our watches, since its label is gone.

    Also by the mark of a pod that is an object of its own: all else may have been taken off it (HD-423).
    """
    meta = obj.metadata
    if LABEL_ORIGIN in meta.labels:
        return False
    by_marks = bool(marks(kinds, obj)) or (isinstance(obj, Pod) and bool(_own_marks(obj, ())))
    return keeps_report(meta) or ANNOTATION_PLACED_AS in meta.annotations or by_marks


def may_hide(kinds: Registry, obj: KubeObject) -> bool:
    """Say whether an object may be one that `hides`: whoever takes it finds out, and sets aside what raises."""
    try:
        return hides(kinds, obj)
    except Exception:  # noqa: BLE001 (containment: one object keeps no other from being found)
        return True


def hides_at_home(obj: KubeObject) -> bool:
    """Say whether a pod of a queue is shown by no watch of `local`: all labels were taken off it, its finalizer not.

    Only where it is the user's own object: a worker's own Kueue gives its pods the same finalizer.
    """
    meta = obj.metadata
    shown = LABEL_ORIGIN in meta.labels or meta.labels.get(markers.MANAGED) == markers.MANAGED_VALUE
    return isinstance(obj, Pod) and not shown and markers.MANAGED in meta.finalizers


def marks(kinds: Registry, obj: KubeObject) -> tuple[Mark, ...]:
    """Return for which runs a pod was made by another object, or that one makes pods, by what nobody can take off them.

    None for a pod that is an object of its own.
    """
    if not isinstance(obj, Pod):
        return _read(kinds.specs(obj))
    if not obj.spec.tolerations or _is_placed(obj.metadata):
        return ()
    found = placed_mark.read(obj.spec.tolerations)
    return () if any(placed_mark.is_of_pod(mark, obj.metadata) for mark in found) else found


def let_go_as(kind: Kind[Any], obj: KubeObject) -> tuple[str, PlacementKey] | None:
    """Return origin and placement for which a user's own object was let go at `local`, None where nothing says so.

    By its mark, which nobody can take off or change while it runs, and labels anybody. By its labels where it is held
    back, where it has no mark (there was no room for one), and where somebody has put others beside it.
    """
    specs = () if isinstance(obj, Pod) else kind.specs(obj)
    meta, own = obj.metadata, _own_marks(obj, specs) if kind.let_go_here(obj) else set()
    if len(own) == 1:
        return own.pop()
    key = key_of(meta)
    return (meta.labels.get(LABEL_ORIGIN, ""), key) if key is not None else None


def may_be_for(kind: Kind[Any], obj: KubeObject, key: PlacementKey) -> bool:
    """Say whether nothing says that a user's own object was let go at `local` for another placement than this one."""
    found = let_go_as(kind, obj)
    return found is None or found[1] == key


def controlled_by(meta: ObjectMeta, uid: str) -> bool:
    """Say whether the object of this UID controls it."""
    return any(each.controller and each.uid == uid for each in meta.owner_references)


def _is_placed(meta: ObjectMeta) -> bool:
    """Say whether it is a placement's own object by what policies keep for us: no Job of ours made it."""
    return ANNOTATION_PLACED_AS in meta.annotations or meta.labels.get(markers.MANAGED) == markers.MANAGED_VALUE


def owner(kinds: Registry, obj: KubeObject, key: PlacementKey, origin: str) -> Ownership:
    """Return whose an object is that stands where the placement wants one."""
    found = placed_as(kinds, obj)
    if found is None or found[0] != origin:
        return Ownership.FOREIGN
    return Ownership.OURS if found[1] == key else Ownership.LEFTOVER


def stands_for(meta: ObjectMeta, user_uid: str) -> bool:
    """Say whether an object may stand for the user's object of this UID ("": any); one that says nothing does not."""
    return not user_uid or meta.annotations.get(ANNOTATION_USER_UID, "") == user_uid


def user_uid(meta: ObjectMeta) -> str:
    """Return the UID of the user's object that it stands for, "" where it says none."""
    said = meta.annotations.get(ANNOTATION_USER_UID, "")
    return said if len(said) <= limits.UID_MAX else ""


def stands_alone(meta: ObjectMeta) -> bool:
    """Say whether a pod can only be an object of its own, whoever made it: queued by itself, or placed by us."""
    return meta.labels.get(markers.MANAGED) == markers.MANAGED_VALUE or keeps_report(meta)


def keeps_report(meta: ObjectMeta) -> bool:
    """Say whether our finalizer is on it: its final state is not acknowledged yet."""
    return FINALIZER_REPORT in meta.finalizers


def made_here(meta: ObjectMeta) -> str:
    """Return the group that a pod names which a driver made at this worker, "" for every other one.

    One that stands for a user's object is none, whatever else it says.
    """
    group = meta.labels.get(LABEL_MADE_HERE, "")
    return group if not user_uid(meta) and group == meta.labels.get(markers.POD_GROUP_NAME) else ""


def waits_here(obj: KubeObject) -> str:
    """Return the group that a pod waits for which a driver has made here: at our gate, and nobody's yet."""
    if not isinstance(obj, Pod) or LABEL_ORIGIN in obj.metadata.labels or obj.spec.node_name:
        return ""
    gated = markers.ADMISSION_GATE in [gate.name for gate in obj.spec.scheduling_gates]
    return made_here(obj.metadata) if gated and ANNOTATION_PLACED_AS not in obj.metadata.annotations else ""


def is_taken_in(obj: KubeObject, key: PlacementKey, origin: str) -> bool:
    """Say whether a pod that a driver made here bears what a start knows it by; before that it is not let go."""
    return obj.metadata.annotations.get(ANNOTATION_PLACED_AS) == placed_as_text(origin, key)


def kind_of(kinds: Registry, resource: Resource, obj: KubeObject) -> Kind[Any] | None:
    """Return the kind of the placement that an object is of: as it says, or as the object itself has it."""
    said = kinds.named(obj.metadata.annotations.get(ANNOTATION_KIND, ""))
    if said is not None and said.gathers and said.resource == resource:
        return said
    return kinds.of(resource, obj)


def has_joined(meta: ObjectMeta) -> bool:
    """Say whether an object came to a placement that was live."""
    return ANNOTATION_JOINED in meta.annotations


def objects_wanted(meta: ObjectMeta) -> int:
    """Return how many objects the placement of this object has, 1 when it does not say."""
    return min(max(whole(meta.annotations.get(ANNOTATION_OBJECTS, "1")) or 1, 1), limits.OBJECTS_MAX)


def pod_set(meta: ObjectMeta) -> str:
    """Return the pod set of an object: as our annotation says, or the label that its pods carry."""
    said = meta.annotations.get(ANNOTATION_POD_SET) or meta.labels.get(markers.POD_SET, "")
    return said if said and len(said) <= markers.LABEL_VALUE_LENGTH_MAX else markers.DEFAULT_POD_SET


def _key(uid: str, epoch: str) -> PlacementKey | None:
    number = whole(epoch)
    return PlacementKey(uid, number) if is_uid(uid) and number else None
