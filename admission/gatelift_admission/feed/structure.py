"""Queues, cohorts, namespaces and defaults come in. A repeated or merely re-labelled object changes nothing.

What can raise because of an object is worked out, and what follows is noted, before the object is known: the same
version fed again after an exception is a new one. What raises because of one workload sets that one aside.
Neighbours: `engine` calls these; `state` rebuilds what depends on them before the next decision.
"""

from __future__ import annotations

from gatelift_admission.feed import faults, ghosts, places
from gatelift_admission.flavors.catalogue import Catalogue
from gatelift_admission.queues.models import LocalModel, QueueModel, cluster_queue_active, node_spec
from gatelift_admission.queues.pending import PendingQueue
from gatelift_admission.state.known import State
from gatelift_kube.objects.kueue import ClusterQueue, Cohort, LocalQueue
from gatelift_kube.values.resources import ObjectKey


def cluster_queue_changed(state: State, queue: ClusterQueue) -> None:
    """Take note of a ClusterQueue."""
    name = queue.metadata.name
    cells = frozenset(node_spec(queue).quotas)
    strict = queue.spec.queueing_strategy == "StrictFIFO"
    known = state.queues.get(name)
    if known is None:
        active = cluster_queue_active(queue, state.flavors, state.checks)
        catalogue = Catalogue.of(queue.spec, fair_sharing=bool(state.settings.fair_sharing))
        state.review_queue(name)
        state.restructure()
        state.queues[name] = QueueModel(name, queue, catalogue, cells, PendingQueue(strict=strict), active)
        _charge_adrift(state)
        return
    before, terminates = known.object, queue.metadata.deletion_timestamp
    if before.spec == queue.spec and before.metadata.deletion_timestamp == terminates:
        known.object = queue
        return
    catalogue = Catalogue.of(queue.spec, fair_sharing=bool(state.settings.fair_sharing))
    if before.spec.stop_policy != queue.spec.stop_policy or before.metadata.deletion_timestamp != terminates:
        state.review_queue(name)
    state.restructure()
    if known.pending.strict is not strict:
        try:
            known.pending = _moved(known.pending, strict=strict)
        except Exception:
            state.distrust()
            raise
    known.object, known.catalogue, known.cells = queue, catalogue, cells


def _charge_adrift(state: State) -> None:
    """Charge what is adrift where it belongs, if its queue is there again."""
    for uid in list(state.adrift):
        entry = state.entries[uid]
        with faults.EntryBoundary(state, entry):
            ghosts.hold(state, entry)


def _moved(old: PendingQueue, *, strict: bool) -> PendingQueue:
    """Return a queue of another strategy with the same members; those set aside stay so."""
    new = PendingQueue(strict=strict)
    aside = list(old.aside.values())
    for one in list(old.classes.values()):
        for entry in list(one.members.values()):
            old.remove(entry)
            new.add(entry)
    for entry in aside:
        old.remove(entry)
        new.set_aside(entry)
    return new


def cluster_queue_removed(state: State, name: str) -> None:
    """Forget a ClusterQueue."""
    queue = state.queues.get(name)
    if queue is None:
        return
    state.review_queue(name)
    state.restructure()
    for entry in list(queue.pending.in_order()):
        with faults.EntryBoundary(state, entry):
            places.unqueue(state, entry)
    del state.queues[name]


def local_queue_changed(state: State, queue: LocalQueue) -> None:
    """Take note of a LocalQueue."""
    key = ObjectKey(queue.metadata.namespace, queue.metadata.name)
    known = state.local_queues.get(key)
    changed = known is None or known.object.spec != queue.spec
    changed = changed or (
        known is not None and known.object.metadata.deletion_timestamp != queue.metadata.deletion_timestamp
    )
    if changed:
        state.review.update(state.submitted.get(key, {}))
    state.local_queues[key] = LocalModel(key, queue)
    if changed:
        _local_queue_changed(state, key)
        _charge_adrift(state)


def local_queue_removed(state: State, key: ObjectKey) -> None:
    """Forget a LocalQueue."""
    if state.local_queues.pop(key, None) is not None:
        _local_queue_changed(state, key)


def _local_queue_changed(state: State, key: ObjectKey) -> None:
    submitted = state.submitted.get(key, {})
    state.review.update(submitted)
    local = state.local_queues.get(key)
    queue = state.queues.get(local.object.spec.cluster_queue) if local is not None and local.stopped else None
    first = queue.pending.sticky if queue is not None else None
    if first is not None and first.uid in submitted:  # it may go on before the review: its place is lost at once
        with faults.EntryBoundary(state, first):
            places.unqueue(state, first)


def cohort_changed(state: State, cohort: Cohort) -> None:
    """Take note of a Cohort."""
    known = state.cohorts.get(cohort.metadata.name)
    if known is None or known.spec != cohort.spec:
        state.restructure()
    state.cohorts[cohort.metadata.name] = cohort


def review_namespace(state: State, namespace: str) -> None:
    """Look again at workloads of a namespace that were set aside."""
    for queue in state.queues.values():
        for entry in queue.pending.aside.values():
            if entry.key.namespace == namespace:
                state.review[entry.uid] = entry


def defaults_changed(state: State, namespace: str | None) -> None:
    """Read pending workloads again whose pods' defaults may have changed; None: of all namespaces."""
    state.defaults.clear()
    for key, entries in state.submitted.items():
        if namespace is None or key.namespace == namespace:
            state.review.update((uid, entry) for uid, entry in entries.items() if entry.queue)
