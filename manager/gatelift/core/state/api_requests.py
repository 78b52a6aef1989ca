"""Requests to the API server: what is asked for, noted as under way, and whether an object may be decided on now.

At most one request per object is out: who decides asks `blocked` first. Neighbours: `core` (lets commands out),
`inflight` (what is under way), `unsent` (what found no turn).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import Read
from gatelift.core.api.inflight import ClusterWord, Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import own_conditions
from gatelift.core.records.knowledge import ref_of
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.deciding.writes import Create, Delete, Patch, PatchKind
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.sessions.leases import landed_seconds

if TYPE_CHECKING:
    from gatelift.core.state.core import Core

UNSENT = Key(Look.UNSENT, ObjectKey("", ""))
"""Rings when objects whose write found no turn are looked at, should no other write end before."""
UNSENT_SECONDS = 1.0
"""After so long a turn is free again, whatever became of the others: a tenth of the time that a write waits for one."""
UNSENT_AT_ONCE = 64
"""Objects looked at then: as many as are written at a time."""


class Decided(NamedTuple):
    """The object that is written, in the version that it was decided on.

    `uid`: of the Workload that it is for; `word_of`: the cluster's word that it follows (`word_writes`).
    """

    ref: ObjectRef
    version: str
    uid: str = ""
    word_of: ClusterWord | None = None


def patch(core: Core, decided: Decided, step: PatchStep, purpose: Purpose, *, informs: bool = False) -> None:
    """Ask for a patch; at most one request per object is out, the caller has looked (`blocked`)."""
    write_id = core.ids.take()
    lands_until = core.now + landed_seconds() if purpose.charges else 0.0
    core.inflight.begin(
        write_id,
        Outstanding(
            ref=decided.ref,
            purpose=purpose,
            decided_on=decided.version,
            uid=decided.uid,
            lands_until=lands_until,
            informs=informs,
            word_of=decided.word_of,
        ),
    )
    core.budget.began(informs=informs)
    core.command(
        Patch(
            write_id=write_id,
            ref=decided.ref,
            body=step.body,
            kind=step.kind,
            subresource=step.subresource,
            informs=informs,
            holds=purpose.charges,
        )
    )


def patch_workload(core: Core, workload: Workload, body: bytes, purpose: Purpose, *, status: bool = True) -> None:
    """Ask for a write of a Workload that was decided on `workload`: of its whole status, or a merge patch."""
    step = PatchStep(body=body, kind=PatchKind.REPLACE, subresource="status") if status else PatchStep(body=body)
    meta, ref = workload.metadata, ref_of(workload)
    version = meta.resource_version
    if purpose.charges and meta.uid in core.attempts:
        core.attempts[meta.uid].asks(version)
    left_out = own_conditions.leaves_out(workload, body) if status else ""
    if left_out:
        core.event(ref, meta.uid, own_conditions.LEFT_OUT, left_out, warning=True)
    patch(core, Decided(ref, version, meta.uid, _word_of(core, workload, purpose)), step, purpose)


def _word_of(core: Core, workload: Workload, purpose: Purpose) -> ClusterWord | None:
    """Return the cluster's word that a write of a Workload follows: how many are over, whether its pods are ready."""
    attempt = core.attempts.get(workload.metadata.uid)
    if attempt is None or purpose not in (Purpose.RECLAIM, Purpose.PODS_READY):
        return None
    said = find(workload.status.conditions, texts.PODS_READY)
    starts = said is None or said.reason == texts.WAIT_FOR_START
    return ClusterWord(attempt.cluster, again=purpose is Purpose.RECLAIM or not starts)


def create(core: Core, ref: ObjectRef, body: bytes, purpose: Purpose, *, owner: ObjectRef) -> None:
    """Ask for the create of a Workload; `owner` is looked at again when the outcome is there."""
    write_id = core.ids.take()
    core.creations.begin(ref.key, owner)
    core.inflight.begin(write_id, Outstanding(ref=ref, purpose=purpose))
    core.command(Create(write_id=write_id, ref=ref, body=body))


def delete(core: Core, ref: ObjectRef, uid: str, purpose: Purpose) -> None:
    """Ask for the deletion of this very object, its dependents in the background; the caller has looked."""
    write_id = core.ids.take()
    core.inflight.begin(write_id, Outstanding(ref=ref, purpose=purpose))
    core.command(Delete(write_id=write_id, ref=ref, uid=uid))


def delete_workload(core: Core, workload: Workload, purpose: Purpose) -> None:
    """Ask for the deletion of a Workload as it was seen; what changed meanwhile is looked at first."""
    write_id = core.ids.take()
    meta, ref = workload.metadata, ref_of(workload)
    version = meta.resource_version
    core.inflight.begin(write_id, Outstanding(ref=ref, purpose=purpose, decided_on=version, uid=meta.uid))
    core.command(Delete(write_id=write_id, ref=ref, uid=meta.uid, resource_version=version))


def read(core: Core, ref: ObjectRef, purpose: Purpose, uid: str = "") -> None:
    """Ask for a quorum read. `uid`: of the object that is looked for, where that is not the one known there."""
    read_id, known = core.ids.take(), core.known(ref)
    uid = uid or (known.metadata.uid if known is not None else "")
    core.inflight.begin(read_id, Outstanding(ref=ref, purpose=purpose, uid=uid))
    core.command(Read(read_id=read_id, ref=ref))


def blocked(core: Core, ref: ObjectRef, key: Key, now: float, *, uid: str = "") -> bool:
    """Say whether nothing may be decided on the object now; sees to it that `key` is looked at again.

    A request that is out comes back as an event and marks the key; trouble has a time; doubt asks for a read.
    """
    if core.inflight.busy(ref):
        return True
    if ref not in core.inflight.trouble:
        return False
    wait, reads, until = core.inflight.hindrance(ref, now)
    if not wait:
        return False
    if reads:
        read(core, ref, Purpose.READ_AFTER_DOUBT, uid)
    else:
        core.agenda.wake(key, until)
    return True


def stand_in_line(core: Core, ref: ObjectRef, now: float, *, charges: bool = False) -> None:
    """Look at an object again when there is a turn for its write: no pause, since nothing is wrong with it.

    What is written then is what is due then. There is at most one entry for each object. `charges`: quota is kept for
    what was to be written.
    """
    core.unsent.stand(ref, charges=charges)
    core.agenda.wake(UNSENT, now + UNSENT_SECONDS)
