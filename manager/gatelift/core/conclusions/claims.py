"""What a cluster's claim about a placement is worth that the record does not know: proved, possible, or neither.

Every worker can say of every UID that it runs there. So a claim reaches as far as decisions 30 and 36 let a worker's
word reach: what comes with our own mark (or is known by the own record) is proved, and charged; what settings let be
there is possible, and holds that one workload; what is neither holds nothing, and only its cluster gets no new work.
Neighbours: `reports` (what follows from it), `successors` (what settings let be there).
"""

from __future__ import annotations

from typing import NamedTuple

from gatelift.core.records import epochs, given
from gatelift.core.rules import successors
from gatelift.core.state.caution import Ahead
from gatelift.core.state.core import Core
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey

FORGOTTEN_MAX = 100_000
"""Epochs that a record may be behind: one a minute for two months. A person can raise an annotation above that."""


def not_possible(cluster: str, uid: str, epoch: int) -> str:
    """Return what the log says of a claim that holds nothing."""
    return (
        f"Cluster {cluster} says that it runs epoch {epoch} of workload {uid}, which was not given to it as far as "
        "anything here says: nothing follows from that, but it gets no new work"
    )


class Claim(NamedTuple):
    """What a cluster says of a placement. `listed`: its inventory's word, where that is what came."""

    cluster: str
    key: PlacementKey
    over: bool
    gated: bool = False
    listed: InventoryEntry | None = None


def judged(core: Core, claim: Claim, known: Workload, ahead: Ahead, highest: int) -> Ahead:
    """Return what a cluster names, with what its word is worth; `highest`: the highest epoch that the record knows."""
    proved = _is_proved(core, claim, known)
    reaches = successors.may_be_named(core, known.metadata.namespace, claim.cluster)
    possible = proved or (reaches and claim.key.epoch <= highest + FORGOTTEN_MAX)
    return ahead.judged(proved=proved, possible=possible)


def _is_proved(core: Core, claim: Claim, known: Workload) -> bool:
    """Say whether our own hand says so: the agent of `local` is a part of this process."""
    cluster, key, listed = claim.cluster, claim.key, claim.listed
    if cluster == LOCAL_CLUSTER or core.caution.has_proved(cluster, key):
        return True
    if listed is not None and given.is_ours(
        core.links.given(cluster, key, listed.namespace, listed.name), listed.given
    ):
        return True
    return _is_recorded(core, cluster, key, known)


def _is_recorded(core: Core, cluster: str, key: PlacementKey, known: Workload) -> bool:
    """Say whether this leader has placed it there, the record names that cluster, or it is remembered as given."""
    attempt = core.placed(key)
    if attempt is not None and attempt.key == key and attempt.cluster == cluster:
        return True
    if known.status.cluster_name == cluster and key.epoch in {epochs.written(known), epochs.torn(known)}:
        return True
    memory = core.predecessors.by_cluster.get(cluster, {}).get(key)
    return memory is not None and (memory.given or bool(memory.queue))
