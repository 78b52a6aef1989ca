"""What runs though its object shows no reservation: charged all the same, until it is over.

Somebody took the reservation off the object, and nobody can tell any more which flavors it had: it is charged all that
it asks for, to the queue where it is, in the first flavor of each resource there. It may take that above its quota;
whoever feeds the engine says that it is nobody's to preempt (`Engine.set_unreachable`). Neighbours: `engine` calls.
"""

from __future__ import annotations

from gatelift_admission.entry import Entry, Phase
from gatelift_admission.grants import NOTHING, Grant, GrantedPodSet
from gatelift_admission.queues import QueueModel
from gatelift_admission.state import State
from gatelift_kube.objects.kueue import Admission


def hold(state: State, entry: Entry) -> None:
    """Charge a workload that waits, by its object, as what runs; nothing where its queue or requests are unknown."""
    if entry.ghost or entry.phase is not Phase.PENDING:
        return
    local = state.local_queues.get(entry.local_queue)
    queue = state.queues.get(local.object.spec.cluster_queue) if local is not None else None
    granted = _all_asked(state, entry, queue) if queue is not None else ()
    if queue is None or not granted:
        return
    entry.grant = Grant.of(Admission(queue.name), granted)
    entry.held_counts = {one.name: one.count for one in granted}
    entry.ghost = True
    state.settle(entry)


def let_go(state: State, entry: Entry) -> None:
    """Charge it no more: nothing of it runs."""
    if not entry.ghost:
        return
    entry.ghost, entry.held_counts = False, {}
    state.settle(entry)
    if entry.phase is Phase.PENDING:
        entry.grant, entry.held_counts = NOTHING, None
    state.review[entry.uid] = entry


def _all_asked(state: State, entry: Entry, queue: QueueModel) -> tuple[GrantedPodSet, ...]:
    reading = state.reader.read(entry.workload, state.namespace_defaults(entry.key.namespace))
    if reading.invalid:
        return ()
    found = []
    for one in reading.pod_sets:
        groups = {name: queue.catalogue.by_resource.get(name) for name in one.per_pod}
        flavors = {name: group.flavors[0] for name, group in groups.items() if group is not None}
        totals = one.totals()
        usage = {name: totals[name] for name in flavors}
        found.append(GrantedPodSet(name=one.name, flavors=flavors, usage=usage, count=one.count))
    return tuple(found)
