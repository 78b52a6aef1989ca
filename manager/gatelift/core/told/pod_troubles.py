"""What keeps placed pods from running, shown at home: a condition on the Workload, and on the user's pod. Pure.

Told by the cluster's reports; a start that a cluster refused is told with the write that takes the placement back. It
informs and moves nothing: no quota, no state, no time-out. It rests alone, keeps nothing waiting, and goes when the
trouble is over. Neighbours: `reports` brings what was heard, `reconcile` and `owners` call, `pod_trouble` of the kinds
reads statuses.
"""

from __future__ import annotations

from dataclasses import replace

from gatelift.core import texts
from gatelift.core.api.agenda import Key
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import status_writes
from gatelift.core.records.attempt_states import AttemptState, Wire
from gatelift.core.records.attempts import Attempt, Outcome
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kinds.shared.pod_trouble import (
    CONDITION,
    GATED,
    NAMESPACE_GOES,
    OF_PODS,
    ORDER,
    START_REFUSED,
    Trouble,
    first,
    of_status,
    told,
)
from gatelift_kinds.shared.values import PatchStep
from gatelift_kube.objects.conditions import TRUE, find, put, without
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition
from gatelift_wire.values.messages import ObjectReport
from gatelift_wire.values.refusals import Refusal

SETTLE_SECONDS = 10.0
"""A trouble, or its end, is shown once it has stood for so long: a node may come, a pull is tried again, what crashes
runs for some seconds in between. So one placement is at most six writes a minute, and nearly all are none."""
_FOR_PEOPLE = frozenset(
    {
        Refusal.NAMESPACE_MISSING.value,
        Refusal.NAMESPACE_NOT_ALLOWED.value,
        Refusal.KIND_NOT_SERVED.value,
        Refusal.NAME_CONFLICT.value,
        Refusal.DENIED.value,
        Refusal.TOO_LARGE.value,
        Refusal.POLICY.value,
        Refusal.INVALID.value,
        Refusal.REQUESTS_RAISED.value,
    }
)
"""Refusals that last until a person has changed something; all others are of a moment, or between two daemons."""
_WAITS = {AttemptState.PLACED: GATED, AttemptState.ENDING: NAMESPACE_GOES}
"""What may keep a placement waiting that does not run."""


def reported(core: Core, attempt: Attempt, report: ObjectReport) -> None:
    """Take note of what keeps one object from running, as its cluster says."""
    says = _is_a_pod(core, report.kind) and not report.gone
    attempt.is_troubled(report.name, of_status(report.name, report.status) if says else None)


def heard(core: Core, attempt: Attempt) -> None:
    """Take note of what its cluster last said of its pods; its Workload is looked at when that has changed."""
    counted = attempt.counts.troubles if attempt.counts is not None else ()  # of a Job, or of a pod at its gates
    told_of = frozenset(ORDER) if attempt.cluster == LOCAL_CLUSTER else OF_PODS  # home says it of one of several
    said = (Trouble(one.reason, one.pod, one.text) for one in counted if one.reason in told_of)
    found = first([attempt.first_trouble, *said])
    if found != attempt.trouble:
        attempt.has_trouble(found)
        core.mark_attempt(attempt)


def _is_a_pod(core: Core, name: str) -> bool:
    kind = core.kinds.named(name)
    return kind is not None and not kind.pods_are_children


def let_go(core: Core, attempt: Attempt) -> None:
    """Forget the gates at which a pod waited: it goes without them, also where no agent has said that they are gone."""
    if attempt.counts is not None and not attempt.counts.pod_sets:
        attempt.count(replace(attempt.counts, troubles=()))
        heard(core, attempt)


def refused(known: Workload, outcome: Outcome) -> tuple[Condition, ...]:
    """Return what a Workload bears, until it runs, whose start its cluster has refused; nothing after all other ends.

    A lift that is refused ends the placement as one that is refused from the start does: nothing of it ran.
    """
    if outcome.how is not Wire.REFUSED or outcome.reason not in _FOR_PEOPLE:
        return ()
    return (status_writes.condition(known, CONDITION, TRUE, START_REFUSED, outcome.message),)


def show(case: Case) -> None:
    """Write on the Workload what keeps its pods from running, or take it off, at the pace of what only informs."""
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    said, trouble = find(known.status.conditions, CONDITION), attempt.trouble
    if (said is None and trouble is None) or not _is_told(attempt):
        attempt.trouble_shown()  # what was said of one that waits, ends or is lost stays for now
        return
    if rec.finished or core.inflight.busy(rec.ref) or find(known.status.conditions, texts.HELD) is not None:
        return  # the answer marks it again; one word at a time, and why it is held weighs more
    wanted = (TRUE, trouble.reason, told(attempt.cluster, trouble)) if trouble is not None else None
    if wanted == ((said.status, said.reason, said.message) if said is not None else None):
        attempt.trouble_shown()
        core.budget.leave(_asks(attempt, attempt.look))
    elif trouble is not None or attempt.reports or attempt.counts is not None:  # else a leader before has heard it
        _write_in_time(case, wanted)


def _is_told(attempt: Attempt) -> bool:
    """Say whether its trouble is of now: of what does not run yet, or no longer, only what keeps it waiting."""
    reason = attempt.trouble.reason if attempt.trouble is not None else ""
    return attempt.state is AttemptState.RUNNING or _WAITS.get(attempt.state) == reason


def _write_in_time(case: Case, wanted: tuple[str, str, str] | None) -> None:
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    due = attempt.trouble_unshown(now) + SETTLE_SECONDS
    if now < due:
        core.agenda.wake(attempt.look, due)
    elif not core.resting.rests(rec.ref, Purpose.POD_TROUBLE, core.agenda, attempt.look, now) and core.may_inform(
        _asks(attempt, attempt.look), now
    ):
        attempt.trouble_shown()
        conditions = without(known.status.conditions, CONDITION)
        if wanted is not None:
            new = status_writes.condition(known, CONDITION, *wanted)
            conditions = put(known.status.conditions, new, core.wall.text(now))
        api_requests.patch_workload(
            core, known, status_writes.status_write(known, conditions=conditions), Purpose.POD_TROUBLE
        )


def _asks(attempt: Attempt, look: Key) -> WriteAsk:
    return WriteAsk(look, Purpose.POD_TROUBLE, attempt.cluster)


def show_on_owner(case: Case, owner: Owner) -> None:
    """Write on the user's object what its Workload says of it, where its kind has a place for that."""
    core, look, now, asks = case.core, owner.look, case.now, _asks(case.attempt, owner.look)
    if case.attempt.state is AttemptState.LOST or core.inflight.busy(owner.ref):
        return
    body = owner.kind.trouble_patch(owner.object, owner.raw, find(case.known.status.conditions, CONDITION))
    if body is None:
        core.budget.leave(asks)
    elif not core.resting.rests(owner.ref, Purpose.POD_TROUBLE, core.agenda, look, now) and core.may_inform(asks, now):
        decided = Decided(owner.ref, owner.object.metadata.resource_version)
        api_requests.patch(core, decided, PatchStep(body=body, subresource="status"), Purpose.POD_TROUBLE, informs=True)
