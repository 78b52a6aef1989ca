"""The bids of a round: which of them count, which is the best, and who is still at work on an answer.

Neighbours: `dispatch` weighs by them.
"""

from __future__ import annotations

from gatelift.core.dispatching import giving_back
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.offer_round import OfferRound
from gatelift.core.state.core import Core
from gatelift.core.state.dispatch_values import backoff
from gatelift_wire.values.messages import Bid, BidKind
from gatelift_wire.values.refusals import Refusal

STALE_SECONDS = 1.0
"""A cluster that says that it has used an epoch is asked for the next one after so long, doubling. An honest one says
so for as many as a restored record has forgotten, and each costs a write."""


def busy(core: Core, asked: OfferRound, silent: list[str], now: float) -> bool:
    """Say whether one of the silent is answering others meanwhile, and so will come to this offer as well."""
    if now >= asked.since + core.settings.dispatch.queue_seconds:
        return False
    sent = asked.sent_at
    return any(core.open_offers.works(name, max(sent[name], asked.looked_at), sent[name]) for name in silent)


def drop_dead(core: Core, attempt: Attempt, asked: OfferRound, now: float) -> None:
    """Strike what no longer counts: refusals, holds that run out, offers of a session that is over (R6)."""
    settings = core.settings.dispatch
    for name, session in list(asked.offered.items()):
        view = core.view(name)
        bid = asked.bids.get(name)
        if view is None or not view.open or view.session != session:
            why = "the session ended"
        elif bid is None:
            continue
        elif bid.kind is BidKind.REFUSED:
            why = _refused(core, attempt, name, bid, now)
        elif bid.hold_seconds and asked.bid_at[name] + bid.hold_seconds - settings.hold_margin_seconds <= now:
            why = "its hold ran out"
        else:
            continue
        attempt.not_used(name, why)
        asked.strike(name)
        giving_back.free_room(core, attempt.uid, name)


def _refused(core: Core, attempt: Attempt, cluster: str, bid: Bid, now: float) -> str:
    reason = bid.refusal or Refusal.INVALID
    why = f"{reason.value}{f': {bid.text}' if bid.text else ''}"
    settings = core.settings.dispatch
    if reason is Refusal.EPOCH_STALE:  # others go first in the next one, this one after growing pauses (HD-271)
        attempt.spend_epoch()
        core.failures.failed(attempt.uid, cluster, now)
        pause = backoff(core.failures.ended(attempt.uid, cluster, now), STALE_SECONDS, settings.give_up_max)
        core.failures.avoid(attempt.uid, cluster, now + pause, why)
    elif reason.permanent:
        core.failures.avoid(attempt.uid, cluster, now + settings.give_up_max, why, reason.value)
    return why


def best(asked: OfferRound, kind: BidKind, last: frozenset[str] = frozenset()) -> str:
    """Return the cluster of the cheapest bid of a kind, at equal cost the one asked first; "" if none.

    One of `last` only if there is no other.
    """
    order = {name: place for place, name in enumerate(asked.offered)}
    found = [
        (name in last, bid.cost, order[name], name)
        for name, bid in asked.bids.items()
        if bid.kind is kind and name in order
    ]
    return min(found)[3] if found else ""
