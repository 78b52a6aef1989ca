"""Whether the user's object ends with its Workload, which somebody deleted: as in Kueue, pods do. Pure.

Not where that was our doing, or may have been: what asks for something else than its Workload gets another one, and so
does what came back into its queue. While the record is in doubt both wait, and what is over stays: also what has
ended by its cluster's word alone, with its Workload until it shows that (HD-362). Neighbours: `endings` keeps the
Workload until the object goes, `works.ending_objects` asks for that.
"""

from __future__ import annotations

from gatelift.core.records.attempt_states import AttemptState, Wire
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Owner
from gatelift.core.rules import ends
from gatelift.core.state.case import Case
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER


def is_due(case: Case) -> bool:
    """Say whether the user's object is to be deleted now: nothing of it runs, and the record is in no doubt."""
    caution = case.core.caution
    return is_to_come(case) and not caution.halted and not caution.holds(case.attempt.key.uid)


def is_to_come(case: Case) -> bool:
    """Say whether the user's object is to go before its Workload: else nobody would know any more that it is to."""
    known, attempt = case.known, case.attempt
    if not ends.is_deleted(known.metadata) or attempt.state is not AttemptState.ENDED or attempt.deleted_by_us:
        return False
    if is_to_be_shown(case):
        return False
    if case.work.gathered is not None:
        to_go = not attempt.told.ends and _names_any(case, case.work.gathered)  # each shows first how it ended
        return to_go and not is_held_by_others(case)
    owner = case.work.only_object
    if owner is None or not owner.kind.ends_with_workload or ends.is_deleted(owner.object.metadata):
        return False
    if not owner.managed or owner.workload != key_of(known.metadata):
        return False
    if case.rec.finished or owner.kind.outcome(owner.object) is not None:
        return False
    return owner.kind.equivalent(known, owner.object)


def is_held_by_others(case: Case) -> bool:
    """Say whether all of its objects are deleted, and stay for somebody else's finalizers: nobody says for how long.

    Until the Workload goes its record says that they are placed, to whoever removes that cluster or leads next
    (HD-576). Of several nothing runs or may by then, so none is made of them anew (HD-642).
    """
    gathered = case.work.gathered
    if gathered is not None and (case.rec.finished or not gathered.is_abandoned):
        return False
    return bool(case.work.objects) and all(map(_stays_for_others, case.work.objects))


def _stays_for_others(owner: Owner) -> bool:
    """Say whether an object is deleted, and no finalizer of ours keeps it."""
    meta = owner.object.metadata
    return ends.is_deleted(meta) and bool(meta.finalizers) and owner.kind.release_step(owner.object) is None


def is_to_be_shown(case: Case) -> bool:
    """Say whether the user's object is to show first how it ended elsewhere: without its Workload nobody would know.

    Whatever time that takes; not where the API server refuses it for good. Of several objects each shows its own.
    """
    known, attempt, owner = case.known, case.attempt, case.work.only_object if case.work.gathered is None else None
    if owner is None or not ends.is_deleted(known.metadata) or ends.is_deleted(owner.object.metadata):
        return False
    if attempt.outcome is None or attempt.outcome.how is not Wire.FINISHED or attempt.cluster in {"", LOCAL_CLUSTER}:
        return False
    if case.rec.finished or not owner.managed or owner.workload != key_of(known.metadata):
        return False
    return owner.kind.outcome(owner.object) is None and not case.core.resting.hopeless(owner.ref)


def is_due_for(case: Case, owner: Owner) -> bool:
    """Say whether one of several objects is to be deleted now, or let go where it is: with the Workload that names it.

    What succeeded goes with the others, as in Kueue; who came since that Workload was made gets another one.
    """
    gathered = case.work.gathered
    if gathered is None or not (owner.managed and is_due(case)):
        return False
    return gathered.is_named(case.known, owner.object.metadata.uid)


def _names_any(case: Case, gathered: Gathered) -> bool:
    """Say whether objects that a Workload names are to go before it.

    The garbage collector deletes one of which no owner is left: whoever came since goes on.
    """
    known = case.known
    if case.rec.finished or case.work.key != key_of(known.metadata) or gathered.conflict(known):
        return False
    return gathered.outcome(known) is None and gathered.names_any(known)
