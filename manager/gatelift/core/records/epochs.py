"""Which epoch a Workload names, and where: each is used by one attempt at most (rule R5). Pure. Neighbour: `record`.

The annotation is the epoch of the *next* attempt, and people may raise it. The attempt that holds quota has the epoch
that was written with its reservation, in one write with it: in the state of the check that named the winner, or, where
none did (`local`, no owner, no winner yet), in a condition. So whoever leads next knows it, whatever the annotation
says by then (H18).
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift_kube.objects.conditions import find, is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.numbers import whole
from gatelift_wire.values.keys import ANNOTATION_DISCONNECT, ANNOTATION_EPOCH, ANNOTATION_TERM

FIRST = 1
EPOCH_USED = "gatelift.dev/EpochUsed"
"""Condition whose message is the epoch of the reservation that is written, or was last: no other may have it."""
ANNOTATION_RECOVERED_EPOCH = "gatelift.dev/recovered-epoch"
"""What a recovery has raised the epoch to. On the Workload, so that it outlives what stands on `local`; the manager
alone writes it."""
RETURNED = "ReservationReturned"
"""Reason of that condition when the reservation has been given back."""


def of(workload: Workload) -> int:
    """Return the epoch of the reservation that is written; without one that of the next, which the annotation names."""
    return written(workload) or annotated(workload)


def written(workload: Workload) -> int:
    """Return the epoch that was written with the reservation that stands; 0 where none stands, or it names none."""
    if not is_true(workload.status.conditions, texts.QUOTA_RESERVED):
        return 0
    return _marked(workload) if workload.status.cluster_name else _said(workload)


def torn(workload: Workload) -> int:
    """Return the epoch of a placement that the status still names, without the reservation that it had; else 0.

    No write of ours leaves it so: somebody has taken the reservation away, and it may run.
    """
    status = workload.status
    reserved = is_true(status.conditions, texts.QUOTA_RESERVED) and status.admission is not None
    if reserved or not status.cluster_name or is_true(status.conditions, texts.FINISHED):
        return 0
    epoch = _marked(workload)
    return epoch if epoch >= annotated(workload) else 0


def annotated(workload: Workload) -> int:
    """Return the epoch in the annotation, which anybody may have written; absent or malformed counts as the first."""
    return max(FIRST, number(workload.metadata.annotations.get(ANNOTATION_EPOCH, "")))


def misspelt(workload: Workload) -> str:
    """Return what is wrong with the annotation, "" where it is a number of ours or absent."""
    text = workload.metadata.annotations.get(ANNOTATION_EPOCH)
    if text is None or number(text):
        return ""
    return f"metadata.annotations[{ANNOTATION_EPOCH}]: is no number of an attempt ({len(text)} characters): counts as 1"


def recovered(workload: Workload) -> int:
    """Return the epoch to which a recovery has raised it last, 0 for never: what runs below is of before."""
    return number(workload.metadata.annotations.get(ANNOTATION_RECOVERED_EPOCH, ""))


def used(workload: Workload) -> int:
    """Return the highest epoch that a reservation had, as far as the Workload says; 0 where it says none."""
    return max(_marked(workload), _said(workload))


def returned(workload: Workload) -> int:
    """Return the highest epoch that is marked as given back, else 0: a placement's own marks say its policy."""
    said = find(workload.status.conditions, EPOCH_USED)
    back = number(said.message) if said is not None and said.reason == RETURNED else 0
    return back if ANNOTATION_DISCONNECT in marks(workload) else max(back, _marked(workload))


def marks(workload: Workload) -> dict[str, str]:
    """Return what is written with the winner: term, epoch and policy; empty without one."""
    for check in workload.status.admission_checks:
        for update in check.pod_set_updates:
            if ANNOTATION_TERM in update.annotations:
                return update.annotations
    return {}


def number(text: str) -> int:
    """Return a number that stands in the record; 0 for what is none, or is longer than any of ours."""
    return whole(text) or 0


def _marked(workload: Workload) -> int:
    return number(marks(workload).get(ANNOTATION_EPOCH, ""))


def _said(workload: Workload) -> int:
    said = find(workload.status.conditions, EPOCH_USED)
    return number(said.message) if said is not None else 0
