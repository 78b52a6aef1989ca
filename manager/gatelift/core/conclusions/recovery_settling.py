"""How far a recovery has come: whom it waits for, why nothing is placed until then, and how dispatch goes on.

Where no restore is proven it waits for each cluster that the record calls connected, which resyncs or counts as lost.
Who has greeted, and so has shown what it holds of our counter, and does not say in time what it has is passed over: the
wait is bounded (decision 94). Else it waits for each one's list, or a person's word. Who waits for nobody is *settled*,
and its Lease says so. Neighbours: `recovery` (begins it), `recovery_lists` (what clusters list), `raising` (what
follows when all are heard).
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import SettleLease
from gatelift.core.conclusions import raising, recovery_texts
from gatelift.core.conclusions.raising import LOOK
from gatelift.core.state import predecessors
from gatelift.core.state.core import DOUBTS, Core
from gatelift.core.state.recovery_asked import served_by
from gatelift.core.state.recovery_values import RecoveryStage
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef


def tell(core: Core, cluster: str, reason: str, text: str) -> None:
    """Tell people at the WorkerCluster."""
    found = core.caution.recovery.clusters.get(cluster)
    if found is not None:
        core.event(ObjectRef(WORKER_CLUSTER, ObjectKey("", cluster)), found.metadata.uid, reason, text, warning=True)


def warn(core: Core, cluster: str, reason: str, text: str) -> None:
    """Tell people at the WorkerCluster, and in the log."""
    core.note(text, warning=True, cluster=cluster)
    tell(core, cluster, reason, text)


def heard(core: Core, name: str) -> None:
    """Take that a cluster has listed what it has, or need not be waited for."""
    proves(core, name)
    if core.caution.recovery.heard(name):
        settle(core)
        core.agenda.mark(LOOK)


def proves(core: Core, name: str) -> None:
    """Forget that the list of a cluster proves nothing: it is over, or nobody waits for another."""
    if core.caution.recovery.proves(name):
        core.placements.note(name)


def answers(core: Core, name: str) -> bool:
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


def pass_over(core: Core) -> None:
    """Wait no longer for who greets and does not say what it has: no greeting of it has proven a restore.

    From its first greeting on, whatever becomes of its sessions. For no other purpose was it heard: nothing is
    concluded of what is placed there, and what it lists later is compared as ever.
    """
    after = core.settings.unheard_after
    for name, since in sorted(core.caution.recovery.unheard().items()):
        if core.now < since + after:
            core.agenda.wake(LOOK, since + after)
            continue
        warn(core, name, recovery_texts.PASSED_OVER, recovery_texts.passed_over(name, after))
        heard(core, name)


def settle(core: Core) -> None:
    """See how far it has come, and go on when nothing speaks against it."""
    state = core.caution.recovery
    if core.stepped_down:
        return
    state.vouch({name for name in state.unvouched if not state.is_gone(name) and answers(core, name)})
    if state.stage is RecoveryStage.WAITING and not state.awaited and core.rebuilt:
        raising.begin(core)
    if state.stage is RecoveryStage.RAISING and not state.to_raise:
        state.end()
    if state.finding is None and not state.awaited:
        state.warm_up()
    before = core.caution.halt(_why(core), core.now)
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
