"""How one of several objects ended, as it is kept in a ConfigMap while the others go on. Values and their JSON.

Only of what succeeded: whatever else is gone counts as failed anyway. Neighbour: `keeper` has it, and what is kept
of a whole placement once that has ended.
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource
from gatelift_kube.values.unreadable import UNREADABLE
from gatelift_wire.values.keys import PlacementKey, is_uid

PREFIX = "member."
SUCCEEDED = b'{"status":{"phase":"Succeeded"}}'
"""What is told of one by its record: which containers it had nobody asks by then."""


class MemberEnd(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object that succeeded and is gone, and what has to be known to tell of it and of its placement."""

    workload: str
    epoch: int
    kind: str
    namespace: str
    group: str
    objects: int
    name: str
    user: str
    uid: str = ""
    pod_set: str = ""
    joined: bool = False

    @property
    def key(self) -> PlacementKey:
        """The placement's."""
        return PlacementKey(self.workload, self.epoch)


_DECODER = msgspec.json.Decoder(MemberEnd)


def data_key(key: PlacementKey, user: str) -> str:
    """Return the key of a record inside its ConfigMap, "" where none can be made: nobody can name that object."""
    return f"{PREFIX}{key.uid}.{key.epoch}.{user}" if is_uid(user) else ""


def encode(placement: Placement, tracked: Tracked) -> str:
    """Return the record of one object, as JSON."""
    return msgspec.json.encode(
        MemberEnd(
            workload=placement.key.uid,
            epoch=placement.key.epoch,
            kind=placement.kind,
            namespace=placement.namespace,
            group=placement.name,
            objects=placement.objects_wanted,
            name=tracked.name,
            user=tracked.user_uid,
            uid=tracked.uid,
            pod_set=tracked.pod_set,
            joined=tracked.joined,
        )
    ).decode()


def decode(text: str) -> MemberEnd | None:
    """Return what a record says, None where a person has edited it into something else."""
    try:
        found = _DECODER.decode(text)
    except UNREADABLE:
        return None
    return found if found.epoch > 0 and is_uid(found.workload) and is_uid(found.user) else None


def tracked(resource: Resource, found: MemberEnd) -> Tracked:
    """Return the object as it is known by its record: gone, and it keeps its slot."""
    return Tracked(
        ref=ObjectRef(resource, ObjectKey(found.namespace, found.name)),
        pod_set=found.pod_set,
        uid=found.uid,
        user_uid=found.user,
        joined=found.joined,
        raw=SUCCEEDED,
        vanished=True,
        succeeded=True,
    )
