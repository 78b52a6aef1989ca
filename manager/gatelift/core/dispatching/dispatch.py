"""Rounds of offers: the best few are asked, their bids weighed, one of them wins, or the reservation goes back.

Offers and holds need no write, they expire. Neighbours: `admitting` calls `step` for an attempt that has quota and no
winner; `fit` says whom to ask, `bids` which answers count, `winner` writes who has won, `giving_back` lets go.
"""

from __future__ import annotations

from gatelift.core.dispatching import bids, credit, giving_back
from gatelift.core.dispatching.fit import candidates, pod_set_requests, taken_last
from gatelift.core.dispatching.uncounted import with_uncounted
from gatelift.core.dispatching.winner import choose
from gatelift.core.records.attempt_states import AttemptState, Internal
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.offer_round import OfferRound
from gatelift.core.records.work import Owner
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.state.open_offers import ANSWER_SECONDS_MAX
from gatelift_wire.values.messages import BidKind, Offer

NO_ANSWER = "did not answer in time"
ROOM_SECONDS = ANSWER_SECONDS_MAX
"""How long quota is kept for clusters that lack room and answer nobody: as long as for an answer to an offer."""
ROOM_SECONDS_MAX = 300.0
"""And in all, also where they answer others: the longest pause of what no cluster takes."""
LOOKS_DOUBLED = 4
"""How often the wait for answers doubles: from 0.3 to 4.8 s, about the patience with clusters that say nothing."""


def step(case: Case, owner: Owner) -> None:
    """Go on with an attempt that has quota and no winner yet, from its state alone."""
    core, attempt = case.core, case.attempt
    if core.caution.halted:
        attempt.used_nowhere({"": core.caution.halted})
        return
    if attempt.state is AttemptState.RESERVED:
        _first_round(case, owner)
    elif attempt.state is AttemptState.OFFERED and attempt.round is not None:
        _weigh(case, owner, attempt.round)


def _first_round(case: Case, owner: Owner) -> None:
    core, attempt, now = case.core, case.attempt, case.now
    attempt.used_nowhere({})
    ranked, short = candidates(case, owner)
    if not ranked:
        if not short or not is_patient(core, attempt, short, now):
            giving_back.give_back(core, attempt, now)
        return
    core.cluster_waiters.wants_no_room(attempt.uid)
    settings = core.settings.dispatch
    names = [one.name for one in ranked if one.ended == ranked[0].ended]  # a bid of those where it ended comes later
    alone = len(names) > 1 and not ranked[0].full and core.open_offers.trusted(names[0])
    asked = OfferRound(since=now, patient_until=now + settings.patience_seconds, alone=alone)
    attempt.begin_round(asked)
    _offer(case, owner, asked, [*names[:1], *_unheard(core, names[1:], now)] if alone else _some(core, names, now))


def is_patient(core: Core, attempt: Attempt, short: list[str], now: float) -> bool:
    """Wait for room at these; False when that has had its time: what is kept for them is kept from all others.

    They have so long from when one of them answered anybody, since a long line is worked through; and from the first
    time that it waits. Who has found nobody before holds no quota for who answers nobody (HD-294), nor does anybody
    once another one has waited for that in vain (HD-301).
    """
    checks = attempt.reserve.checks if attempt.reserve is not None else ()
    since = core.cluster_waiters.wait_for_room(attempt.uid, short, checks, now)
    heard = max(core.open_offers.answered_at(name) for name in short)
    in_vain = core.failures.has_given_up(attempt.uid) or credit.all_dry(core, short, now)
    until = max(heard, heard if in_vain else since) + ROOM_SECONDS
    until = min(until, since + ROOM_SECONDS_MAX)
    if now >= until:
        if now >= since + ROOM_SECONDS:
            core.cluster_changes.gave_up(short, now)
        return False
    core.agenda.wake(attempt.look, min(until, now + ANSWER_SECONDS_MAX))
    return True


def _unheard(core: Core, names: list[str], now: float) -> list[str]:
    """Return the next of the silent ones that is to be asked again, beside the best: nobody waits for its answer."""
    return [name for name in names if core.open_offers.may_speak_again(name, now)][:1]


def _some(core: Core, names: list[str], now: float) -> list[str]:
    """Return the next ones to ask, best first: several, to choose between, while they answer; one while they are busy.

    Asking three for one placement is a luxury: it triples the work of agents, which is what they have too much of.
    """
    settings = core.settings.dispatch
    some = names[: settings.best]
    calm = core.open_offers.window * settings.queue_share
    return some if all(core.open_offers.waiting(name, now) < calm for name in some) else some[:1]


def _offer(case: Case, owner: Owner, asked: OfferRound, names: list[str]) -> None:
    core, workload, attempt, now = case.core, case.known, case.attempt, case.now
    settings = core.settings.dispatch
    offer = Offer(
        key=attempt.key,
        kind=owner.kind.name,
        namespace=workload.metadata.namespace,
        name=owner.object.metadata.name,
        queue=workload.spec.queue_name,
        priority=workload.spec.priority or 0,
        pod_sets=with_uncounted(core, pod_set_requests(attempt, workload), workload),
        hold_seconds=settings.hold_seconds,
    )
    attempt.follow(Internal.OFFER)
    for name in names:
        sent = core.send(name, (offer,), now)
        asked.sent(name, sent.session, now)
        if sent.session:
            core.open_offers.sent(name, attempt.key, now)
            core.placements.offered(name, attempt.uid)
        else:
            attempt.not_used(name, sent.refused or "not connected")
    _wait(core, attempt, asked, now)


def _wait(core: Core, attempt: Attempt, asked: OfferRound, now: float) -> None:
    """Wait for answers, twice as long each time: whoever is slow is asked neither more nor more often for that."""
    settings = core.settings.dispatch
    first = settings.alone_seconds if asked.alone and not asked.looks else settings.bid_seconds
    asked.wait(first * 2 ** min(asked.looks, LOOKS_DOUBLED), now)
    core.agenda.wake(attempt.look, asked.deadline)


def _weigh(case: Case, owner: Owner, asked: OfferRound) -> None:
    """Take a winner, wait, ask the next ones, or give the reservation back."""
    core, attempt, now = case.core, case.attempt, case.now
    bids.drop_dead(core, attempt, asked, now)
    silent = [name for name in asked.offered if name not in asked.bids]
    awaited = [name for name in silent if not core.open_offers.is_silent(name)]
    last = taken_last(case, owner, asked.bids)
    winner = bids.best(asked, BidKind.HELD, last)
    late = now >= asked.deadline or asked.looks > 1  # the first time limit is for choosing, later any bid will do
    if winner and (not awaited or late or winner == next(iter(asked.offered))):
        if late and awaited and not bids.busy(core, asked, awaited, now):
            core.open_offers.silent(awaited, now)
        choose(case, owner, winner)
        return
    if silent and now < asked.deadline:
        core.agenda.wake(attempt.look, asked.deadline)
        return
    if bids.busy(core, asked, silent, now):
        _wait(core, attempt, asked, now)
        return
    core.open_offers.silent(silent, now)
    ranked, _ = candidates(case, owner)
    fresh = [one.name for one in ranked if one.name not in asked.asked]
    if fresh:
        _offer(case, owner, asked, _some(core, fresh, now))
        return
    preempting = bids.best(asked, BidKind.WOULD_PREEMPT, last)
    if preempting:
        choose(case, owner, preempting)
        return
    slow = silent + [name for name, bid in asked.bids.items() if bid.kind is BidKind.NEEDS_TIME]
    if now < asked.patient_until and not all(credit.is_mute(core, name) for name in slow):
        core.agenda.wake(attempt.look, asked.patient_until)
        return
    for name in slow:
        attempt.not_used(name, NO_ANSWER)
    giving_back.give_back(core, attempt, now)
