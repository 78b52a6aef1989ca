"""Workloads that are gone: what they held is given back, and what may run for them is remembered. No decisions.

Neighbours: `intake` says which one is gone, `predecessors` remembers.
"""

from __future__ import annotations

from gatelift.core.conclusions import raising, reports
from gatelift.core.dispatching import endings, placing
from gatelift.core.records import record
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.rules import seeking
from gatelift.core.state import forgetting, predecessors
from gatelift.core.state.core import Core
from gatelift.core.works import slices_seen
from gatelift_kube.objects import kueue
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey


def taken(core: Core, key: ObjectKey, uid: str) -> None:
    """Take note that a Workload is gone; it is known until all that follows is done, so that it can be done again."""
    known = core.knowledge.workloads.get(key)
    if known is None or known.metadata.uid != uid:
        core.caution.can_read(uid)
        return
    work = core.knowledge.work_of(known)
    attempt = core.attempts.get(uid)
    was_placed = attempt is None or bool(attempt.cluster)
    _still_placed(core, key, known)
    core.ledger.engine.workload_removed(uid)
    forgetting.drop_attempt(core, uid)
    core.caution.can_read(uid)
    raising.raised(core, key)
    reports.forget_ahead(core, uid)
    core.caution.terms.is_believed(uid)
    core.inflight.forget(ref_of(known))
    seeking.no_more(core, known)
    if was_placed:  # nobody waits for what never was: thousands may name one object
        predecessors.wake(core, predecessors.places_of(core, known))
    core.resting.forget(ref_of(known))
    slices_seen.drop(core, key, uid)
    core.mark_work(work)
    core.mark_gathered_at(key)


def untaken(core: Core, last: kueue.Workload) -> None:
    """Take note that a Workload is gone of which no version could be taken: what it says to be placed may run (HD-648).

    Of one that is known by half `taken` sees to that.
    """
    key, uid = key_of(last.metadata), last.metadata.uid
    known = core.knowledge.workloads.get(key)
    if core.knowledge.saw_go(uid) or (known is not None and known.metadata.uid == uid):
        return
    rec = record.read(last, travels=True)
    if rec.reserved and rec.cluster and core.leads(core.now):
        _vanished(core, last, None, rec.cluster, PlacementKey(core.knowledge.placed_uid(uid), rec.epoch))
    core.ledger.engine.workload_removed(uid)
    forgetting.drop_attempt(core, uid)
    core.knowledge.has_gone(uid)
    core.caution.can_read(uid)
    if known is None:
        raising.raised(core, key)  # else all dispatch would wait for its epoch (HD-647)
    predecessors.wake(core, predecessors.places_of(core, last))
    core.mark_owners_waiting_for(key)


def _still_placed(core: Core, key: ObjectKey, known: kueue.Workload) -> None:
    """Remember a placement whose Workload is gone without a word that it has stopped, and have it stopped.

    Also what a cluster names in an epoch that the record had not come to. What has told its end is answered at once:
    that waited for a record that nobody writes any more.
    """
    attempt, rec = core.attempts.get(known.metadata.uid), core.knowledge.readings[key][1]
    placed = core.knowledge.placed_uid(rec.uid)
    if core.knowledge.slices.holder(placed) != rec.uid and (attempt is None or not attempt.live):
        return  # a slice that is past: what runs stands on a later one
    unmade = not core.rebuilt or known.metadata.uid in core.caution.set_aside
    for cluster, ahead in core.caution.named(placed):
        if not ahead.over:
            _vanished(core, known, None, cluster, ahead.key)
    if attempt is not None and attempt.live:
        _vanished(core, known, attempt, attempt.cluster, attempt.key)
    elif attempt is not None:
        endings.vanished(core, attempt)
    elif unmade and core.leads(core.now) and rec.reserved and rec.cluster:  # gone before its attempt was made
        _vanished(core, known, None, rec.cluster, PlacementKey(placed, rec.epoch))


def _vanished(core: Core, known: kueue.Workload, attempt: Attempt | None, cluster: str, placed: PlacementKey) -> None:
    predecessors.vanished(core, known, cluster, attempt, placed)
    placing.drop_stray(core, cluster, placed, over=False)
