"""Epochs of a restored record are raised, each above all that may have been used since the backup. Pure.

Dispatch waits until each Workload of the record has its own. One whose raise the API server refuses for what it says
(its annotations are full, a webhook is against it), or that cannot be read, holds itself alone: nothing is done for it
but its end, the others go on, and the recovery stays open, so that the next leader tries again. Neighbours:
`recovery_settling` says when, `reconcile` has the write asked for.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.inflight import Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.conclusions import recovery_texts
from gatelift.core.records import epochs, metadata_patches
from gatelift.core.records.record import Record
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift.core.told.shown_end import FOR_GOOD
from gatelift_kube.deciding.writes import WriteError, WriteFailed
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef

LOOK = Key(Look.CLUSTER, ObjectKey("", LOCAL_CLUSTER))
NOT_RAISED = "EpochNotRaised"
"""Reason of the event on a Workload that holds itself."""
_REFUSALS = FOR_GOOD | {WriteError.FORBIDDEN}


def begin(core: Core) -> None:
    """Raise the epochs of all Workloads that the restored record has: higher ones may have been used since."""
    state = core.caution.recovery
    least = state.word.epochs if state.word is not None else 0
    known = core.knowledge.workloads
    state.begin_raising(
        {key for key in known if _is_to_raise(known[key], least) and not core.knowledge.readings[key][1].finished}
        | {ref.key for ref in core.untaken.refs() if ref.resource == WORKLOAD}
    )
    core.mark_later(known[key].metadata.uid for key in sorted(state.to_raise) if key in known)


def left(core: Core) -> set[ObjectKey]:
    """Return the Workloads for whose epochs dispatch waits."""
    state, workloads = core.caution.recovery, core.knowledge.workloads
    return {
        key
        for key in state.to_raise - state.unraised
        if not core.untaken.holds(ObjectRef(WORKLOAD, key))
        and (key not in workloads or workloads[key].metadata.uid not in core.caution.set_aside)
    }


def _is_to_raise(known: Workload, least: int) -> bool:
    """Say whether a Workload has yet to be raised, or to say that it was: what runs below that is left alone by it."""
    return epochs.annotated(known) < least or epochs.recovered(known) < least


def raise_epoch(core: Core, known: Workload, rec: Record, *, goes: bool) -> bool:
    """Raise the epoch of a Workload of the restored record; True if a write was asked for. A run keeps its own.

    `goes`: it is deleted, whatever anybody does, so it is placed nowhere any more.
    """
    state, key = core.caution.recovery, rec.ref.key
    if state.word is None or key not in state.to_raise:
        return False
    least = state.word.epochs
    if not (rec.finished or goes) and _is_to_raise(known, least):
        body = metadata_patches.epoch_patch(known, max(epochs.annotated(known), least), recovered=least)
        api_requests.patch_workload(core, known, body, Purpose.RAISE_AFTER_RESTORE, status=False)
        return True
    raised(core, key)
    return False


def raised(core: Core, key: ObjectKey) -> None:
    """Take that a Workload has its epoch, or is gone, or goes."""
    state = core.caution.recovery
    if key in state.to_raise:
        state.raised(key)
        if len(state.to_raise) <= len(state.unraised) + len(core.caution.set_aside):
            core.agenda.mark(LOOK)


def refused(core: Core, outstanding: Outstanding, event: WriteFailed) -> None:
    """Take that a write was refused: of a raise, that this Workload has no other one wait for it."""
    state, key = core.caution.recovery, outstanding.ref.key
    if (
        outstanding.purpose is not Purpose.RAISE_AFTER_RESTORE
        or event.error not in _REFUSALS
        or key not in state.to_raise
    ):
        return
    core.agenda.mark(LOOK)
    if state.not_raised(key):
        why = recovery_texts.not_raised(plain(event.message or event.error.value))
        core.event(outstanding.ref, outstanding.uid, NOT_RAISED, why, warning=True)
