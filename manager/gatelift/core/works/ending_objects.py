"""Deletes the user's object whose Workload somebody deleted, once nothing of it runs, and says on it why.

One write in a pass over the object; its Workload, which is looked at by its own finalizer until then, goes after it.
Neighbours: `rules.ended_with` says whether it is due, `owners` and `gathered` pass.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.work import Owner
from gatelift.core.rules import ended_with
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import Case, ObjectCase
from gatelift.core.told import event_texts


def end(seen: ObjectCase) -> bool:
    """Ask for the next write that ends an object with its Workload; False where none is due."""
    case = seen.of_workload()
    if case is None or not ended_with.is_due(case):
        return False
    _end(case, seen.owner, tells=not case.attempt.cluster)  # what ran was told as it was stopped
    return True


def end_one(case: Case, owner: Owner) -> None:
    """Ask for the next write that ends one of several objects with their Workload."""
    _end(case, owner, tells=not owner.kind.lifted(owner.object))


def _end(case: Case, owner: Owner, *, tells: bool) -> None:
    core, meta = case.core, owner.object.metadata
    told = owner.kind.told_step(owner.object, owner.raw, texts.WORKLOAD_DELETED, core.wall.text(case.now))
    if told is not None and not core.resting.until(owner.ref, Purpose.SAY_END, case.now):
        api_requests.patch(core, Decided(owner.ref, meta.resource_version), told, Purpose.SAY_END)
        return
    api_requests.delete(core, owner.ref, meta.uid, Purpose.DELETE_WITH_WORKLOAD)
    if tells:
        core.event(owner.ref, meta.uid, event_texts.STOPPED, event_texts.WORKLOAD_IS_DELETED)
