"""What is set aside still obeys a stop: its cluster is told, though the look that would say so raises. Pure.

It is read from what stands in the API, also of a version that could not be taken. Nothing else is done for it: what has
stopped stays charged until a look has come to its end. Neighbours: `passes` asks behind a look at a Workload that
failed, and in place of one that is held back; `rules.ends` has what ends a run.
"""

from __future__ import annotations

from typing import cast

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.dispatching import placing
from gatelift.core.records import record
from gatelift.core.records.attempts import Ending
from gatelift.core.records.work import Owner
from gatelift.core.rules import containment, ends, execution_time, seeking
from gatelift.core.rules.containment import Boundary
from gatelift.core.rules.ends import WhatStands
from gatelift.core.state.core import Core
from gatelift_kube.deciding.writes import ObjectGone
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.versions import is_last
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey

OUT_OF_TIME = Ending(reason=texts.MAXIMUM_EXECUTION_TIME_EXCEEDED, message=texts.RUNS_TOO_LONG)


def stop_if_asked(core: Core, key: ObjectKey, now: float) -> None:
    """Have the placement of a Workload stopped if its user, its queue or a person wants that."""
    known = _latest(core, key)
    attempt = core.attempts.get(known.metadata.uid) if known is not None else None
    if known is None or core.caution.halted or (attempt is not None and not attempt.live):
        return
    rec = record.read(known, travels=True)
    if rec.term > core.term:
        return  # R3: somebody else may lead
    placed = attempt.key if attempt is not None else PlacementKey(core.knowledge.placed_uid(rec.uid), rec.epoch)
    ending = attempt.ending if attempt is not None else None
    ending = ending or _asked(core, WhatStands(known, rec, placed), now)
    if attempt is not None and ending is not None:
        attempt.end_for(ending)
        placing.stop(core, attempt, ending, now)
    elif attempt is not None and rec.admitted and execution_time.is_over(core, known, now):
        placing.stop(core, attempt, OUT_OF_TIME, now)  # it ends for good by a look that can write so
    elif ending is not None and rec.reserved and rec.cluster:
        placing.drop_stray(core, rec.cluster, placed, over=False)


def _latest(core: Core, key: ObjectKey) -> Workload | None:
    """Return a Workload as it came last, taken or not."""
    kept = core.untaken.latest(ObjectRef(WORKLOAD, key))
    known = core.knowledge.workloads.get(key)
    if kept is None or (known is not None and kept.object.metadata.uid != known.metadata.uid):
        return known
    return cast("Workload", kept.object)


def _asked(core: Core, says: WhatStands, now: float) -> Ending | None:
    """Return why it is to stop by what its objects say, each row of the table by itself."""
    if _is_seen_gone(core, ObjectRef(WORKLOAD, says.rec.ref.key), says.rec.uid):
        return Ending(reason=texts.WORKLOAD_DELETED, message=ends.DELETED, evict=False)
    key = Key(Look.WORKLOAD, says.rec.ref.key)
    with Boundary(containment.stop_failed, core, key, now=now):
        says = _with_owner(core, says, now)
    for row in ends.TABLE:
        with Boundary(containment.stop_failed, core, key, now=now):
            ending = row(says)
            if ending is not None:
                return ending
    return None


def _with_owner(core: Core, says: WhatStands, now: float) -> WhatStands:
    """Return what stands in the API with what does of its user's object."""
    work, members = core.knowledge.work_of(says.known), containment.member_refs_of(core, says.known)
    if work.gathered is not None or members:  # none of several ends it by itself
        refs = {*members, *(each.ref for each in work.objects)}
        return says._replace(is_gone=bool(members) and all(_is_deleted(core, each) for each in refs))
    owner = work.only_object
    for ref in containment.owner_refs_of(core, says.known):
        kept = core.untaken.latest(ref)
        if kept is None:
            continue
        gone = isinstance(kept, ObjectGone) and is_last(kept.object.metadata)
        says = says._replace(object=kept.object.metadata, is_gone=gone)
        if owner is not None and not isinstance(kept, ObjectGone):
            owner = Owner(owner.kind, kept.object, kept.raw)
        return says._replace(owner=owner)
    if owner is not None:
        return says._replace(owner=owner, object=owner.object.metadata)
    travels = bool(containment.owner_refs_of(core, says.known))
    return says._replace(is_gone=travels and seeking.is_gone(core, says.known, now))


def _is_deleted(core: Core, ref: ObjectRef) -> bool:
    """Say whether one of several objects is being deleted, or was seen to go, as it came last, taken or not."""
    kept, known = core.untaken.latest(ref), core.knowledge.owners.get(ref)
    if kept is not None:
        return isinstance(kept, ObjectGone) or ends.is_deleted(kept.object.metadata)
    return known is not None and ends.is_deleted(known.object.metadata)


def _is_seen_gone(core: Core, ref: ObjectRef, uid: str) -> bool:
    kept = core.untaken.latest(ref)
    return isinstance(kept, ObjectGone) and kept.object.metadata.uid == uid
