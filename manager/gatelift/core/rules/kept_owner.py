"""Whose a Workload is, where somebody else has changed that: known as it was, and written back. Pure.

For which object a Workload was made stands on it twice, as owner reference and as annotation (`made_for`). Whoever may
patch Workloads can take both off it, or name another object: it would be nobody's, run on when its user deletes what he
made, and be charged for ever; or go, while it runs, with an object that was never its own (HD-228). A policy refuses
that; this is the wall behind it. No Workload changes hands: the object whose it was first is the one that it is known
for, by each process that has seen it so.

The garbage collector takes owner references off, and others may add some; so the annotation says it, once it is there,
and of references the first of a kind that travels. What was made for no such object is its maker's, and nobody keeps it
(HD-232). All goes by what is known here already, so nothing waits for the write: it is the last thing that is asked
for, and refused for good it is only tried again (HD-233). Neighbours: `intake`, `reconcile`.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.records.work import Work
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER, owners_of, said_of, says_owner, says_several
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import OwnerReference


def believed(core: Core, seen: Workload, known: Workload | None) -> Workload:
    """Return a Workload as it is to be known, `known` as it was: with its own owner, where that was changed.

    What else one of several objects says of that is written back by what its objects say (HD-420).
    """
    uid = seen.metadata.uid
    if known is None or known.metadata.uid != uid:
        return seen
    if not core.untaken.is_news(ref_of(seen), seen.metadata, known.metadata):
        return seen
    before = _before(core, seen, known)
    if before is None:
        core.caution.tampered.owner_stands(uid)
        return seen
    core.caution.tampered.owner_changed(uid)
    annotations = {**seen.metadata.annotations, ANNOTATION_OWNER: said_of(before)}
    return msgspec.structs.replace(seen, metadata=msgspec.structs.replace(seen.metadata, annotations=annotations))


def _before(core: Core, seen: Workload, known: Workload) -> OwnerReference | None:
    """Return the object that a Workload was made for, where it is said to be another one now, or nobody's."""
    before = _first(core, known)
    if before is None or (_names(_first(core, seen), before) and (says_owner(seen) or not says_owner(known))):
        return None
    if says_several(seen) and not says_owner(known):
        return None  # who led before us has written it back, of what ran for it
    return before


def _first(core: Core, workload: Workload) -> OwnerReference | None:
    """Return the object that a Workload was made for: as the annotation says, else the first that travels, if any."""
    owners = owners_of(workload)
    if says_owner(workload):
        return owners[0]
    return next((each for each in owners if core.kinds.resource_of(each) is not None), None)


def _names(seen: OwnerReference | None, before: OwnerReference) -> bool:
    """Say whether it is the same object by all that names it: by another kind or name nobody would find it."""
    return seen is not None and said_of(seen) == said_of(before)


def write_back(core: Core, known: Workload, work: Work, now: float) -> None:
    """Write the owner of a Workload back that was changed, where nothing else of it is being written.

    Also of one that says no more that it is its work's, and by what runs for it is.
    """
    meta = known.metadata
    of_several = work.gathered is not None and work.key == key_of(meta)
    own = work.gathered.own_marks(known) if of_several and work.gathered is not None else {}
    if own:
        core.caution.tampered.owner_changed(meta.uid)
    elif not core.caution.tampered.is_owner_changed(meta.uid):
        return
    ref = ref_of(known)
    if core.inflight.busy(ref):
        return
    if core.resting.rests(ref, Purpose.PUT_OWNER_BACK, core.agenda, Key(Look.WORKLOAD, key_of(meta)), now):
        return
    said = own or {ANNOTATION_OWNER: meta.annotations[ANNOTATION_OWNER]}
    body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": said}}
    if core.caution.tampered.tells_owner(meta.uid):
        core.event(ref, meta.uid, texts.OWNER_PUT_BACK, texts.OWNER_PUT_BACK_TEXT, warning=True)
        core.note(texts.OWNER_PUT_BACK_TEXT, core.attempts.get(meta.uid), warning=True)
    api_requests.patch_workload(core, known, msgspec.json.encode(body), Purpose.PUT_OWNER_BACK, status=False)
