"""What people see of a hold where they look first: on a Workload that has a reservation, and on the cluster. Pure.

A Workload that waits in its queue says why as QuotaReserved=False (`requeueing`). One that has a reservation, or shows
that it is admitted, has no such place: it bears a condition of ours as long as it is held. A cluster that gets no new
work for what it has said shows why (`cluster_conditions`). Nothing is held or let go here. Neighbour: `caution` knows.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.conclusions import epoch_texts, recovery_texts, reports, sized
from gatelift.core.dispatching.unexplained import is_compared
from gatelift.core.records.record import Record
from gatelift.core.records.status_writes import held_write
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kube.objects.conditions import TRUE, find, truncated

NOTHING = ("", "")


def why(core: Core, rec: Record) -> tuple[str, str] | None:
    """Return reason and message of what a Workload is to bear, None where it bears nothing."""
    attempt = core.attempts.get(rec.uid)
    if rec.reserved and attempt is not None and attempt.live and sized.is_ahead(core, attempt):
        return sized.SIZE_AHEAD, truncated(sized.why_held(core, attempt))
    if not rec.reserved or rec.finished or not core.caution.holds(core.knowledge.placed_uid(rec.uid)):
        return None
    return texts.EPOCH_AHEAD, truncated(reports.why_held(core, core.knowledge.placed_uid(rec.uid), rec.highest_epoch))


def show(case: Case) -> None:
    """Write what a Workload is to bear, or take it off, at the pace of what only informs."""
    core, known, rec, key, now = case.core, case.known, case.rec, case.attempt.look, case.now
    said, wanted = find(known.status.conditions, texts.HELD), why(core, rec)
    asks = WriteAsk(key, Purpose.WHY_HELD, case.attempt.cluster)
    if said is None and wanted is None:
        return
    if core.inflight.busy(rec.ref):
        return  # the answer marks it again
    if said is not None and wanted is not None and (said.status, said.reason, said.message) == (TRUE, *wanted):
        core.budget.leave(asks)
        return
    due = core.waiting_reasons.due(rec.uid, core.settings.status_every)
    if wanted is None and rec.reserved and not rec.finished and _may_be_named(core):
        due = now + core.settings.status_every
    if now < due:
        core.agenda.wake(key, due)
    elif not core.resting.rests(rec.ref, Purpose.WHY_HELD, core.agenda, key, now) and core.may_inform(asks, now):
        core.waiting_reasons.written(rec.uid, now)
        api_requests.patch_workload(core, known, held_write(known, wanted, core.wall.text(now)), Purpose.WHY_HELD)


def _may_be_named(core: Core) -> bool:
    """Say whether a cluster may yet name it anew: it lists what it has, or this leader is yet to hear it.

    What an earlier leader has shown stays for so long. A cluster that stays away counts as lost sooner or later.
    """
    if core.sessions.compares_any():
        return True
    for name, found in core.caution.recovery.clusters.items():
        view = core.view(name)
        if view is None or found.spec.revoked or not found.status.session or view.state is LinkState.LOST:
            continue
        if not is_compared(core, view):
            return True
    return False


def of_cluster(core: Core, cluster: str) -> tuple[str, str] | None:
    """Return why a cluster gets no new work for what it has said, ("", "") where that is not so; None: not heard yet.

    What an earlier leader has shown stays until its inventory was compared, or it counts as lost.
    """
    if core.caution.doubts_seal(cluster):
        return recovery_texts.SEAL_UNVERIFIED, recovery_texts.seal_unverified(cluster)
    first, count = core.caution.suspected(cluster)
    if first is not None:
        known = core.knowledge.placed_workload(first.key.uid)
        name = f"{known.metadata.namespace}/{known.metadata.name}" if known is not None else first.key.uid
        return texts.EPOCH_AHEAD, truncated(epoch_texts.names_later(name, first.key.epoch, count))
    view = core.view(cluster)
    if view is None or (view.state is not LinkState.LOST and not is_compared(core, view)):
        return None
    return NOTHING
