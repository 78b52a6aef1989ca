"""What runs though its object shows no reservation: charged all the same, until it is over.

A record gives its reservation back while something runs beside it: that stays charged where it was, in its flavors;
as what is named after the quota of its record was freed early, while the reservation stands there.
Or somebody took the reservation off the object, and nobody can tell any more which flavors it had: it is charged all
that it asks for, to the queue where it is, in the first flavor of each resource there. It may take that above its
quota; whoever feeds the engine says that it is nobody's to preempt (`Engine.set_unreachable`). In which queue it was
charged the feeder may remember; where nobody can tell, it is kept free everywhere (`adrift`). Neighbours: `engine`,
`intake` and `structure` call.
"""

from __future__ import annotations

from gatelift_admission.demand.grants import NOTHING, Grant, GrantedPodSet
from gatelift_admission.entries.entry import RESERVING, Entry, Phase
from gatelift_admission.feed import places
from gatelift_admission.queues.models import QueueModel
from gatelift_admission.state import charging
from gatelift_admission.state.known import State
from gatelift_admission.values import amounts
from gatelift_kube.objects.kueue import Admission


def hold(state: State, entry: Entry, queue: str = "") -> None:
    """Charge a workload that waits, by its object, as what runs: in `queue`, where somebody remembers that.

    Where the queue is not known it is adrift; nothing is charged where its requests cannot be read. What has a
    reservation is charged by that, and anew where its quota was freed before (HD-361).
    """
    entry.runs, entry.runs_in = True, queue or entry.runs_in
    if entry.phase in RESERVING and entry.held_counts is not None and not entry.ghost:
        _charge_most(state, entry)
        charging.settle(state, entry)
        return
    if entry.phase is not Phase.PENDING or (entry.ghost and entry.uid not in state.adrift):
        return
    known = _queue_of(state, entry)
    if known is None:
        _set_adrift(state, entry)
        return
    granted = _all_asked(state, entry, known)
    if granted:
        is_found(state, entry)
        _charge(entry, Admission(known.name), granted)
        charging.settle(state, entry)
        _keep_out(state, entry)


def is_found(state: State, entry: Entry) -> None:
    """Note that a workload is not adrift, or not any more."""
    if state.adrift.pop(entry.uid, None) is not None:
        state.restructure()


def _queue_of(state: State, entry: Entry) -> QueueModel | None:
    if entry.runs_in:
        return state.queues.get(entry.runs_in)
    local = state.local_queues.get(entry.local_queue)
    return state.queues.get(local.object.spec.cluster_queue) if local is not None else None


def _set_adrift(state: State, entry: Entry) -> None:
    asked: dict[str, int] = {}
    for one in state.reader.read(entry.workload, state.namespace_defaults(entry.key.namespace)).pod_sets:
        for name, amount in one.totals().items():
            asked[name] = amounts.add(asked.get(name, 0), amount)
    if not asked or state.adrift.get(entry.uid) == asked:
        return
    state.adrift[entry.uid] = asked
    entry.ghost, entry.held_counts = True, {}
    state.restructure()
    _keep_out(state, entry)


def _keep_out(state: State, entry: Entry) -> None:
    """Let nothing be granted to a ghost: the charge of what runs would go with that, or move to another queue."""
    places.unqueue(state, entry)
    state.review[entry.uid] = entry


def goes_on(state: State, entry: Entry) -> bool:
    """Make a ghost of one whose reservation goes while it runs, in the very place; False where it had none.

    The caller settles its charge.
    """
    if entry.ghost:
        return True
    if entry.phase is not Phase.PENDING or not entry.grant.pod_sets:
        return False
    _charge_most(state, entry)
    return True


def let_go(state: State, entry: Entry) -> None:
    """Charge it no more: nothing of it runs."""
    entry.runs, entry.runs_in = False, ""
    if not entry.ghost:
        return
    is_found(state, entry)
    entry.ghost, entry.held_counts = False, {}
    charging.settle(state, entry)
    if entry.phase is Phase.PENDING:
        entry.grant, entry.held_counts = NOTHING, None
    state.review[entry.uid] = entry


def _charge_most(state: State, entry: Entry) -> None:
    """Charge what was granted, in the very place, and all that is asked for where that is more."""
    asked = {one.name: one for one in _all_asked(state, entry, state.queues.get(entry.grant.queue))}
    granted = entry.grant.pod_sets
    _charge(entry, entry.grant.written, tuple(_most(one, asked.get(one.name)) for one in granted))


def _charge(entry: Entry, written: Admission, granted: tuple[GrantedPodSet, ...]) -> None:
    entry.grant = Grant.of(written, granted)
    entry.held_counts = {one.name: one.count for one in granted}
    entry.ghost = True


def _most(granted: GrantedPodSet, asked: GrantedPodSet | None) -> GrantedPodSet:
    """Return what a pod set was granted, or what it asks for where that is more: another epoch may have all of it."""
    if asked is None:
        return granted
    usage = {name: max(amount, asked.usage.get(name, 0)) for name, amount in granted.usage.items()}
    more = max(granted.count, asked.count)
    return GrantedPodSet(name=granted.name, flavors=granted.flavors, usage=usage, count=more)


def _all_asked(state: State, entry: Entry, queue: QueueModel | None) -> tuple[GrantedPodSet, ...]:
    """Return all that a workload asks for, in the first flavor of each resource of a queue."""
    reading = state.reader.read(entry.workload, state.namespace_defaults(entry.key.namespace))
    if reading.invalid or queue is None:
        return ()
    found = []
    for one in reading.pod_sets:
        groups = {name: queue.catalogue.by_resource.get(name) for name in one.per_pod}
        flavors = {name: group.flavors[0] for name, group in groups.items() if group is not None}
        totals = one.totals()
        usage = {name: totals[name] for name in flavors}
        found.append(GrantedPodSet(name=one.name, flavors=flavors, usage=usage, count=one.count))
    return tuple(found)
