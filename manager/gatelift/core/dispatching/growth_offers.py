"""The room of a growth at the cluster of its chain: offered to that alone, and held, before anything is written.

What a slice grows by is asked for beside what the placement has (`Offer.size`). A refusal gives the reservation back:
no quota is held for what cannot run there, and the slice is asked for again when that cluster has more to give (SL-52).
No offer needs a write, a hold runs out by itself. It takes one of the cluster's credits until its size is answered.
Neighbours: `works.growing` asks, and writes once the room is held; `dispatch` has rounds of whole placements.
"""

from __future__ import annotations

from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.dispatching import bids, dispatch, fit, giving_back, placing, requests
from gatelift.core.records.attempt_states import AttemptState, Internal, Wire
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.offer_round import OfferRound
from gatelift.core.records.work import Owner
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import Bid, BidKind, Offer, PodSetRequest, Withdraw
from gatelift_wire.values.refusals import Refusal


def is_held(case: Case, owner: Owner, record: tuple[Workload, Attempt]) -> bool:
    """Say whether the cluster of a record holds room for what a slice grows it by; until then it is asked."""
    core, attempt, now = case.core, case.attempt, case.now
    known, placed = record
    view = placing.open_view(core, placed.cluster)
    number = core.knowledge.slices.slice_of(case.rec.uid)
    if view is None or number is None:
        return False
    more = requests.more(requests.of_size(core, attempt, case.known), requests.of_size(core, placed, known))
    if not more:
        return True
    asked = attempt.round
    if asked is not None and (asked.size, asked.offered.get(view.name)) != (number.number, view.session):
        _end_round(core, attempt, now)
        asked = None
    if asked is None:
        _ask(case, owner, view, more)
        return False
    return _weigh(core, attempt, view, asked, now)


def _end_round(core: Core, attempt: Attempt, now: float) -> None:
    giving_back.withdraw(core, attempt, now)
    if attempt.state is AttemptState.OFFERED:
        attempt.follow(Internal.UNOFFER)


def _ask(case: Case, owner: Owner, view: ClusterView, more: tuple[PodSetRequest, ...]) -> None:
    """Offer what it grows by; in the line of all offers where the cluster has enough to read."""
    core, attempt, now, settings = case.core, case.attempt, case.now, case.core.settings.dispatch
    one = core.knowledge.slices.slice_of(case.rec.uid)
    if one is None:
        return
    attempt.used_nowhere({})
    if fit.room_at(core, view, now) <= 0:  # HD-684: as of any work
        attempt.not_used(view.name, fit.NO_CREDIT)
        if not dispatch.is_patient(core, attempt, [view.name], now):
            giving_back.give_back(core, attempt, now)
        return
    core.cluster_waiters.wants_no_room(attempt.uid)
    offer = Offer(
        key=attempt.key,
        kind=owner.kind.name,
        namespace=case.known.metadata.namespace,
        name=owner.object.metadata.name,
        queue=case.known.spec.queue_name,
        priority=case.known.spec.priority or 0,
        pod_sets=more,
        hold_seconds=settings.hold_seconds,
        size=one.number,
    )
    asked = OfferRound(since=now, patient_until=now + settings.patience_seconds, size=one.number)
    attempt.begin_round(asked)
    attempt.follow(Internal.OFFER)
    sent = core.send(view.name, (offer,), now)
    asked.sent(view.name, sent.session, now)
    if not sent.session:
        attempt.not_used(view.name, sent.refused or "not connected")
        giving_back.give_back(core, attempt, now)
        return
    core.open_offers.sent(view.name, attempt.key, now)
    core.placements.offered(view.name, attempt.uid)
    core.agenda.wake(attempt.look, asked.patient_until)


def _weigh(core: Core, attempt: Attempt, view: ClusterView, asked: OfferRound, now: float) -> bool:
    bid, settings = asked.bids.get(view.name), core.settings.dispatch
    if bid is None:
        busy = bids.busy(core, asked, [view.name], now)
        if now < asked.patient_until or busy:
            core.agenda.wake(attempt.look, max(asked.patient_until, now + settings.bid_seconds))
            return False
        core.open_offers.silent([view.name], now)
        attempt.not_used(view.name, dispatch.NO_ANSWER)
        giving_back.give_back(core, attempt, now)
        return False
    if bid.kind is not BidKind.HELD:
        attempt.not_used(view.name, said(bid))
        core.mark_said_of(attempt)  # it may wait for too long
        giving_back.give_back(core, attempt, now)
        return False
    if asked.bid_at[view.name] + bid.hold_seconds - settings.hold_margin_seconds <= now:
        _end_round(core, attempt, now)
        core.mark_attempt(attempt)
        return False
    return True


def said(bid: Bid) -> str:
    """Return in words why a cluster holds no room."""
    reason = (bid.refusal or Refusal.QUOTA_BUSY).value
    return f"{reason}: {bid.text}" if bid.text else reason


def answered(core: Core, cluster: str, session: int, bid: Bid, now: float) -> None:
    """Take the answer to the offer of a growth; what nobody waits for any more is given back."""
    if core.open_offers.answered(cluster, bid.key, now, held=bid.kind is BidKind.HELD):
        giving_back.wake_one(core, cluster)
    attempt = _asks(core, bid)
    asked = attempt.round if attempt is not None else None
    if attempt is not None and asked is not None and asked.offered.get(cluster) == session:
        if attempt.follow(Wire.BID):
            asked.answered(cluster, bid, now)
            core.mark_attempt(attempt)
        return
    placed = core.placed(bid.key)
    taken = placed is not None and placed.key == bid.key and requests.number_of(core, placed.uid) >= bid.size
    if bid.kind is not BidKind.REFUSED and not taken and placing.open_view(core, cluster) is not None:
        core.send(cluster, (Withdraw(key=bid.key, size=bid.size),), now)


def _asks(core: Core, bid: Bid) -> Attempt | None:
    """Return the attempt of the slice for which a bid is, None where none waits for just this size."""
    placed = core.placed(bid.key)
    chain = core.knowledge.slices.of(placed.uid) if placed is not None and placed.key == bid.key else None
    attempt = core.attempts.get(chain.target.uid) if chain is not None and chain.target is not None else None
    if attempt is None or attempt.key != bid.key or attempt.round is None or attempt.round.size != bid.size:
        return None
    return attempt
