"""Whether an attempt is to end, and its eviction: the user's object, a queue, a check or the time has its say.

Neighbours: `reconcile` asks in its order; `endings` and `placing` bring to an end what is to; `choosing` says which
Workload is one too many.
"""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import endings, membership, placing, releasing, verdicts
from gatelift.core.records import release_writes
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState, Wire
from gatelift.core.records.attempts import Ending
from gatelift.core.rules import (
    ends,
    execution_time,
    kept_record,
    outgrown,
    readiness,
    reclaim_books,
    seeking,
)
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.works import choosing, growing, growth_checks, looking_again, owners, standstills
from gatelift_kinds.shared.gathered import OVER_AT_HOME
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER


def goes(case: Case) -> bool:
    """Say whether it is to go whatever anybody does: it or its object is deleted, or that is gone."""
    if ends.is_deleted(case.known.metadata):
        return True
    if case.kind is None or case.work.gathered is not None:
        abandoned = case.work.gathered is not None and case.work.gathered.is_abandoned
        return abandoned and not seeking.misses_any(case.core, case.known, case.work, case.now)
    owner = case.work.only_object
    return owner is None or ends.is_deleted(owner.object.metadata)


def is_over(case: Case) -> bool:
    """Say whether what does not go by itself (`goes`) is to go: its object has left its queue, or has another."""
    known, work = case.known, case.work
    if not work.objects:
        return False
    if ends.has_left(known, work):
        return True
    return choosing.is_surplus(case.core, case.work, known)


def delete_surplus(case: Case) -> None:
    """Delete a Workload that its work has beside the current one: it would run twice. Each in a pass of its own."""
    core, known = case.core, case.known
    if ends.is_deleted(known.metadata) or core.inflight.busy(case.rec.ref):
        return
    if choosing.is_surplus(core, case.work, known) and not choosing.is_foreign(case.work, known):
        api_requests.delete_workload(core, known, Purpose.DELETE_WORKLOAD)


def own_end(case: Case) -> bool:
    """Notice that the user's object shows its end: before it is placed anywhere, or on `local` by the kubelet.

    What runs elsewhere has ended when its cluster says so: whoever may patch a status at home could show an end there.
    """
    owner, attempt, gathered = case.work.stands_for_all, case.attempt, case.work.gathered
    if owner is None or growing.is_target(case):
        return False  # a slice that waits goes with the end of what runs
    outcome = owner.kind.outcome(owner.object) if gathered is None else gathered.outcome(case.known)
    if outcome is None:
        return False
    if attempt.state in NO_WINNER:
        endings.close(case.core, attempt, case.now)
        attempt.ended_as(endings.finished_as(outcome))
        return True
    if gathered is not None and attempt.live and _is_unsure(case):
        return False
    if membership.is_elsewhere(case.work, attempt):
        if attempt.ending is None:  # each has ended by its cluster's word: the rest of it is to say so as well
            attempt.end_for(Ending(reason=OVER_AT_HOME, message=outcome.message, evict=False))
        return False
    if attempt.live and (attempt.cluster != LOCAL_CLUSTER or owner.kind.pods_are_children):
        return False  # its agent says when nothing of it runs; the pods of a Job that is over may run on
    attempt.seen_to_end()  # it is acknowledged when it is told: what runs is not forgotten, but ended
    cluster, placed = attempt.cluster, attempt.key
    ended = endings.end(case.core, attempt, Wire.FINISHED, endings.finished_as(outcome))
    if ended and gathered is not None:
        placing.over_at_home(case.core, cluster, placed)  # its agent does not know which object was the last
    return ended


def _is_unsure(case: Case) -> bool:
    """Say whether one of several may run of which this leader does not know yet: by its record, or where it runs."""
    if seeking.misses_any(case.core, case.known, case.work, case.now):
        return True
    attempt = case.attempt
    return attempt.cluster != LOCAL_CLUSTER and looking_again.is_unheard(case.core, attempt, attempt.look, case.now)


def evict(case: Case) -> None:
    """Bring an attempt to an end that its queue, its owner or a person wants."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    ending = attempt.ending
    if ending is None:
        ending = ends.as_written(known)
        attempt.end_for(ending)
    if not attempt.live:
        endings.end_before_placement(case)
        return
    if ending.evict and not rec.evicted and not kept_record.is_refused(core, rec, now):
        api_requests.patch_workload(
            core, known, release_writes.eviction_write(known, ending, core.wall.text(now)), Purpose.EVICT
        )
        return
    placing.stop(core, attempt, ending, now)
    if case.work.gathered is not None:
        reclaim_books.book(core, attempt, now)  # who is over from now on may give its share back
    releasing.look(case)


def without_record(case: Case) -> None:
    """Begin nothing more of a placement whose record cannot be put back; one that fits no more is queued anew."""
    if not kept_record.fits(case.known):
        case.attempt.end_for(outgrown.ENDING)
        case.core.mark_attempt(case.attempt)
    else:
        owners.ended_by_user(case)


def is_given_up(case: Case) -> bool:
    """Look whether its user, a check, the execution time or pods that do not get ready end what holds quota."""
    attempt = case.attempt
    if growing.is_target(case):
        return growth_checks.against(case)
    if attempt.live and (owners.ended_by_user(case) or standstills.ends(case)):
        return True
    if verdicts.against(case):
        return True
    if not case.rec.admitted:
        return False
    if execution_time.exceeded(case):
        return True
    return attempt.state is not AttemptState.LOST and readiness.watch(case)
