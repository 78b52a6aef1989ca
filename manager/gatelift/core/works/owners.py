"""The user's objects: each gets its Workload, shows what happens elsewhere, and is let go when it is over.

Level-triggered, one write per pass and object. Neighbours: `reconcile` looks after the Workload, `mirror` decides what
of a report is shown and when.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.user_objects import Name
from gatelift.core.records import record
from gatelift.core.records.attempt_states import CHOOSING, NO_WINNER, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import NOBODYS, Owner
from gatelift.core.rules import ends, outgrown, priorities
from gatelift.core.state import api_requests, out_of_sight
from gatelift.core.state.api_requests import Decided
from gatelift.core.state.case import Case, ObjectCase
from gatelift.core.state.core import Core
from gatelift.core.told import mirror, pod_troubles, shown_end
from gatelift.core.told.event_texts import NOT_COMPOSED, WORKLOAD_NAME_CONFLICT
from gatelift.core.works import asking, choosing, ending_objects, resizing
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import placed_on
from gatelift_kinds.shared.rules import OUT_OF_QUEUE
from gatelift_kinds.shared.values import KindError, PatchStep, Priority, UserChange
from gatelift_kinds.shared.workload_document import labelled
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects import selectors
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectRef

OF_A_GROUP = (
    "it names a pod group, which it cannot join, and waits at its gate in no queue: delete the pod, and make it anew "
    "with that name or without"
)
"""What a user is told whose pod was given a group before its own Workload was made, or lost that by it."""


def kind_of(core: Core, names: tuple[Name, ...]) -> Kind[Any] | None:
    """Return the kind of the owner of a Workload of these names, None where it has none that travels (admission only).

    While the object is not known, its resource tells it: the first kind of that.
    """
    if not names:
        return None
    objects = core.knowledge.works.of_names(names).objects
    return objects[0].kind if objects else core.kinds.any_of(names[0][0])


def reconcile(core: Core, ref: ObjectRef, now: float) -> None:
    """Look at one user's object."""
    owner = core.knowledge.owners.get(ref)
    if owner is None:
        out_of_sight.look_up(core, ref, Key(Look.OWNER, ref.key, ref.resource), now)
        return
    if api_requests.blocked(core, ref, owner.look, now):
        return
    work = core.knowledge.works.of_object(owner.name) or NOBODYS
    workload = choosing.current_of(core, work)
    attempt = core.attempts.get(workload.metadata.uid) if workload is not None else None
    case = ObjectCase(core, owner, work, workload, attempt, now)
    for each in choosing.placed_surplus(core, work) if len(work.placed) > 1 else ():
        core.mark_workload(key_of(each.metadata))  # it was current until now: its own pass ends it
    if owner.object.metadata.deletion_timestamp is not None:
        _deleting(case)
    elif put_mark_back(core, owner, now):
        pass  # the answer looks here again
    elif not owner.managed and not (workload is not None and is_true(workload.status.conditions, texts.FINISHED)):
        _left(case)
    elif workload is None:
        _without_workload(core, owner, now)
    elif is_true(workload.status.conditions, texts.FINISHED):
        _over(case, workload)
    elif ending_objects.end(case):
        pass  # the answer looks here again
    else:
        _with_workload(case, workload)


def _delete_workload(core: Core, workload: Workload, look: Key, now: float) -> None:
    deleting = workload.metadata.deletion_timestamp is not None
    if not deleting and not api_requests.blocked(core, ObjectRef(WORKLOAD, key_of(workload.metadata)), look, now):
        api_requests.delete_workload(core, workload, Purpose.DELETE_WORKLOAD)


def _deleting(case: ObjectCase) -> None:
    """Let the object go once nothing of it runs; until then its Workload sees to the end."""
    if case.workload is not None and (case.attempt is None or case.attempt.state is not AttemptState.ENDED):
        case.core.mark_workload(key_of(case.workload.metadata))
        return
    release(case.core, case.owner)


def put_mark_back(core: Core, owner: Owner, now: float) -> bool:
    """Write the label again by which the object is watched, once somebody has taken it off; True when that is asked."""
    step = owner.kind.marked_step(owner.object)
    if step is None or core.resting.rests(owner.ref, Purpose.PUT_MARK_BACK, core.agenda, owner.look, now):
        return False
    _take(core, owner, step, Purpose.PUT_MARK_BACK)
    return True


def _left(case: ObjectCase) -> None:
    """See what was taken out of its queue to its end: nobody starts it before; then it is its user's.

    What bears nothing of ours never was ours, whatever Workload names it, or has been given back.
    """
    core, owner, workload, attempt, now = case.core, case.owner, case.workload, case.attempt, case.now
    if workload is None:
        if owner.kind.was_alone(owner.object) and owner.kind.suspended(owner.object):
            core.event(owner.ref, owner.object.metadata.uid, texts.NO_QUEUE, OF_A_GROUP, warning=True)
        let_out_of_sight(core, owner, now)
        return
    if attempt is None or attempt.state is not AttemptState.ENDED:
        if attempt is None or not (_runs_twice(owner, attempt) and hold_back(core, owner, attempt.uid, now)):
            core.mark_workload(key_of(workload.metadata))
    elif not (owner.kind.bears_marks(owner.object) and hold_back(core, owner, attempt.uid, now)):
        release(core, owner)


def let_out_of_sight(core: Core, owner: Owner, now: float) -> None:
    """Give back the finalizer of what no watch shows and no Workload asks for; it is remembered no longer than that."""
    if not owner.kind.out_of_sight(owner.object):
        return
    if owner.kind.release_step(owner.object) is None:
        out_of_sight.keep(core, owner)
    elif out_of_sight.held(core, owner):
        core.agenda.wake(owner.look, now + out_of_sight.AGAIN_SECONDS)
    else:
        release(core, owner)


def _runs_twice(owner: Owner, attempt: Attempt) -> bool:
    """Say whether what is placed on a worker may run here as well, since its own cluster's controller was let go."""
    elsewhere = attempt.live and attempt.cluster != LOCAL_CLUSTER
    return elsewhere and bool(owner.kind.home_only(owner.object)) and not owner.kind.suspended(owner.object)


def _over(case: ObjectCase, workload: Workload) -> None:
    """Let the object of a finished Workload go: when nothing of it runs, and when it shows the end."""
    core, owner, attempt = case.core, case.owner, case.attempt
    if attempt is not None and attempt.live:
        core.mark_workload(key_of(workload.metadata))  # somebody else wrote Finished: it is stopped first
    elif (
        owner.managed
        and (owner.kind.lets_itself_go(owner.object) or _runs_at_home(owner))
        and hold_back(core, owner, workload.metadata.uid, case.now)
    ):
        pass  # its record is over, and it runs
    elif not shown_end.from_record(case, workload):
        release(core, owner)


def _runs_at_home(owner: Owner) -> bool:
    """Say whether the controller here makes pods of an object: which run it shows, by an annotation, says nothing."""
    kind, obj = owner.kind, owner.object
    starts = kind.pods_are_children and not kind.suspended(obj) and kind.outcome(obj) is None
    return starts and bool(kind.home_only(obj))


def release(core: Core, owner: Owner) -> None:
    """Drop our finalizer from a user's object."""
    step = owner.kind.release_step(owner.object)
    if step is not None:
        _take(core, owner, step, Purpose.RELEASE_OWNER)


def _without_workload(core: Core, owner: Owner, now: float) -> None:
    """Make the Workload, or let go of what ended before it had one."""
    kind, obj = owner.kind, owner.object
    if kind.outcome(obj) is not None:
        release(core, owner)
        return
    if hold_back(core, owner, "", now):
        return
    if not kind.queue_name(obj) and not core.settings.manages_unnamed:
        _tell_out_of_queue(core, owner)
        return
    key = owner.workload
    if kind.resizes(obj) and resizing.is_being_made(core, owner, now):
        return
    free = resizing.free_ref(core, owner) if kind.resizes(obj) else None
    key = free.key if free is not None else key
    ref = ObjectRef(WORKLOAD, key)
    if api_requests.blocked(core, ref, owner.look, now):
        core.creations.begin(key, owner.ref)  # perhaps a write to one before it, which is gone: its answer looks here
        return
    if key in core.knowledge.workloads:
        text = f"Workload {key} exists and belongs to something else; delete or rename it"
        core.event(owner.ref, obj.metadata.uid, WORKLOAD_NAME_CONFLICT, text, warning=True)
        return
    priority = priorities.resolve(core, owner)
    if priority is None:
        return
    try:
        body = kind.workload_document(obj, owner.raw, priority)
    except KindError as error:
        core.event(owner.ref, obj.metadata.uid, NOT_COMPOSED, str(error), warning=True)
        return
    body = resizing.named(body, key) if key != owner.workload else body
    body = labelled(body, obj.metadata.labels, core.settings.copied_labels)
    api_requests.create(core, ref, body, Purpose.CREATE_WORKLOAD, owner=owner.ref)


def _tell_out_of_queue(core: Core, owner: Owner) -> None:
    """Tell the user of a pod that waits at our gate and names no queue; a Job's user starts it himself."""
    if owner.managed and not owner.kind.pods_are_children and owner.kind.suspended(owner.object):
        core.event(owner.ref, owner.object.metadata.uid, texts.NO_QUEUE, OUT_OF_QUEUE, warning=True)


def _with_workload(seen: ObjectCase, workload: Workload) -> None:
    """Show what happens to the placement, and what keeps it from running; keep the waiting Workload like its owner."""
    case = seen.of_workload()
    if case is None:
        seen.core.mark_workload(key_of(workload.metadata))
        return
    _follow(case, seen.owner)
    pod_troubles.show_on_owner(case, seen.owner)


def _follow(case: Case, owner: Owner) -> None:
    core, workload, attempt, now = case.core, case.known, case.attempt, case.now
    kind, obj = owner.kind, owner.object
    priorities.follow_label(case, owner)
    if attempt.state in NO_WINNER and hold_back(core, owner, attempt.uid, now):
        return
    if resizing.step(case, owner):
        return
    if attempt.state is AttemptState.PENDING:
        _keep_alike(case, owner)
        return
    if attempt.state in CHOOSING and kind.suspended(obj) and not asking.is_alike(kind, workload, obj):
        attempt.deletes_workload()
        _delete_workload(core, workload, owner.look, now)  # it got quota for something else; nothing of it runs
        return
    if not attempt.cluster or attempt.cluster == LOCAL_CLUSTER:
        if not _hold_back_unheard(core, owner, attempt):
            _tell_of_end(case, owner)
        return
    if _runs_twice(owner, attempt) and hold_back(core, owner, attempt.uid, now):
        return
    if attempt.state in _UNSUSPENDED or shown_end.finished(attempt):
        step = kind.placed_step(obj, attempt.key, record.granted(workload))
        if step is not None:
            if not core.resting.rests(owner.ref, Purpose.SHOW_PLACED, core.agenda, owner.look, now):
                _take(core, owner, step, Purpose.SHOW_PLACED, placed=attempt.cluster)
            return
    _show(case, owner)
    _tell_of_end(case, owner)


def _show(case: Case, owner: Owner) -> None:
    """Show what its cluster says of a placement that is elsewhere, or that nobody hears of it."""
    if shown_end.finished(case.attempt):
        shown_end.show(case, owner)
    elif case.attempt.state in _MIRRORED:
        mirror.show(case, owner)
    elif case.attempt.state is AttemptState.LOST:
        mirror.show_unreachable(case, owner)


def _tell_of_end(case: Case, owner: Owner) -> None:
    """Look at the Workload of what has ended, once the object shows what is to be shown.

    One that is being deleted looks at its owner, and needs no word of it; the answer to a write looks here again.
    """
    if case.known.metadata.deletion_timestamp is not None or case.core.inflight.busy(owner.ref):
        return
    if owner.kind.outcome(owner.object) is not None or shown_end.finished(case.attempt):
        case.core.mark_workload(key_of(case.known.metadata))


_UNSUSPENDED = frozenset({AttemptState.PLACED, AttemptState.RUNNING})
_MIRRORED = frozenset({AttemptState.PLACED, AttemptState.RUNNING, AttemptState.ENDING})


def _keep_alike(case: Case, owner: Owner) -> None:
    """Update a waiting Workload in place when its owner asks for something else now; its place in the queue stays."""
    core, workload = case.core, case.known
    kind, obj = owner.kind, owner.object
    same_queue = kind.queue_name(obj) == workload.spec.queue_name
    sized = kind.resizes(obj) and kind.same_shape(workload, obj)  # its counts are `resizing`'s
    if (same_queue and asking.is_alike(kind, workload, obj)) or not kind.suspended(obj):
        return
    if ends.is_deleted(workload.metadata):
        return  # it goes; made alike, it would take a pod with it that asks for something else (`ended_with`)
    ref = ObjectRef(WORKLOAD, key_of(workload.metadata))
    if api_requests.blocked(core, ref, owner.look, case.now):
        return
    priority = priorities.resolve(core, owner)
    if priority is None:  # it waits for that class as what it was, and asks for all that its object does
        priority = Priority(value=workload.spec.priority or 0, ref=workload.spec.priority_class_ref)
    asked = msgspec.json.decode(kind.workload_document(obj, owner.raw, priority))["spec"]
    asking.update_workload(core, workload, asked, ("podSets",) if sized else ())
    text = f"Updated not matching Workload for suspended job: {ref.key}"
    core.event(owner.ref, obj.metadata.uid, texts.UPDATED_WORKLOAD, text)
    if not kind.queue_name(obj) and not core.settings.manages_unnamed:
        _tell_out_of_queue(core, owner)


def hold_back(core: Core, owner: Owner, uid: str, now: float) -> bool:
    """Suspend what runs, or shows a run, without an admission; True if a write was asked for.

    Reached from complete lists only, by who leads. Not while dispatch is halted, or the workload is held: a record that
    is older than what runs says nothing about its admission.
    """
    if core.caution.halted or core.caution.holds(core.knowledge.placed_uid(uid)):
        return False
    lets_itself_go = owner.kind.lets_itself_go(owner.object)
    if lets_itself_go and not _managed_namespace(core, owner):
        return False
    steps = owner.kind.unplaced_steps(owner.object, owner.raw, core.wall.text(now))
    if not steps:
        return False
    _take(core, owner, steps[0], Purpose.SUSPEND if lets_itself_go else Purpose.UNPLACE_OWNER, placed="")
    return True


def _hold_back_unheard(core: Core, owner: Owner, attempt: Attempt) -> bool:
    """Suspend what a person let go at home while its agent cannot tell yet what runs there; True if that is asked.

    Its agent does not know of it, so nobody else would (HD-255). What we have let go carries our additions.
    """
    if attempt.state is not AttemptState.LOST or core.caution.halted or core.caution.holds(attempt.key.uid):
        return False
    step = owner.kind.local_hold_step(owner.object)
    if step is not None:
        _take(core, owner, step, Purpose.SUSPEND)
    return step is not None


def _managed_namespace(core: Core, owner: Owner) -> bool:
    name = owner.ref.key.namespace
    known = core.knowledge.namespaces.get(name)
    labels = {**(known.metadata.labels if known is not None else {}), selectors.NAMESPACE_LABEL: name}
    return selectors.matches(core.settings.managed_namespaces, labels)


def ended_by_user(case: Case) -> bool:
    """Note that its user suspended or resized what is placed; it ends as evicted, and is queued again as it is then."""
    core, attempt = case.core, case.attempt
    owner = case.work.only_object if case.work.gathered is None else None  # who of several left, or came, ends nothing
    if owner is None:
        return False
    change = ends.change_of(owner, case.known, attempt.key)
    if change is UserChange.SUSPENDED:
        attempt.end_for(ends.SUSPENDED)
    elif change is UserChange.RESIZED or outgrown.while_live(core, attempt, owner):
        attempt.end_for(outgrown.ENDING)
    else:
        return False
    core.mark_attempt(attempt)
    return True


def _take(core: Core, owner: Owner, step: PatchStep, purpose: Purpose, *, placed: str | None = None) -> None:
    """Ask for a write; `placed`: on which cluster people may read that it is, "" for on none any more."""
    meta = owner.object.metadata
    if placed is not None and step.kind is PatchKind.MERGE:
        step = replace(step, body=placed_on.noted(step.body, meta, placed))
    api_requests.patch(core, Decided(owner.ref, meta.resource_version), step, purpose)
