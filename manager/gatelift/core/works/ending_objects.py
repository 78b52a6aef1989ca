"""Deletes the user's object whose Workload somebody deleted, once nothing of it runs, and says on it why.

One write in a pass over the object; its Workload, which is looked at by its own finalizer until then, goes after it.
Neighbours: `rules.ended_with` says whether it is due, `owners` passes.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.rules import ended_with
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import ObjectCase
from gatelift.core.told import event_texts


def end(seen: ObjectCase) -> bool:
    """Ask for the next write that ends an object with its Workload; False where none is due."""
    case = seen.of_workload()
    if case is None or not ended_with.is_due(case):
        return False
    core, owner = seen.core, seen.owner
    meta = owner.object.metadata
    told = owner.kind.told_step(owner.object, owner.raw, texts.WORKLOAD_DELETED, core.wall.text(seen.now))
    if told is not None and not core.resting.until(owner.ref, Purpose.SAY_END, seen.now):
        api_requests.patch(core, Decided(owner.ref, meta.resource_version), told, Purpose.SAY_END)
        return True
    api_requests.delete(core, owner.ref, meta.uid, Purpose.DELETE_WITH_WORKLOAD)
    if not case.attempt.cluster:  # what ran was told as it was stopped
        core.event(owner.ref, meta.uid, event_texts.STOPPED, event_texts.WORKLOAD_IS_DELETED)
    return True
