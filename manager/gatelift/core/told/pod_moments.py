"""What becomes of pods at our gate, for the counters of KEP-976: each moment is taken once, and by who leads (PG-27).

At home by the pod itself, which came or lost its gate since it was seen before. A pod that runs elsewhere keeps its
gate here: it is let go when its cluster says so, the first time that its Workload is; of one that was evicted before it
is taken that it was let go then. Neighbours: `intake` and `telling` call, `state.pod_counts` keeps the figures.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import Owner
from gatelift.core.state.core import Core
from gatelift.core.told.event_texts import EXCESS_DELETED
from gatelift_kube.objects.conditions import TRUE, find
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.messages import CountsReport

REJECTED_AT_ONCE = 10_000
"""A figure that a peer says is no reason to count for long."""


def seen(core: Core, before: Owner | None, owner: Owner) -> None:
    """Take a version of a user's pod: the first one, or one whose gate is gone."""
    if owner.kind.pods_are_children or not (owner.managed and core.rebuilt and core.leads(core.now)):
        return
    lifted = owner.kind.lifted(owner.object)
    if before is None and not lifted and owner.object.metadata.deletion_timestamp is None:  # else a late word of one
        core.pod_counts.is_gated(_queue_of(core, owner))
    elif before is not None and lifted and not before.kind.lifted(before.object):
        queue, seconds = _admitted(core, owner)
        core.pod_counts.is_ungated(queue, seconds, of_group=owner.work is not owner.name)


def let_go_elsewhere(core: Core, known: Workload, attempt: Attempt) -> None:
    """Take that a placement was let go: of one that this leader has admitted, and that was never evicted before."""
    stats = known.status.scheduling_stats
    evicted = stats is not None and any(one.count for one in stats.evictions)
    if attempt.cluster == LOCAL_CLUSTER or attempt.admitted_at is None or evicted:
        return
    work = core.knowledge.work_of(known)
    for owner in work.objects:
        if owner.managed and not owner.kind.pods_are_children:
            of_group = work.gathered is not None
            core.pod_counts.is_ungated(_charged(core, known), core.now - attempt.admitted_at, of_group=of_group)


def rejected(core: Core, owner: Owner, reason: str) -> None:
    """Take that a pod was deleted since it is too many, or not as it should be."""
    if not owner.kind.pods_are_children:
        core.pod_counts.is_rejected(_queue_of(core, owner), reason)


def rejected_elsewhere(
    core: Core, known: Workload, attempt: Attempt, said: CountsReport, before: CountsReport | None
) -> None:
    """Take how many pods that a driver made at a worker were ended there, beyond the count: each once.

    Its agent counts from its own start on. What a leader finds as it begins was counted before.
    """
    counted = {one.name: one.rejected for one in (before.made_here if before is not None else ())}
    if before is None and attempt.admitted_at is None:
        return
    for one in said.made_here:
        for _ in range(min(REJECTED_AT_ONCE, max(0, one.rejected - counted.get(one.name, 0)))):
            core.pod_counts.is_rejected(_charged(core, known), EXCESS_DELETED)


def _queue_of(core: Core, owner: Owner) -> str:
    """Return the ClusterQueue that a pod asks for, "" where it names no queue that there is."""
    meta = owner.object.metadata
    local = core.knowledge.local_queues.get(ObjectKey(meta.namespace, owner.kind.queue_name(owner.object)))
    return local.spec.cluster_queue if local is not None else ""


def _charged(core: Core, known: Workload) -> str:
    admission = known.status.admission
    return admission.cluster_queue if admission is not None else core.knowledge.cluster_queue_of(known)


def _admitted(core: Core, owner: Owner) -> tuple[str, float | None]:
    """Return the ClusterQueue that a pod is charged to, and for how long it has been admitted, and been there."""
    for key in core.knowledge.workloads_of(owner.work):
        known = core.knowledge.workloads[key]
        said = find(known.status.conditions, texts.ADMITTED)
        if said is None or said.status != TRUE:
            continue
        attempt = core.attempts.get(known.metadata.uid)
        exact = attempt.admitted_at if attempt is not None else None
        since = core.wall.at(said.last_transition_time, core.now) if exact is None else exact
        came = core.wall.at(owner.object.metadata.creation_timestamp, core.now)
        return _charged(core, known), core.now - (came if came > since + 1.0 else since)  # a later member waits less
    return _queue_of(core, owner), None
