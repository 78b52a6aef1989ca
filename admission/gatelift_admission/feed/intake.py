"""A Workload object comes in: what it says now, compared with what is known, becomes phase, charge and place.

Level-triggered: only the newest object counts, and a lost or repeated event changes nothing. Neighbours: `engine` calls
`workload_changed`, `entry` reads the object, `state` charges, `places` queues.
"""

from __future__ import annotations

from gatelift_admission.demand import grants
from gatelift_admission.demand.grants import NOTHING
from gatelift_admission.entries.entry import Entry, Phase, backoff_unix, phase_of
from gatelift_admission.entries.ordering import condition, is_true
from gatelift_admission.entries.standings import FAULTY, QueueMove
from gatelift_admission.feed import ghosts, places, slices
from gatelift_admission.state import charging
from gatelift_admission.state.known import State
from gatelift_admission.values.amounts import QuantityError
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import ObjectKey


def workload_changed(state: State, workload: Workload, now: float) -> None:
    """Take note of a new or changed Workload."""
    state.now = max(state.now, now)
    uid = workload.metadata.uid
    entry = state.entries.get(uid)
    if entry is None:
        entry = state.entries[uid] = _new_entry(state, workload)
    elif is_older(workload, entry.workload):
        return
    else:
        entry.workload = workload
        if entry.standing is FAULTY:
            entry.move(QueueMove.TAKE_IN)
        if workload.spec.queue_name != entry.local_queue.name:
            _leave(state, entry)
            entry.local_queue = ObjectKey(entry.key.namespace, workload.spec.queue_name)
        _hear(state, entry)
    state.submitted.setdefault(entry.local_queue, {})[uid] = entry
    _set_backoff(state, entry)
    phase = phase_of(workload)
    if entry.phase is not Phase.ASSUMED or phase is not Phase.PENDING:
        _set_phase(state, entry, phase)
    state.review[uid] = entry


def _new_entry(state: State, workload: Workload) -> Entry:
    key = ObjectKey(workload.metadata.namespace, workload.metadata.name)
    local = ObjectKey(key.namespace, workload.spec.queue_name)
    known = state.local_queues.get(local)  # one object for all: a dict finds that without comparing names
    entry = Entry(workload.metadata.uid, key, workload, local if known is None else known.key)
    entry.told = _said(workload)
    if state.chains.said:
        slices.found(state, entry)
    return entry


def _said(workload: Workload) -> tuple[str, str] | None:
    """Return why a Workload says that it waits."""
    said = condition(workload, "QuotaReserved")
    return (said.reason, said.message) if said is not None and said.status == "False" else None


def _hear(state: State, entry: Entry) -> None:
    """Say again what the object does not say: another leader has written it since, or a late write has."""
    said = _said(entry.workload)
    if entry.told is not None and said != entry.told:
        entry.told = said
        state.tell(entry, entry.want)


def is_older(new: Workload, known: Workload) -> bool:
    """Return whether `new` is an older version of the same object; versions that are not numbers count as newer."""
    after, before = new.metadata.resource_version, known.metadata.resource_version
    longer = len(after) - len(before)
    if (longer == 0 and after >= before) or (longer > 0 and after[0] != "0"):
        return False  # nearly all: no need to read numbers
    left, right = whole(after), whole(before)
    return left is not None and right is not None and left < right


def _set_backoff(state: State, entry: Entry) -> None:
    unix = backoff_unix(entry.workload)
    entry.backoff_until = None if unix is None else unix - state.unix_offset


def _set_phase(state: State, entry: Entry, phase: Phase) -> None:
    was = entry.phase
    entry.phase = phase
    if phase is Phase.RESERVED or phase is Phase.ADMITTED:
        places.unqueue(state, entry)
        state.tell(entry, None)
        entry.told = None
        if was is Phase.PENDING or was is Phase.FINISHED:
            entry.held_counts, entry.ghost = None, False
            ghosts.is_found(state, entry)
            entry.evicted = entry.preempted = False
        entry.evicted = entry.evicted or is_true(entry.workload, "Evicted")
        if not entry.ghost:  # what runs beside a reservation that was freed is charged by what it may have
            _read_grant(entry)
    elif not (entry.runs and ghosts.goes_on(state, entry)) and entry.held_counts is None:
        entry.grant = NOTHING
    if phase is not Phase.RESERVED and phase is not Phase.ADMITTED:
        entry.asked = None
    if phase is Phase.FINISHED:
        places.unqueue(state, entry)
    charging.settle(state, entry)


def _read_grant(entry: Entry) -> None:
    try:
        entry.grant = grants.read(entry.workload, entry.grant)
    except QuantityError:
        return  # somebody changed a written reservation, and what was charged before stays charged


def _leave(state: State, entry: Entry) -> None:
    known = state.submitted.get(entry.local_queue)
    if known is not None:
        known.pop(entry.uid, None)
        if not known:
            del state.submitted[entry.local_queue]


def workload_removed(state: State, uid: str) -> None:
    """Forget a Workload whose object is gone; whatever it was charged is released."""
    state.unreachable.discard(uid)
    entry = state.entries.pop(uid, None)
    if entry is None:
        return
    places.unqueue(state, entry)
    ghosts.is_found(state, entry)
    _leave(state, entry)
    entry.phase, entry.held_counts, entry.grant = Phase.FINISHED, None, NOTHING
    charging.settle(state, entry)
    slices.forget(state, uid, entry)
    state.review.pop(uid, None)
    state.untold.pop(uid, None)
