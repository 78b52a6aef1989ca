"""For which object a Workload was made: written on the Workload itself. Pure.

An owner reference is not enough: `kubectl delete --cascade=orphan` takes it off while what it was made for still runs,
and whoever may patch Workloads can do the same.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import ObjectMeta, OwnerReference
from gatelift_kube.values.resources import Resource
from gatelift_kube.values.unreadable import UNREADABLE

ANNOTATION_OWNER = "gatelift.dev/owner"
OWNER_CHARS_MAX = 1024
"""Longest annotation that is read: a name has 253 characters at most, the rest is short."""
OWNERS_MAX = 4_104
"""Most owner references of a Workload that says nothing else of whose it is: a group has 4,096 pods at most, and others
may add a few. With more it is nobody's, and left alone: each of its versions would cost as many look-ups."""


def written(resource: Resource, meta: ObjectMeta) -> str:
    """Return what the annotation says of an object: apiVersion, kind, name and uid, as JSON."""
    return said_of(OwnerReference(resource.api_version, resource.kind, meta.name, meta.uid))


def said_of(owner: OwnerReference) -> str:
    """Return what the annotation says of an object that a Workload names as its owner."""
    named = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return msgspec.json.encode(named).decode()


def owners_of(workload: Workload) -> tuple[OwnerReference, ...]:
    """Return whose a Workload is: the object that it was made for, else those that it names as its owners.

    Nobody's where it names more than are read.
    """
    said = workload.metadata.annotations.get(ANNOTATION_OWNER, "")
    found = _read(said) if said else None
    if found is not None:
        return (found,)
    named = workload.metadata.owner_references
    return named if len(named) <= OWNERS_MAX else ()


def names_too_many(workload: Workload) -> bool:
    """Say whether a Workload names more owners than are read, and does not say for which of them it was made."""
    return len(workload.metadata.owner_references) > OWNERS_MAX and not says_owner(workload)


def says_owner(workload: Workload) -> bool:
    """Say whether a Workload names the object that it was made for, not only its owners."""
    said = workload.metadata.annotations.get(ANNOTATION_OWNER, "")
    return bool(said) and _read(said) is not None


def is_orphan(workload: Workload) -> bool:
    """Say whether a Workload no longer names what it was made for: nobody collects it when that goes."""
    named = {reference.uid for reference in workload.metadata.owner_references}
    return any(owner.uid not in named for owner in owners_of(workload))


def says_several(workload: Workload) -> bool:
    """Say whether a Workload was made for the work of several objects that has its name.

    Only we write that, and a policy keeps it: so the marker of such a Workload may be missing.
    """
    said = workload.metadata.annotations.get(ANNOTATION_OWNER, "")
    owner = _read(said) if said else None
    return owner is not None and "/" in owner.uid and owner.name == workload.metadata.name


@lru_cache(maxsize=4096)
def _read(said: str) -> OwnerReference | None:
    if len(said) > OWNER_CHARS_MAX:
        return None
    try:
        found = msgspec.json.decode(said, type=OwnerReference)
    except UNREADABLE:
        return None
    return found if found.uid and found.name and found.kind else None
