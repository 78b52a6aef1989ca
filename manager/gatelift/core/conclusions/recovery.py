"""A record that may not be the newest: when nothing is placed and nothing concluded from absence, and how it goes on.

Three causes, of falling certainty. A cluster brings back a counter that our record does not know: *restored*, all
dispatch halts until a person says so, whoever leads. A leader found a Lease that may be old (*cold*), or one whose
holder had yet to hear somebody: it waits for each cluster that the record calls connected, which resyncs or counts as
lost, so the wait is bounded. Who waits for nobody is *settled*, and its Lease says so. A cluster lists what no Workload
explains: that is left alone, for ever if need be, until a person says that it is to stop (H19).

Neighbours: `recovery_values` (what stands in the API), `machine`, `upcalls`, `inventories`.
"""

from __future__ import annotations

import msgspec

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import SettleLease
from gatelift.core.api.counter import Proof
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import CounterProved, PlacementsInventoried
from gatelift.core.clusters.link_writes import latest
from gatelift.core.conclusions import raising, recovery_texts
from gatelift.core.conclusions.raising import LOOK
from gatelift.core.dispatching import placing
from gatelift.core.records import epochs
from gatelift.core.state import predecessors
from gatelift.core.state.core import DOUBTS, Core, Decided
from gatelift.core.state.recovery_asked import AskedCluster, served_by, without
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVERY,
    ANNOTATION_RESTORED,
    COUNTED_SINCE,
    COUNTER_FOUND_MAX,
    COUNTER_JUMP,
    Finding,
    Found,
    RecoveryStage,
    Told,
    believed,
    is_told_to_stop,
    said_restored,
    told,
    word,
)
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey

# --- how certain the record is ------------------------------------------------------------------------------------


def leads(core: Core, *, warm: bool, counter: int) -> None:
    """Begin a term. `warm`: this process saw the Lease of a settled lead move a moment before it took it."""
    state = core.caution.recovery
    state.begin_term(warm=warm, counter=counter, began=core.wall.text(core.now))
    _is_told(core)
    if state.stage is RecoveryStage.WAITING:
        _begin(core)  # it may have been said after the Lease was found free
    if not state.awaited:
        state.warm_up()
    _settle(core)
    if core.caution.halted:
        core.note(core.caution.halted, warning=True)
    if state.cold:
        _tell(core, LOCAL_CLUSTER, recovery_texts.SETTLING, core.caution.halted)
    core.agenda.mark(LOOK)


def seen(core: Core, found: WorkerCluster) -> None:
    """Take a WorkerCluster as it is now; on `local` stands what was found, and what a person said."""
    state, name = core.caution.recovery, found.metadata.name
    former = state.clusters.get(name, found)
    found = core.links.counted(latest(former, found))  # no edit answers it
    if state.finding is not None and former.metadata.uid != found.metadata.uid:
        gone(core, former)
    state.cluster_seen(found)
    if state.is_said(found):
        heard(core, name)
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
        heard(core, gone_name)
    if before is RecoveryStage.HALTED and state.stage is RecoveryStage.WAITING:
        _begin(core)
    elif read is not None and _is_outdone(core, read.finding):
        core.step_down("a later term was shown since: whoever leads next raises its own above that")
    _settle(core)
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
        heard(core, name)
        return
    asked = state.asked.gone(found)
    if asked and not state.raising and not state.is_fenced_gone(asked):
        state.await_anew(asked)
        core.note(recovery_texts.gone(asked), warning=True, cluster=asked)
        _tell(core, LOCAL_CLUSTER, recovery_texts.DELETED_MEANWHILE, recovery_texts.gone(asked))
        _settle(core)
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
        _tell(core, upcall.cluster, recovery_texts.SEAL_UNVERIFIED, text)
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
    _settle(core)
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
    _tell(core, LOCAL_CLUSTER, recovery_texts.RESTORED, finding.why)


def _tell(core: Core, cluster: str, reason: str, text: str) -> None:
    found = core.caution.recovery.clusters.get(cluster)
    if found is not None:
        core.event(ObjectRef(WORKER_CLUSTER, ObjectKey("", cluster)), found.metadata.uid, reason, text, warning=True)


# --- how it goes on -----------------------------------------------------------------------------------------------


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


def heard(core: Core, name: str) -> None:
    """Take that a cluster has listed what it has, or need not be waited for."""
    _proves(core, name)
    if core.caution.recovery.heard(name):
        _settle(core)
        core.agenda.mark(LOOK)


def _proves(core: Core, name: str) -> None:
    """Forget that the list of a cluster proves nothing: it is over, or nobody waits for another."""
    if core.caution.recovery.proves(name):
        core.placements.note(name)


def _answers(core: Core, name: str) -> bool:
    """Say whether what a cluster lists tells all that runs under its name and that the record may have lost.

    Not where another cluster has the name since, or its agent has forgotten: what it does not know the restored record
    does not miss in its list, so that the doubt settled by itself, perhaps before anybody knew of the restore.
    """
    state, view = core.caution.recovery, core.links.state(name)
    if state.is_gone(name) and not (view and state.asked.is_same(name, served_by(*view.vouching.served_by))):
        return False
    return state.finding is None or view is None or not view.vouching.unvouched_through(state.finding.since)


def lost(core: Core, name: str) -> None:
    """Take that a cluster counts as lost: enough where the record is only old, not where it is proven to be."""
    if core.caution.recovery.finding is None:
        heard(core, name)


def _settle(core: Core) -> None:
    """See how far it has come, and go on when nothing speaks against it."""
    state = core.caution.recovery
    if core.stepped_down:
        return
    state.vouch({name for name in state.unvouched if not state.is_gone(name) and _answers(core, name)})
    if state.stage is RecoveryStage.WAITING and not state.awaited and core.rebuilt:
        raising.begin(core)
    if state.stage is RecoveryStage.RAISING and not state.to_raise:
        state.end()
    if state.finding is None and not state.awaited:
        state.warm_up()
    before = core.caution.halt(_why(core))
    if before and not core.caution.halted:
        _go_on(core)


def tell_lease(core: Core) -> None:
    """Have the Lease say whether who follows need not wait: not before what was heard here is written as well.

    What a cluster names and the record does not know is remembered in the status of its WorkerCluster. Called when the
    records are there, after all else that an event asked for.
    """
    state = core.caution.recovery
    if state.settled != (not core.caution.halted) and (state.settled or _is_written(core)):
        state.settle(settled=not state.settled)
        core.command(SettleLease(term=core.term, settled=state.settled))


def _is_written(core: Core) -> bool:
    """Say whether all that was listed has been compared, and what it showed beside the record stands in the API."""
    waits = core.caution.recovery.again or core.sessions.compares_any()
    return not waits and predecessors.all_written(core)


def _why(core: Core) -> str:
    """Return why nothing is placed, "" when nothing speaks against it."""
    state = core.caution.recovery
    if state.stage is RecoveryStage.HALTED and state.finding is not None:
        return state.finding.why
    if state.stage is RecoveryStage.WAITING:
        unlisted = sorted(state.awaited - state.unvouched - state.unproven)
        missing = [name for name in unlisted if state.is_gone(name)]
        named = [name for name in unlisted if name not in missing]
        return recovery_texts.waits(named, sorted(state.unvouched), sorted(state.unproven), missing)
    if state.stage is RecoveryStage.RAISING:
        left = len(raising.left(core))
        return recovery_texts.recovery_raises(left) if left else ""
    return recovery_texts.settling(sorted(state.awaited), state.began) if state.cold else ""


def _go_on(core: Core) -> None:
    """Place again: what was listed meanwhile is compared first, and no cluster is told anything before that."""
    state = core.caution.recovery
    core.note("dispatch goes on: all that was waited for has been heard")
    for cluster in state.take_up_held():
        core.sessions.compare(cluster)
    core.mark_later(sorted(core.attempts))
    for cluster in state.clusters:
        core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", cluster)))
    core.agenda.mark(DOUBTS)


def look(core: Core, cluster: str, now: float) -> None:
    """Do what stands on a WorkerCluster: write the finding down, stop what a person said is to stop."""
    state = core.caution.recovery
    found = state.clusters.get(cluster)
    if found is None:
        return
    told_now = placing.open_view(core, cluster) is not None  # else when the session goes on; a later one is asked anew
    if told_now and is_told_to_stop(found) and not core.caution.halted:
        for key in sorted(state.unexplained.get(cluster, {})):
            placing.drop_stray(core, cluster, key, over=False)
        for ahead in core.caution.named_by(cluster):
            if ahead.spared:
                placing.drop_stray(core, cluster, ahead.key, over=ahead.over)
    if cluster == LOCAL_CLUSTER:
        _settle(core)
        _write(core, found, now)


def _write(core: Core, found: WorkerCluster, now: float) -> None:
    """Write down what was found, where the next leader and people see it."""
    state = core.caution.recovery
    wanted = Told(stage=state.stage, finding=state.finding, clusters=_found(core))
    answered = ANNOTATION_RESTORED in found.metadata.annotations
    if wanted == (told(found) or Told()) and not answered:
        return
    ref = ObjectRef(WORKER_CLUSTER, ObjectKey("", LOCAL_CLUSTER))
    if core.blocked(ref, LOOK, now):
        return
    # On this very version: what a leader before asked for, and lands late, takes no later finding away.
    version, text = found.metadata.resource_version, msgspec.json.encode(wanted).decode()
    annotations = {ANNOTATION_RECOVERY: text} | ({ANNOTATION_RESTORED: None} if answered else {})
    metadata = {"uid": found.metadata.uid, "resourceVersion": version, "annotations": annotations}
    core.patch(Decided(ref, version), PatchStep(body=msgspec.json.encode({"metadata": metadata})), Purpose.RECOVERY)


def _found(core: Core) -> dict[str, Found]:
    """Return what each cluster has, while that matters to anybody."""
    state = core.caution.recovery
    every = state.finding is not None
    found = {}
    for name in sorted({*state.clusters, *(state.asked.by_name if every else ())}):
        ahead, unexplained = len(core.caution.named_by(name)), len(state.unexplained.get(name, ()))
        if every or ahead or unexplained:
            listed, unproven = state.listed.get(name), name in state.unproven
            known = state.asked.by_name.get(name, AskedCluster("", "")) if every else AskedCluster("", "")
            found[name] = Found(
                heard=listed is not None and not unproven,
                listed=listed or 0,
                ahead=ahead,
                unexplained=unexplained,
                unproven=unproven,
                gone=name in state.awaited and state.is_gone(name),
                uid=known.uid,
                served=known.served,
            )
    return found


# --- what clusters list -------------------------------------------------------------------------------------------


def spares(core: Core, cluster: str, key: PlacementKey, known: Workload) -> bool:
    """Say whether a placement of an epoch that a recovery has skipped is left to its own end: nobody said *stop*."""
    state = core.caution.recovery
    found = state.clusters.get(cluster)
    raised_to = max(state.word.epochs if state.word is not None else 0, epochs.recovered(known))
    if not key.epoch < raised_to <= epochs.annotated(known):
        return False
    return found is None or not is_told_to_stop(found)


def listed(core: Core, upcall: PlacementsInventoried) -> None:
    """Take that a cluster has listed what it has, and that this was looked at."""
    state, cluster = core.caution.recovery, upcall.cluster
    state.take_list(upcall, hold=bool(core.caution.halted))
    if upcall.unheard and state.finding is not None and cluster in state.awaited:
        _proves_nothing(core, cluster)
    else:
        _proves(core, cluster)
    if cluster in state.awaited and not _answers(core, cluster):
        _is_asked_about(core, cluster)
    elif cluster not in state.unproven:
        heard(core, cluster)
    _settle(core)
    core.agenda.mark(LOOK)


def _proves_nothing(core: Core, cluster: str) -> None:
    """Wait on for a list: what this one does not name may run all the same, by its agent's own word.

    It greets anew as soon as its agent can tell.
    """
    if core.caution.recovery.proves_nothing(cluster):
        core.placements.note(cluster)
        _warn(core, cluster, recovery_texts.LIST_PROVES_NOTHING, recovery_texts.list_proves_nothing(cluster))


def _is_asked_about(core: Core, cluster: str) -> None:
    """Wait for a person's word about what ran under a name before who has it now."""
    if core.caution.recovery.unvouch(cluster):
        _warn(core, cluster, recovery_texts.UNVOUCHED, recovery_texts.unvouched(cluster))


def _warn(core: Core, cluster: str, reason: str, text: str) -> None:
    core.note(text, warning=True, cluster=cluster)
    _tell(core, cluster, reason, text)


def over(core: Core, cluster: str) -> None:
    """Take that a session is over: what it listed counts no more."""
    core.caution.recovery.session_over(cluster)
    _proves(core, cluster)


def forget(core: Core, cluster: str) -> None:
    """Forget what a cluster had that nothing explains: it lists all anew, or is not expected any more."""
    if core.caution.recovery.forget_lists(cluster):
        core.agenda.mark(LOOK)


def leave_alone(core: Core, cluster: str, key: PlacementKey, listed: InventoryEntry | None = None) -> None:
    """Leave alone what runs and no Workload explains, since the record may be too old; a person may have it stopped.

    Who would run in its place waits (H21), as far as the cluster has said which that is.
    """
    if listed is not None and listed.name:
        predecessors.left_alone(core, cluster, listed)
    count = core.caution.recovery.leave_alone(cluster, key, listed.namespace if listed is not None else "")
    if not count:
        return
    if count == 1:
        text = recovery_texts.unexplained(cluster)
        core.note(text, warning=True, cluster=cluster)
        _tell(core, cluster, recovery_texts.UNEXPLAINED, text)
    core.agenda.mark(LOOK)


def leaves(core: Core, cluster: str, key: PlacementKey) -> bool:
    """Say whether a placement is left alone: it runs, and nothing explains it."""
    return key in core.caution.recovery.unexplained.get(cluster, {})


def is_over(core: Core, cluster: str, key: PlacementKey) -> None:
    """Take that something that nothing explained has ended."""
    if core.caution.recovery.is_over(cluster, key):
        core.agenda.mark(LOOK)
