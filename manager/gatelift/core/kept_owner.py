"""Whose a Workload is, where somebody else has changed that: known as it was, and written back. Pure.

For which object a Workload was made stands on it twice, as owner reference and as annotation (`made_for`). Whoever may
patch Workloads can take both off it, or name another object: it would be nobody's, run on when its user deletes what he
made, and be charged for ever; or go, while it runs, with an object that was never its own (HD-228). A policy refuses
that; this is the wall behind it. No Workload changes hands: the object whose it was first is the one that it is known
for, by each process that has seen it so. Neighbours: `kept_record` (the same for the status), `intake`, `reconcile`.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.knowledge import newer
from gatelift.core.state import Core, ref_of
from gatelift_kinds.made_for import ANNOTATION_OWNER, owners_of, said_of
from gatelift_kube.objects.kueue import Workload

PURPOSE = "put the owner back"


def believed(core: Core, seen: Workload, known: Workload | None) -> Workload:
    """Return a Workload as it is to be known, `known` as it was: with its own owner, where that was changed."""
    uid = seen.metadata.uid
    if known is None or known.metadata.uid != uid or not newer(seen.metadata, known.metadata):
        return seen
    before = owners_of(known)[:1]
    if not before or before[0].uid in {each.uid for each in owners_of(seen)}:
        core.caution.changed_owners.pop(uid, None)
        return seen
    core.caution.changed_owners.setdefault(uid, False)
    annotations = {**seen.metadata.annotations, ANNOTATION_OWNER: said_of(before[0])}
    return msgspec.structs.replace(seen, metadata=msgspec.structs.replace(seen.metadata, annotations=annotations))


def write_back(core: Core, known: Workload) -> bool:
    """Write the owner of a Workload back that was changed; True if nothing else is to be done for it now."""
    meta = known.metadata
    if meta.uid not in core.caution.changed_owners:
        return False
    said = {ANNOTATION_OWNER: meta.annotations[ANNOTATION_OWNER]}
    body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": said}}
    if not core.caution.changed_owners[meta.uid]:  # once, however often the write is refused
        core.caution.changed_owners[meta.uid] = True
        core.event(ref_of(known), meta.uid, texts.OWNER_PUT_BACK, texts.OWNER_PUT_BACK_TEXT, warning=True)
        core.note(texts.OWNER_PUT_BACK_TEXT, core.attempts.get(meta.uid), warning=True)
    core.patch_workload(known, msgspec.json.encode(body), PURPOSE, status=False)
    return True
