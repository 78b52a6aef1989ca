"""Where users' objects are: what is made again under a name takes the place of what was there. Pure."""

from __future__ import annotations

from typing import NamedTuple

from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.objects.kueue import Workload


class UserObject(NamedTuple):
    """The place of a user's object: what is deleted and made again under the same name stands in the same place."""

    kind: str
    namespace: str
    name: str


def made_for(workload: Workload) -> tuple[UserObject, ...]:
    """Return the places of the objects whose a Workload is."""
    namespace = workload.metadata.namespace
    return tuple(UserObject(one.kind, namespace, one.name) for one in owners_of(workload))
