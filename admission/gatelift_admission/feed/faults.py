"""A workload that raises an exception as it is looked at is set aside, and everybody else has his turn. Pure.

A mistake of ours, or an object that nobody thought of, must not keep all queues from being decided on. What it holds
stays charged, and of what its object says one thing is read all the same: what is reserved (`not_taken`). It is taken
in again when its object comes again, or when the caller says so (`Engine.look_again`). What the exception may have left
half changed follows from the entries, and is made anew from them (`State.distrust`). Each function here is a path of
few lines, which asks nothing of the rooms that may have raised; what raises even so is the caller's.
Neighbours: `engine` and `cycle` catch at the boundary of one workload, `intake` takes it in again.
"""

from __future__ import annotations

from types import TracebackType

from gatelift_admission import texts
from gatelift_admission.demand import grants
from gatelift_admission.demand.grants import NOTHING
from gatelift_admission.entries.entry import RESERVING, Entry, Phase
from gatelift_admission.feed.intake import is_older
from gatelift_admission.state.known import State
from gatelift_admission.values.amounts import QuantityError
from gatelift_admission.values.model import Fault
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


class ChargeBefore:
    """What a workload was charged, and by what, before a version of its object came in."""

    __slots__ = ("_charge", "_life")

    def __init__(self, entry: Entry) -> None:
        """Keep that."""
        self._life = entry.phase, entry.grant, entry.held_counts, entry.ghost, entry.evicted, entry.preempted
        self._charge = entry.charged, entry.charged_queue, entry.charged_local, entry.counted, entry.asked

    def restore(self, entry: Entry) -> None:
        """Let it be so again."""
        entry.phase, entry.grant, entry.held_counts, entry.ghost, entry.evicted, entry.preempted = self._life
        entry.charged, entry.charged_queue, entry.charged_local, entry.counted, entry.asked = self._charge


class EntryBoundary:
    """Where an exception about one workload ends: `with EntryBoundary(state, entry):`."""

    __slots__ = ("_entry", "_state")

    def __init__(self, state: State, entry: Entry) -> None:
        """Set `entry` aside if what is done with it raises."""
        self._state, self._entry = state, entry

    def __enter__(self) -> None:
        """Nothing is needed: what is tried stands inside."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Take an exception; what is none of ours (`KeyboardInterrupt`, ...) goes on."""
        if error is None or not isinstance(error, Exception):
            return False
        set_aside(self._state, self._entry, error)
        return True


def set_aside(state: State, entry: Entry, error: Exception) -> None:
    """Keep an entry out of all queues, and tell the caller of it."""
    state.faults.append(Fault(uid=entry.uid, key=entry.key, error=error))
    keep_out(state, entry, error)


def keep_out(state: State, entry: Entry, error: Exception) -> None:
    """Do the same where the caller knows of it."""
    entry.stand_aside()
    state.distrust()
    if entry.phase is Phase.PENDING:
        entry.want = (texts.MISCONFIGURED, texts.faulty(type(error).__name__))
        state.untold[entry.uid] = entry


def take_back(entry: Entry) -> None:
    """Take back a reservation of which nobody is told, since deciding on it came to no end; it is set aside next."""
    if entry.phase is Phase.ASSUMED:
        entry.phase, entry.grant = Phase.PENDING, NOTHING
        entry.charged, entry.charged_queue, entry.charged_local, entry.counted = {}, "", None, None


def not_taken(state: State, workload: Workload, before: ChargeBefore | None, error: Exception) -> None:
    """Take that a version of a Workload could not be taken in: it is charged what it says to be reserved, and aside.

    Where it says nothing of that, what was charged before stays: nothing is released by a version that was not taken.
    """
    uid, key = workload.metadata.uid, ObjectKey(workload.metadata.namespace, workload.metadata.name)
    entry = state.entries.get(uid)
    if entry is None:
        entry = state.entries[uid] = Entry(uid, key, workload, ObjectKey(key.namespace, workload.spec.queue_name))
    elif before is not None:
        before.restore(entry)
    charged_in = entry.charged_queue
    if entry.workload is workload or not _older(workload, entry.workload):
        entry.workload = workload
        phase = _reserved(workload)
        if phase is not None:
            _charge(state, entry, phase)
    state.review[uid] = entry  # a stop is obeyed all the same
    set_aside(state, entry, error)
    state.debts.left.setdefault(uid, (entry, charged_in))


def _older(new: Workload, known: Workload) -> bool:
    try:
        return is_older(new, known)
    except Exception:  # noqa: BLE001 (it is told already; who feeds has compared the versions, too)
        return False


def _reserved(workload: Workload) -> Phase | None:
    """Return how far a Workload is that says that quota is reserved for it; None where nothing is, or it is over."""
    true = {one.type for one in workload.status.conditions if one.status == "True"}
    if workload.status.admission is None or "QuotaReserved" not in true or "Finished" in true:
        return None
    return Phase.ADMITTED if "Admitted" in true else Phase.RESERVED


def _charge(state: State, entry: Entry, phase: Phase) -> None:
    """Charge what its object says to be reserved, all of it unless the caller's ledger has spoken of that."""
    if entry.phase not in RESERVING:
        entry.held_counts, entry.ghost, entry.evicted, entry.preempted = None, False, False, False
        state.adrift.pop(entry.uid, None)
    entry.phase, admission = phase, entry.workload.status.admission
    if entry.held_counts is not None or admission is None:
        return
    try:
        entry.grant = grants.of_record(entry.workload, admission)
    except QuantityError:
        return  # what was charged before stays charged, as ever
    entry.charged, entry.charged_queue, entry.charged_local = entry.grant.usage, entry.grant.queue, entry.local_queue
    entry.counted = phase


def not_removed(state: State, entry: Entry, error: Exception) -> None:
    """Take that the end of an object could not be taken in whole: nothing of it is left all the same."""
    uid, charged_in = entry.uid, entry.charged_queue
    state.entries.pop(uid, None)
    state.submitted.get(entry.local_queue, {}).pop(uid, None)
    entry.phase, entry.grant, entry.held_counts = Phase.FINISHED, NOTHING, None
    entry.charged, entry.charged_queue, entry.charged_local, entry.counted = {}, "", None, None
    state.adrift.pop(uid, None)
    state.chains.said.pop(uid, None)
    if entry.of_chain is not None:
        state.chains.join(entry, None)
    set_aside(state, entry, error)
    state.review.pop(uid, None)
    state.untold.pop(uid, None)
    state.debts.left.setdefault(uid, (entry, charged_in))
