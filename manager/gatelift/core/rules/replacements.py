"""What a Workload says of objects that have to be made again (Kueue's WaitingForReplacementPods), and when. Pure.

Of works of several objects alone. While it says so, it gets no quota (`works.asking.changing`). An eviction says it in
the write that gives its quota back; no eviction waits for such a write. Neighbours: `works.reconcile` asks in its
passes, `dispatching.endings` for the write of an end; `gatelift_kinds.pod_group.ends` counts who is missing.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import status_writes
from gatelift.core.records.attempts import Ending
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift_kube.objects.conditions import TRUE, find, put
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition

WORDS_SECONDS = 1.0
"""How often a Workload says anew how many lack."""


def say(case: Case) -> bool:
    """Write that objects have to be made again, or need not be any more; True if that was asked for."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    if core.inflight.busy(rec.ref):
        return False
    said = _of(case, known)
    if not said or core.resting.rests(rec.ref, Purpose.REPLACEMENTS, core.agenda, attempt.look, now):
        return False
    if _are_words(known, said) and not _may_reword(case):
        return False
    attempt.says_replacements(now)
    conditions = status_writes.with_each(known.status.conditions, said, core.wall.text(now))
    body = status_writes.status_write(known, conditions=conditions)
    api_requests.patch_workload(core, known, body, Purpose.REPLACEMENTS)
    return True


def _are_words(known: Workload, said: tuple[Condition, ...]) -> bool:
    """Say whether no more changes than how many lack, and who."""
    before = find(known.status.conditions, said[0].type)
    return before is not None and (before.status, before.reason) == (said[0].status, said[0].reason)


def _may_reword(case: Case) -> bool:
    """Say whether other words may be written: of many pods that fail one after the other once a second."""
    core, attempt, now = case.core, case.attempt, case.now
    due = attempt.replacements_said_at + WORDS_SECONDS
    if now < due:
        core.agenda.wake(attempt.look, due)
        return False
    return core.may_inform(WriteAsk(attempt.look, Purpose.REPLACEMENTS, attempt.cluster), now)


def besides(case: Case, evicted: Ending | None) -> tuple[Condition, ...]:
    """Return what an end says of it in its own write; `evicted`: the eviction that this write is also about."""
    known = case.known
    if evicted is not None:
        ends = status_writes.condition(known, texts.EVICTED, TRUE, evicted.reason, evicted.message)
        conditions = put(known.status.conditions, ends, case.core.wall.text(case.now))
        known = msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, conditions=conditions))
    return _of(case, known)


def _of(case: Case, known: Workload) -> tuple[Condition, ...]:
    gathered = case.work.gathered
    said = gathered.waiting_condition(known) if gathered is not None else None
    if said is None:
        return ()
    return (status_writes.condition(known, said.type, said.status, said.reason, said.message),)
