"""What ends a run by what stands in the API: one table, for the ordinary look and for what is set aside. Pure.

Neighbours: `reconcile`, `owners` and `endings` ask in their own order, row by row; `obeying` asks for the first row
that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gatelift.core import texts
from gatelift.core.records import record
from gatelift.core.records.attempts import Ending
from gatelift.core.records.record import Record
from gatelift.core.records.work import Owner, Work
from gatelift.core.rules import deactivation
from gatelift_kinds.shared.values import UserChange
from gatelift_kube.objects.conditions import find, is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_wire.values.keys import PlacementKey

DELETED = "The user deleted it"
FINISHED = Ending(reason=texts.FINISHED, message="The workload is finished", evict=False)
SUSPENDED = Ending(reason=texts.SUSPENDED, message=texts.SUSPENDED_BY_USER)


class WhatStands(NamedTuple):
    """What stands in the API of a Workload and its object.

    `object`: what is known of the user's object at all, also where it could not be read as that (`owner` is None then).
    `is_gone`: whether that object is known to be gone.
    """

    known: Workload
    rec: Record
    placed: PlacementKey
    owner: Owner | None = None
    object: ObjectMeta | None = None
    is_gone: bool = False


def is_deleted(meta: ObjectMeta | None) -> bool:
    """Say whether an object is being deleted."""
    return meta is not None and meta.deletion_timestamp is not None


def deleted(says: WhatStands) -> Ending | None:
    """Stop what is deleted, or whose object is, or is gone."""
    if is_deleted(says.known.metadata):
        return Ending(reason=texts.WORKLOAD_DELETED, message=DELETED, evict=False)
    if says.is_gone or is_deleted(says.object):
        return Ending(reason=texts.OWNER_DELETED, message=DELETED, evict=False)
    return None


def finished(says: WhatStands) -> Ending | None:
    """Stop what still runs of what somebody else wrote Finished of."""
    return FINISHED if is_true(says.known.status.conditions, texts.FINISHED) else None


def evicted(says: WhatStands) -> Ending | None:
    """Stop what is written as evicted, and has not given its quota back yet."""
    return as_written(says.known) if is_evicted(says.rec) else None


def is_evicted(rec: Record) -> bool:
    """Say whether a record is to give back the quota that it has."""
    return rec.evicted and rec.reserved


def as_written(known: Workload) -> Ending:
    """Return the eviction that stands in a record."""
    said = find(known.status.conditions, texts.EVICTED)
    return Ending(reason=said.reason if said else "", message=said.message if said else "")


def inactive(says: WhatStands) -> Ending | None:
    """Stop what a person, or we, have deactivated."""
    return None if says.known.spec.active else deactivation.ending(says.known)


def left_queue(says: WhatStands) -> Ending | None:
    """Stop what has left its queue."""
    if says.owner is None or says.owner.managed or is_true(says.known.status.conditions, texts.FINISHED):
        return None
    return Ending(reason=texts.OWNER_DELETED, message=texts.LEFT_QUEUE, evict=False)


def has_left(known: Workload, work: Work) -> bool:
    """Say whether all objects of a work have left their queue before its Workload was finished."""
    return work.is_out_of_queue and not is_true(known.status.conditions, texts.FINISHED)


def suspended(says: WhatStands) -> Ending | None:
    """Stop what its user suspended while it was placed."""
    if says.owner is None:
        return None
    return SUSPENDED if change_of(says.owner, says.known, says.placed) is UserChange.SUSPENDED else None


def change_of(owner: Owner, known: Workload, placed: PlacementKey) -> UserChange | None:
    """Return what the user changed on what is placed."""
    return owner.kind.user_change(owner.object, known, placed, record.granted(known))


TABLE: tuple[Callable[[WhatStands], Ending | None], ...] = (
    deleted,
    finished,
    evicted,
    inactive,
    left_queue,
    suspended,
)
"""In the order of a look: deletion, then finished, then eviction, then everything else. The execution time ends a run
by a deactivation, which has to be written (`execution_time.is_over`)."""
