"""Works of several objects: one Workload is made of all of them, and who is too many goes. Level-triggered.

There is a pass over each object, for what concerns it alone, and one over all of a work, which goes through none of
them: what it asks is counted (`gatelift_kinds.shared.gathered`). Neighbours: `owners` does the same for what stands
alone, `reconcile` looks after the Workload.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.dispatching import membership
from gatelift.core.records import record
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.records.work import ABANDONED, Owner, Work
from gatelift.core.rules import ended_with, ends, priorities, reclaim_books, retention
from gatelift.core.state import api_requests, out_of_sight
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import Case, ObjectCase
from gatelift.core.state.core import Core
from gatelift.core.told import event_texts
from gatelift.core.told.event_texts import NOT_COMPOSED, WORKLOAD_NAME_CONFLICT
from gatelift.core.works import (
    asking,
    choosing,
    counting,
    ending_objects,
    group_words,
    looking_again,
    owners,
    shown_members,
    too_many,
)
from gatelift_kinds.shared.gathered import Called, Gathered
from gatelift_kinds.shared.rules import OUT_OF_QUEUE
from gatelift_kinds.shared.values import KindError, PatchStep
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef

ALL_OVER, DELETED = "all over", "deleted"
"""Names of ends: of objects that are all over and have no Workload, and of a Workload that somebody deleted."""


def look_at_object(core: Core, ref: ObjectRef, now: float) -> None:
    """Look at one user's object, alone or of several."""
    owner = core.knowledge.owners.get(ref)
    work = core.knowledge.works.of_object(owner.name) if owner is not None else None
    if owner is None or work is None or work.gathered is None:
        owners.reconcile(core, ref, now)
        return
    if not counting.is_put_off(core, work, owner.look, now):
        _look_at_one(core, owner, work, work.gathered, now)


def _look_at_one(core: Core, owner: Owner, work: Work, gathered: Gathered, now: float) -> None:
    ref = owner.ref
    workload = choosing.current_of(core, work)
    attempt = core.attempts.get(workload.metadata.uid) if workload is not None else None
    seen = ObjectCase(core, owner, work, workload, attempt, now)
    shown_members.take_shown(seen)
    if out_of_sight.is_sought(core, owner, now) or api_requests.blocked(core, ref, owner.look, now):
        return
    if workload is not None and not _is_settled(core, work, workload, attempt):
        return
    case, uid = seen.of_workload(), owner.object.metadata.uid
    if workload is not None and _is_over(workload, attempt):
        _tell_late(core, work, gathered, owner)
        owners.release(core, owner)
    elif case is not None and ended_with.is_due_for(case, owner):
        _end(case, owner)
    elif case is not None and retention.ends_object(case, owner):
        _clear_away(core, gathered, owner)
    elif workload is None and gathered.is_left(uid):
        owners.release(core, owner)
    elif owner.object.metadata.deletion_timestamp is not None:
        if gathered.releases(uid) and not _is_unknown_there(seen):
            owners.release(core, owner)
        else:
            shown_members.show_success(seen)
    elif owners.put_mark_back(core, owner, now):
        pass  # the answer looks here again
    elif not owner.managed:
        _let_out_of_sight(seen)
    else:
        group_words.tell_unlike(core, work, owner, workload)
        _hold_back_or_show(seen)


def _hold_back_or_show(seen: ObjectCase) -> None:
    attempt, workload = seen.attempt, seen.workload
    if attempt is None or attempt.state in NO_WINNER:
        owners.hold_back(seen.core, seen.owner, workload.metadata.uid if workload is not None else "", seen.now)
    elif workload is not None and membership.is_elsewhere(seen.work, attempt):
        shown_members.show(seen)
    elif workload is not None and seen.owner.object.metadata.uid in attempt.told.ends:
        shown_members.show_its_end(seen, workload)


def _let_out_of_sight(seen: ObjectCase) -> None:
    """Give its finalizer back, unless it may run at a worker: it is to be told to leave there first.

    Until then it shows what that worker says of it, as all do: how it ended counts.
    """
    if seen.attempt is not None and membership.is_elsewhere(seen.work, seen.attempt):
        shown_members.show(seen)
        return
    owners.let_out_of_sight(seen.core, seen.owner, seen.now)
    if seen.work.gathered is not None and seen.work.gathered.has_run(seen.owner.object.metadata.uid):
        out_of_sight.follow(seen.core, seen.owner, seen.now)


def _is_settled(core: Core, work: Work, workload: Workload, attempt: Attempt | None) -> bool:
    """Say whether it is known where the objects may run; else the pass over their Workload finds out first.

    Who may run at a worker would count as one at its gate, of which nothing is left once it is deleted.
    """
    if (
        attempt is None
        and looking_again.is_placed(workload)
        and not is_true(workload.status.conditions, texts.FINISHED)
    ):
        core.mark_workload(ref_of(workload).key)
        return False
    if attempt is not None:
        membership.settle(work, attempt, workload)
    return True


def _is_unknown_there(seen: ObjectCase) -> bool:
    """Say whether the cluster of a placement has yet to be heard of what it has: an object that went is no proof to it.

    It would have to hear of each node first. A new leader's own agent begins as it does, and lists after that.
    """
    return seen.attempt is not None and looking_again.is_unheard(seen.core, seen.attempt, seen.owner.look, seen.now)


def _clear_away(core: Core, gathered: Gathered, owner: Owner) -> None:
    """Delete an object that was kept long enough; one that an eviction has ended waits for nobody in its place."""
    meta = owner.object.metadata
    if meta.deletion_timestamp is None:
        retention.delete(core, owner)
    elif gathered.is_left(meta.uid) or gathered.releases(meta.uid):
        owners.release(core, owner)


def _end(case: Case, owner: Owner) -> None:
    """End an object with the Workload that names it; nothing of it runs, or that would not have ended."""
    if owner.object.metadata.deletion_timestamp is None:
        ending_objects.end_one(case, owner)
    else:
        owners.release(case.core, owner)


def reconcile(core: Core, key: ObjectKey, now: float) -> None:
    """Look at all objects of a work together."""
    work = core.knowledge.works.gathered_at(key)
    if work is None or work.gathered is None or not counting.go_on(core, work, now):
        return
    if looking_again.reads_anew(core, work, work.gathered):
        return
    for each in choosing.placed_surplus(core, work) if len(work.placed) > 1 else ():
        core.mark_workload(ref_of(each).key)  # it was current until now: its own pass ends it
    workload = choosing.current_of(core, work)
    if workload is None and work.gathered.is_prebuilt:
        looking_again.settle_anew(core, key)
    attempt = core.attempts.get(workload.metadata.uid) if workload is not None else None
    if attempt is not None and reclaim_books.book(core, attempt, now):
        core.mark_attempt(attempt)
    by = _over_by(core, work, work.gathered, workload, now)
    begins = work.lets_go(by)
    if by:
        for owner in work.objects if begins else ():  # each is written to, and goes
            core.mark_owner_alone(owner)
        return
    if attempt is not None:
        looking_again.look_once_more(core, work, attempt)
    if workload is None:
        _without_workload(core, work, work.gathered, now)
    elif workload.metadata.deletion_timestamp is None:
        _with_workload(core, work, work.gathered, workload, now)


def _over_by(core: Core, work: Work, gathered: Gathered, workload: Workload | None, now: float) -> str:
    """Return which end all objects have come to, "" for none: each end has a name of its own."""
    if gathered.is_abandoned:
        return ABANDONED
    if workload is None:
        return ALL_OVER if gathered.is_over else ""
    uid = workload.metadata.uid
    attempt = core.attempts.get(uid)
    if _is_over(workload, attempt):
        return uid
    if attempt is None:
        return ""
    kind, rec = core.knowledge.readings[key_of(workload.metadata)]
    case = Case(core, workload, rec, attempt, kind, work, now)
    return f"{uid} {DELETED}" if ended_with.is_due(case) else ""


def _is_over(workload: Workload, attempt: Attempt | None) -> bool:
    """Say whether all objects may go: the Workload shows the end, and nothing of it is placed any more."""
    return is_true(workload.status.conditions, texts.FINISHED) and not (attempt is not None and attempt.live)


def _without_workload(core: Core, work: Work, gathered: Gathered, now: float) -> None:
    """Make the Workload, or tell why that cannot be: there is quota for none, who was unlike that counts (HD-485)."""
    gathered.asks(None)
    if looking_again.reads_anew(core, work, gathered):
        return
    owner = _speaker(core, work, gathered)
    if owner is None or _lacks(core, work, gathered, now):
        return
    if not gathered.queue_name and not core.settings.manages_unnamed:
        group_words.tell(core, work, owner, (texts.NO_QUEUE, OUT_OF_QUEUE), now)
        return
    ref = ObjectRef(WORKLOAD, work.key)
    if api_requests.blocked(core, ref, work.look, now):
        return
    there = core.knowledge.workloads.get(work.key)
    if gathered.is_prebuilt:
        _adopt(core, work, owner, there, now)
        return
    if there is not None:
        group_words.tell(core, work, owner, (WORKLOAD_NAME_CONFLICT, gathered.conflict(there) or _another(there)), now)
        return
    priority = priorities.resolve_names(core, owner, gathered.priority_names)
    if priority is None:
        return
    try:
        body = gathered.workload_document(priority)
    except KindError as error:
        group_words.tell(core, work, owner, (NOT_COMPOSED, str(error)), now)
        return
    api_requests.create(core, ref, body, Purpose.CREATE_WORKLOAD, owner=owner.ref)


def _adopt(core: Core, work: Work, owner: Owner, there: Workload | None, now: float) -> None:
    """Make the Workload that their user made the objects' own, or tell why that cannot be; quota may be on its way."""
    gathered = work.gathered
    if gathered is None:
        return
    attempt = core.attempts.get(there.metadata.uid) if there is not None else None
    problem = gathered.not_adopted(there)
    if there is None or problem:
        group_words.tell(core, work, owner, (NOT_COMPOSED, problem), now)
    elif attempt is not None and attempt.state is AttemptState.PENDING:
        _own(core, work, there, gathered.adoption(there), now)
    else:
        core.mark_workload(ref_of(there).key)  # its pass makes the attempt, or writes what it got


def _with_workload(core: Core, work: Work, gathered: Gathered, workload: Workload, now: float) -> None:
    """Keep a Workload that waits like its objects; of one that holds quota let go who is too many."""
    attempt = core.attempts.get(workload.metadata.uid)
    if attempt is None or is_true(workload.status.conditions, texts.FINISHED):
        core.mark_workload(ref_of(workload).key)
        return
    if attempt.state is not AttemptState.PENDING:
        beyond = () if _ends(core, workload, attempt) else shown_members.beyond(gathered, workload, attempt)
        if too_many.drop(core, work, beyond, now):
            return
    elif _lacks(core, work, gathered, now) or not _keep_alike(core, work, gathered, workload, now):
        return
    if attempt.state is AttemptState.ENDED and core.knowledge.readings[key_of(workload.metadata)][1].reserved:
        core.mark_workload(ref_of(workload).key)  # nothing is charged any more, and that is written first (HD-435)
        return
    _name_owners(core, work, gathered, workload, now)
    if attempt.state is AttemptState.PENDING or _ends(core, workload, attempt):
        return  # what is over is counted for what it gives back until all has stopped (`shares`)
    # At home an agent that begins knows by one that is over that nothing runs in its slot (HD-520).
    home = attempt.cluster == LOCAL_CLUSTER and looking_again.is_unheard(core, attempt, work.look, now)
    for called in () if home else gathered.replaced(workload):  # by who is named by now
        owner = _owner(core, work, called)
        if owner is not None and not api_requests.blocked(core, owner.ref, work.look, now):
            owners.release(core, owner)
    if attempt.live and gathered.to_join(workload, record.granted(workload)):
        core.mark_workload(ref_of(workload).key)


def _ends(core: Core, workload: Workload, attempt: Attempt) -> bool:
    """Say whether what has quota is being ended, or has ended: who comes now replaces what goes, and is not too many.

    What still runs has its slot until it leaves.
    """
    if attempt.ending is not None or attempt.state in {AttemptState.ENDING, AttemptState.ENDED}:
        return True
    return ends.is_evicted(core.knowledge.readings[key_of(workload.metadata)][1])


def _lacks(core: Core, work: Work, gathered: Gathered, now: float) -> bool:
    """Say whether no Workload can be made of the objects; who is too many is deleted, else it is told why."""
    lacks = gathered.lacks()
    owner = _speaker(core, work, gathered)
    if lacks is None:
        return False
    if not too_many.drop(core, work, lacks.surplus, now) and owner is not None:
        group_words.tell(core, work, owner, (NOT_COMPOSED, lacks.text), now)
    return True


def _keep_alike(core: Core, work: Work, gathered: Gathered, workload: Workload, now: float) -> bool:
    """Update a waiting Workload in place when its objects ask for something else now; True where it is like them."""
    if gathered.matches(workload):
        return True
    owner, ref = _speaker(core, work, gathered), ref_of(workload)
    if owner is None or api_requests.blocked(core, ref, work.look, now):
        return False
    differs = gathered.differs(workload) if gathered.is_prebuilt else ""
    if differs:  # its user made it: it is his to change
        group_words.tell(core, work, owner, (NOT_COMPOSED, differs), now)
        return False
    priority = priorities.resolve_names(core, owner, gathered.priority_names)
    if priority is None:
        return False
    try:
        document = msgspec.json.decode(gathered.workload_document(priority))
    except KindError as error:
        group_words.tell(core, work, owner, (NOT_COMPOSED, str(error)), now)
        return False
    kept = ("podSets",) if gathered.asks_for(workload) else ()
    asking.update_workload(core, workload, document["spec"], kept)
    text = f"Updated not matching Workload for suspended job: {ref.key}"
    core.event(owner.ref, owner.object.metadata.uid, texts.UPDATED_WORKLOAD, text)
    return False


def _name_owners(core: Core, work: Work, gathered: Gathered, workload: Workload, now: float) -> None:
    """Have a Workload name objects that came after it was made: who is kept is an owner."""
    ref = ref_of(workload)
    if api_requests.blocked(core, ref, work.look, now):
        return
    body = gathered.owners_patch(workload)
    if body is not None:
        _own(core, work, workload, body, now)


def _own(core: Core, work: Work, workload: Workload, body: bytes, now: float) -> None:
    """Ask for the write by which a Workload names objects as its owners."""
    ref = ref_of(workload)
    if core.resting.rests(ref, Purpose.ADD_OWNERS, core.agenda, work.look, now):
        return
    decided = Decided(ref, workload.metadata.resource_version, workload.metadata.uid)
    api_requests.patch(core, decided, PatchStep(body=body, kind=PatchKind.JSON), Purpose.ADD_OWNERS)


def _tell_late(core: Core, work: Work, gathered: Gathered, owner: Owner) -> None:
    if not gathered.is_told_of(owner.object.metadata.uid):
        group_words.tell_one(
            core, work, owner, event_texts.GROUP_IS_OVER, event_texts.GROUP_OVER
        )  # it came when all was over


def _speaker(core: Core, work: Work, gathered: Gathered) -> Owner | None:
    called = gathered.speaker
    return _owner(core, work, called) if called is not None else None


def _owner(core: Core, work: Work, called: Called) -> Owner | None:
    """Return one of the objects as it is known; None where another one has its name by now."""
    found = core.knowledge.owners.get(ObjectRef(work.id[0], ObjectKey(work.id[1], called.name)))
    return found if found is not None and found.object.metadata.uid == called.uid else None


def _another(there: Workload) -> str:
    key = ref_of(there).key
    return f"Workload {key} exists and belongs to something else; delete or rename it"
