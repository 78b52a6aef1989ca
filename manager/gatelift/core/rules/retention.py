"""Objects that are over are deleted after a while, if the deployment says so (KEP-1618). Never without.

A finished Workload goes once the user's object shows the end: until then its record is all that keeps the work from
being run again. What the manager deactivated goes with the user's object; what a person deactivated stays. Neighbours:
`endings` and `reconcile` ask in their passes; the deletion itself takes the usual way through `endings.deleted`.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kube.objects.conditions import TRUE, find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition

KEPT_LONG_ENOUGH = "kept long enough"
"""Name of an end: of what was deactivated and is deleted now."""


def after_finish(case: Case) -> None:
    """Delete a finished Workload that was kept long enough."""
    core, known, now = case.core, case.known, case.now
    kept = core.settings.retention.after_finished
    if kept is None or not _is_shown(case) or known.metadata.deletion_timestamp is not None:
        return
    if _due(core, known, find(known.status.conditions, texts.FINISHED), kept, now):
        api_requests.delete(core, ref_of(known), known.metadata.uid, Purpose.DELETE_FINISHED)


def of_slice(core: Core, known: Workload, now: float) -> None:
    """Delete a slice that is past and was kept long enough: its object may run on by a later one."""
    kept, said = core.settings.retention.after_finished, find(known.status.conditions, texts.FINISHED)
    if kept is not None and _due(core, known, said, kept, now):
        api_requests.delete(core, ref_of(known), known.metadata.uid, Purpose.DELETE_FINISHED)


def after_deactivation(case: Case) -> bool:
    """Delete the user's object of a Workload that we deactivated long enough ago; True if that was asked for."""
    core, known, now = case.core, case.known, case.now
    kept = core.settings.retention.after_deactivated
    said = _deactivated_by_us(known)
    if kept is None or said is None:
        return False
    if case.work.gathered is not None:
        if _due(core, known, said, kept, now) and not case.work.gathered.is_abandoned:
            _look_at_each(case)
        return False
    owner = case.work.only_object
    if owner is None or owner.object.metadata.deletion_timestamp is not None:
        return False
    look = Key(Look.WORKLOAD, key_of(known.metadata))
    if not _due(core, known, said, kept, now) or api_requests.blocked(core, owner.ref, look, now):
        return False
    delete(core, owner)
    return True


def ends_object(case: Case, owner: Owner) -> bool:
    """Say whether one of several objects goes with a Workload that we deactivated long enough ago, also a later one.

    Each in a pass of its own: nothing of them runs, and nobody starts them.
    """
    core, known, kept = case.core, case.known, case.core.settings.retention.after_deactivated
    said = _deactivated_by_us(known)
    if kept is None or said is None or case.attempt.state is not AttemptState.PENDING or not owner.managed:
        return False
    return _due(core, known, said, kept, case.now)


def delete(core: Core, owner: Owner) -> None:
    """Delete a user's object, and tell it there."""
    uid = owner.object.metadata.uid
    api_requests.delete(core, owner.ref, uid, Purpose.DELETE_DEACTIVATED)
    core.event(owner.ref, uid, "Deleted", texts.DELETED_AFTER_DEACTIVATION)


def _is_shown(case: Case) -> bool:
    """Say whether the user's object shows the end, or each of several does: by what is counted of them."""
    if case.work.gathered is not None:
        return case.work.gathered.is_over
    owner = case.work.only_object
    return owner is None or owner.kind.outcome(owner.object) is not None


def _deactivated_by_us(known: Workload) -> Condition | None:
    """Return since when a Workload is out of its queue by our own decision; None where it is not."""
    said = find(known.status.conditions, texts.EVICTED)
    if known.spec.active or said is None or said.status != TRUE:
        return None
    return said if said.reason.startswith(texts.DEACTIVATED_DUE_TO) else None


def _look_at_each(case: Case) -> None:
    """Have each of several objects looked at, once."""
    if case.work.lets_go(f"{case.attempt.uid} {KEPT_LONG_ENOUGH}"):
        for owner in case.work.objects:
            case.core.mark_owner_alone(owner)


def _due(core: Core, known: Workload, since: Condition | None, kept: float, now: float) -> bool:
    """Say whether the time is over since a condition became what it is; else see that it is looked at then."""
    due = core.wall.at(since.last_transition_time if since is not None else None, now) + kept
    if now < due:
        core.agenda.wake(Key(Look.WORKLOAD, key_of(known.metadata)), due)
    return now >= due
