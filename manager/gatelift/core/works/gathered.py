"""Works of several objects: one Workload is made of all of them, and who is too many goes. Level-triggered.

There is a pass over each object, for what concerns it alone, and one over all of a work, which goes through none of
them: what it asks is counted (`gatelift_kinds.shared.gathered`). Neighbours: `owners` does the same for what stands
alone, `reconcile` looks after the Workload.
"""

from __future__ import annotations

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import ref_of
from gatelift.core.records.work import ABANDONED, Owner, Work
from gatelift.core.rules import priorities
from gatelift.core.state import api_requests
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.core import Core
from gatelift.core.told.event_texts import GROUP_SHAPE_MISMATCH, NOT_COMPOSED, WORKLOAD_NAME_CONFLICT
from gatelift.core.works import choosing, owners
from gatelift_kinds.shared.gathered import Called, Gathered
from gatelift_kinds.shared.rules import OUT_OF_QUEUE
from gatelift_kinds.shared.values import KindError, PatchStep
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef


def look_at_object(core: Core, ref: ObjectRef, now: float) -> None:
    """Look at one user's object, alone or of several."""
    owner = core.knowledge.owners.get(ref)
    work = core.knowledge.works.of_object(owner.name) if owner is not None else None
    if owner is None or work is None or work.gathered is None:
        owners.reconcile(core, ref, now)
        return
    if api_requests.blocked(core, ref, owner.look, now):
        return
    workload = choosing.current_of(core, work)
    uid = workload.metadata.uid if workload is not None else ""
    attempt = core.attempts.get(uid)
    if workload is not None and _is_over(workload, attempt):
        owners.release(core, owner)
    elif owner.object.metadata.deletion_timestamp is not None:
        if work.gathered.releases(owner.object.metadata.uid):
            owners.release(core, owner)
    elif owners.put_mark_back(core, owner, now):
        pass  # the answer looks here again
    elif not owner.managed:
        owners.let_out_of_sight(core, owner, now)
    else:
        _tell_misfit(core, work, work.gathered, owner)
        if attempt is None or attempt.state in NO_WINNER:
            owners.hold_back(core, owner, uid, now)


def reconcile(core: Core, key: ObjectKey, now: float) -> None:
    """Look at all objects of a work together."""
    work = core.knowledge.works.gathered_at(key)
    if work is None or work.gathered is None:
        return
    unread = work.gathered.unread
    if unread:
        for called in work.gathered.read_anew(unread):
            owner = _owner(core, work, called)
            if owner is not None:
                core.mark_owner_alone(owner)
        core.agenda.mark(work.look)  # the rest, and what follows from all of them
        return
    for each in choosing.placed_surplus(core, work) if len(work.placed) > 1 else ():
        core.mark_workload(ref_of(each).key)  # it was current until now: its own pass ends it
    workload = choosing.current_of(core, work)
    over = workload is not None and _is_over(workload, core.attempts.get(workload.metadata.uid))
    if over or work.gathered.is_abandoned:
        by = workload.metadata.uid if over and workload is not None else ABANDONED
        for owner in work.objects if work.lets_go(by) else ():  # each is written to, and goes
            core.mark_owner_alone(owner)
        return
    if workload is None:
        _without_workload(core, work, work.gathered, now)
    elif workload.metadata.deletion_timestamp is None:
        _with_workload(core, work, work.gathered, workload, now)


def _is_over(workload: Workload, attempt: Attempt | None) -> bool:
    """Say whether all objects may go: the Workload shows the end, and nothing of it is placed any more."""
    return is_true(workload.status.conditions, texts.FINISHED) and not (attempt is not None and attempt.live)


def _without_workload(core: Core, work: Work, gathered: Gathered, now: float) -> None:
    """Make the Workload, or tell why that cannot be."""
    owner = _speaker(core, work, gathered)
    if owner is None or _lacks(core, work, gathered, now):
        return
    if not gathered.queue_name and not core.settings.manages_unnamed:
        _tell(core, work, owner, (texts.NO_QUEUE, OUT_OF_QUEUE), now)
        return
    ref = ObjectRef(WORKLOAD, work.key)
    if api_requests.blocked(core, ref, work.look, now):
        return
    there = core.knowledge.workloads.get(work.key)
    if there is not None:
        _tell(core, work, owner, (WORKLOAD_NAME_CONFLICT, gathered.conflict(there) or _another(there)), now)
        return
    priority = priorities.resolve_names(core, owner, gathered.priority_names)
    if priority is None:
        return
    try:
        body = gathered.workload_document(priority)
    except KindError as error:
        _tell(core, work, owner, (NOT_COMPOSED, str(error)), now)
        return
    api_requests.create(core, ref, body, Purpose.CREATE_WORKLOAD, owner=owner.ref)


def _with_workload(core: Core, work: Work, gathered: Gathered, workload: Workload, now: float) -> None:
    """Keep a Workload that waits like its objects; of one that holds quota let go who is too many."""
    attempt = core.attempts.get(workload.metadata.uid)
    if attempt is None or is_true(workload.status.conditions, texts.FINISHED):
        core.mark_workload(ref_of(workload).key)
        return
    if attempt.state is not AttemptState.PENDING:
        if _drop(core, work, gathered.surplus(workload), now):
            return
    elif _lacks(core, work, gathered, now) or not _keep_alike(core, work, gathered, workload, now):
        return
    _name_owners(core, work, gathered, workload, now)


def _lacks(core: Core, work: Work, gathered: Gathered, now: float) -> bool:
    """Say whether no Workload can be made of the objects; who is too many is deleted, else it is told why."""
    lacks = gathered.lacks()
    owner = _speaker(core, work, gathered)
    if lacks is None:
        return False
    if not _drop(core, work, lacks.surplus, now) and owner is not None:
        _tell(core, work, owner, (NOT_COMPOSED, lacks.text), now)
    return True


def _drop(core: Core, work: Work, surplus: tuple[Called, ...], now: float) -> bool:
    """Delete the objects that are too many; their finalizers go by their own passes. True if there are any."""
    for called in surplus:
        owner = _owner(core, work, called)
        if owner is not None and not api_requests.blocked(core, owner.ref, work.look, now):
            api_requests.delete(core, owner.ref, called.uid, Purpose.DELETE_SURPLUS)
    return bool(surplus)


def _keep_alike(core: Core, work: Work, gathered: Gathered, workload: Workload, now: float) -> bool:
    """Update a waiting Workload in place when its objects ask for something else now; True where it is like them."""
    if gathered.matches(workload):
        return True
    owner, ref = _speaker(core, work, gathered), ref_of(workload)
    if owner is None or api_requests.blocked(core, ref, work.look, now):
        return False
    priority = priorities.resolve_names(core, owner, gathered.priority_names)
    if priority is None:
        return False
    try:
        document = msgspec.json.decode(gathered.workload_document(priority))
    except KindError as error:
        _tell(core, work, owner, (NOT_COMPOSED, str(error)), now)
        return False
    owners.update_workload(core, workload, document["spec"])
    text = f"Updated not matching Workload for suspended job: {ref.key}"
    core.event(owner.ref, owner.object.metadata.uid, texts.UPDATED_WORKLOAD, text)
    return False


def _name_owners(core: Core, work: Work, gathered: Gathered, workload: Workload, now: float) -> None:
    """Have a Workload name objects that came after it was made: who is kept is an owner."""
    ref = ref_of(workload)
    if api_requests.blocked(core, ref, work.look, now):
        return
    body = gathered.owners_patch(workload)
    if body is None or core.resting.rests(ref, Purpose.ADD_OWNERS, core.agenda, work.look, now):
        return
    decided = Decided(ref, workload.metadata.resource_version, workload.metadata.uid)
    api_requests.patch(core, decided, PatchStep(body=body, kind=PatchKind.JSON), Purpose.ADD_OWNERS)


def _tell(core: Core, work: Work, owner: Owner, said: tuple[str, str], now: float) -> None:
    """Tell at the oldest object what concerns all, when that changes, and lasts: it changes with each that comes."""
    every = core.settings.status_every
    about = (owner.object.metadata.uid, *said)
    due = work.may_say(about, now, every)
    if due is None:
        return
    if now < due:
        core.agenda.wake(work.look, due)
        return
    core.event(owner.ref, owner.object.metadata.uid, *said, warning=True)
    work.has_said(about, now, every)


def _tell_misfit(core: Core, work: Work, gathered: Gathered, owner: Owner) -> None:
    """Tell at an object why it has no place among the others, once."""
    uid = owner.object.metadata.uid
    text = gathered.misfit(uid)
    if work.says_anew_of(uid, text) and text:
        core.event(owner.ref, uid, GROUP_SHAPE_MISMATCH, text, warning=True)


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
