"""What of an inventory is believed (P7): labels are, together with what was placed. Pure.

Whoever may make pods in a worker can write our labels on one. So an entry counts as the placement that its key names
only if it stands where that was placed: in the namespace and under the name of the user's object, at `local` as that
very object (UID). One that does not is nobody's: it holds nothing, ends nothing and is left alone. Where a live
placement is listed under another name, or with more objects than it has, that is no absence either: the cluster is
told again which objects are meant, and answers by what it finds (R4). Neighbours: `inventories`, `reports` ask.
"""

from __future__ import annotations

from gatelift.core.conclusions.epoch_texts import LABELS_NOT_BELIEVED, labels_not_believed
from gatelift.core.records import given
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state import few_lines
from gatelift.core.state.core import Core
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey, objects_digest


def stands(core: Core, known: Workload, cluster: str, entry: InventoryEntry) -> bool:
    """Say whether an entry stands where a Workload's object is placed; True where its Workload names no object.

    One of several objects: after a restart its agent calls it after one of them, which may have gone at home since. It
    bears the mark that this very placement was given (`given`), whoever is of it.
    """
    owners = owners_of(known)
    if not owners:
        return True
    if entry.namespace != known.metadata.namespace:
        return False
    if cluster != LOCAL_CLUSTER and _is_of_group(core, known):
        if entry.name == owners[0].name or any(entry.name == one.name for one in known.metadata.owner_references):
            return True
        key = ref_of(known).key
        return given.is_ours(core.links.given(cluster, entry.key, key.namespace, key.name), entry.given)
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
    if is_group_elsewhere(core, attempt, known):
        return not stands(core, known, attempt.cluster, entry)  # objects come and go, and it is told all of them anew
    return not stands(core, known, attempt.cluster, entry) or found > max(1, len(known.spec.pod_sets))


def is_group_elsewhere(core: Core, attempt: Attempt, known: Workload) -> bool:
    """Say whether an attempt is the placement of several objects at a worker."""
    return attempt.cluster != LOCAL_CLUSTER and _is_of_group(core, known)


def _is_of_group(core: Core, known: Workload) -> bool:
    """Say whether a Workload is of several objects, as its maker has marked it, or as its objects are."""
    marked = markers.IS_GROUP_WORKLOAD in known.metadata.annotations
    return marked or core.knowledge.work_of(known).gathered is not None


def is_nobodys(core: Core, cluster: str, entry: InventoryEntry) -> bool:
    """Say whether what a cluster lists, and no live placement is, only wears our labels; of a UID it is told once."""
    known = core.knowledge.placed_workload(entry.key.uid)
    if known is None or stands(core, known, cluster, entry):
        return False
    is_news = core.caution.list_nobodys(cluster, entry.key)  # thousands of its epochs are no more news than one
    text = labels_not_believed(cluster, f"{entry.namespace}/{entry.name}", str(entry.key.epoch))
    if is_news and few_lines.note(core, cluster, text):
        core.event(ref_of(known), entry.key.uid, LABELS_NOT_BELIEVED, text, warning=True)
    return True


def ignores(core: Core, cluster: str, key: PlacementKey) -> bool:
    """Say whether reports about this key are those of something that only wears our labels."""
    return core.caution.is_nobodys(cluster, key)


def begin(core: Core, cluster: str) -> None:
    """Judge anew: the cluster lists all that it has."""
    few_lines.begin(core, cluster)
    core.caution.forget_nobodys(cluster)
