"""A record that somebody else has changed: not believed while its run is held here, and written back. Pure.

Whoever may write `workloads/status` can take the reservation of what runs away, or let it name another cluster. A
policy refuses that; this is the wall behind it (HD-136): what the leader's attempt knows, from the record as it was
written, stays charged and known, and the next write of that Workload says so again. No write of ours takes a
reservation from an attempt that is placed before that has ended, so there is nothing to confuse it with but the end
that a leader before us has written, and that lands late (HD-179): one with its marks, as long as such a write can land.
It is not believed either, for a stranger can write the same; but nobody is blamed and nothing is written, until its
cluster has been heard, and says the same, or is lost.

Who does not lead, or has just begun to, follows the record (HD-175): a placement that it has seen ends by a write that
marks its epoch as given back, by Finished, or by a later epoch. Where it goes without that, as a leader dies and nobody
can put it back, it is known as it was, and whoever saw it go writes it back with the lead.

Nor does anybody else reserve quota (HD-238): a reservation that this leader has not decided, on what waits, is known as
not given. Of a leader before it may be as long as such a write can land.

Finished is final (HD-363): one that somebody takes off what shows a reservation is known as there, and written again.

What the API server does not take back keeps nothing waiting (HD-239): while the write rests, all that ends a placement
goes on, from what is known, and nothing of it is begun.

Neighbours: `intake` asks for each version that comes in, `reconcile` has the write carried out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import LinkState
from gatelift.core.records import (
    admitted_by,
    chain,
    epochs,
    own_conditions,
    reclaimed,
    record,
    size_writes,
    status_writes,
)
from gatelift.core.records.attempt_states import LIVE, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of, ref_of
from gatelift.core.records.record import Record
from gatelift.core.rules import growth_charge, shares
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kinds.shared import slices
from gatelift_kube.decoding.unknown_fields import known_part
from gatelift_kube.objects.conditions import find, is_true, without
from gatelift_kube.objects.kueue import Admission, Workload, WorkloadStatus
from gatelift_kube.objects.meta import Condition
from gatelift_wire.sessions.leases import landed_seconds

_NOT_GIVEN = (
    "its status says that quota is reserved for it, and Gatelift has reserved none: it waits as before, and that is "
    "written back"
)
_NOT_GROWN = (
    "its status says that it has grown what runs, and Gatelift has not written that: what ran runs on, and this waits "
    "for what others say of it, as before"
)
_UNPLACED = frozenset({AttemptState.RESERVED, AttemptState.OFFERED})


def gained(core: Core, now: float) -> None:
    """Take that the Lease is ours: who had it before asks for no write any more."""
    core.caution.tampered.began_to_lead(now + landed_seconds())


def believed(core: Core, seen: Workload, after: Record) -> Workload:
    """Return a Workload as it is to be known: with the record of what is held for it, where that was changed.

    `after` is the record of the version that was seen.
    """
    if not _is_grown_by_others(core, seen, after):
        return _as_held(core, seen, after)
    asked, tampered = _as_asked(seen), core.caution.tampered
    told = tampered.is_blamed(after.uid)
    known = _as_held(core, asked, record.read(asked, travels=True))
    if not told:
        _say(core, seen, _NOT_GROWN, core.attempts.get(after.uid))
    version = seen.metadata.resource_version if seen.status.cluster_name else ""
    tampered.record_changed(after.uid, other_cluster_in=version, maybe_former=False)
    return known


def _is_grown_by_others(core: Core, seen: Workload, after: Record) -> bool:
    """Say whether what is asked about a growth says that it is placed, and not where what runs is, in its epoch.

    The write by which a slice becomes the record says so (HD-701). One of no epoch is of no leader at all.
    """
    if not (after.reserved and after.cluster) or after.finished or slices.replaced_by(seen) is None:
        return False
    if not after.written_epoch:
        return True
    one, chained = core.knowledge.slices.slice_of(after.uid), core.knowledge.slices.of(after.uid)
    if one is None or not one.asks or chained is None or chained.record is None:
        return False
    runs = core.knowledge.readings[chained.record.key][1]
    return after.written_epoch == runs.written_epoch and after.cluster != runs.cluster  # a later one may be news


def _as_asked(seen: Workload) -> Workload:
    """Return a slice as one that others are asked about: with its reservation, and nothing of a placement."""
    conditions = seen.status.conditions
    for type_ in (texts.ADMITTED, admitted_by.ADMITTED_BY, epochs.EPOCH_USED):
        conditions = without(conditions, type_)
    checks = tuple(
        msgspec.structs.replace(each, state=texts.PENDING, pod_set_updates=()) if record.names_winner(each) else each
        for each in seen.status.admission_checks
    )
    status = msgspec.structs.replace(
        seen.status, conditions=conditions, admission_checks=checks, cluster_name=type(seen.status)().cluster_name
    )
    return msgspec.structs.replace(seen, status=status)


def _as_held(core: Core, seen: Workload, after: Record) -> Workload:
    uid = seen.metadata.uid
    attempt, known = core.attempts.get(uid), core.knowledge.workload_of(uid)
    if known is None or not core.untaken.is_news(after.ref, seen.metadata, known.metadata):
        return seen
    before = core.knowledge.readings[after.ref.key][1]
    if _is_struck(core, after):
        core.caution.tampered.record_stands(uid)
        return seen
    given = _is_given_by_others(core, attempt, known, after, seen)
    if attempt is None:
        changed = given or _is_taken(before, after, known, seen)
    elif core.leads(core.now):
        taken = _is_changed(attempt, before, after, epochs.used(seen))
        taken = taken or _is_regranted(attempt, before, after, known, seen)
        changed = given or (before.reserved and taken)
    else:
        return seen
    changed = changed or (before.finished and after.reserved and not after.finished)
    tampered = core.caution.tampered
    if not changed:
        tampered.record_stands(uid)
        return seen
    told = tampered.is_blamed(uid)
    late = not given and attempt is not None and _is_late_end(core, attempt, after, epochs.returned(seen))
    others = bool(seen.status.cluster_name) and seen.status.cluster_name != known.status.cluster_name
    version = seen.metadata.resource_version if others else ""
    tampered.record_changed(uid, other_cluster_in=version, maybe_former=late)
    if given:
        if not told:
            _say(core, seen, _NOT_GIVEN, attempt)
    elif not told and attempt is not None:
        tell(core, seen, attempt)
    return msgspec.structs.replace(seen, status=_put_back(known.status, seen.status))


def _is_struck(core: Core, after: Record) -> bool:
    """Say whether what was reserved to grow what runs is gone, whoever took it: nothing runs by it (SL-33)."""
    one = core.knowledge.slices.slice_of(after.uid)
    return one is not None and one.asks and not after.reserved and not after.cluster


def tell(core: Core, known: Workload, attempt: Attempt) -> None:
    """Tell people that a record is put back; nothing where it was not changed, or a leader before may have done it."""
    if core.caution.tampered.is_blamed(known.metadata.uid):
        _say(core, known, texts.record_put_back(attempt.cluster, attempt.epoch), attempt)


def _say(core: Core, known: Workload, text: str, attempt: Attempt | None) -> None:
    core.event(ref_of(known), known.metadata.uid, texts.RECORD_PUT_BACK, text, warning=True)
    core.note(text, attempt, warning=True, cluster=attempt.cluster if attempt is not None else "")


def _is_given_by_others(core: Core, attempt: Attempt | None, known: Workload, after: Record, seen: Workload) -> bool:
    """Say whether a version reserves quota that was not reserved, and neither this leader nor one before decided that.

    Our own writes say what the attempt was given, in its epoch; who says just the same takes nothing from anybody. One
    that nobody could tell of may land when its attempt waits again, on the version that it was decided on: it is known
    by what it says (HD-250), since what has landed in time may be seen at any time.
    """
    before = core.knowledge.readings[after.ref.key][1]
    if before.reserved or not after.reserved or before.finished or not (core.rebuilt and core.leads(core.now)):
        return False
    tampered = core.caution.tampered
    if core.now < tampered.former_writes_until or after.term > core.term:  # R3: `higher_terms` asks for more
        return False
    if attempt is None:
        return True
    epoch = attempt.epoch if chain.asks(seen, after) else after.written_epoch
    if attempt.state in LIVE or attempt.has_asked(known.metadata.resource_version, epoch, _granted(seen)):
        return False
    if attempt.state not in _UNPLACED or attempt.reserve is None:
        return True
    return epoch != attempt.epoch or _granted(seen) != known_part(attempt.reserve.admission)


def _is_taken(before: Record, after: Record, known: Workload, seen: Workload) -> bool:
    """Say whether a placement is gone from one version to a later one by no write of any leader.

    Who gives an epoch back reserves nothing in it, and nobody gives back or reserves anew in one that the annotation
    was not raised to (HD-253).
    """
    if not (before.reserved and before.cluster) or before.finished or after.finished:
        return False
    raised = epochs.annotated(seen)
    if after.reserved:
        is_over = before.epoch < after.written_epoch <= raised
    else:
        is_over = before.epoch <= epochs.returned(seen) <= raised or raised > epochs.annotated(known)
    granted_otherwise = after.reserved and _granted(known) != _granted(seen) and not _is_resized(known, seen)
    return not is_over and (_held(before) != _held(after) or granted_otherwise)


def _is_changed(attempt: Attempt, before: Record, after: Record, used: int) -> bool:
    """Say whether a version says otherwise what is held: by whom, nobody can tell, but by no write of this leader.

    What has no winner yet may have been given back, by us or a leader before; that marks its epoch as used.
    """
    if attempt.state in LIVE:
        return _held(before) != _held(after)
    return attempt.state in _UNPLACED and not (after.reserved or after.finished) and used < attempt.epoch


def _is_regranted(attempt: Attempt, before: Record, after: Record, known: Workload, seen: Workload) -> bool:
    """Say whether a version grants something else in the same epoch: what is charged, or to whom (HD-227).

    A reservation is granted once; another one is of a later epoch.
    """
    if attempt.state not in LIVE | _UNPLACED or not after.reserved or before.written_epoch != after.written_epoch:
        return False
    own = attempt.has_asked(known.metadata.resource_version, after.written_epoch, _granted(seen))
    return _granted(known) != _granted(seen) and not own


def _is_resized(known: Workload, seen: Workload) -> bool:
    """Say whether what is granted to an elastic Workload changed as its leader changes it: who follows takes it so.

    A count comes down to what its own pod set asks for. One that goes up charges more, which is never wrong.
    """
    before, after = known.status.admission, seen.status.admission
    if before is None or after is None or not slices.asks(known.metadata.annotations):
        return False
    asked = {one.name: one.count for one in seen.spec.pod_sets}
    granted = {one.name: one for one in before.pod_set_assignments}
    return before.cluster_queue == after.cluster_queue and all(
        (old := granted.get(one.name)) is not None
        and old.flavors == one.flavors
        and one.count is not None
        and (one.count == asked.get(one.name) or one.count >= (old.count or 0))
        for one in after.pod_set_assignments
    )


def _granted(workload: Workload) -> Admission | None:
    """Return what is granted, without what others keep beside it."""
    admission = workload.status.admission
    return known_part(admission) if admission is not None else None


def _is_late_end(core: Core, attempt: Attempt, after: Record, returned: int) -> bool:
    """Say whether a leader before may have written that a placement is over: with its marks, while that may land."""
    tampered = core.caution.tampered
    if core.now >= tampered.former_writes_until and not tampered.is_maybe_former(attempt.uid):
        return False
    is_free = not (after.reserved or after.admitted or after.cluster)
    return attempt.state in LIVE and is_free and returned >= attempt.epoch and after.term < core.term


def _held(rec: Record) -> tuple[object, ...]:
    return rec.reserved, rec.admitted, rec.cluster, rec.written_epoch, rec.admitted_by


def _put_back(known: WorkloadStatus, seen: WorkloadStatus) -> WorkloadStatus:
    """Return the status that was known, with what others have said since that is theirs to say."""
    ours = {check.name for check in known.admission_checks if record.names_winner(check)}
    said = {check.name: check for check in seen.admission_checks if check.name not in ours}
    over = find(known.conditions, texts.FINISHED) if find(seen.conditions, texts.FINISHED) is None else None
    kept = (*_of(known.conditions, ours=True), *_of(seen.conditions, ours=False))
    return msgspec.structs.replace(
        known,
        conditions=(*kept, over) if over is not None else kept,
        admission_checks=tuple(said.get(check.name, check) for check in known.admission_checks),
    )


def _of(conditions: Iterable[Condition], *, ours: bool) -> tuple[Condition, ...]:
    return tuple(each for each in conditions if (each.type in own_conditions.RECORD) is ours)


def write_back(case: Case) -> bool:
    """Write a record back that was changed; True if nothing else is to be done for it now."""
    core, known, rec, attempt = case.core, case.known, case.rec, case.attempt
    tampered = core.caution.tampered
    if not tampered.is_record_changed(known.metadata.uid):
        return False
    if core.resting.rests(rec.ref, Purpose.PUT_RECORD_BACK, core.agenda, attempt.look, case.now):
        return False
    if tampered.is_maybe_former(attempt.uid):
        if attempt.state is AttemptState.ENDED or (_is_heard(core, attempt) and rec.evicted):
            return False  # what is over is written as that; what was being stopped is, and nothing else is done
        if _is_awaited(core, attempt):
            return True  # its cluster is looked at again when it is heard, or lost
        tampered.blame(attempt.uid)
        tell(core, known, attempt)
    back = known
    if tampered.names_other_cluster(attempt.uid, known.metadata.resource_version):
        # Immutable once set, but for being cleared: the version that follows is changed, too, and written back whole.
        back = msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, cluster_name=None))
    api_requests.patch_workload(core, known, status_writes.status_write(back), Purpose.PUT_RECORD_BACK)
    return True


def is_refused(core: Core, rec: Record, now: float) -> bool:
    """Say whether the API server shows a record that was changed, and does not take it back as it was."""
    if not core.caution.tampered.is_record_changed(rec.uid):
        return False
    return core.resting.until(rec.ref, Purpose.PUT_RECORD_BACK, now) > 0


def fits(known: Workload) -> bool:
    """Say whether each pod set has what is granted to it: else the CRD takes no record with that reservation again."""
    return {one.name for one in known.spec.pod_sets} == record.granted(known).keys()


def as_taken(known: Workload) -> Workload:
    """Return a Workload without the reservation that cannot be put back: as its end can be written."""
    conditions = without(known.status.conditions, texts.QUOTA_RESERVED)
    return msgspec.structs.replace(
        known, status=msgspec.structs.replace(known.status, conditions=conditions, admission=None)
    )


def _is_heard(core: Core, attempt: Attempt) -> bool:
    view = core.view(attempt.cluster)
    return view is not None and view.open


def _is_awaited(core: Core, attempt: Attempt) -> bool:
    """Say whether its cluster has yet to be heard by this leader, and may be soon; or is about to say how it ended."""
    view = core.view(attempt.cluster)
    lost = view is None or view.state is LinkState.LOST or attempt.state is AttemptState.LOST
    return not lost and (attempt.listed_over or not _is_heard(core, attempt))


def charged(core: Core, known: Workload) -> Workload:
    """Return a Workload as the engine is to know it: what a stranger has finished is charged until it has stopped.

    And what a stranger has freed is charged, too (HD-210).
    """
    attempt = core.attempts.get(known.metadata.uid)
    kind = core.knowledge.readings[key_of(known.metadata)][0]
    gathered = core.knowledge.work_of(known).gathered if kind is not None and kind.gathers else None
    if gathered is not None:
        known = reclaimed.with_pods(known, shares.over(core, known, attempt, gathered))
    elif kind is not None and kind.gathers and attempt is not None and attempt.state in LIVE:
        known = reclaimed.with_pods(known, attempt.given_back)  # none of its objects is left, and some may run (HD-389)
    elif kind is not None and (known.status.reclaimable_pods or (attempt is not None and attempt.given_back)):
        known = reclaimed.believed(known, attempt, counted=kind.reclaims and _asks_what_it_asked(core, known))
    known = growth_charge.of_chain(core, known)
    if attempt is None or attempt.state not in LIVE:
        return known
    ahead, admission = attempt.size.ahead, known.status.admission
    if ahead is not None and admission is not None:  # its cluster lists a later size than its record has (HD-34)
        more = size_writes.raised(admission, ahead.granted, core.ledger.engine.of_one_pod(attempt.uid))
        known = msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, admission=more))
    if not is_true(known.status.conditions, texts.FINISHED):
        return known
    status = msgspec.structs.replace(known.status, conditions=without(known.status.conditions, texts.FINISHED))
    return msgspec.structs.replace(known, status=status)


def _asks_what_it_asked(core: Core, known: Workload) -> bool:
    """Say whether a Workload still asks for what its object does: what is over was counted from that (HD-256)."""
    owner = core.knowledge.work_of(known).only_object
    return owner is None or owner.kind.equivalent(known, owner.object)
