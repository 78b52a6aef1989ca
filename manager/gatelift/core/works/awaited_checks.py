"""Checks of other controllers are waited for: they see what has quota and no winner yet, and say of it what they say.

Neighbours: `admitting` asks of what is to be placed, `growing` of what is to grow what runs (SL-33).
"""

from __future__ import annotations

from collections.abc import Collection

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import admission_writes
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.told import telling


def are_ready(case: Case, others: Collection[str], epoch: int) -> bool:
    """Say whether all checks of other controllers are Ready; they see the workload as soon as it is reserved."""
    if not case.rec.reserved:
        show_reservation(case, at=case.now, epoch=epoch)
        return False
    states = {check.name: check for check in case.known.status.admission_checks}
    telling.checks(case.core, case.known, case.attempt, others)
    return all(name in states and states[name].state == texts.READY for name in others)


def show_reservation(case: Case, *, at: float, epoch: int) -> None:
    """Write QuotaReserved=True alone when no winner was found by `at`, so that nobody waits unseen.

    `epoch`: in which it is to be placed; 0 where it is to grow what is placed already.
    """
    core, attempt = case.core, case.attempt
    reserve = attempt.reserve
    if reserve is None:
        return
    if case.now < at:
        core.agenda.wake(attempt.look, at)
        return
    body = admission_writes.reservation_write(case.known, reserve, epoch, core.wall.text(case.now))
    api_requests.patch_workload(core, case.known, body, Purpose.RESERVE)
