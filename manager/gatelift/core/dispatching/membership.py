"""Who of several objects is at the cluster of a placement: who joins and who leaves while it is live. Pure.

One Change in each pass says all that is new. Nobody is told of an object before its Workload names it, so that a new
leader knows from the record who may run there; what an agent before version 2 would not know is not sent, and not taken
for told. A session that is not resumed is told all again, at a worker by the Commit (`placing`). Neighbours: `several`
has the templates, `placing` the rest of what is said.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.dispatching import several, user_gates
from gatelift.core.records import metadata_patches, record
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import NOBODYS, Owner, Work
from gatelift.core.rules import seeking
from gatelift.core.state import api_requests, few_lines
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import mirror
from gatelift_kube.objects.core import raw_status
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, Evicted, ObjectReport, PodSetCounts, Refused, Stopped
from gatelift_wire.values.single import Leaver

REMOVED = "WorkerPodDeleted"
_WHY = {"reason": REMOVED, "message": "it was removed from its worker cluster by somebody else"}
_REMOVED = msgspec.json.encode({"phase": "Failed"} | _WHY)
"""Status of an object that was removed at its worker and had not ended."""
TOO_MANY = "it tells of more objects than a placement may have that are not in the management cluster: left alone"
NAME_CHARS = 253
AGAIN_SECONDS = 300.0
"""How often ends are tried again that neither their objects nor their Workload take."""
_CHANGING = frozenset({AttemptState.PLACED, AttemptState.RUNNING})


def is_elsewhere(work: Work, attempt: Attempt) -> bool:
    """Say whether several objects have a live placement at a worker."""
    return work.gathered is not None and attempt.live and attempt.cluster != LOCAL_CLUSTER


def settle(work: Work, attempt: Attempt, known: Workload) -> None:
    """Have the objects counted by where they may run: before anything is concluded from that."""
    if work.gathered is None:
        return
    work.gathered.keeps_ends(known)
    if is_elsewhere(work, attempt):
        work.gathered.is_at_worker((attempt.cluster, attempt.key), known, found=attempt.found)
    else:
        work.gathered.is_home()


def committed(case: Case, session: int, uids: tuple[str, ...]) -> None:
    """Take that a Commit was sent: those that it names, and those that the Workload does, may be there."""
    attempt, gathered = case.attempt, case.work.gathered
    if gathered is None:
        return
    local = attempt.cluster == LOCAL_CLUSTER
    for uid in uids:
        gathered.runs_elsewhere(uid)
    named = [(one.uid, one.name) for one in case.known.metadata.owner_references]
    attempt.told.begins(session)
    sent = frozenset(uids)
    attempt.told.joins(each for each in named if (each[0] in sent if local else gathered.is_told_of(each[0])))
    gathered.tells_anew()
    for uid in attempt.told.members if local else ():
        gathered.tells(uid)
    if not local:
        case.core.mark_attempt(attempt)  # who is to leave is said next, and nothing else may look again (HD-393)
    user_gates.travel(case, uids)


def tell(case: Case, view: ClusterView) -> None:
    """Say who joins and who leaves since that was said last, with a number of its own (MC-9)."""
    core, attempt, work = case.core, case.attempt, case.work
    gathered = work.gathered
    if gathered is not None and view.open and not view.adopts and is_elsewhere(work, attempt):
        made_there(core, attempt, work, ())  # who takes none in has none, and will never say so
    if gathered is None or attempt.state not in _CHANGING or view.version < VERSION_OF_CHANGE:
        return
    told = attempt.told
    if told.session < (core.sessions.resynced(attempt.cluster) or 0) or not told.session:
        if attempt.cluster != LOCAL_CLUSTER:
            return  # its Commit comes first
        told.begins(view.session)
        told.forget()
        gathered.tells_anew()
    granted = record.granted(case.known)
    free = (each for each in gathered.to_join(case.known, granted) if not gathered.is_unread(each.called.uid))
    joins = [each for each in free if each.called.uid not in told.members]
    leaves = _leaves(core, attempt, work, case.now)
    if not (joins or leaves):
        return
    objects, contents = several.templates(core, attempt, gathered, joins)
    blobs = core.sessions.new_blobs(attempt.cluster, view.session, contents)
    number = told.number + 1
    change = Change(key=attempt.key, number=number, join=objects, leave=leaves)
    if not core.send(attempt.cluster, (*blobs, change), case.now).session:
        core.sessions.blobs_unsent(attempt.cluster, view.session)
        return
    told.next_number(each.uid for each in leaves)
    told.joins((each.called.uid, each.called.name) for each in joins)
    user_gates.travel(case, (each.called.uid for each in joins))
    for each in joins:
        gathered.runs_elsewhere(each.called.uid)
        if attempt.cluster == LOCAL_CLUSTER:
            gathered.tells(each.called.uid)


def made_there(core: Core, attempt: Attempt, work: Work, counts: tuple[PodSetCounts, ...]) -> None:
    """Take what a driver has made at a worker by itself: it counts for the end of all."""
    if work.gathered is not None and work.gathered.makes_there(counts):
        core.agenda.mark(work.look)
        core.mark_attempt(attempt)


def _leaves(core: Core, attempt: Attempt, work: Work, now: float) -> tuple[Leaver, ...]:
    """Return who was told of and is deleted at home, or is known not to be there any more; the first ones are read."""
    if attempt.cluster == LOCAL_CLUSTER:
        return ()  # its agent sees the user's own objects
    found, sought = [], 0
    look = Key(Look.WORKLOAD, attempt.workload)
    work.tells(attempt.told)
    for uid, name in attempt.told.unsure():
        owner = several.named(core, work, name, uid)
        meta = owner.object.metadata if owner is not None else None
        if meta is None and sought == seeking.SOUGHT_MAX:
            continue
        if meta is None and not seeking.is_object_gone(core, (*work.id[:2], name, uid), look, now):
            sought += 1
            continue
        if meta is None or meta.deletion_timestamp is not None:
            # Its own grace: of a pod without a node an API server makes 0, whatever its user has said.
            found.append(Leaver(name=name, uid=uid))
        else:
            attempt.told.stays(uid)
    return tuple(found)


def all_leave(core: Core, attempt: Attempt, view: ClusterView) -> tuple[Change, ...]:
    """Return what names all that may be there to who was not told of them in this session, before the stop of all.

    An agent that began since knows those that it has found: one that vanished meanwhile may run (HD-660).
    """
    if view.version < VERSION_OF_CHANGE or core.sessions.keeps(attempt.cluster, attempt.commit_session):
        return ()
    known = core.knowledge.workloads.get(attempt.workload)
    work = core.knowledge.work_of(known) if known is not None else NOBODYS
    if known is None or work.gathered is None or not is_elsewhere(work, attempt):
        return ()
    there = {each.called.uid: each.called.name for each in work.gathered.there(record.granted(known))}
    there |= {one.object.metadata.uid: one.object.metadata.name for one in work.objects if _is_leaving(work, one)}
    if not there:
        return ()
    attempt.told.begins(view.session)
    graces = {uid: several.grace_of(several.named(core, work, name, uid)) for uid, name in there.items()}
    leave = tuple(Leaver(name=name, uid=uid, grace_seconds=graces[uid]) for uid, name in there.items())
    return (Change(key=attempt.key, number=attempt.told.next_number(there), leave=leave),)


def _is_leaving(work: Work, owner: Owner) -> bool:
    """Say whether an object is deleted, and has yet to stop at its worker."""
    meta, gathered = owner.object.metadata, work.gathered
    if gathered is None or meta.deletion_timestamp is None or owner.kind.outcome(owner.object) is not None:
        return False
    return not gathered.releases(meta.uid)


def heard(core: Core, attempt: Attempt, work: Work, report: ObjectReport) -> ObjectReport | None:
    """Take what a worker says of one object; return what is to be kept and shown of it, None for nothing.

    What it says of an object that is not at home is of one that is to leave. Of what we end nobody is shown that it
    failed; who had ended before that, or is gone though nobody of ours ended it, is (HD-413): else it ran once more.
    Who succeeded runs until home shows that, gone or not: as one that stopped its place would be lost (HD-510).
    """
    gathered, uid = work.gathered, report.owner_uid
    if gathered is None or not uid:
        return None
    owner, over = several.named(core, work, report.name, uid), mirror.over(report.status)
    if owner is None:
        if not attempt.told.hears_of(uid, report.name, gone=report.gone):
            few_lines.note(core, attempt.cluster, f"{plain(report.name, NAME_CHARS)}: {TOO_MANY}", attempt)
        return None
    if _waits(core, attempt, work, report):
        return None
    if not (report.gone or over):
        gathered.runs_elsewhere(uid)  # whatever its object showed as its placement was found (HD-385)
    goes = owner.object.metadata.deletion_timestamp is not None
    ends = goes or (attempt.state is AttemptState.ENDING and (report.deleting or not (report.gone or over)))
    if report.gone and owner.kind.outcome(owner.object) is not None:
        gathered.stopped_elsewhere(uid)
        return None  # what it shows of its end stands: this agent may not have seen it
    if report.gone and not over:
        gathered.stopped_elsewhere(uid)
        if ends:
            return None
        report = replace(report, status=_REMOVED)
    if ends and not (over and mirror.succeeded(report.status)):
        if report.gone:
            gathered.stopped_elsewhere(uid)
        return None
    if mirror.over(report.status):
        attempt.told.has_ended(uid, report.name)
    by_that = over and (report.deleting or report.gone) and not _had_ended(attempt, owner, uid)
    return replace(report, status=_with_why(report.status)) if by_that else report


def _waits(core: Core, attempt: Attempt, work: Work, report: ObjectReport) -> bool:
    """Take that an object is there, or is gone, and say whether it waits there for a slot.

    Then it may be one too many, as a leader before had seen (HD-521).
    """
    uid = report.owner_uid
    if report.gone:
        attempt.told.is_gone(uid)
    else:
        attempt.told.joins([(uid, report.name)])
    if work.gathered is not None:
        work.gathered.waits_elsewhere(uid, waits=report.waits)
    if report.waits:
        core.agenda.mark(work.look)
    return report.waits


def take_unheard(core: Core, attempt: Attempt, last: Stopped | Refused | Evicted) -> None:
    """Take that who ran there and is not among all that have stopped is gone: however it ended, perhaps well (HD-414).

    Of what never ran nothing is concluded, nor where none is named: its worker may know nothing of the placement.
    """
    listed = set(last.members)
    if isinstance(last, Stopped):
        listed |= {each.owner_uid for each in last.objects}
    if listed:
        _take_gone(core, attempt, listed)


def take_absent(core: Core, attempt: Attempt) -> None:
    """Take that nothing is left of a placement at its worker: who ran there is gone, as its agent would say of each.

    That is sure by then (R4), and how they ended nobody has heard (HD-419).
    """
    _take_gone(core, attempt, set())


def _take_gone(core: Core, attempt: Attempt, listed: set[str]) -> None:
    """Take that who ran and is not among these is gone."""
    known = core.knowledge.workloads.get(attempt.workload)
    work = core.knowledge.work_of(known) if known is not None else NOBODYS
    gathered = work.gathered
    if known is None or gathered is None or not is_elsewhere(work, attempt):
        return
    there = [(each.called.name, each.called.uid) for each in gathered.there(record.granted(known))]
    for name, uid in there:
        owner = several.named(core, work, name, uid)
        if uid in listed or owner is None or not _is_unended(owner) or not mirror.shows_run(owner.raw):
            continue
        attempt.told.has_ended(uid, name)
        kind, key = owner.kind.name, attempt.key
        gone = ObjectReport(key=key, kind=kind, name=name, uid="", status=_REMOVED, gone=True, owner_uid=uid)
        attempt.report(gone, core.now)


def _had_ended(attempt: Attempt, owner: Owner, uid: str) -> bool:
    """Say whether an object had come to an end of its own, by what was heard of it or by what it shows."""
    before = attempt.reports.get(owner.object.metadata.name)
    known = before.status if before is not None and before.owner_uid == uid else b""
    return any(mirror.over(each) and REMOVED.encode() not in each for each in (known, raw_status(owner.raw)))


def _with_why(status: bytes) -> bytes:
    """Return the status of an object that was deleted at its worker and ended by that; one that says why stays so.

    A kubelet says Failed of what it had to stop, as of what failed by itself.
    """
    said = msgspec.json.decode(status)
    if said.get("phase") != "Failed" or said.get("reason"):
        return status
    return msgspec.json.encode(said | _WHY)


def shown(attempt: Attempt, work: Work, owner: Owner) -> bool:
    """Take that an object shows the end that its worker told of; True where that is news."""
    gathered, uid = work.gathered, owner.object.metadata.uid
    report = attempt.reports.get(owner.object.metadata.name)
    if gathered is None or report is None or report.owner_uid != uid or not mirror.over(report.status):
        return False
    if not (mirror.is_shown(owner, attempt) or _is_plain(attempt, owner, well=mirror.succeeded(report.status))):
        return False
    gathered.stopped_elsewhere(uid, well=mirror.succeeded(report.status))  # a late write may show less (HD-517)
    attempt.told.shows_end(uid)
    return True


def _is_plain(attempt: Attempt, owner: Owner, *, well: bool) -> bool:
    """Say whether an object that takes no other status shows at least how it ended (HD-543)."""
    outcome = owner.kind.outcome(owner.object)
    plainly = attempt.told.is_said_plainly(owner.object.metadata.uid)
    return plainly and outcome is not None and outcome.succeeded is well


def is_unshown(case: Case) -> bool:
    """Say whether an object has yet to show how it ended at its worker: else it would run once more.

    Whatever time that takes: the record keeps the placement until then, so the next leader hears of the end again.
    Where the API server refuses it for good, the Workload keeps it (HD-412). Not of what its user deletes.
    """
    core, attempt, work = case.core, case.attempt, case.work
    if work.gathered is None or not attempt.told.ends or attempt.live:
        return False
    if attempt.await_shown_end(case.now):
        for name in attempt.told.ends.values():
            ref = ObjectRef(work.id[0], ObjectKey(work.id[1], name))
            core.resting.renewed(ref)
            owner = core.knowledge.owners.get(ref)
            if owner is not None:
                core.mark_owner_alone(owner)
    named = {uid: several.named(core, work, name, uid) for uid, name in attempt.told.ends.items()}
    if any(owner is not None and _is_to_show(core, owner) for owner in named.values()):
        return True
    if _is_to_keep(case, {uid for uid, owner in named.items() if owner is not None and _is_unended(owner)}):
        return True
    for uid in named:
        attempt.told.shows_end(uid)
    return False


def keep_unshown(case: Case) -> None:
    """Have the Workload keep ends that home does not show for good while the others go on; then they count (HD-524).

    Where the Workload does not take that, either, they count as what runs, and all of it is tried again after a pause:
    an end that never counts may be the one that all others wait for (HD-542).
    """
    core, attempt, work = case.core, case.attempt, case.work
    if work.gathered is None or not attempt.told.ends or not is_elsewhere(work, attempt):
        return
    named = {uid: several.named(core, work, name, uid) for uid, name in attempt.told.ends.items()}
    hopeless = {
        uid
        for uid, owner in named.items()
        if owner is not None and _is_unended(owner) and core.resting.hopeless(owner.ref)
    }
    if not hopeless or _rests(case, [owner for uid, owner in named.items() if uid in hopeless]):
        return
    if _is_to_keep(case, hopeless):
        return
    for uid in hopeless:
        work.gathered.stopped_elsewhere(uid)
        attempt.told.shows_end(uid)
    core.agenda.mark(work.look)


def _rests(case: Case, unshown: list[Owner | None]) -> bool:
    """Say whether a Workload takes no ends for now; after its pause it is asked anew, and so are these objects."""
    core, attempt, ref = case.core, case.attempt, case.rec.ref
    if not core.resting.hopeless(ref):
        return False
    due = attempt.told.tries_again(case.now, AGAIN_SECONDS)
    core.agenda.wake(attempt.look, max(due, case.now + 1.0))
    if case.now >= due:
        core.resting.renewed(ref)
        for owner in filter(None, unshown):
            core.resting.renewed(owner.ref)
            core.mark_owner_alone(owner)
    return True


def _is_to_keep(case: Case, uids: set[str]) -> bool:
    """Have the Workload keep how these ended, which home does not show for good; True until that is written."""
    core, attempt, gathered, ref = case.core, case.attempt, case.work.gathered, case.rec.ref
    if gathered is None or not uids or case.known.metadata.deletion_timestamp is not None:
        return False
    ends = {each.owner_uid: mirror.succeeded(each.status) for each in attempt.reports.values()}
    wanted = gathered.ends_to_keep(case.known, {uid: ends[uid] for uid in uids if uid in ends})
    if wanted is None or core.resting.hopeless(ref):
        return False
    body = metadata_patches.noted(case.known.metadata, *wanted)
    api_requests.patch_workload(core, case.known, body, Purpose.KEEP_ENDS, status=False)
    return True


def _is_to_show(core: Core, owner: Owner) -> bool:
    return _is_unended(owner) and not core.resting.hopeless(owner.ref)


def _is_unended(owner: Owner) -> bool:
    """Say whether an object of ours, which its user keeps, does not show an end."""
    shows = owner.kind.outcome(owner.object) is not None
    return owner.managed and not shows and owner.object.metadata.deletion_timestamp is None
