"""What one of several objects shows of what its worker says, and how it ended. Neighbour: `gathered` asks."""

from __future__ import annotations

from gatelift.core.dispatching import membership
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import ref_of
from gatelift.core.state.case import ObjectCase
from gatelift.core.told import mirror, shown_end
from gatelift_kinds.shared.gathered import Called, Gathered
from gatelift_kube.objects.kueue import Workload


def take_shown(seen: ObjectCase) -> None:
    """Take that an object shows the end that its worker told of, also while the answer to that write is awaited.

    Its user sees it, and may replace it at once (HD-473).
    """
    core, owner, attempt = seen.core, seen.owner, seen.attempt
    if attempt is None or not membership.is_elsewhere(seen.work, attempt):
        return
    if owner.kind.outcome(owner.object) is not None and membership.shown(attempt, seen.work, owner):
        core.mark_for_one(seen.work.look)
        core.mark_for_one(attempt.look)


def show_success(seen: ObjectCase) -> None:
    """Show of a deleted object that it had succeeded at its worker: its slot is taken for good (HD-392)."""
    attempt, workload = seen.attempt, seen.workload
    if attempt is None or workload is None or not membership.is_elsewhere(seen.work, attempt):
        return
    report = attempt.reports.get(seen.owner.object.metadata.name)
    if report is not None and mirror.succeeded(report.status):
        show(seen)


def show(seen: ObjectCase) -> None:
    """Show what its worker says of one object; of an end that is refused as it is told no more than that it is one."""
    owner, attempt, case = seen.owner, seen.attempt, seen.of_workload()
    if attempt is None or case is None:
        return
    report, uid = attempt.reports.get(owner.object.metadata.name), owner.object.metadata.uid
    if report is None or report.owner_uid != uid:
        return
    if seen.core.resting.hopeless(owner.ref) or attempt.told.is_said_plainly(uid):
        shown_end.show_of_several(case, owner)
    else:
        mirror.show(case, owner)


def show_its_end(seen: ObjectCase, workload: Workload) -> None:
    """Show how one object ended at its worker, now that nothing of them runs there."""
    case = seen.of_workload()
    if case is None or seen.owner.kind.outcome(seen.owner.object) is not None:
        seen.core.mark_workload(ref_of(workload).key)
    else:
        shown_end.show_of_several(case, seen.owner)


def beyond(gathered: Gathered, workload: Workload, attempt: Attempt) -> tuple[Called, ...]:
    """Return the objects that are too many; who waits at a worker only once each end that it told of is shown.

    By another one's end it may have a slot by now.
    """
    found = gathered.surplus(workload)
    return found if not attempt.told.ends else tuple(each for each in found if not gathered.is_told_of(each.uid))
