"""What of an inventory is believed (P7): labels are, together with what was placed. Pure.

Whoever may make pods in a worker can write our labels on one. So an entry counts as the placement that its key names
only if it stands where that was placed: in the namespace and under the name of the user's object, at `local` as that
very object (UID). One that does not is nobody's: it holds nothing, ends nothing and is left alone. Where a live
placement is listed under another name, or with more objects than it has, that is no absence either: the cluster is
told again which objects are meant, and answers by what it finds (R4). Neighbours: `inventories`, `reports` ask.
"""

from __future__ import annotations

from gatelift.core.attempts import Attempt
from gatelift.core.link_values import LOCAL_CLUSTER
from gatelift.core.state import Core, ref_of
from gatelift.core.texts import LABELS_NOT_BELIEVED, labels_not_believed
from gatelift_kinds.made_for import owners_of
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.inventory import InventoryEntry
from gatelift_wire.keys import PlacementKey, objects_digest


def stands(known: Workload, cluster: str, entry: InventoryEntry) -> bool:
    """Say whether an entry stands where a Workload's object is placed; True where its Workload names no object."""
    owners = owners_of(known)
    if not owners:
        return True
    if entry.namespace != known.metadata.namespace:
        return False
    named = [owner for owner in owners if owner.name == entry.name]
    if cluster != LOCAL_CLUSTER or not entry.digest:
        return bool(named)
    return any(entry.digest == objects_digest(((owner.name, owner.uid),)) for owner in named)


def names_others(core: Core, attempt: Attempt, entry: InventoryEntry) -> bool:
    """Say whether a live placement is listed under another name, or with objects that are none of its own."""
    known = core.knowledge.workloads.get(attempt.workload)
    if known is None:
        return False
    found = sum(count for _, count in entry.counts)
    return not stands(known, attempt.cluster, entry) or found > max(1, len(known.spec.pod_sets))


def is_nobodys(core: Core, cluster: str, entry: InventoryEntry) -> bool:
    """Say whether what a cluster lists, and no live placement is, only wears our labels; people are told once."""
    known = core.knowledge.workload_of(entry.key.uid)
    if known is None or stands(known, cluster, entry):
        return False
    nobodys = core.caution.nobodys.setdefault(cluster, set())
    if entry.key not in nobodys:
        nobodys.add(entry.key)
        text = labels_not_believed(cluster, f"{entry.namespace}/{entry.name}", str(entry.key.epoch))
        core.event(ref_of(known), entry.key.uid, LABELS_NOT_BELIEVED, text, warning=True)
        core.note(text, warning=True, cluster=cluster)
    return True


def ignores(core: Core, cluster: str, key: PlacementKey) -> bool:
    """Say whether reports about this key are those of something that only wears our labels."""
    return key in core.caution.nobodys.get(cluster, ())


def begin(core: Core, cluster: str) -> None:
    """Judge anew: the cluster lists all that it has."""
    core.caution.nobodys.pop(cluster, None)
