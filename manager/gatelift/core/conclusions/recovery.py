"""A record that may not be the newest: what says so, and when nothing is placed and nothing concluded from absence.

Three causes, of falling certainty. A cluster brings back a counter that our record does not know: *restored*, all
dispatch halts until a person says so, whoever leads. A leader found a Lease that may be old (*cold*), or one whose
holder had yet to hear somebody: it waits for each cluster that the record calls connected, which resyncs or counts as
lost, or has greeted and does not say in time what it has (decision 94), so the wait is bounded. Who waits for nobody is
*settled*, and its Lease says so. A cluster lists what no Workload explains: that is left alone, for ever if need be,
until a person says that it is to stop (H19).

Neighbours: `recovery_settling` (how far it has come), `recovery_values` (what stands in the API), `machine`, `taking`
and `upcalls` (bring what happened), `recovery_lists` (what clusters list meanwhile), `recovery_findings` (how it is
written down).
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.counter import Proof
from gatelift.core.clusters.link_values import CounterProved
from gatelift.core.clusters.link_writes import latest
from gatelift.core.conclusions import recovery_settling, recovery_texts
from gatelift.core.conclusions.raising import LOOK
from gatelift.core.state.core import Core
from gatelift.core.state.recovery_asked import without
from gatelift.core.state.recovery_values import (
    COUNTED_SINCE,
    COUNTER_FOUND_MAX,
    COUNTER_JUMP,
    Finding,
    RecoveryStage,
    believed,
    is_told_to_stop,
    said_restored,
    told,
    word,
)
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


def leads(core: Core, *, warm: bool, counter: int) -> None:
    """Begin a term. `warm`: this process saw the Lease of a settled lead move a moment before it took it."""
    state = core.caution.recovery
    state.begin_term(warm=warm, counter=counter, began=core.wall.text(core.now))
    _is_told(core)
    if state.stage is RecoveryStage.WAITING:
        _begin(core)  # it may have been said after the Lease was found free
    if not state.awaited:
        state.warm_up()
    recovery_settling.settle(core)
    if core.caution.halted:
        core.note(core.caution.halted, warning=True)
    if state.cold:
        recovery_settling.tell(core, LOCAL_CLUSTER, recovery_texts.SETTLING, core.caution.halted)
    core.agenda.mark(LOOK)


def seen(core: Core, found: WorkerCluster) -> None:
    """Take a WorkerCluster as it is now; on `local` stands what was found, and what a person said."""
    state, name = core.caution.recovery, found.metadata.name
    former = state.clusters.get(name, found)
    found = core.links.counted(latest(former, found))  # no edit answers it
    if state.finding is not None and former.metadata.uid != found.metadata.uid:
        gone(core, former)
    state.cluster_seen(found)
    if core.term and state.begins(found, core.term, core.now):
        core.agenda.mark(LOOK)  # which sees to when nobody waits for it any more
    if state.is_said(found):
        recovery_settling.heard(core, name)
    if name in state.unvouched:
        core.agenda.mark(LOOK)  # a person may have said what became of all that was placed before
    if is_told_to_stop(found):
        core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", name)))
    if name != LOCAL_CLUSTER:
        return
    before = state.stage
    read = told(found)
    if not core.term and read is not None:  # who leads knows better than what it wrote a moment ago
        state.recall(read)
    state.said(word(found), without(found))
    _is_told(core)
    for gone_name in [each for each in state.without.names if state.is_gone(each) and state.is_fenced_gone(each)]:
        recovery_settling.heard(core, gone_name)
    if before is RecoveryStage.HALTED and state.stage is RecoveryStage.WAITING:
        _begin(core)
    elif read is not None and _is_outdone(core, read.finding):
        core.step_down("a later term was shown since: whoever leads next raises its own above that")
    recovery_settling.settle(core)
    core.agenda.mark(LOOK)


def take(core: Core, event: ObjectSeen | ObjectGone) -> None:
    """Take what happened to a WorkerCluster."""
    meta = event.object.metadata
    ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", meta.name))
    if isinstance(event.object, WorkerCluster) and isinstance(event, ObjectSeen):
        core.inflight.seen(ref, meta.resource_version)
        seen(core, event.object)
    else:
        core.inflight.overtake(ref, meta.uid)
        core.inflight.forget(ref)
        gone(core, event.object)


def gone(core: Core, last: object) -> None:
    """Take that a WorkerCluster is deleted. What runs there goes on: while a restore is proven, it is asked about."""
    if not isinstance(last, WorkerCluster):
        return
    state, name = core.caution.recovery, last.metadata.name
    found = state.cluster_gone(last)
    if state.finding is None or not core.term:
        recovery_settling.heard(core, name)
        return
    asked = state.asked.gone(found)
    if asked and not state.raising and not state.is_fenced_gone(asked):
        state.await_anew(asked)
        core.note(recovery_texts.gone(asked), warning=True, cluster=asked)
        recovery_settling.tell(core, LOCAL_CLUSTER, recovery_texts.DELETED_MEANWHILE, recovery_texts.gone(asked))
        recovery_settling.settle(core)
    core.agenda.mark(LOOK)


def shown(core: Core, upcall: CounterProved) -> None:
    """Take what a greeting proves of our record."""
    state = core.caution.recovery
    unverified = upcall.proof in {Proof.UNVERIFIED, Proof.FORMER} and state.stage in {
        RecoveryStage.DONE,
        RecoveryStage.HALTED,
    }
    if core.caution.doubt_seal(upcall.cluster, doubted=unverified) and unverified:
        text = recovery_texts.seal_unverified(upcall.cluster)
        core.note(text, warning=True, cluster=upcall.cluster)
        recovery_settling.tell(core, upcall.cluster, recovery_texts.SEAL_UNVERIFIED, text)
    counter, term = min(upcall.counter, COUNTER_FOUND_MAX), believed(upcall.term)
    later = upcall.proof is Proof.FORMER and term > core.term and state.stage is RecoveryStage.WAITING
    if upcall.proof is not Proof.RESTORED and not later:
        return
    finding, why = state.finding, recovery_texts.restored(upcall.cluster)
    if finding is None or counter > finding.counter + COUNTED_SINCE:
        # Or counted after a recovery from what is found: restored once more, so what persons said is of the former
        # restore; epochs were used since, and clusters have come back.
        _halt(core, Finding(why=why, since=core.wall.text(core.now), counter=counter, term=term), upcall.cluster)
    else:
        state.find_higher(finding, counter, term)
    recovery_settling.settle(core)
    core.agenda.mark(LOOK)


def _is_told(core: Core) -> None:
    """Halt as by a proof where a person says that this record was restored: who could prove it may be cut off.

    Each text is a finding of its own, whatever else stands: what persons said of an earlier one may be in the backup.
    """
    state = core.caution.recovery
    local = state.clusters.get(LOCAL_CLUSTER)
    said, before = said_restored(local) if local is not None else "", state.finding
    if not core.term or not said or (before is not None and before.said == said):
        return
    counter, term = min(state.counter, COUNTER_FOUND_MAX), believed(core.term)
    if before is not None:
        counter, term = max(before.counter, counter), max(before.term, term)
    why, since = recovery_texts.said(said), core.wall.text(core.now)
    _halt(core, Finding(why=why, since=since, counter=counter, term=term, said=said), LOCAL_CLUSTER)


def _halt(core: Core, finding: Finding, cluster: str) -> None:
    """Halt all dispatch, and wait for each cluster once a person says *go on* after this very finding."""
    core.caution.recovery.halt(finding)
    core.note(finding.why, warning=True, cluster=cluster)
    recovery_settling.tell(core, LOCAL_CLUSTER, recovery_texts.RESTORED, finding.why)


def _begin(core: Core) -> None:
    """Begin what a person asked for: under a term and a counter above all that was shown, which a new leader takes.

    Also where ours are above them by chance: who was heard before the proof came is to be heard anew, and the list of
    those who led has to begin anew.
    """
    state = core.caution.recovery
    finding = state.finding
    if finding is None or not core.term:
        return
    if state.counter <= finding.counter + COUNTER_JUMP or core.term <= finding.term:
        core.step_down("a person said recover: whoever leads next raises term and counter")


def _is_outdone(core: Core, written: Finding | None) -> bool:
    """Say whether a term was shown, and is written, that ours is not above, since a person has said to go on.

    As after one more restore while it waits: an agent that has seen that term serves nobody of ours, so that it is
    never heard.
    """
    waits = core.term > 0 and core.caution.recovery.stage is RecoveryStage.WAITING
    return waits and written is not None and written.term >= core.term
