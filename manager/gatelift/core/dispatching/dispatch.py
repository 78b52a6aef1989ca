"""Which cluster gets a workload: filter, score, offer to the best few, weigh the bids, write the winner.

The winner is written before it is told (design 3, rule 1): `choose` asks for the write, `reconcile` commits once the
record shows it. Offers and holds need no write, they expire. Neighbours: `reconcile` calls `step` for an attempt that
has quota and no winner, `reports` brings the bids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gatelift.core import texts
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import ClusterView, LinkState
from gatelift.core.records import record
from gatelift.core.records.attempt_states import AttemptState, Internal
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import Owner
from gatelift.core.records.offer_round import OfferRound
from gatelift.core.rules import readiness, targets
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core, ref_of
from gatelift.core.state.open_offers import ANSWER_SECONDS_MAX
from gatelift.core.told import telling
from gatelift_admission.values import amounts
from gatelift_kinds.shared.cluster_selector import ANNOTATION_CLUSTER_SELECTOR, parse_selector
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.selectors import matches
from gatelift_wire.values.keys import ANNOTATION_CLUSTER, ANNOTATION_DISCONNECT
from gatelift_wire.values.messages import Bid, BidKind, DisconnectPolicy, Message, Offer, PodSetRequest, Withdraw
from gatelift_wire.values.refusals import Refusal

NO_CREDIT = "takes no more placements at the moment"
NO_ANSWER = "did not answer in time"
LOOKS_DOUBLED = 4
"""How often the wait for answers doubles: from 0.3 to 4.8 s, about the patience with clusters that say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a workload asks of a cluster."""

    kind: str
    namespace: str
    pod_sets: tuple[PodSetRequest, ...]
    only: str = ""
    selector: str = ""

    def totals(self) -> dict[str, int]:
        """Return the requests of all pod sets together."""
        sums: dict[str, int] = {}
        for pod_set in self.pod_sets:
            for name, amount in pod_set.requests:
                sums[name] = sums.get(name, 0) + amount
        return sums


def wanted(workload: Workload, owner: Owner, attempt: Attempt) -> Requirements:
    """Return what the workload asks of a cluster, from its admission and its owner's annotations."""
    marks = owner.object.metadata.annotations
    return Requirements(
        kind=owner.kind.name,
        namespace=workload.metadata.namespace,
        pod_sets=pod_set_requests(attempt, workload),
        only=marks.get(ANNOTATION_CLUSTER, ""),
        selector=marks.get(ANNOTATION_CLUSTER_SELECTOR, ""),
    )


def pod_set_requests(attempt: Attempt, workload: Workload) -> tuple[PodSetRequest, ...]:
    """Return what each pod set was granted, as the wire carries it."""
    admission = attempt.reserve.admission if attempt.reserve is not None else workload.status.admission
    if admission is None:
        return ()
    counts = {pod_set.name: pod_set.count for pod_set in workload.spec.pod_sets}
    return tuple(
        PodSetRequest(
            name=one.name,
            count=one.count if one.count is not None else counts.get(one.name, 0),
            requests=tuple(
                (name, amounts.parse(quantity, name)) for name, quantity in sorted(one.resource_usage.items())
            ),
            flavors=tuple(sorted(one.flavors.items())),
        )
        for one in admission.pod_set_assignments
    )


def unfit(view: ClusterView | None, want: Requirements) -> str:
    """Return why a cluster cannot be asked at all, "" when it can; what only a bid can tell is not asked here."""
    if view is None:
        return "no WorkerCluster of that name"
    if view.state is not LinkState.CONNECTED or not view.open:
        return "not connected"
    if not view.api_reachable:
        return "its agent does not reach its API server"
    if view.cordoned or view.draining:
        return "cordoned" if view.cordoned else "draining"
    if want.kind not in view.kinds:
        return f"does not serve kind {want.kind}"
    if view.allowed_namespaces and want.namespace not in view.allowed_namespaces:
        return f"namespace {want.namespace} is not in spec.allowedNamespaces of WorkerCluster {view.name}"
    if want.only and want.only != view.name:
        return f"the workload asks for cluster {want.only}"
    if want.selector and not _selects(want.selector, view):
        return f"the workload asks for clusters with {want.selector}"
    shut = view.accepted_namespaces is not None and want.namespace not in view.accepted_namespaces
    return _too_small(view, want) or (closed(want.namespace) if shut else "")


def closed(namespace: str) -> str:
    """Return what the manager knows of a namespace in which a cluster takes no work: not whether it is there at all."""
    return f"namespace {namespace} is not there, or accepts no work (label gatelift.dev/accept=true)"


def _selects(selector: str, view: ClusterView) -> bool:
    try:
        return matches(parse_selector(selector), dict(view.labels))
    except ValueError:
        return False


def _too_small(view: ClusterView, want: Requirements) -> str:
    for name, amount in sorted(want.totals().items()):
        room = view.capacity.get(name)
        if room is not None and room.nominal < amount:
            have, need = amounts.to_text(room.nominal, name), amounts.to_text(amount, name)
            return f"never fits: {need} {name} asked, {have} in all"
    return ""


class ClusterRank(NamedTuple):
    """The sort key of a cluster: fits without preemption, ends of this workload, free share, weight, failures, load."""

    full: bool
    ended: int
    used: float
    lightness: int
    failures: float
    load: int
    name: str


def rank(view: ClusterView, want: Requirements, failures: float, load: int = 0, ended: int = 0) -> ClusterRank:
    """Return how well a cluster suits a workload, the best one sorts first.

    `load` counts what is there already, and what was asked and is not made yet: capacity is reported late, and not at
    all by a worker without quota of its own, so that without it the first name would get everything.
    """
    fits, free = True, 1.0
    for name, amount in want.totals().items():
        room = view.capacity.get(name)
        if room is None:
            continue
        fits = fits and room.largest_fit >= amount
        if room.nominal > 0:
            free = min(free, max(0, room.nominal - room.used) / room.nominal)
    return ClusterRank(not fits, ended, -round(free, 3), -view.weight, round(failures, 2), load, view.name)


def room_at(core: Core, view: ClusterView, now: float) -> int:
    """Return how many more offers a cluster takes: by what it grants, and by what it has not answered yet."""
    credit = view.credits - len(core.placements.unapplied(view.name))
    return max(0, min(credit, core.open_offers.room(view.name, now)))


def candidates(case: Case, owner: Owner) -> tuple[list[ClusterRank], bool]:
    """Return the clusters to ask, best first, and whether a further one only lacks credit at the moment.

    Why each of the others is not among them is kept in `attempt.why_not`. Where nobody else is left, those are asked in
    which the namespace takes no work: their agents say whether it is missing, and are asked again when they change.
    """
    core, attempt, now = case.core, case.attempt, case.now
    want = wanted(case.known, owner, attempt)
    checks = attempt.reserve.checks if attempt.reserve is not None else ()
    goal = targets.targets(core, checks)
    ranked: list[ClusterRank] = []
    shut: list[ClusterRank] = []
    short = False
    if goal.problem:
        attempt.not_used(goal.check, goal.problem)
    for name in goal.clusters:
        view = core.view(name)
        why, mute = _why_not(core, attempt, want, name, now)
        if view is not None and (mute or not why) and room_at(core, view, now) <= 0:
            why, mute, short = why or NO_CREDIT, False, short or not why
        if why:
            attempt.not_used(name, why)
        if view is not None and (mute or not why):
            load = len(core.placements.at(name)) + len(core.placements.unapplied(name))
            failures, ended = core.failures.weight(name, now), core.failures.ended(attempt.uid, name, now)
            (shut if mute else ranked).append(rank(view, want, failures, load, ended))
    return sorted(ranked) or ([] if short else sorted(shut)), short


def _why_not(core: Core, attempt: Attempt, want: Requirements, name: str, now: float) -> tuple[str, bool]:
    """Return why a cluster is not asked, "" when it is; and whether only its agent can say what is so there."""
    why = unfit(core.view(name), want)
    if why and why != closed(want.namespace):
        return why, False
    refused = core.failures.avoided(attempt.uid, name, now)
    return refused or why, bool(why) and not refused


# --- rounds of offers ---------------------------------------------------------------------------------------------


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
        if short:
            core.cluster_waiters.wait_for_room(attempt.uid)
            core.agenda.wake(attempt.look, now + ANSWER_SECONDS_MAX)
        else:
            give_back(core, attempt, now)
        return
    settings = core.settings.dispatch
    names = [one.name for one in ranked if one.ended == ranked[0].ended]  # a bid of those where it ended comes later
    alone = len(names) > 1 and not ranked[0].full and core.open_offers.trusted(names[0])
    asked = OfferRound(since=now, patient_until=now + settings.patience_seconds, alone=alone)
    attempt.begin_round(asked)
    _offer(case, owner, asked, names[:1] if alone else _some(core, names, now))


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
        pod_sets=pod_set_requests(attempt, workload),
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
    _drop_dead(core, attempt, asked, now)
    silent = [name for name in asked.offered if name not in asked.bids]
    winner = _best(asked, BidKind.HELD)
    late = now >= asked.deadline or asked.looks > 1  # the first time limit is for choosing, later any bid will do
    if winner and (not silent or late or winner == next(iter(asked.offered))):
        choose(case, owner, winner)
        return
    if silent and now < asked.deadline:
        core.agenda.wake(attempt.look, asked.deadline)
        return
    if _busy(core, asked, silent, now):
        _wait(core, attempt, asked, now)
        return
    core.open_offers.silent(silent)
    ranked, _ = candidates(case, owner)
    fresh = [one.name for one in ranked if one.name not in asked.asked]
    if fresh:
        _offer(case, owner, asked, _some(core, fresh, now))
        return
    preempting = _best(asked, BidKind.WOULD_PREEMPT)
    if preempting:
        choose(case, owner, preempting)
        return
    slow = silent + [name for name, bid in asked.bids.items() if bid.kind is BidKind.NEEDS_TIME]
    if slow and now < asked.patient_until:
        core.agenda.wake(attempt.look, asked.patient_until)
        return
    for name in slow:
        attempt.not_used(name, NO_ANSWER)
    give_back(core, attempt, now)


def _busy(core: Core, asked: OfferRound, silent: list[str], now: float) -> bool:
    """Say whether one of the silent is answering others meanwhile, and so will come to this offer as well."""
    if now >= asked.since + core.settings.dispatch.queue_seconds:
        return False
    return any(core.open_offers.works(name, max(asked.sent_at[name], asked.looked_at)) for name in silent)


def _drop_dead(core: Core, attempt: Attempt, asked: OfferRound, now: float) -> None:
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
        free_room(core, attempt.uid, name)


def _refused(core: Core, attempt: Attempt, cluster: str, bid: Bid, now: float) -> str:
    reason = bid.refusal or Refusal.INVALID
    why = f"{reason.value}{f': {bid.text}' if bid.text else ''}"
    settings = core.settings.dispatch
    if reason is Refusal.EPOCH_STALE:
        attempt.spend_epoch()
    elif reason.permanent:
        core.failures.avoid(attempt.uid, cluster, now + settings.give_up_max, why)
    return why


def _best(asked: OfferRound, kind: BidKind) -> str:
    """Return the cluster of the cheapest bid of a kind, at equal cost the one asked first; "" if none."""
    order = {name: place for place, name in enumerate(asked.offered)}
    found = [(bid.cost, order[name], name) for name, bid in asked.bids.items() if bid.kind is kind and name in order]
    return min(found)[2] if found else ""


def choose(case: Case, owner: Owner, cluster: str) -> None:
    """Write the winner: one status patch with reservation, admission, check and cluster.

    Every placement gets the policy `wait`, the one that is acted on, and the record says so (P2): another policy there
    would be read as the promise that the agent stops the work by itself, which no agent does yet. Who asked is told.
    """
    core, workload, attempt = case.core, case.known, case.attempt
    reserve = attempt.reserve
    if reserve is None:
        return
    policy = DisconnectPolicy.WAIT
    asked_for = policy_asked_for(core, owner, cluster, reserve.admission.cluster_queue)
    if asked_for is not policy:
        text = texts.policy_not_served(asked_for.value)
        core.event(ref_of(workload), workload.metadata.uid, "DisconnectPolicyNotServed", text, warning=True)
    choice = record.Choice(
        cluster=cluster,
        epoch=attempt.epoch,
        term=core.term,
        policy=policy,
        check=targets.multikueue_check(core, reserve.checks),
    )
    attempt.choose(cluster, policy)
    wall, besides = core.wall.text(case.now), readiness.besides(core, workload)
    body = record.admission_write(workload, reserve, choice, wall, besides)
    core.patch_workload(workload, body, Purpose.WINNER)


def policy_asked_for(core: Core, owner: Owner, cluster: str, queue: str) -> DisconnectPolicy:
    """Return what people ask for: the workload's annotation, else the ClusterQueue's or WorkerCluster's, else wait."""
    known = core.knowledge.cluster_queues.get(queue)
    view = core.view(cluster)
    return (
        record.policy_of(owner.object.metadata.annotations.get(ANNOTATION_DISCONNECT, ""))
        or (record.policy_of(known.metadata.annotations.get(ANNOTATION_DISCONNECT, "")) if known is not None else None)
        or (view.policy if view is not None else None)
        or DisconnectPolicy.WAIT
    )


def withdraw(core: Core, attempt: Attempt, now: float, *, but: str = "") -> None:
    """Let the holds go that the other clusters keep for an attempt."""
    if attempt.round is None:
        return
    message: Message = Withdraw(key=attempt.key)
    withdrawn: dict[str, int] = {}
    for name, session in attempt.round.offered.items():
        if name == but:
            continue
        free_room(core, attempt.uid, name)
        view = core.view(name)
        if view is not None and view.open and view.session == session:
            core.send(name, (message,), now)
            withdrawn[name] = session
    attempt.end_round(withdrawn)


def free_room(core: Core, uid: str, cluster: str) -> None:
    """Note that a cluster has one un-applied placement fewer, and look at who waits for that."""
    if core.placements.applied(cluster, uid):
        wake_one(core)


def wake_one(core: Core) -> None:
    """Look at the workload that has waited longest for room."""
    while (uid := core.cluster_waiters.next_for_room()) is not None:
        attempt = core.attempts.get(uid)
        if attempt is not None and attempt.state is AttemptState.RESERVED:
            core.mark_attempt(attempt)
            return


def give_back(core: Core, attempt: Attempt, now: float, why: tuple[str, str] | None = None) -> None:
    """Give the reservation back to the engine; the workload waits and says why: no cluster can take it, or `why`."""
    settings = core.settings.dispatch
    withdraw(core, attempt, now)
    if attempt.state is AttemptState.OFFERED:
        attempt.follow(Internal.UNOFFER)
    core.failures.gave_up(attempt.uid, now, settings.give_up_base, settings.give_up_max)
    said = why or (texts.NO_CLUSTER, texts.no_cluster(attempt.why_not))
    attempt.wait_for(said)
    if why is None:
        core.cluster_waiters.wait_for_any(attempt.uid)
        telling.no_cluster(core, attempt, said)
    core.mark_attempt(attempt)
