"""Objects of the management cluster come in: caches, engine, and which keys have to be looked at again.

No decision is taken here. Neighbours: `taking` calls, `workloads_gone` takes that a Workload went.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.user_objects import names_of
from gatelift.core.conclusions import recovery
from gatelift.core.dispatching import releasing, waking
from gatelift.core.records import record
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Owner
from gatelift.core.rules import in_use, kept_owner, kept_record, priorities, readiness, seeking, unrecorded
from gatelift.core.state import out_of_sight, predecessors, showing
from gatelift.core.state.core import Core
from gatelift.core.told import pod_moments
from gatelift.core.works import looking_again, owners, slices_seen, workloads_gone
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects import core as core_objects
from gatelift_kube.objects import kueue
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.versions import is_last, is_older, newer
from gatelift_kube.values.resources import (
    CLUSTER_QUEUE,
    COHORT,
    LOCAL_QUEUE,
    WORKLOAD,
    ObjectKey,
    ObjectRef,
    Resource,
)


def seen(core: Core, resource: Resource, obj: KubeObject, raw: bytes, now: float) -> None:
    """Take an object that was added or changed; older versions than the known one are ignored."""
    ref = ObjectRef(resource, key_of(obj.metadata))
    core.inflight.seen(ref, obj.metadata.resource_version)
    if resource in core.kinds.travelling:
        _owner_seen(core, ref, obj, raw)
        return
    if resource != WORKLOAD:  # `put_workload` sees to that for Workloads
        known = core.known(ref)
        if known is not None and not core.untaken.is_news(ref, obj.metadata, known.metadata):
            return  # the answer to a write of ours, that the watch has overtaken with what somebody wrote after it
    match obj:
        case kueue.Workload():
            workload_seen(core, obj, now, raw)
        case kueue.ClusterQueue():
            _cluster_queue(core, obj)
        case kueue.LocalQueue():
            _local_queue(core, obj)
        case kueue.AdmissionCheck():
            core.knowledge.put(obj)
            core.ledger.engine.admission_check_changed(obj)
            core.agenda.mark(Key(Look.CHECK, key_of(obj.metadata)))
            showing.everything(core)
            predecessors.reach_changed(core)
        case kueue.MultiKueueConfig():
            core.knowledge.put(obj)
            waking.led_to(core, obj)
            _all_checks(core)
            predecessors.reach_changed(core)
        case _:
            _surroundings_seen(core, obj)


def _surroundings_seen(core: Core, obj: KubeObject) -> None:
    """Take what rarely changes."""
    match obj:
        case WorkerCluster():
            recovery.seen(core, obj)
        case kueue.ResourceFlavor():
            core.knowledge.put(obj)
            core.ledger.engine.flavor_changed(obj)
            in_use.flavor_seen(core, obj)
            showing.everything(core)
        case kueue.Cohort():
            before = core.knowledge.cohorts.get(obj.metadata.name)
            before = None if _is_again(core, COHORT, obj) else before
            core.knowledge.put(obj)
            core.ledger.engine.cohort_changed(obj)
            if before is None or before.spec != obj.spec:
                showing.everything(core)
        case kueue.WorkloadPriorityClass():
            priorities.class_seen(core, obj)
        case core_objects.PriorityClass():
            core.knowledge.put(obj)
        case core_objects.Namespace():
            core.knowledge.put(obj)
            core.ledger.engine.namespace_changed(obj.metadata.name, obj.metadata.labels)
        case core_objects.LimitRange():
            core.ledger.engine.limit_range_changed(obj)
        case core_objects.RuntimeClass():
            core.ledger.engine.runtime_class_changed(obj)
        case _:
            pass


def lost_its_mark(core: Core, ref: ObjectRef, obj: KubeObject) -> bool:
    """Say whether the watch by the label of queued pods calls gone what is known to have lost that label: no news."""
    known = core.knowledge.owners.get(ref)
    if known is None or is_last(obj.metadata) or known.kind.marked_step(known.object) is None:
        return False
    return not newer(obj.metadata, known.object.metadata)


def gone(core: Core, resource: Resource, obj: KubeObject) -> None:
    """Take note that an object is no longer there."""
    key = key_of(obj.metadata)
    ref = ObjectRef(resource, key)
    there = core.known(ref)
    if there is not None and there.metadata.uid != obj.metadata.uid and core.untaken.keeps(ref, obj.metadata.uid):
        if not is_older(there.metadata, obj.metadata):
            _former_gone(core, ref, obj)
            return
        gone(core, resource, there)  # what had the name before it, and was to be seen to go by that
    _forget(core, resource, obj)
    core.inflight.forget(ref)
    core.resting.forget(ref)


def _former_gone(core: Core, ref: ObjectRef, obj: KubeObject) -> None:
    """Take again that an object is gone whose name another one has by now: nothing of that one is touched."""
    if ref.resource in core.kinds.travelling:
        _owner_gone(core, ref, obj)
    elif isinstance(obj, kueue.Workload):
        workloads_gone.untaken(core, obj)


def _forget(core: Core, resource: Resource, obj: KubeObject) -> None:
    name, key = obj.metadata.name, key_of(obj.metadata)
    engine = core.ledger.engine
    ref = ObjectRef(resource, key)
    match obj:
        case kueue.Workload():
            if core.untaken.keeps(ref, obj.metadata.uid):
                workloads_gone.untaken(core, obj)
            workloads_gone.taken(core, key, obj.metadata.uid)
        case kueue.ClusterQueue():
            core.knowledge.drop(obj)
            showing.forget(core, Key(Look.CLUSTER_QUEUE, key))
            engine.cluster_queue_removed(name)
            in_use.queue_gone(core, name)
            predecessors.reach_changed(core)
            for local in _local_queues_of(core, name):
                showing.queue(core, Key(Look.LOCAL_QUEUE, local))
        case kueue.LocalQueue():
            core.knowledge.drop(obj)
            showing.forget(core, Key(Look.LOCAL_QUEUE, key))
            engine.local_queue_removed(key)
            predecessors.reach_changed(core)
        case kueue.AdmissionCheck():
            core.knowledge.drop(obj)
            engine.admission_check_removed(name)
            showing.everything(core)
            predecessors.reach_changed(core)
        case kueue.MultiKueueConfig():
            core.knowledge.drop(obj)
            _all_checks(core)
            predecessors.reach_changed(core)
        case _:
            if not _surroundings_gone(core, obj):
                # What is watched by a label and was not seen to end may only have lost it, and is read before its
                # Workload ends.
                shown = resource in core.kinds.travelling and bool(core.kinds.sight(resource).labels)
                _owner_gone(core, ref, obj, proved=not shown or is_last(obj.metadata))


def _surroundings_gone(core: Core, obj: KubeObject) -> bool:
    """Forget what rarely changes; False when it is none of that."""
    name, engine = obj.metadata.name, core.ledger.engine
    match obj:
        case kueue.ResourceFlavor():
            core.knowledge.drop(obj)
            in_use.flavor_gone(core, key_of(obj.metadata))
            engine.flavor_removed(name)
            showing.everything(core)
        case kueue.Cohort():
            core.knowledge.drop(obj)
            showing.forget(core, Key(Look.COHORT, key_of(obj.metadata)))
            engine.cohort_removed(name)
            showing.everything(core)
        case kueue.WorkloadPriorityClass():
            core.knowledge.drop(obj)
        case core_objects.PriorityClass():
            core.knowledge.drop(obj)
        case core_objects.Namespace():
            core.knowledge.drop(obj)
            engine.namespace_removed(name)
        case core_objects.LimitRange():
            engine.limit_range_removed(key_of(obj.metadata))
        case core_objects.RuntimeClass():
            engine.runtime_class_removed(name)
        case _:
            return False
    return True


def workload_seen(core: Core, obj: kueue.Workload, now: float, raw: bytes = b"") -> None:
    """Take a Workload; one of the same name and another UID means that the earlier one is gone."""
    key = key_of(obj.metadata)
    if core.knowledge.saw_go(obj.metadata.uid):
        return  # a late word about one that is gone says nothing about what has its name now
    known = core.knowledge.workloads.get(key)
    again = _is_again(core, WORKLOAD, obj)
    if known is not None and known.metadata.uid != obj.metadata.uid:
        workloads_gone.taken(core, key, known.metadata.uid)
    obj = kept_owner.believed(core, obj, known)
    names = names_of(core.kinds, obj)
    kind = owners.kind_of(core, names)
    rec = record.read(obj, travels=kind is not None)
    believed = slices_seen.believed(core, kept_record.believed(core, obj, rec), rec)
    if believed is not obj:
        obj, rec = believed, record.read(believed, travels=kind is not None)
    again = again and known is not None and not is_older(obj.metadata, known.metadata)
    if not core.knowledge.put_workload(obj, (kind, rec), names, again=again):
        return
    slices_seen.take(core, obj, kind, raw)
    unrecorded.charge(core, obj)  # a record that has just given its quota back may not be all that runs
    core.ledger.engine.workload_changed(kept_record.charged(core, obj), now)
    unrecorded.charge(core, obj)  # one that was not known
    if rec.epoch_used:
        core.ledger.block(obj.metadata.uid)
    readiness.note(core, obj)
    core.mark_workload(key)
    looking_again.at_objects(core, obj)


def _owner_seen(core: Core, ref: ObjectRef, obj: KubeObject, raw: bytes) -> None:
    """Take a user's object. It stays of the kind that it was known as, whatever becomes of it."""
    known = core.knowledge.owners.get(ref)
    again = core.untaken.keeps(ref, obj.metadata.uid)
    if known is not None and not core.untaken.is_news(ref, obj.metadata, known.object.metadata):
        return
    if known is not None and known.object.metadata.uid != obj.metadata.uid:
        _owner_gone(core, ref, known.object)
        known = None
    kind = known.kind if known is not None else core.kinds.of(ref.resource, obj)
    if kind is None:
        return
    owner = Owner(kind, obj, raw)
    pod_moments.seen(core, known, owner)
    # Also what is none of ours now: a Workload may say that it was, or is yet to come.
    core.knowledge.put_owner(owner, again=again)
    seeking.found_out(core, ref)
    core.out_of_sight.found(ref)
    grouped = owner.work is not owner.name or kind.was_alone(obj)
    if owner.managed or grouped or core.knowledge.workloads_of(owner.name):
        core.mark_owner(owner)
        _mark_owned(core, owner)


def _owner_gone(core: Core, ref: ObjectRef, obj: KubeObject, *, proved: bool = True) -> None:
    priorities.owner_gone(core, ref)
    core.out_of_sight.has_gone(ref)
    if proved:
        core.knowledge.object_has_gone((ref.resource, ref.key.namespace, ref.key.name, obj.metadata.uid))
    known = core.knowledge.owners.get(ref)
    if known is None or known.object.metadata.uid != obj.metadata.uid:
        known = _half_gone(core, ref, obj)
    if known is None:
        return
    if not proved:
        out_of_sight.remember(core, known)
    _mark_owned(core, known)
    core.knowledge.drop_owner(ref, obj.metadata.uid)
    core.mark_who_waited(known.workload)


def _half_gone(core: Core, ref: ObjectRef, obj: KubeObject) -> Owner | None:
    """Return what a try that raised may have dropped already: who waits for its going is told once more."""
    kind = core.kinds.of(ref.resource, obj) if core.untaken.keeps(ref, obj.metadata.uid) else None
    return Owner(kind, obj, b"") if kind is not None else None


def _is_again(core: Core, resource: Resource, obj: KubeObject) -> bool:
    """Say whether an object may be known by half: what it was before says nothing then."""
    return bool(core.untaken) and core.untaken.keeps(ObjectRef(resource, key_of(obj.metadata)), obj.metadata.uid)


def _cluster_queue(core: Core, obj: kueue.ClusterQueue) -> None:
    before = core.knowledge.cluster_queues.get(obj.metadata.name)
    before = None if _is_again(core, CLUSTER_QUEUE, obj) else before
    core.knowledge.put(obj)
    key = key_of(obj.metadata)
    core.ledger.engine.cluster_queue_changed(obj)
    showing.queue(core, Key(Look.CLUSTER_QUEUE, key))
    showing.leaving(core)
    if core.settings.admission.fair_sharing and (before is None or before.spec != obj.spec):
        showing.everything(core)  # what others can borrow is what it lends
    if before is not None:
        releasing.rule_changed(core, before, obj)
    if before is None or _differs(before, obj):
        predecessors.reach_changed(core)
        asks_otherwise = before is None or _asks_otherwise(before.spec, obj.spec)
        for local in _local_queues_of(core, key.name):
            showing.queue(core, Key(Look.LOCAL_QUEUE, local))  # it is active when this one is, and shows its flavors
            if asks_otherwise:
                _mark_queue(core, local)


def _differs(before: kueue.ClusterQueue, after: kueue.ClusterQueue) -> bool:
    """Say whether its LocalQueues find another ClusterQueue than before: by its spec, or since it is being deleted."""
    return before.spec != after.spec or before.metadata.deletion_timestamp != after.metadata.deletion_timestamp


def _local_queues_of(core: Core, name: str) -> list[ObjectKey]:
    """Return the LocalQueues of a ClusterQueue."""
    return [local for local, queue in core.knowledge.local_queues.items() if queue.spec.cluster_queue == name]


def _asks_otherwise(before: kueue.ClusterQueueSpec, after: kueue.ClusterQueueSpec) -> bool:
    """Say whether those who wait in a queue, or wait for its checks, have to be looked at again."""
    return (before.stop_policy, before.admission_checks_strategy) != (
        after.stop_policy,
        after.admission_checks_strategy,
    )


def _local_queue(core: Core, obj: kueue.LocalQueue) -> None:
    key = key_of(obj.metadata)
    before = core.knowledge.local_queues.get(key)
    before = None if _is_again(core, LOCAL_QUEUE, obj) else before
    core.knowledge.put(obj)
    core.ledger.engine.local_queue_changed(obj)
    showing.queue(core, Key(Look.LOCAL_QUEUE, key))
    if before is None or before.spec != obj.spec:
        _mark_queue(core, key)
        predecessors.reach_changed(core)


def _mark_queue(core: Core, local: ObjectKey) -> None:
    """Look at all workloads of a LocalQueue: what kept them out may be over."""
    for key in sorted(core.knowledge.by_queue.get(local, ())):
        core.mark_workload(key)


def _all_checks(core: Core) -> None:
    for name in core.knowledge.checks:
        core.agenda.mark(Key(Look.CHECK, ObjectKey("", name)))


def _mark_owned(core: Core, owner: Owner) -> None:
    mark = core.agenda.mark if owner.work is owner.name else core.mark_for_one
    for key in core.knowledge.workloads_of(owner.name):
        mark(Key(Look.WORKLOAD, key))
