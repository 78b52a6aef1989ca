"""A workload without quota: what it says while it waits, and how it comes back into the queue after an eviction."""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.conclusions import reports
from gatelift.core.dispatching import endings
from gatelift.core.records import metadata_patches, status_writes
from gatelift.core.records.record import Record
from gatelift.core.rules import kept_out, successors
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import telling
from gatelift.core.works import growing, growth_waits
from gatelift_kube.objects.conditions import FALSE, find, truncated
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey


def pending(case: Case) -> None:
    """Look at a workload that has no quota: raise a used epoch, end a backoff, say why it waits."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if (rec.epoch_used or attempt.epoch_spent) and not core.caution.runs_unrecorded(attempt.key.uid):
        attempt.raises_epoch()
        api_requests.patch_workload(
            core,
            known,
            metadata_patches.epoch_patch(known, max(rec.highest_epoch, attempt.epoch) + 1),
            Purpose.RAISE_EPOCH,
            status=False,
        )
        return
    if _come_back(core, known, now):
        return
    keeps = _withheld(core, known, rec) or growing.why_not(case) or growth_waits.why(case)
    told = keeps or core.waiting_reasons.of(rec.uid) or _halted(case)
    if told is None:
        return
    key, asks = attempt.look, WriteAsk(attempt.look, Purpose.WHY_WAITING)
    if _says(known, *told):
        core.waiting_reasons.said(rec.uid)
        core.budget.leave(asks)
        return
    if told[0] == texts.PENDING_EVALUATION and core.ledger.engine.is_due(now):
        core.inform_later(asks, now)  # it is being evaluated right now
        return
    due = core.waiting_reasons.due(rec.uid, core.settings.status_every)
    if now < due:
        core.agenda.wake(key, due)
    elif not core.resting.rests(rec.ref, Purpose.WHY_WAITING, core.agenda, key, now) and core.may_inform(asks, now):
        core.waiting_reasons.written(rec.uid, now)
        requests = core.ledger.engine.requests(rec.uid)
        body = status_writes.waiting_write(known, told[0], told[1], core.wall.text(now), requests)
        api_requests.patch_workload(core, known, body, Purpose.WHY_WAITING)


def _withheld(core: Core, known: Workload, rec: Record) -> tuple[str, str] | None:
    """Return why a workload is kept out of its queue, whatever the quota; people are told once."""
    if core.caution.holds(core.knowledge.placed_uid(rec.uid)):
        held = texts.EPOCH_AHEAD, reports.why_held(core, core.knowledge.placed_uid(rec.uid), rec.highest_epoch)
        core.waiting_reasons.say(rec.uid, held)
        return held
    waits = kept_out.why(core, known)
    successors.follow(core, known)
    if waits is not None and waits != core.waiting_reasons.of(rec.uid) and not _says(known, *waits):
        core.waiting_reasons.say(rec.uid, waits)
        core.event(rec.ref, rec.uid, *waits, warning=True)
    return waits


def _halted(case: Case) -> tuple[str, str] | None:
    """Return that nothing at all is placed, and why, of what nobody has said yet why it waits; or that it is over."""
    core, known = case.core, case.known
    said = find(known.status.conditions, texts.QUOTA_RESERVED)
    shown = said is not None and said.reason == texts.DISPATCH_HALTED
    if not core.caution.halted:
        return (texts.PENDING_EVALUATION, texts.DISPATCH_GOES_ON) if shown else None
    if not shown and said is not None and said.reason != texts.PENDING_EVALUATION:
        return None
    due = core.caution.halt_is_told_at()
    if case.now < due:
        core.agenda.wake(case.attempt.look, due)
        return None
    if not shown:
        telling.halted(core, known)
    return texts.DISPATCH_HALTED, core.caution.halted


def _says(known: Workload, reason: str, message: str) -> bool:
    """Say whether a Workload shows this as why it waits; what another leader wrote, or a late write, may not."""
    said = find(known.status.conditions, texts.QUOTA_RESERVED)
    return said is not None and (said.status, said.reason, said.message) == (FALSE, reason, truncated(message))


def _come_back(core: Core, known: Workload, now: float) -> bool:
    """Write Requeued=True when what keeps the workload out of the queue is over; True if a write was asked for."""
    requeued = find(known.status.conditions, texts.REQUEUED)
    if requeued is None or requeued.status != FALSE or not known.spec.active:
        return False
    found = _what_ended(core, known, requeued.reason, now)
    if found is None:
        return False
    api_requests.patch_workload(
        core, known, status_writes.requeued_write(known, *found, core.wall.text(now)), Purpose.REQUEUE
    )
    return True


def _what_ended(core: Core, known: Workload, reason: str, now: float) -> tuple[str, str] | None:
    if reason.startswith(texts.DEACTIVATED):
        return texts.REACTIVATED, texts.WORKLOAD_REACTIVATED
    if reason == texts.LOCAL_QUEUE_STOPPED:
        local = core.knowledge.local_queues.get(ObjectKey(known.metadata.namespace, known.spec.queue_name))
        over = local is not None and local.spec.stop_policy in {None, "", "None"}
        return (texts.LOCAL_QUEUE_RESTARTED, texts.LOCAL_QUEUE_WAS_RESTARTED) if over else None
    if reason == texts.CLUSTER_QUEUE_STOPPED:
        queue = core.knowledge.cluster_queues.get(core.knowledge.cluster_queue_of(known))
        over = queue is not None and queue.spec.stop_policy in {None, "", "None"}
        return (texts.CLUSTER_QUEUE_RESTARTED, texts.CLUSTER_QUEUE_WAS_RESTARTED) if over else None
    state = known.status.requeue_state
    due = core.wall.at(state.requeue_at if state is not None else None, now)
    if now < due:
        core.agenda.wake(Key(Look.WORKLOAD, ObjectKey(known.metadata.namespace, known.metadata.name)), due)
        return None
    return texts.BACKOFF_FINISHED, texts.BACKOFF_WAS_FINISHED


def hand_back(case: Case) -> None:
    """Give a reservation back that no cluster can use; the workload says why and waits for a better moment."""
    core, attempt = case.core, case.attempt
    if case.rec.reserved:
        endings.end_before_placement(case)
        return
    core.ledger.block(attempt.uid)
    if attempt.waiting is not None:
        core.waiting_reasons.say(attempt.uid, attempt.waiting)
        attempt.wait_for(None)
    endings.strike(core, attempt, case.now)
    core.mark_attempt(attempt)
