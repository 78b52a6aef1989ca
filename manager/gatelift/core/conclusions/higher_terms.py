"""A record in a term above our own: somebody else leads, or somebody else wrote it. The Lease says which (R3). Pure.

A leader has taken the Lease, which raised its term, before it writes any record. So a quorum read of the Lease that
begins after such a record was seen, and finds the Lease ours in our own term, proves that no leader wrote it: whoever
did got around the policy. Then that record alone is written anew, in our term. Any other answer ends us. Until there is
one we look at nothing, decide nothing, write no record and tell no cluster anything but what keeps its session; what a
link writes is guarded by the version of its own WorkerCluster. A WorkerCluster in a higher term is asked about alike.

Neighbours: `reconcile` and `machine`, who ask.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import Read
from gatelift.core.api.events import LeadershipGained, ReadDone, ReadFailed, TermUnconfirmed
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import HigherTermRead
from gatelift.core.records import admission_writes
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.record import Record
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import api_requests
from gatelift.core.state.core import Core
from gatelift_kube.objects.core import Lease
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import LEASE, WORKER_CLUSTER, ObjectKey, ObjectRef

AGAIN_SECONDS = 1.0
"""After so long the Lease is read again where a read found none or failed: a tenth of the time that it lasts."""


def leads(core: Core, gained: LeadershipGained) -> None:
    """Take by which Lease we lead."""
    lease = ObjectRef(LEASE, gained.lease) if gained.lease is not None else None
    core.caution.terms.leads_by(lease, gained.holder)


def hold(core: Core, rec: Record, now: float) -> bool:
    """Say whether a Workload is not to be looked at further: its term is above ours, and that is seen to first."""
    doubts = core.caution.terms
    if rec.term <= core.term:
        doubts.is_believed(rec.uid)
        return False
    known = core.knowledge.workloads[rec.ref.key]
    if doubts.is_forged(rec.uid, known.metadata.resource_version):
        api_requests.patch_workload(
            core, known, admission_writes.adoption_write(known, core.term), Purpose.PUT_TERM_BACK
        )
        return True
    why = f"Workload {rec.ref.key} was written in term {rec.term}, ours is {core.term}"
    if doubts.lease is None:
        core.step_down(why)
        return True
    doubts.question(why)
    _ask(core, now)
    return True


def read(core: Core, upcall: HigherTermRead, now: float) -> None:
    """Take that a WorkerCluster shows a term above ours: the same question, and the same answers."""
    doubts = core.caution.terms
    why = f"term {upcall.term} was read at cluster {upcall.cluster}, ours is {core.term}"
    if doubts.lease is None or upcall.found is None:
        core.step_down(why)
        return
    doubts.question(why, upcall.found)
    _ask(core, now)


def take_unconfirmed(core: Core) -> list[TermUnconfirmed]:
    """Return what the links are to be told of WorkerClusters, once."""
    return [TermUnconfirmed(found=each) for each in core.caution.terms.take_unconfirmed()]


def look(core: Core, now: float) -> None:
    """Ask again where no answer came."""
    due = core.caution.terms.next_deadline()
    if due is not None and due <= now and not core.stepped_down:
        _ask(core, now)


def answered(core: Core, event: ReadDone | ReadFailed, now: float) -> bool:
    """Take the answer; False when something else was asked."""
    doubts = core.caution.terms
    if not doubts.is_answer(event.read_id):
        return False
    lease = event.object if isinstance(event, ReadDone) else None
    if not isinstance(lease, Lease):
        doubts.ask_again(now + AGAIN_SECONDS)  # failed, or gone: as long as nobody says whose it is, nothing is done
        return True
    holder, term = lease.spec.holder_identity or "", lease.spec.lease_transitions or 0
    if (holder, term) != (doubts.holder, core.term):
        core.step_down(f"{doubts.why}; the Lease is in term {term}, held by {holder or 'nobody'}")
        return True
    asked, clusters = doubts.settle()
    for uid, version in asked.items():  # one that raises shows the same term at its next look, and is asked about again
        with Boundary(containment.answer_failed, core, f"the term of Workload {uid}", now=now):
            _forged(core, uid, version)
    for found in clusters:
        with Boundary(_asked_again, core, found, now=now):
            _forged_cluster(core, found)
    for cluster in core.sessions.owed_to():  # what fell due meanwhile
        core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", cluster)))
    return True


def _forged_cluster(core: Core, found: WorkerCluster) -> None:
    """Take that a version of a WorkerCluster shows a term that no leader ever had."""
    text = texts.term_put_back(found.status.term, core.term)
    ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", found.metadata.name))
    core.event(ref, found.metadata.uid, texts.RECORD_PUT_BACK, text, warning=True)
    core.note(text, warning=True, cluster=found.metadata.name)
    known = core.caution.recovery.clusters.get(found.metadata.name)
    if known is not None and known.metadata == found.metadata:  # of a later one the links say so themselves
        core.caution.terms.unconfirm(found)


def _asked_again(core: Core, found: WorkerCluster, error: Exception, now: float) -> None:
    """Take that what was found out about a WorkerCluster could not be taken: nothing is done until it can."""
    containment.answer_failed(core, f"the term at cluster {found.metadata.name}", error, now)
    core.caution.terms.question(f"term {found.status.term} was read at cluster {found.metadata.name}", found)
    core.caution.terms.ask_again(now + AGAIN_SECONDS)


def _ask(core: Core, now: float) -> None:
    """Read the Lease, for all that show a higher term now: what comes later is asked about anew."""
    doubts = core.caution.terms
    if doubts.lease is None or doubts.read_id:
        return
    workloads = core.knowledge.workloads
    asked = {
        rec.uid: workloads[key].metadata.resource_version
        for key, (_, rec) in core.knowledge.readings.items()
        if rec.term > core.term
    }
    doubts.ask(core.ids.take(), asked, now)
    core.command(Read(read_id=doubts.read_id, ref=doubts.lease))


def _forged(core: Core, uid: str, version: str) -> None:
    """Take that a version of a Workload shows a term that no leader ever had."""
    known = core.knowledge.workload_of(uid)
    if known is None:
        return
    core.caution.terms.forge(uid, version)
    key = ObjectKey(known.metadata.namespace, known.metadata.name)
    text = texts.term_put_back(core.knowledge.readings[key][1].term, core.term)
    core.event(ref_of(known), uid, texts.RECORD_PUT_BACK, text, warning=True)
    core.note(f"Workload {key}: {text}", warning=True)
    core.mark_workload(key)
