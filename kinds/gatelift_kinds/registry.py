"""All kinds, by name and by resource. A new kind is one file and one line here. Pure."""

from __future__ import annotations

from typing import Any

from gatelift_kinds.bare.kind import BareKind
from gatelift_kinds.job.kind import JobKind
from gatelift_kinds.kind import Kind
from gatelift_kinds.pod.kind import PodKind
from gatelift_kube.values.resources import Resource

POD_KIND = PodKind()
JOB_KIND = JobKind()
BARE_KIND = BareKind()

_ALL: tuple[Kind[Any], ...] = (POD_KIND, JOB_KIND, BARE_KIND)
KINDS: dict[str, Kind[Any]] = {kind.name: kind for kind in _ALL}
"""By the name that the wire carries."""
BY_RESOURCE: dict[Resource, Kind[Any]] = {kind.resource: kind for kind in _ALL}
TRAVELLING: tuple[Kind[Any], ...] = tuple(kind for kind in _ALL if kind.travels)
"""Kinds of which objects are made at workers."""


def kind_named(name: str) -> Kind[Any] | None:
    """Return the kind, None if it is not served."""
    return KINDS.get(name)


def kind_of(resource: Resource) -> Kind[Any] | None:
    """Return the kind of a resource, None if it is not served."""
    return BY_RESOURCE.get(resource)
