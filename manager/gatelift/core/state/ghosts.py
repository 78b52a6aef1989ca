"""Ghost: what pods ask for that still may occupy nodes after their quota was freed (KEP-6143). By what is known.

By its cluster's last word of how many are left, and all that was granted where there is none. Neighbours: `ledger`
knows of whom, `releasing` tells of it, `fit` prefers clusters without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gatelift.core.records import record
from gatelift.core.records.attempts import Attempt
from gatelift.core.state.core import Core
from gatelift.core.state.haunted import Ghost
from gatelift_admission.values.model import Usage
from gatelift_kube.objects.kueue import Workload

FEW = 32
"""So many are counted anew as often as one comes or goes."""


def at(core: Core, cluster: str) -> Mapping[str, int]:
    """Return what may still be occupied of a cluster, by resource."""
    return core.haunted.at(cluster) if _is_counted(core) else {}


def of_queue(core: Core, name: str) -> tuple[Usage, float | None]:
    """Return what may still be occupied of a ClusterQueue, and when that is counted anew if it may be old by now."""
    if not _is_counted(core):
        return {}, None
    return core.haunted.of_queue(name), core.haunted.old_from(core.ledger.early_changes)


def _is_counted(core: Core) -> bool:
    """Count anew where that is due; False where nothing is a ghost."""
    ledger = core.ledger
    if not ledger.early:
        return False
    if core.haunted.is_old(core.now, changes=ledger.early_changes, few=len(ledger.early) <= FEW):
        core.haunted.count(all_of(core), core.now, changes=ledger.early_changes)
    return True


def all_of(core: Core) -> Iterator[Ghost]:
    """Yield the ghost of each workload that has one."""
    for uid in core.ledger.early:
        attempt, known = core.attempts.get(uid), core.knowledge.workload_of(uid)
        if attempt is not None and known is not None and known.status.admission is not None and attempt.live:
            queue = known.status.admission.cluster_queue
            yield Ghost(uid=uid, cluster=attempt.cluster, queue=queue, usage=occupied(core, attempt, known))


def occupied(core: Core, attempt: Attempt, known: Workload) -> Usage:
    """Return what the pods of a placement that are left ask for."""
    left = record.granted(known)
    if attempt.leave is not None and attempt.counts is not None:
        told = {one.name: one.remaining for one in attempt.counts.pod_sets}
        left = {name: min(count, told.get(name, 0)) for name, count in left.items()}
    return core.ledger.engine.usage_of(attempt.uid, left)
