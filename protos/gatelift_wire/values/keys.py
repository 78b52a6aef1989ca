"""Identity of what travels: placements and the origin labels on worker objects. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple

from gatelift_wire.values import limits

PROTOCOL_VERSION = 3
PROTOCOL_VERSION_MIN = 1
"""Both sides keep serving all that there were; there is none before 1."""

VERSION_OF_CHANGE = 2
"""From this version on an agent knows of `Change`: an older one would end the session for it."""
VERSION_OF_SIZES = 3
"""The same of sizes of elastic work, both ways: nothing of them is said in a session of an older version."""

LABEL_ORIGIN = "gatelift.dev/origin"
LABEL_WORKLOAD_UID = "gatelift.dev/workload-uid"
LABEL_EPOCH = "gatelift.dev/epoch"
LABEL_ACCEPT = "gatelift.dev/accept"
ANNOTATION_EPOCH = "gatelift.dev/epoch"
ANNOTATION_TERM = "gatelift.dev/term"
ANNOTATION_DISCONNECT = "gatelift.dev/disconnect"
ANNOTATION_PLACED_IN = "gatelift.dev/placed-in"
"""In the record of a winner that was in doubt as it was chosen: the session, and the UID of the WorkerCluster."""
ANNOTATION_RELEASE = "gatelift.dev/release"
"""On a ClusterQueue: when quota of what is evicted there is free again (`ReleaseRule`)."""
ANNOTATION_RELEASE_PARTIAL = "gatelift.dev/release-partial"
"""On a ClusterQueue, "true": members of a group that is evicted there give their own quota back as each is over."""
ANNOTATION_CLUSTER = "gatelift.dev/cluster"
ANNOTATION_SIZE = "gatelift.dev/size"
"""Of elastic work: on a Workload the number of its size, on what runs the number and counts that it was set to."""
ANNOTATION_CHAIN = "gatelift.dev/chain"
"""On later slices of elastic work: the UID of the first one, whose placement goes on."""
LABEL_STOPPING = "gatelift.dev/stopping"
"""On what is stopped: `<workload UID>.<epoch>`. A label, for nobody can fill those up: annotations of an object have
256 KiB in all, and who has used them up would keep it from being stopped."""
LABEL_MADE_HERE = "gatelift.dev/made-here"
"""On a pod that a driver makes at a worker: the group that it names. Set by the agent's webhook with the gate, and by
nobody else; it stays once the pod is taken in."""
ANNOTATION_GIVEN = "gatelift.dev/given"
"""On a worker's object: the mark with which the manager gave it to that cluster; inventories bring it back."""
FINALIZER_REPORT = "gatelift.dev/report"


def objects_digest(objects: Iterable[tuple[str, str]]) -> str:
    """Return the digest by which an inventory names the objects of a placement: 16 hexadecimal digits.

    `objects` are (name, UID), in any order; the UID is "" where it is not known.
    """
    digest = hashlib.sha256()
    for name, uid in sorted(objects):
        digest.update(f"{name}\n{uid}\n".encode())
    return digest.hexdigest()[:16]


_UID = re.compile(rf"[A-Za-z0-9][-A-Za-z0-9_.]{{0,{limits.UID_MAX - 1}}}")


def is_uid(text: str) -> bool:
    """Say whether a text can be the UID of a Workload: they are given by API servers, and travel in labels."""
    return _UID.fullmatch(text) is not None


class PlacementKey(NamedTuple):
    """One attempt of one workload: the Workload's UID and its epoch (1, 2, 3, ...; never repeats, never goes back).

    The third part of a placement, the cluster, is the session's: a name inside a message never counts. A named tuple,
    since it is the key of nearly every table at both ends: its hash and comparison take no Python code.
    """

    uid: str
    epoch: int

    def __str__(self) -> str:
        return f"{self.uid}@{self.epoch}"
