"""The end of work that ran elsewhere, as its user's object shows it: first the reported status, else the smallest one.

The object shows the end before its Workload says Finished, and before our finalizer goes: without both it would say
Running for ever. A write that fails is tried again; what an API server refuses for good holds up neither quota nor the
object, and is said at both. Neighbours: `endings` writes Finished, `owners` lets the object go, `mirror` shows the run.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.api.inflight import Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import record
from gatelift.core.records.attempt_states import Wire
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import Case, ObjectCase
from gatelift.core.state.core import Core
from gatelift.core.told import mirror
from gatelift_kinds.shared.values import ObjectEnd, PatchStep
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, WriteError, WriteFailed
from gatelift_kube.objects.conditions import find
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.keys import PlacementKey

SHOW_END_SECONDS = 6 * WRITE_SECONDS_MAX
"""How long Finished, and the quota with it, waits for the user's object to show the end: several tries, each with its
time limit and the pause after it. An API server that writes Workloads but not pods must not keep quota for ever; after
this the end is shown from the record (`from_record`)."""

FOR_GOOD = frozenset({WriteError.INVALID, WriteError.TOO_LARGE, WriteError.DENIED})
"""Refusals of what was written, not of the moment: the same again would be refused again."""


def finished(attempt: Attempt) -> bool:
    """Say whether the attempt's work came to its own end."""
    return attempt.outcome is not None and attempt.outcome.how is Wire.FINISHED


def waits_until(case: Case) -> float:
    """Return until when Finished waits for the user's object; 0: it shows the end, or never will."""
    core, attempt, now = case.core, case.attempt, case.now
    if case.work.gathered is not None:
        return 0.0  # none of several counts as over before it shows that
    owner = case.work.only_object if attempt.cluster not in {"", LOCAL_CLUSTER} else None
    if owner is None or owner.kind.outcome(owner.object) is not None:
        return 0.0
    ask_for(case)
    why = core.resting.hopeless(owner.ref)
    if not why and now < attempt.ended_at + SHOW_END_SECONDS:
        return attempt.ended_at + SHOW_END_SECONDS
    attempt.end_not_shown(why or texts.NOT_WRITTEN_IN_TIME)
    return 0.0


def ask_for(case: Case) -> None:
    """Have the user's object show the end: tried anew as that begins."""
    owner = case.work.only_object
    if owner is not None and case.attempt.await_shown_end(case.now):
        case.core.resting.renewed(owner.ref)
        case.core.mark_owner(owner)


def show(case: Case, owner: Owner) -> None:
    """Write the end to the user's object: the status that was reported with it, else the smallest that says it."""
    core, attempt = case.core, case.attempt
    outcome = attempt.outcome
    if outcome is None or core.resting.hopeless(owner.ref):
        return
    report = attempt.reports.get(owner.object.metadata.name)
    if report is not None and not attempt.end_refused and mirror.over(report.status):
        body, purpose = mirror.unshown(owner, attempt, report.status), Purpose.MIRROR_END
    else:
        end = ObjectEnd(succeeded=outcome.succeeded, message=outcome.message)
        body, purpose = owner.kind.end_patch(owner.object, owner.raw, end, core.wall.text(case.now)), Purpose.SHOW_END
    if body is not None:
        _write(core, owner, PatchStep(body=body, subresource="status"), purpose, attempt.uid)


def show_of_several(case: Case, owner: Owner) -> None:
    """Write to one of several objects how it ended at a worker, as that has said it."""
    core, attempt, meta = case.core, case.attempt, owner.object.metadata
    report = attempt.reports.get(meta.name)
    if report is None or report.owner_uid != meta.uid or not mirror.over(report.status):
        return
    if core.resting.hopeless(owner.ref):
        core.mark_workload(key_of(case.known.metadata))
        return
    if attempt.told.is_said_plainly(meta.uid):
        end = ObjectEnd(succeeded=mirror.succeeded(report.status), message="")
        body, purpose = owner.kind.end_patch(owner.object, owner.raw, end, core.wall.text(case.now)), Purpose.SHOW_END
    else:
        body, purpose = mirror.unshown(owner, attempt, report.status), Purpose.MIRROR_END
    if body is not None:
        _write(core, owner, PatchStep(body=body, subresource="status"), purpose, attempt.uid)


def from_record(case: ObjectCase, workload: Workload) -> bool:
    """Show the end that a finished Workload tells of; True when a write was asked for, so the object is kept till then.

    Reached when Finished could not wait any longer, also by a process that has replaced the one that waited.
    """
    core, owner = case.core, case.owner
    said = find(workload.status.conditions, texts.FINISHED)
    elsewhere = workload.status.cluster_name not in {None, "", LOCAL_CLUSTER}
    if said is None or said.reason not in {texts.SUCCEEDED, texts.FAILED} or not elsewhere:
        return False
    if owner.kind.outcome(owner.object) is not None or core.resting.hopeless(owner.ref):
        return False
    outcome = ObjectEnd(succeeded=said.reason == texts.SUCCEEDED, message=said.message)
    key = PlacementKey(workload.metadata.uid, core.knowledge.readings[key_of(workload.metadata)][1].epoch)
    step = owner.kind.placed_step(owner.object, key, record.granted(workload))
    if step is not None:
        _write(core, owner, step, Purpose.SHOW_PLACED, workload.metadata.uid)
        return True
    body = owner.kind.end_patch(owner.object, owner.raw, outcome, core.wall.text(case.now))
    if body is not None:
        _write(core, owner, PatchStep(body=body, subresource="status"), Purpose.SHOW_END, workload.metadata.uid)
    return body is not None


def refused(core: Core, outstanding: Outstanding, event: WriteFailed) -> None:
    """Take that a write of the end was refused for good: try the smallest, or say at the object that none is taken."""
    if event.error in FOR_GOOD and outstanding.purpose is Purpose.KEEP_ENDS:
        core.resting.despair(outstanding.ref, event.message or event.error.value)  # else its quota is kept for ever
    attempt = core.attempts.get(outstanding.uid)
    owner = core.knowledge.owners.get(outstanding.ref)
    if event.error in FOR_GOOD and outstanding.purpose is Purpose.MIRROR and attempt is not None and owner is not None:
        if attempt.told.says_plainly(owner.object.metadata.uid):  # one of several has ended, and the others go on
            core.resting.renewed(owner.ref)
            core.mark_owner_alone(owner)
        return
    if event.error not in FOR_GOOD or outstanding.purpose not in {Purpose.MIRROR_END, Purpose.SHOW_END}:
        return
    if outstanding.purpose is Purpose.MIRROR_END:
        if attempt is not None:
            if owner is None or not attempt.told.says_plainly(owner.object.metadata.uid):
                attempt.refuse_end()
            core.resting.renewed(outstanding.ref)
        return
    core.resting.despair(outstanding.ref, event.message or event.error.value)
    if owner is not None:
        text = texts.end_not_shown(owner.kind.name, event.message or event.error.value)
        core.event(owner.ref, owner.object.metadata.uid, texts.END_NOT_SHOWN, text, warning=True)
    known = core.knowledge.workload_of(outstanding.uid)
    if known is not None:
        core.mark_workload(key_of(known.metadata))


def _write(core: Core, owner: Owner, step: PatchStep, purpose: Purpose, uid: str) -> None:
    if core.resting.rests(owner.ref, purpose, core.agenda, owner.look, core.now):
        return
    meta, attempt = owner.object.metadata, core.attempts.get(uid)
    if attempt is not None and purpose is Purpose.MIRROR_END:
        attempt.writes(meta.name, mirror.digest_of(attempt.reports[meta.name].status))
    api_requests.patch(core, Decided(owner.ref, meta.resource_version, uid), step, purpose)
