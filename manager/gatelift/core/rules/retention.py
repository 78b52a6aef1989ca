"""Objects that are over are deleted after a while, if the deployment says so (KEP-1618). Never without.

A finished Workload goes once the user's object shows the end: until then its record is all that keeps the work from
being run again. What the manager deactivated goes with the user's object; what a person deactivated stays. Neighbours:
`endings` and `reconcile` ask in their passes; the deletion itself takes the usual way through `endings.deleted`.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kube.objects.conditions import TRUE, find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition


def after_finish(case: Case) -> None:
    """Delete a finished Workload that was kept long enough."""
    core, known, now = case.core, case.known, case.now
    kept = core.settings.retention.after_finished
    if kept is None or case.work.gathered is not None:
        return  # of several objects nobody says yet whether each shows its end
    owner = case.work.only_object
    shown = owner is None or owner.kind.outcome(owner.object) is not None
    if not shown or known.metadata.deletion_timestamp is not None:
        return
    if _due(core, known, find(known.status.conditions, texts.FINISHED), kept, now):
        api_requests.delete(core, ref_of(known), known.metadata.uid, Purpose.DELETE_FINISHED)


def after_deactivation(case: Case) -> bool:
    """Delete the user's object of a Workload that we deactivated long enough ago; True if that was asked for."""
    core, known, now = case.core, case.known, case.now
    kept = core.settings.retention.after_deactivated
    if kept is None or case.work.gathered is not None:
        return False  # which of several go with it is not said yet
    owner = case.work.only_object
    said = find(known.status.conditions, texts.EVICTED)
    if owner is None or known.spec.active or said is None or said.status != TRUE:
        return False
    if not said.reason.startswith(texts.DEACTIVATED_DUE_TO) or owner.object.metadata.deletion_timestamp is not None:
        return False
    look = Key(Look.WORKLOAD, key_of(known.metadata))
    if not _due(core, known, said, kept, now) or api_requests.blocked(core, owner.ref, look, now):
        return False
    api_requests.delete(core, owner.ref, owner.object.metadata.uid, Purpose.DELETE_DEACTIVATED)
    core.event(owner.ref, owner.object.metadata.uid, "Deleted", texts.DELETED_AFTER_DEACTIVATION)
    return True


def _due(core: Core, known: Workload, since: Condition | None, kept: float, now: float) -> bool:
    """Say whether the time is over since a condition became what it is; else see that it is looked at then."""
    due = core.wall.at(since.last_transition_time if since is not None else None, now) + kept
    if now < due:
        core.agenda.wake(Key(Look.WORKLOAD, key_of(known.metadata)), due)
    return now >= due
