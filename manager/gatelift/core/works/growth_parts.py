"""Growth by parts (KEP-77, KEP-12100): a slice that is granted less than it wants takes that, the rest waits (SL-36).

The engine reserves for any size between what is charged and what is wanted, with more in one pod set at least. Once its
cluster holds the room for it, the slice comes down to what is granted, before it becomes the record: so a record never
asks for more than it is charged (Size 2), and what is still wanted is the next slice, as any growth. It keeps its
number: nobody was told that size yet, and what was offered by it is just this. Neighbours: `growing` asks before it
writes the growth, `resizing` leaves alone what was lowered here, `slices_seen` tells the engine who wants it so.
"""

from __future__ import annotations

import msgspec

from gatelift.core.api.purposes import Purpose
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_admission.values.model import Reserve
from gatelift_kinds.shared import markers, sizes, slices
from gatelift_kinds.shared.sizes import Counts, Size
from gatelift_kube.objects.kueue import Workload

PARTIAL = "partial"
"""The value by which a user wants any part of a growth at once; anything else is all of it or nothing."""
_TAKES_PLACE = frozenset({AttemptState.RESERVED, AttemptState.OFFERED})


def are_wanted(core: Core, uid: str) -> bool:
    """Say whether the user of the object of a slice wants any part of a growth."""
    known = core.knowledge.workload_of(uid)
    owner = core.knowledge.work_of(known).only_object if known is not None else None
    return owner is not None and owner.object.metadata.annotations.get(markers.SCALE_UP_STRATEGY) == PARTIAL


def lowers(case: Case, reserve: Reserve) -> bool:
    """Ask for the write by which a slice wants what it is granted and no more; False where that is so already."""
    core, known, attempt = case.core, case.known, case.attempt
    wanted = sizes.counts_of(known)
    part = sizes.lowered(wanted, _granted(reserve))
    one, raw = core.knowledge.slices.slice_of(case.rec.uid), core.knowledge.slices.raw(case.rec.uid)
    if part == wanted or one is None or not raw:
        return part != wanted
    if not api_requests.blocked(core, ref_of(known), attempt.look, case.now):
        listed = tuple(msgspec.structs.replace(each, count=part[each.name]) for each in known.spec.pod_sets)
        attempt.take_reserve(reserve, listed, attempt.reserved_at)
        body = slices.resized(known, raw, Size(number=one.number, counts=part))
        api_requests.patch_workload(core, known, body, Purpose.RESIZE, status=False)
    return True


def is_taken(core: Core, target: Workload, wanted: Counts) -> bool:
    """Say whether a slice wants just what it was granted of what its user wants, and is about to be the record."""
    attempt = core.attempts.get(target.metadata.uid)
    if attempt is None or attempt.reserve is None or attempt.state not in _TAKES_PLACE:
        return False
    one = core.knowledge.slices.slice_of(target.metadata.uid)
    if one is not None and one.asks and not are_wanted(core, one.uid):
        return False  # checks of others are asked about it: that may take long
    asked = sizes.counts_of(target)
    return sizes.lowered(asked, _granted(attempt.reserve)) == asked == sizes.lowered(asked, wanted)


def _granted(reserve: Reserve) -> dict[str, int]:
    return {one.name: one.count or 0 for one in reserve.admission.pod_set_assignments}
