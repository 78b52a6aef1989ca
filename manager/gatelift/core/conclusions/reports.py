"""What clusters report: bids, progress, counts, ends. A report of anything not live changes nothing (rule P7).

Neighbours: `upcalls` brings the upcalls of a session, `inventories` the answer to a resync.
"""

from __future__ import annotations

from gatelift.core import texts
from gatelift.core.clusters.link_values import LinkState, Reported
from gatelift.core.conclusions import belief, claims, epoch_texts, kept_reports, made_there, news, recovery_lists, sized
from gatelift.core.conclusions.claims import Claim
from gatelift.core.conclusions.raising import LOOK
from gatelift.core.dispatching import endings, giving_back, growth_offers, membership, placing, releasing, waking
from gatelift.core.dispatching.unexplained import is_unexplained
from gatelift.core.records import epochs, record
from gatelift.core.records.attempt_states import NO_WINNER, AttemptState, Wire
from gatelift.core.records.attempts import Attempt, Outcome
from gatelift.core.records.knowledge import ref_of
from gatelift.core.rules import kept_record, reclaim_books, unrecorded
from gatelift.core.state import few_lines, predecessors, words
from gatelift.core.state.caution import Ahead
from gatelift.core.state.core import Core
from gatelift.core.told import failed_containers, pod_troubles, slice_moments, telling
from gatelift_kube.objects.conditions import is_true
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    Bid,
    BidKind,
    Capacity,
    CertificateRequest,
    CountsReport,
    Evicted,
    Finished,
    GatesLifted,
    ObjectReport,
    Refused,
    Stopped,
    Withdraw,
)
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Drained, SizeRefused, SizeWanted, SliceFinished

Placed = Applied | GatesLifted | CountsReport | Finished | Stopped | Refused | Evicted


def reported(core: Core, upcall: Reported, now: float) -> None:
    """Take one report of a cluster's present session."""
    message = words.cleaned(upcall.message)
    view = core.view(upcall.cluster)
    if isinstance(message, Capacity | CertificateRequest) or view is None:
        return
    if view.session != upcall.session or view.state is LinkState.LOST:
        return  # R6, R2: a second wall, the links drop it before
    if isinstance(message, SliceFinished | Drained | SizeRefused | SizeWanted):
        sized.take(core, upcall, message, now)
        return
    if isinstance(message, Bid) and message.size:
        growth_offers.answered(core, upcall.cluster, upcall.session, message, now)
        return
    if isinstance(message, Bid):
        _bid(core, upcall.cluster, upcall.session, message, now)
        return
    attempt = core.placed(message.key)
    if attempt is not None and attempt.key == message.key and placing.is_live_at(attempt, upcall.cluster):
        if is_unexplained(attempt, view):
            return  # who serves the cluster now does not know of it, so it cannot tell of it
        if isinstance(message, ObjectReport):
            kept_reports.take(core, attempt, message)
        elif not news.is_none(attempt, message):
            _live(core, attempt, message, now)
        return
    if belief.ignores(core, upcall.cluster, message.key):
        return
    over = isinstance(message, Finished | Stopped | Refused | Evicted)
    if over:
        predecessors.ended(core, upcall.cluster, message.key)
    gated = isinstance(message, Applied) and not message.waits
    stray(core, Claim(upcall.cluster, message.key, over=over, gated=gated))


def _bid(core: Core, cluster: str, session: int, bid: Bid, now: float) -> None:
    if core.open_offers.answered(cluster, bid.key, now, held=bid.kind is BidKind.HELD):
        giving_back.wake_one(core, cluster)
    attempt = core.placed(bid.key)
    asked = attempt.round if attempt is not None and attempt.key == bid.key else None
    if attempt is not None and asked is not None and asked.offered.get(cluster) == session:
        if attempt.follow(Wire.BID):
            asked.answered(cluster, bid, now)
            core.mark_attempt(attempt)
        return
    known = attempt is not None and attempt.key == bid.key
    if attempt is not None and known and (attempt.cluster == cluster or attempt.withdrawn.get(cluster) == session):
        return  # it won, or our Withdraw has crossed its bid
    if bid.kind is not BidKind.REFUSED and placing.open_view(core, cluster) is not None:
        core.send(cluster, (Withdraw(key=bid.key),), now)


def _live(core: Core, attempt: Attempt, message: Placed, now: float) -> None:
    """Take a report of a live placement: facts are kept, the rest follows from looking again."""
    core.mark_said_of(attempt)
    if not isinstance(message, CountsReport):  # these are for the user's object alone
        core.mark_attempt(attempt)
    cluster = attempt.cluster
    match message:
        case Applied(waits=waits):
            attempt.applied(waits=waits)
            attempt.follow(Wire.APPLIED)
            waking.made(core, attempt, now)
        case GatesLifted():
            before = attempt.state
            pod_troubles.let_go(core, attempt)
            if attempt.follow(Wire.LIFTED) and attempt.state is not before:
                telling.lifted(core, attempt, now)
            waking.made(core, attempt, now)
        case CountsReport():
            _counted(core, attempt, message, now)
        case Finished():
            kept_reports.keep(core, attempt, message.objects)
            outcome = Outcome(
                how=Wire.FINISHED,
                reason=message.reason,
                message=failed_containers.finished(message),
                succeeded=message.succeeded,
                cluster=cluster,
                failed=failed_containers.of(message),
                kept_seconds=message.kept_seconds,
            )
            endings.end(core, attempt, Wire.FINISHED, outcome)
        case Stopped():
            kept_reports.keep(core, attempt, message.objects)
            membership.take_unheard(core, attempt, message)
            text = message.message or texts.stopped_by_itself(cluster)
            outcome = Outcome(how=Wire.STOPPED, reason=message.reason, message=text, cluster=cluster)
            endings.end(core, attempt, *(_end_of_all(core, attempt) or (Wire.STOPPED, outcome)))
        case Refused():
            membership.take_unheard(core, attempt, message)
            text = texts.refused_by(cluster, message.refusal.value, message.text)
            outcome = Outcome(how=Wire.REFUSED, reason=message.refusal.value, message=text, cluster=cluster)
            if message.refusal is Refusal.TEMPLATE_MISSING:
                core.sessions.forget_blobs(cluster)
            endings.end(core, attempt, Wire.REFUSED, outcome)
        case Evicted():
            membership.take_unheard(core, attempt, message)
            text = texts.evicted_on(cluster, message.reason, message.message)
            outcome = Outcome(how=Wire.EVICTED, reason=message.reason, message=text, cluster=cluster)
            endings.end(core, attempt, Wire.EVICTED, outcome)


def _end_of_all(core: Core, attempt: Attempt) -> tuple[Wire, Outcome] | None:
    """Return the end that several objects came to, now that nothing of them runs elsewhere; None where they did not.

    Nor where they are yet to be counted by that: `endings` finds it then.
    """
    known, work = kept_reports.what_for(core, attempt)
    if known is None or work.gathered is None or not membership.is_elsewhere(work, attempt):
        return None
    work.gathered.is_home()
    if not work.gathered.is_counted:
        return None
    outcome = work.gathered.outcome(known)
    return (Wire.FINISHED, endings.finished_as(outcome)) if outcome is not None else None


def _counted(core: Core, attempt: Attempt, said: CountsReport, now: float) -> None:
    """Take how many pods are over; by the first word of it what a leader has found is charged for what is left."""
    made_there.count(core, attempt, said)
    is_first, placed = attempt.count(said), core.knowledge.workloads.get(attempt.workload)
    attempt.size.counts(record.granted(placed) if placed is not None else {})
    releasing.heard(core, attempt, said, now)
    booked = reclaim_books.book(core, attempt, now)
    known = core.knowledge.workloads.get(attempt.workload)
    if is_first and not booked and known is not None and known.status.reclaimable_pods:
        core.ledger.engine.workload_changed(kept_record.charged(core, known), now)
    pod_troubles.heard(core, attempt)
    slice_moments.counted(core, attempt, said)
    core.mark_attempt(attempt)


def stray(core: Core, claim: Claim) -> None:
    """Answer what is said of a placement that is not live (P7), having made sure of that (R3)."""
    cluster, key, over = claim.cluster, claim.key, claim.over
    if core.knowledge.slices.holder(key.uid) in core.caution.set_aside:
        return  # nobody can tell what its record says: it is asked again when somebody can
    known = core.knowledge.placed_workload(key.uid)
    attempt = core.placed(key)
    if look_ahead(core, claim):
        return
    if over:
        recovery_lists.is_over(core, cluster, key)
    if core.caution.halted:
        core.doubts.postpone(cluster, key, over=over, gated=claim.gated)
        return
    if attempt is not None and attempt.key == key and _end_is_being_written(attempt, cluster):
        if over:
            attempt.reported_over()
        return  # it is acknowledged after that
    who = core.fenced.heard(key) if known is not None else None
    if known is not None and who is not None:
        text = f"cluster {cluster}, declared fenced by {who}: {texts.FINISHED_ON_LOST}"
        core.event(ref_of(known), key.uid, "FinishedAfterFenced" if over else "RanAfterFenced", text, warning=True)
    if known is None and not (
        core.knowledge.saw_go(core.knowledge.slices.holder(key.uid)) or (over and is_past(core, cluster, key))
    ):
        if recovery_lists.leaves(core, cluster, key):
            return
        if not (over or claim.gated or recovery_lists.is_idle(core, cluster, key) or is_past(core, cluster, key)):
            recovery_lists.leave_alone(core, cluster, key)
            return
        core.ask_all(cluster, key, "", over=over)
        return
    placing.drop_stray(core, cluster, key, over=over)
    if over and core.caution.settle(cluster, key.uid):
        core.mark_later((core.knowledge.slices.holder(key.uid),))


def is_past(core: Core, cluster: str, key: PlacementKey) -> bool:
    """Say whether a placement is known to be of a Workload that is gone.

    This leader saw it go, or it is remembered, or it was looked for and its cluster has been told in this session.
    """
    if core.knowledge.saw_go(core.knowledge.slices.holder(key.uid)) or core.predecessors.is_explained(cluster, key):
        return True
    view = core.links.state(cluster)
    return view is not None and core.sessions.told_stray(cluster, view.session, key)


def look_ahead(core: Core, claim: Claim) -> bool:
    """Hold a workload of which a cluster names an epoch that its record has not come to; True if it is held.

    An epoch that is not used, of a workload that is placed nowhere, has not come either: it has no winner. Nor has one
    whose reservation stands without a winner: a backup of that moment knows no placement. What runs since before a
    recovery is older than what that raised, and left to its own end all the same; what was listed as let go does not
    become gated again by what its agent says anew in each session.
    """
    cluster, key, over, listed = claim.cluster, claim.key, claim.over, claim.listed
    known, attempt = core.knowledge.placed_workload(key.uid), core.placed(key)
    if known is None:
        return False
    highest = _highest(known, attempt)
    never_won = epochs.used(known) < key.epoch or epochs.written(known) == key.epoch
    never_won = never_won or epochs.torn(known) == key.epoch
    finished = is_true(known.status.conditions, texts.FINISHED)  # it had its winner, whatever was made of it since
    unplaced_now = attempt is not None and attempt.state in NO_WINNER and not finished
    unplaced = unplaced_now and never_won
    gated = claim.gated and not core.caution.spares(cluster, key)
    spared = not (over or gated) and recovery_lists.spares(core, cluster, key, known)
    stops = key.epoch < highest and unplaced_now and not (spared or over or gated)
    if not (stops or spared) and (key.epoch < highest or (key.epoch == highest and not unplaced)):
        return False
    if listed is not None and listed.name and not over:  # also for the next leader, and when its Workload is gone
        predecessors.left_alone(core, cluster, listed)
    if stops:
        _take(core, claim, known, attempt, Ahead(key, over=False, level=True))  # it stops first, charged until then
        return False
    _take(core, claim, known, attempt, Ahead(key, over, spared, level=not spared and key.epoch == highest))
    return True


def _take(core: Core, claim: Claim, known: Workload, attempt: Attempt | None, said: Ahead) -> None:
    """Hold what a cluster names as far as its word reaches.

    A report proves nothing, so its inventory is asked anew, and others are asked first for that workload: who was only
    offered something and says that it runs may say so each time (HD-275).
    """
    ahead = claims.judged(core, claim, known, said, _highest(known, attempt))
    if _hold(core, claim.cluster, known, attempt, ahead) and claim.listed is None and not ahead.proved:
        core.sessions.ask_anew(claim.cluster)
        core.failures.failed(claim.key.uid, claim.cluster, core.now)


def _highest(known: Workload, attempt: Attempt | None) -> int:
    return max(epochs.annotated(known), epochs.used(known), attempt.epoch if attempt is not None else 0)


def _hold(core: Core, cluster: str, known: Workload, attempt: Attempt | None, ahead: Ahead) -> bool:
    """Hold a workload of which a cluster names a later epoch than the record, and cordon the cluster: no more of that.

    It may be a record that is too old, or a cluster that is mistaken; nothing that runs is stopped before a person
    has raised the epoch. What cannot be there holds nothing, and is not told at its object. True when it is news.
    """
    is_news = core.caution.name(cluster, ahead)
    unrecorded.charge(core, known)
    if not is_news:
        if attempt is not None:
            core.mark_attempt(attempt)  # it may be over now
        return False
    core.agenda.mark(LOOK)
    if not ahead.possible:
        few_lines.note(core, cluster, claims.not_possible(cluster, ahead.key.uid, ahead.key.epoch), attempt)
        return True
    why = why_held(core, ahead.key.uid, _highest(known, attempt))
    if few_lines.note(core, cluster, why, attempt):  # what holds it stands on each Workload besides
        core.event(ref_of(known), ahead.key.uid, texts.EPOCH_AHEAD, why, warning=True)
    if attempt is not None:
        core.mark_attempt(attempt)
    return True


def doubt(core: Core, known: Workload) -> None:
    """Hold a workload whose record was torn before this leader led, until its cluster has been heard."""
    epoch, cluster = epochs.torn(known), known.status.cluster_name or ""
    if epoch and core.links.state(cluster) is not None:
        _hold(core, cluster, known, None, Ahead(PlacementKey(known.metadata.uid, epoch), over=False, level=True))


def why_held(core: Core, uid: str, highest: int) -> str:
    """Return what people are told of a workload of which some cluster names a later epoch."""
    cluster, ahead = core.caution.named(uid)[0]
    if ahead.spared:
        return epoch_texts.runs_on(cluster, ahead.key.epoch)
    if ahead.key.epoch < highest:
        return epoch_texts.stops_first(cluster, ahead.key.epoch)
    if ahead.level:
        return epoch_texts.not_in_record(cluster, ahead.key.epoch, over=ahead.over)
    return epoch_texts.epoch_ahead(cluster, ahead.key.epoch, highest, over=ahead.over)


def let_go(core: Core, cluster: str) -> None:
    """Forget the later epochs that a cluster named, and look at those workloads: each says who holds it still."""
    core.mark_later(core.caution.forget(cluster))


def let_go_unlisted(core: Core, cluster: str) -> None:
    """Forget what a cluster named before and has not listed: not as its list begins, since that may come to no end."""
    core.mark_later(core.caution.listed_all(cluster, but=core.caution.set_aside))


def drop_raised(core: Core, uid: str, highest: int) -> None:
    """Drop what clusters name of a workload whose epoch a person has raised above it: now it is older than the record.

    It holds the workload until the cluster says that nothing of it is left. Raised to the very epoch that is named says
    nothing: an end that a record that is too old knew of raises by one as well, and stops nothing that runs.
    """
    for cluster, ahead in core.caution.named(uid):
        if ahead.key.epoch < highest and not ahead.spared:
            placing.drop_stray(core, cluster, ahead.key, over=ahead.over)
            if ahead.over and core.caution.settle(cluster, uid):
                core.mark_later((uid,))


def forget_ahead(core: Core, uid: str) -> None:
    """Let clusters forget what has ended there under a later epoch of a workload that is gone: nobody asks any more."""
    for cluster, ahead in core.caution.named(uid):
        if ahead.over:
            placing.drop_stray(core, cluster, ahead.key, over=True)
            core.caution.settle(cluster, uid)
    core.caution.is_gone(uid)


def _end_is_being_written(attempt: Attempt, cluster: str) -> bool:
    """Say whether `placing.forget` is still to come for this cluster; one that never was its place is told now."""
    return attempt.state is AttemptState.ENDED and attempt.cluster == cluster and not attempt.forgotten
