"""Where users' objects are: what is made again under a name takes the place of what was there. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gatelift_kinds.registry import Registry
from gatelift_kinds.shared.made_for import OWNERS_MAX, owners_of
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import OwnerReference
from gatelift_kube.values.resources import Resource

Name = tuple[Resource, str, str, str]
"""What is said of an object, as the object itself and a Workload say it: resource, namespace, name and UID.

By the UID alone a Workload would be one of an object of another namespace, or one that it calls by another name. Of a
work of several objects it is the name of their Workload and the work's id."""

NAME_CHARS_MAX = 400
"""Longest name or UID by which an object is looked for: names have 253 characters at most, UIDs 36, works' ids less."""


class UserObject(NamedTuple):
    """The place of a user's object: what is deleted and made again under the same name stands in the same place."""

    kind: str
    namespace: str
    name: str


def names_of(kinds: Registry, workload: Workload) -> tuple[Name, ...]:
    """Return whose a Workload says it is, of what travels: an object of its own namespace, by all that names it."""
    return _names(kinds, workload.metadata.namespace, owners_of(workload))


def _names(kinds: Registry, namespace: str, owners: Iterable[OwnerReference]) -> tuple[Name, ...]:
    return tuple(
        [
            (resource, namespace, one.name, one.uid)
            for one in owners
            if (resource := kinds.resource_of(one)) is not None
            and len(one.name) <= NAME_CHARS_MAX
            and len(one.uid) <= NAME_CHARS_MAX
        ]
    )


def objects_of(kinds: Registry, workload: Workload, names: tuple[Name, ...]) -> tuple[Name, ...]:
    """Return the objects to look for where a Workload carries these names: of a larger work those that own it.

    A work is no object, so that nobody finds it says nothing of the objects that it has.
    """
    if len(names) != 1 or "/" not in names[0][3]:
        return names
    owners = workload.metadata.owner_references
    return _names(kinds, workload.metadata.namespace, owners if len(owners) <= OWNERS_MAX else ())


def made_for(workload: Workload) -> tuple[UserObject, ...]:
    """Return the places of the objects whose a Workload is."""
    namespace = workload.metadata.namespace
    return tuple(UserObject(one.kind, namespace, one.name) for one in owners_of(workload))


def members_of(workload: Workload) -> tuple[UserObject, ...]:
    """Return the places of the objects that a work of several has, as its Workload names them; else none."""
    if not is_of_members(workload):
        return ()
    return tuple(
        [UserObject(one.kind, workload.metadata.namespace, one.name) for one in workload.metadata.owner_references]
    )


def is_of_members(workload: Workload) -> bool:
    """Say whether a Workload is of a work of several, and names no more objects than one may have."""
    owners = owners_of(workload)
    return len(owners) == 1 and "/" in owners[0].uid and len(workload.metadata.owner_references) <= OWNERS_MAX
