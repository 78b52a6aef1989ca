"""Which keys of the agenda belong to an object. Pure. Neighbour: `taking` marks them when something is news of it."""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.state.core import Core
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    RESOURCE_FLAVOR,
    WORKER_CLUSTER,
    WORKLOAD,
    ObjectKey,
    ObjectRef,
)

LOOKS = {
    WORKLOAD: Look.WORKLOAD,
    CLUSTER_QUEUE: Look.CLUSTER_QUEUE,
    LOCAL_QUEUE: Look.LOCAL_QUEUE,
    COHORT: Look.COHORT,
    ADMISSION_CHECK: Look.CHECK,
    RESOURCE_FLAVOR: Look.FLAVOR,
    WORKER_CLUSTER: Look.CLUSTER,
}


def look_at(core: Core, ref: ObjectRef) -> None:
    """Mark the key that belongs to an object; of one of several that of all, who may have asked for it (HD-434)."""
    look = LOOKS.get(ref.resource)
    if look is not None:
        core.agenda.mark(Key(look, ref.key))
    if ref.resource == WORKLOAD:
        core.mark_owners_waiting_for(ref.key)
        _look_at_record(core, ref.key)
    if ref.resource in core.kinds.travelling:
        core.agenda.mark(Key(Look.OWNER, ref.key, ref.resource))
        owner = core.knowledge.owners.get(ref)
        if owner is not None:
            core.mark_owner(owner)
        for key in core.sought.of(ref):
            core.agenda.mark(key)


def _look_at_record(core: Core, key: ObjectKey) -> None:
    """Mark the record of the chain of a slice: whoever ends that writes to this one first, and is answered (HD-600)."""
    known = core.knowledge.workloads.get(key)
    chain = core.knowledge.slices.of(known.metadata.uid) if known is not None else None
    if chain is not None and chain.record is not None and chain.record.key != key:
        core.mark_workload(chain.record.key)


def changed(core: Core, ref: ObjectRef, now: float) -> None:
    """Let what rests be tried again soon, since its object has changed, or the one that its Workload is of."""
    look = LOOKS.get(ref.resource)
    if ref.resource in core.kinds.travelling:
        core.contained.changed(Key(Look.OWNER, ref.key, ref.resource), now)
    elif look is not None:
        core.contained.changed(Key(look, ref.key), now)
    owner = core.knowledge.owners.get(ref)
    for key in core.knowledge.workloads_of(owner.name) if owner is not None else ():
        core.contained.changed(Key(Look.WORKLOAD, key), now)
