"""Of whom a recovery asks what runs there: clusters by name, also where their WorkerCluster is deleted or made anew.

The finding on `local` says which object each name had, and who served it, so that the next leader knows it, too. Of a
name whose object is another one since, or gone, only a list of the very cluster and agent answers, or a person's word
that stands on `local`: nobody can say it on an object that is gone, or of sessions that the new one never had. Pure.
Neighbours: `recovery` (decides), `recovery_values` (the annotations).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from gatelift.core.clusters.identity import latest_doubt
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.unreadable import UNREADABLE

if TYPE_CHECKING:
    from gatelift.core.state.recovery_values import Found

ANNOTATION_FENCED_GONE = "gatelift.dev/recover-without"
"""On `local`, a person's: nothing runs any more on these clusters, whose WorkerClusters are gone (`Without`)."""
ASKED_MAX = 600
"""Names that are remembered, at 200 bytes in an annotation: more than an installation has clusters. What is deleted
above that stands under one name for all, of which a person has to say the word."""
ANY = "*"
TEXT_BYTES_MAX = 64 * 1024
"""A word about all of them, with who says so."""
DIGEST_CHARS = 16


class Without(msgspec.Struct, frozen=True):
    """A person's word, after the finding of `since`: nothing of before runs on `names`, each with who says so."""

    since: str
    names: dict[str, str] = {}


def without(local: WorkerCluster) -> Without:
    """Return what persons have said of clusters that are gone; empty for nothing, or for what is no such word."""
    text = local.metadata.annotations.get(ANNOTATION_FENCED_GONE, "")
    if not text or len(text) > TEXT_BYTES_MAX:
        return Without("")
    try:
        return msgspec.json.decode(text, type=Without)
    except UNREADABLE:
        return Without("")


def served_by(cluster_uid: str, agent_lease: str) -> str:
    """Return what tells cluster and agent apart from others, "" where the agent has not said which cluster it is."""
    if not cluster_uid:
        return ""
    return hashlib.sha256(f"{cluster_uid}\n{agent_lease}".encode()).hexdigest()[:DIGEST_CHARS]


@dataclass(frozen=True, slots=True)
class AskedCluster:
    """The object that a name had when it was first asked about, by UID; and who served it, "" for who is in doubt."""

    uid: str
    served: str


@dataclass(slots=True)
class AskedClusters:
    """The names of one finding."""

    by_name: dict[str, AskedCluster] = field(default_factory=dict)

    def recall(self, told: Mapping[str, Found]) -> None:
        """Take what an earlier leader has written."""
        self.by_name = {name: AskedCluster(one.uid, one.served) for name, one in told.items() if one.uid or name == ANY}

    def add(self, found: WorkerCluster) -> None:
        """Ask about a cluster that the record knows; what was known of the name before stays."""
        name, status = found.metadata.name, found.status
        if name != LOCAL_CLUSTER and status.session and len(self.by_name) < ASKED_MAX:
            served = "" if latest_doubt(status) else served_by(status.cluster_uid, status.agent_lease)
            self.by_name.setdefault(name, AskedCluster(found.metadata.uid, served))

    def gone(self, found: WorkerCluster) -> str:
        """Take that a WorkerCluster is deleted; return the name that is asked about for it, "" for none."""
        name = found.metadata.name
        self.add(found)
        if name in self.by_name:
            return name
        if name == LOCAL_CLUSTER or not found.status.session:
            return ""
        self.by_name[ANY] = AskedCluster("", "")
        return ANY

    def is_gone(self, name: str, found: WorkerCluster | None) -> bool:
        """Say whether the object that a name had is no more; `found`: the one that it has now."""
        known = self.by_name.get(name)
        return known is not None and (found is None or found.metadata.uid != known.uid)

    def is_same(self, name: str, served: str) -> bool:
        """Say whether who serves a name now is who served it."""
        known = self.by_name.get(name)
        return known is not None and served != "" and known.served == served
