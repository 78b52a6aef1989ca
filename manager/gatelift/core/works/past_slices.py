"""Slices that are no more what runs: they are finished, kept, and let go, and nothing that runs ends by it (SL-13).

Neighbours: `reconcile` asks first in a pass over a Workload, `choosing` which of several chains counts.
"""

from __future__ import annotations

from bisect import bisect_right

from gatelift.core.api.purposes import Purpose
from gatelift.core.conclusions import raising
from gatelift.core.dispatching import giving_back
from gatelift.core.records import metadata_patches, slice_condition, status_writes
from gatelift.core.records.chain import OUT_OF_SYNC, REPLACED, Chain, Role, Slice
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.record import Record
from gatelift.core.records.work import Work
from gatelift.core.rules import retention
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift.core.works import chain_activity, choosing
from gatelift_kinds.shared.made_for import is_orphan
from gatelift_kinds.shared.markers import RESOURCE_IN_USE
from gatelift_kube.objects.kueue import Workload

LOOKED_AT_ONCE = 4
"""Past slices beyond the limit that are looked at for each new one: all others were looked at before."""
NOT_WANTED = "The workload slice is out of sync with its parent job"
"""As Kueue has it."""


def look(core: Core, rec: Record, now: float) -> bool:
    """Look at a Workload that is a slice and no more what runs, nor next to; False where it is another one."""
    one = core.knowledge.slices.slice_of(rec.uid)
    if one is None:
        return False
    known = core.knowledge.workloads[rec.ref.key]
    work = core.knowledge.work_of(known)
    role = choosing.role_of(core, work, known)
    if role not in choosing.NOT_CURRENT:
        return False
    attempt = core.attempts.get(rec.uid)
    if attempt is not None and attempt.live:
        return False  # nobody knows of what took its place: it ends as any Workload does
    if not rec.finished and role is Role.SUPERSEDED and chain_activity.deactivates(core, known, now):
        return True  # it is the last word that anybody can say of it
    _close(core, rec)
    if rec.finished:
        raising.raised(core, rec.ref.key)  # it is placed nowhere any more: no dispatch waits for its epoch (HD-647)
    if known.metadata.deletion_timestamp is not None:
        _let_go(core, known)
    elif not rec.finished:
        finish(core, known, _said(core, known, role), now)
    elif not work.objects and is_orphan(known):
        api_requests.delete_workload(core, known, Purpose.DELETE_WORKLOAD)
    elif is_displaced(core, core.knowledge.slices.of(rec.uid), one) and not _is_of_present_wish(work, one):
        api_requests.delete(core, ref_of(known), known.metadata.uid, Purpose.DELETE_PAST_SLICE)
    else:
        retention.of_slice(core, known, now)
    return True


def is_displaced(core: Core, chain: Chain | None, one: Slice) -> bool:
    """Say whether later slices take the place of a past one: so many of its chain are kept, the latest (SL-16)."""
    past, limit = chain.past if chain is not None else (), core.settings.retention.slice_history
    return bisect_right(past, one.place, key=lambda each: each.place) <= len(past) - limit


def _is_of_present_wish(work: Work, one: Slice) -> bool:
    """Say whether a slice was made for what its object wants now: that it has ended is known by it alone."""
    owner = work.only_object
    return owner is not None and owner.kind.slice_name(owner.object) == one.key.name


def look_at_displaced(core: Core, chain: Chain) -> None:
    """Have those looked at that one more past slice displaces: one, and a few that stayed for another reason."""
    past, limit = chain.past, core.settings.retention.slice_history
    for each in past[: max(0, len(past) - limit)][-LOOKED_AT_ONCE:]:
        core.mark_workload(each.key)


def _close(core: Core, rec: Record) -> None:
    """Strike what was begun of a slice that waited: it has no turn any more."""
    core.ledger.block(rec.uid)
    attempt = core.attempts.get(rec.uid)
    if attempt is not None:
        giving_back.withdraw(core, attempt, core.now)
        core.end_attempt(rec.uid)
        core.ledger.undo(rec.uid)
    core.failures.gone(rec.uid)


def _said(core: Core, known: Workload, role: Role) -> tuple[str, str]:
    """Return reason and message of Finished, in Kueue's form."""
    chain = core.knowledge.slices.of(known.metadata.uid)
    if role is Role.SUPERSEDED and chain is not None and chain.record is not None:
        return REPLACED, replaced(chain.record.uid, chain.record.owner[3])
    return OUT_OF_SYNC, NOT_WANTED


def finish(core: Core, known: Workload, said: tuple[str, str], now: float) -> None:
    """Write Finished for this reason with this message."""
    chain = core.knowledge.slices.of(known.metadata.uid)
    by = chain.record if chain is not None and said[0] == REPLACED else None
    is_past = slice_condition.past(known, said[0], core.knowledge.workloads[by.key] if by is not None else None)
    body = status_writes.finished_write(known, *said, core.wall.text(now), (is_past,))
    api_requests.patch_workload(core, known, body, Purpose.FINISH_SLICE)


def replaced(by: str, owner: str) -> str:
    """Return what is said of a slice whose place is taken, as Kueue says it: by the UIDs of slice and object."""
    return f"Replaced to accommodate a workload (UID: {by}, JobUID: {owner}) due to workload slice aggregation"


def _let_go(core: Core, known: Workload) -> None:
    body = metadata_patches.finalizers_patch(known.metadata, RESOURCE_IN_USE)
    if body is not None:
        api_requests.patch_workload(core, known, body, Purpose.RELEASE_WORKLOAD, status=False)
