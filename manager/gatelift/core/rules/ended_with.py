"""Whether the user's object ends with its Workload, which somebody deleted: as in Kueue, a pod does. Pure.

Not where that was our doing, or may have been: what asks for something else than its Workload gets another one, and so
does what came back into its queue. While the record is in doubt both wait, and what is over stays. Neighbours:
`endings` keeps the Workload until the object goes, `works.ending_objects` asks for that.
"""

from __future__ import annotations

from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.knowledge import key_of
from gatelift.core.rules import ends
from gatelift.core.state.case import Case


def is_due(case: Case) -> bool:
    """Say whether the user's object is to be deleted now: nothing of it runs, and the record is in no doubt."""
    caution = case.core.caution
    return is_to_come(case) and not caution.halted and not caution.holds(case.attempt.uid)


def is_to_come(case: Case) -> bool:
    """Say whether the user's object is to go before its Workload: else nobody would know any more that it is to."""
    if case.work.gathered is not None:  # of several objects, which end by other rules
        return False
    known, attempt, owner = case.known, case.attempt, case.work.only_object
    if owner is None or not owner.kind.ends_with_workload or ends.is_deleted(owner.object.metadata):
        return False
    if not ends.is_deleted(known.metadata) or attempt.state is not AttemptState.ENDED or attempt.deleted_by_us:
        return False
    if not owner.managed or owner.workload != key_of(known.metadata):
        return False
    if case.rec.finished or owner.kind.outcome(owner.object) is not None:
        return False
    return owner.kind.equivalent(known, owner.object)
