"""The placement record: what the Workload itself says about its attempt. Pure.

Winner: `status.clusterName`. Term of the writer (R3), epoch and policy (P2) of the record: annotations in
`podSetUpdates[0]` of the MultiKueue check's state, which Kueue's CRDs keep. A `local` placement has neither: it is told
by Admitted=True on a Workload of a kind that travels. Which epoch stands where: `epochs`. The writes that write it:
`admission_writes`, `release_writes` and, of one thing at a time, `status_writes`.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift.core import texts
from gatelift.core.records import admitted_by, drains, epochs
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import AdmissionCheckState, Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.keys import ANNOTATION_DISCONNECT, ANNOTATION_PLACED_IN, ANNOTATION_TERM
from gatelift_wire.values.messages import DisconnectPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the Workload says. `cluster` "" when no winner is written. `term` 0 for `local`, which needs none.

    `epoch` is that of the reservation that is written (`written_epoch`, 0 without one that names its own), else the one
    that the next will have. `highest_epoch` is the highest of all that it names: an end raises to one more.
    """

    uid: str
    ref: ObjectRef
    epoch: int
    written_epoch: int
    highest_epoch: int
    reserved: bool
    admitted: bool
    finished: bool
    evicted: bool
    released: bool
    """Its quota is free while its pods stop."""
    cluster: str
    term: int
    policy: DisconnectPolicy
    admitted_by: tuple[str, ...]
    epoch_used: bool
    """It has no reservation and marks its epoch as used: that must be raised first."""


def read(workload: Workload, *, travels: bool) -> Record:
    """Read the record. `travels`: its kind is placed on clusters (false for a Workload without owner)."""
    conditions = workload.status.conditions
    marks = epochs.marks(workload)
    quota_reserved = is_true(conditions, texts.QUOTA_RESERVED)
    annotated, written, used = epochs.annotated(workload), epochs.written(workload), epochs.used(workload)
    admitted = is_true(conditions, texts.ADMITTED)
    cluster = workload.status.cluster_name or (LOCAL_CLUSTER if admitted and travels else "")
    return Record(
        uid=workload.metadata.uid,
        ref=ObjectRef(WORKLOAD, ObjectKey(workload.metadata.namespace, workload.metadata.name)),
        epoch=written or annotated,
        written_epoch=written,
        highest_epoch=max(annotated, used),
        reserved=quota_reserved and workload.status.admission is not None,
        admitted=admitted,
        finished=is_true(conditions, texts.FINISHED),
        evicted=is_true(conditions, texts.EVICTED),
        released=drains.is_released(workload),
        cluster=cluster,
        term=epochs.number(marks.get(ANNOTATION_TERM, "")),
        policy=policy_of(marks.get(ANNOTATION_DISCONNECT, "")) or DisconnectPolicy.WAIT,
        admitted_by=admitted_by.names(workload),
        epoch_used=not quota_reserved and used >= annotated,
    )


def in_session(session: int, cluster_uid: str) -> str:
    """Return what says in which session of which WorkerCluster a winner was chosen: another object counts anew."""
    return f"{session}/{cluster_uid}" if session and cluster_uid else ""


def placed_session(workload: Workload, cluster_uid: str) -> int:
    """Return the session of this WorkerCluster in which it was chosen, 0 where the record does not say that."""
    session, _, uid = epochs.marks(workload).get(ANNOTATION_PLACED_IN, "").partition("/")
    return epochs.number(session) if uid and uid == cluster_uid else 0


def granted(workload: Workload) -> dict[str, int]:
    """Return the pods per pod set that the record grants; empty without a reservation."""
    admission = workload.status.admission
    if admission is None:
        return {}
    asked = {pod_set.name: pod_set.count for pod_set in workload.spec.pod_sets}
    return {
        one.name: asked.get(one.name, 0) if one.count is None else one.count for one in admission.pod_set_assignments
    }


def policy_of(text: str) -> DisconnectPolicy | None:
    """Return the policy that a text names, None when it names none."""
    try:
        return DisconnectPolicy(text)
    except ValueError:
        return None


def names_winner(check: AdmissionCheckState) -> bool:
    """Say whether it is the check's state in which a placement stands."""
    return any(ANNOTATION_TERM in update.annotations for update in check.pod_set_updates)
