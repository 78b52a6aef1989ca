"""What is kept of a report of how an object is, and who is looked at for it. Neighbour: `reports` calls."""

from __future__ import annotations

from dataclasses import replace

from gatelift.core.dispatching import membership, several
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import NOBODYS, Owner, Work
from gatelift.core.state import few_lines
from gatelift.core.state.core import Core
from gatelift.core.told import mirror, pod_troubles
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import (
    Applied,
    CountsReport,
    Evicted,
    Finished,
    GatesLifted,
    ObjectReport,
    Refused,
    Stopped,
)

WHOLE_BYTES_MAX = 16 * 1024
"""A reported status up to this is kept as it came: nearly all are, and are looked through once, when they are shown."""
Placed = Applied | GatesLifted | ObjectReport | CountsReport | Finished | Stopped | Refused | Evicted


def what_for(core: Core, attempt: Attempt) -> tuple[Workload | None, Work]:
    """Return what an attempt is for, as it is known."""
    known = core.knowledge.workloads.get(attempt.workload)
    return known, core.knowledge.work_of(known) if known is not None else NOBODYS


def take(core: Core, attempt: Attempt, report: ObjectReport) -> None:
    """Take how an object is; what says no more than that, once more, is looked at behind all else."""
    keep(core, attempt, (report,))
    core.mark_said_of_one(attempt, again=not mirror.is_news(attempt, report))
    pod_troubles.heard(core, attempt)


def keep(core: Core, attempt: Attempt, reports: tuple[ObjectReport, ...]) -> None:
    """Keep what was said of the objects that were placed: what else a worker tells of nobody looks at."""
    known, work = what_for(core, attempt)
    if known is not None and membership.is_elsewhere(work, attempt):
        latest = {report.name: report for report in _of_members(core, attempt, work, reports)}
    else:
        placed = {one.name for one in owners_of(known)} if known is not None else set()
        latest = {report.name: report for report in reports if report.name in placed}
    for report in latest.values():  # one of each: thousands of the same name are no more news than the last
        problem = mirror.unreadable(report.status)
        if problem:
            text = f"status of {report.kind} {report.name} is none and is not shown: {problem}"
            few_lines.note(core, attempt.cluster, text, attempt)
        else:
            _keep_one(core, attempt, known, report)


def _of_members(
    core: Core, attempt: Attempt, work: Work, reports: tuple[ObjectReport, ...]
) -> tuple[ObjectReport, ...]:
    """Take what is said of each of several objects; return what of it is to be shown."""
    found = []
    for report in reports:
        kept = membership.heard(core, attempt, work, report)
        owner = several.named(core, work, report.name, report.owner_uid)
        if kept is not None:
            found.append(kept)
        elif report.gone:
            pod_troubles.reported(core, attempt, report)
        if owner is not None:
            (core.agenda.mark if mirror.is_news(attempt, report) else core.agenda.mark_late)(owner.look)
    core.mark_for_one(attempt.look)
    return tuple(found)


def _keep_one(core: Core, attempt: Attempt, known: Workload | None, report: ObjectReport) -> None:
    """Keep a report, of a long one what its object may show: it is kept for as long as the placement lasts."""
    is_long = len(report.status) > WHOLE_BYTES_MAX
    owner = None
    if is_long or core.settings.readiness is not None:
        work = core.knowledge.work_of(known) if known is not None else NOBODYS
        owner = _named(core, work, report.name) if work.gathered is not None else work.only_object
    if is_long:
        if owner is None:
            return  # nobody shows it
        report = replace(report, status=owner.kind.shown(owner.object, report.status))
    attempt.report(report, core.now)
    pod_troubles.reported(core, attempt, report)
    if owner is not None and core.settings.readiness is not None:
        ready = owner.kind.says_ready(owner.object, report.status)
        attempt.says_ready(report.name, core.now, ready=ready)


def _named(core: Core, work: Work, name: str) -> Owner | None:
    """Return the object of a work of several that a report is about."""
    found = core.knowledge.owners.get(ObjectRef(work.id[0], ObjectKey(work.id[1], name)))
    return found if found is not None and core.knowledge.works.of_object(found.name) is work else None
