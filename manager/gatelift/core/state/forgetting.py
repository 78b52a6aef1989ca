"""What is kept in many places about one cluster, one object or one attempt, and goes from all of them together.

Neighbours: `core` (has the places), `placed_counts` (of clusters), `workloads_gone` (of what is gone), `taking`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gatelift.core.api.asks import about_workload
from gatelift_kube.values.resources import ObjectRef

if TYPE_CHECKING:
    from gatelift.core.state.core import Core


def tidy(core: Core, cluster: str) -> None:
    """Keep nothing of a cluster that has nothing of ours and that nobody expects any more.

    Who takes a cluster of that name in again starts with a resync, so nothing of this would be right then.
    """
    if core.placements.tidy(cluster) or core.links.state(cluster) is not None:
        return
    core.sessions.forget(cluster)
    core.doubts.forget(cluster)
    core.open_offers.forget(cluster)
    core.failures.forget_cluster(cluster)
    core.cluster_changes.forget(cluster)
    core.words.forget(cluster)


def forget_trouble(core: Core, ref: ObjectRef) -> None:
    """Forget trouble with an object that is not there and that nobody is about to make, or looks for."""
    if core.known(ref) is not None or core.inflight.busy(ref):
        return
    made, sought = core.creations.owner_of(ref.key) is not None, bool(core.sought.of(ref))
    if not made and not sought and ref not in core.out_of_sight.left:
        core.inflight.forget(ref)
        core.resting.forget(ref)


def drop_attempt(core: Core, uid: str) -> None:
    """Forget an attempt whose Workload is gone, and all that was kept about it."""
    attempt = core.attempts.get(uid)
    if attempt is not None:
        core.end_attempt(uid)
        core.agenda.forget(attempt.look)
        for asks in about_workload(attempt.look, attempt.cluster):
            core.budget.leave(asks)
        for cluster in {attempt.cluster, *(attempt.round.offered if attempt.round else ())}:
            core.placements.forget(cluster, uid)
    core.cluster_waiters.forget(uid)
    core.not_ready.forget(uid)
    core.waiting_reasons.forget(uid)
    core.failures.gone(uid)
    core.predecessors.wait_no_more(uid)
    core.caution.tampered.forget(uid)
    core.ledger.forget(uid)
