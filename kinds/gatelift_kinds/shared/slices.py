"""Slices of elastic work (KEP-77): Workloads of one object in a row, by Kueue's names and marks and by ours. Pure.

Marks are what somebody wrote: whether they are to be believed is the business of whoever knows all of a chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gatelift_kinds.shared import markers, sizes
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER
from gatelift_kinds.shared.patches import Json, decode, encode
from gatelift_kinds.shared.sizes import Counts, Size
from gatelift_kinds.shared.workload_document import copied
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_EPOCH, ANNOTATION_SIZE

OPTED_IN = "true"
"""The one value of `kueue.x-k8s.io/elastic-job` with which an object is elastic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NextSlice:
    """What is new in a slice on top of another one: its name and size, and the epoch of its chain."""

    name: str
    size: Size
    epoch: int


def asks(annotations: Mapping[str, str]) -> bool:
    """Return whether an object or a Workload says that it is elastic."""
    return annotations.get(markers.ELASTIC_JOB) == OPTED_IN


def replaced_by(workload: Workload) -> ObjectKey | None:
    """Return which slice a Workload says that it takes the place of; None where it names none, or what is no key."""
    namespace, slash, name = workload.metadata.annotations.get(markers.SLICE_REPLACEMENT, "").partition("/")
    return ObjectKey(namespace, name) if slash and namespace and name and "/" not in name else None


def origin_of(workload: Workload) -> str:
    """Return the name of the first slice of its chain, as a Workload says it; "" where it is no slice."""
    return workload.metadata.annotations.get(markers.SLICE_NAME, "")


def chain_of(workload: Workload) -> str:
    """Return the UID of the first slice of its chain, as a Workload says it: its own, unless it names another one."""
    return workload.metadata.annotations.get(ANNOTATION_CHAIN) or workload.metadata.uid


def replaces(workload: Workload, current: Workload) -> bool:
    """Return whether a slice says that it takes the place of `current`: of its chain and namespace, of a later size.

    Sizes only go up, so no two say it of each other. One whose number cannot be read takes nobody's place.
    """
    same = workload.metadata.namespace == current.metadata.namespace and chain_of(workload) == chain_of(current)
    elastic = asks(workload.metadata.annotations) and asks(current.metadata.annotations)
    named = replaced_by(workload) == ObjectKey(current.metadata.namespace, current.metadata.name)
    if not (same and elastic and named):
        return False
    try:
        return sizes.number_of(workload.metadata.annotations) > sizes.number_of(current.metadata.annotations)
    except sizes.SizeError:
        return False


def first(document: bytes) -> bytes:
    """Return the complete Workload of an elastic object as the first slice of a chain: its own origin, of size 1."""
    made = decode(document)
    metadata = made["metadata"]
    marks = {markers.ELASTIC_JOB: OPTED_IN, markers.SLICE_NAME: metadata["name"]}
    return encode({**made, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **marks}}})


def following(current: Workload, raw: bytes, new: NextSlice) -> bytes:
    """Return the complete Workload of the slice that is to take the place of `current`; `raw`: its JSON as served.

    Made of that one and not of the object: it has the same templates and the same owner, queue and class, whatever a
    lift has added to the object since.
    """
    before = decode(raw)
    metadata: Json = before["metadata"]
    notes: dict[str, str] = metadata.get("annotations") or {}
    annotations = {
        **copied(notes),
        **{key: notes[key] for key in (ANNOTATION_OWNER,) if key in notes},
        markers.ELASTIC_JOB: OPTED_IN,
        markers.SLICE_NAME: origin_of(current) or current.metadata.name,
        markers.SLICE_REPLACEMENT: f"{current.metadata.namespace}/{current.metadata.name}",
        ANNOTATION_CHAIN: chain_of(current),
        ANNOTATION_SIZE: str(new.size.number),
        ANNOTATION_EPOCH: str(new.epoch),
    }
    made: Json = {
        "name": new.name,
        "namespace": current.metadata.namespace,
        "annotations": annotations,
        "ownerReferences": metadata.get("ownerReferences") or [],
        "finalizers": [markers.RESOURCE_IN_USE],
    }
    if metadata.get("labels"):
        made["labels"] = metadata["labels"]
    spec = {**before["spec"], "podSets": _counted(before["spec"]["podSets"], new.size.counts)}
    return encode({"apiVersion": WORKLOAD.api_version, "kind": WORKLOAD.kind, "metadata": made, "spec": spec})


def resized(workload: Workload, raw: bytes, size: Size) -> bytes:
    """Return the merge patch, for the version that was seen, that gives a Workload other counts with their number."""
    meta = {"uid": workload.metadata.uid, "resourceVersion": workload.metadata.resource_version}
    annotations = {ANNOTATION_SIZE: str(size.number)}
    pod_sets = _counted(decode(raw)["spec"]["podSets"], size.counts)
    return encode({"metadata": {**meta, "annotations": annotations}, "spec": {"podSets": pod_sets}})


def size_of(workload: Workload) -> Size:
    """Return the size that a Workload asks for. SizeError: its number cannot be read."""
    return Size(number=sizes.number_of(workload.metadata.annotations), counts=sizes.counts_of(workload))


def _counted(pod_sets: list[dict[str, Any]], counts: Counts) -> list[dict[str, Any]]:
    """Return pod sets of a Workload with other counts; those that are not named stay as they are."""
    return [{**one, "count": counts.get(one["name"], one["count"])} for one in pod_sets]
