"""What the manager says of sizes of elastic work. Total: every word in every state has an entry, or is a no-op (P8).

Numbers only go up, over all sessions (Size 4): a higher one is taken or refused, the same one is a confirmation, a
lower one is late. What is refused here is not taken: it takes nothing back and uses no number up. Neighbours: `orders`
brings the words, `commits` what is committed with a size, `advancing.sizing` carries it out.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import replace

from gatelift_agent.core.admission.backend import Request
from gatelift_agent.core.advancing import holds
from gatelift_agent.core.beginning import found_sizes
from gatelift_agent.core.placement.placements import LIVE, Placement, PlacementState
from gatelift_agent.core.placement.sizes import SizeHold, SizeMove, SizeState, Sizing
from gatelift_agent.core.refusing import policy
from gatelift_agent.core.reporting import sizes as reports
from gatelift_agent.core.session import offers
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.texts import cut
from gatelift_kinds.shared.sizes import Counts, Size, SizeError
from gatelift_wire.values.messages import Bid, BidKind, Commit, Offer, PodSetRequest
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import PlacementSize, Resize

Why = tuple[Refusal, str]


class Resized(enum.Enum):
    """What a Resize came to."""

    TAKEN = "taken"
    CONFIRMED = "its own number: confirmed"
    LATE = "a lower number: it changes nothing"
    ENDS = "the placement ends, which is said by itself"
    KEPT = "its commit waits, and has this size now"
    REFUSED = "refused, and told so"


def resize(world: World, order: Resize, now: float) -> Resized:
    """Take another size of a live placement, or say why not."""
    placement = world.placements.get(order.key)
    if placement is None and order.key in world.late.commits:
        return _of_late_commit(world, order)
    if placement is None or placement.state in {PlacementState.OFFERED, PlacementState.HELD}:
        text = "nothing of it is placed here" if placement is None else "its commit has not come"
        return _refuse(world, order, (Refusal.EPOCH_STALE, f"{order.key}: {text}; commit it with this size"))
    if placement.state not in LIVE:
        return Resized.ENDS
    placement.sizing = placement.sizing or found_sizes.found(world, placement)  # its object may have come late
    if placement.sizing is None:
        text = f"{order.key} has no size: it was committed without one, and keeps the one that it has"
        return _refuse(world, order, (Refusal.INVALID, text))
    return _resize(world, placement, placement.sizing, order, now)


def _resize(world: World, placement: Placement, sizing: Sizing, order: Resize, now: float) -> Resized:
    if order.number < sizing.number:
        world.note("info", f"size {order.number} is late: it has size {sizing.number}", placement)
        return Resized.LATE
    if order.number == sizing.number:
        _confirm(world, placement, sizing, order.pod_sets)
        return Resized.CONFIRMED
    refused = _why_not(world, placement, sizing, order)
    if refused is not None:
        return _refuse(world, order, refused)
    before = placement.pod_sets
    raised = any(one.count > sizing.counts[one.name] for one in order.pod_sets)
    sizing.take(order.number, _counts(order.pod_sets))
    sizing.confirmed_session = world.standing.session
    placement.pod_sets = order.pod_sets
    placement.look_from = now  # it is of all its pods, and waits for no pause
    sizing.hold = None
    if placement.state is PlacementState.RUNNING:  # what is held back asks as it is let go
        sizing.waits_for_room = sizing.waits_for_room or raised
        world.ask_room(placement, now, placed=True, pod_sets=_higher(before, order.pod_sets))
    world.capacity_changed = True
    world.note("info", "takes a size", placement, number=str(order.number), counts=str(dict(sizing.counts)))
    world.look(placement.key)
    return Resized.TAKEN


def confirm(world: World, one: PlacementSize) -> None:
    """Let slots of this very size be opened in the present session, where it is the one that is known."""
    placement = world.placements.get(one.key)
    sizing = placement.sizing if placement is not None and placement.state in LIVE else None
    if placement is not None and sizing is not None and sizing.number == one.number:
        _confirm(world, placement, sizing, ())


def begin(world: World, placement: Placement, commit: Commit, now: float) -> None:
    """Know the size with which a placement was committed; of what runs already the one that it has."""
    if placement.state is PlacementState.RUNNING:  # `local`: it was let go before (`retaking`)
        again(world, placement, commit, now)
    elif commit.size:
        placement.sizing = Sizing(number=commit.size, counts=_counts(commit.pod_sets), state=SizeState.SETTING)
        placement.sizing.confirmed_session = world.standing.session


def again(world: World, placement: Placement, commit: Commit, now: float) -> None:
    """Take a commit that is said again for a Resize as well."""
    if not commit.size:
        return
    placement.sizing = placement.sizing or found_sizes.found(world, placement)
    if placement.sizing is not None:
        order = Resize(key=commit.key, number=commit.size, pod_sets=commit.pod_sets)
        _resize(world, placement, placement.sizing, order, now)


def why_no_commit(world: World, commit: Commit) -> Why | None:
    """Return why nothing can be placed with the size that a commit has."""
    kind = world.kinds.named(commit.kind)
    if not commit.size or kind is None:
        return None
    if not kind.pods_are_children:
        return Refusal.INVALID, f"size: nothing of kind {commit.kind} has one; commit it without"
    names = [one.name for one in commit.pod_sets]
    if not names or len(set(names)) != len(names):
        return Refusal.INVALID, "podSets: must be at least one, each once, where there is a size"
    return None


def forget_session(world: World) -> None:
    """Take that a session began that is no resumed one: no size is confirmed, and none is answered."""
    for placement in world.placements.values():
        if placement.sizing is not None:
            placement.sizing.move(SizeMove.NEW_SESSION)
            placement.sizing.drained, placement.sizing.refused = None, ""


def bid(world: World, offer: Offer, now: float) -> None:
    """Answer an offer of what a live placement is to grow by: room is held for it beside what it has, or why not."""
    placement = world.placements.get(offer.key)
    sizing = placement.sizing if placement is not None else None
    if placement is None or sizing is None or placement.state not in LIVE:
        _no_bid(world, offer, (Refusal.EPOCH_STALE, f"{offer.key}: nothing that could grow is placed here"))
        return
    refused = _why_no_growth(world, placement, sizing, offer, now)
    if refused is not None:
        _no_bid(world, offer, refused)
        return
    whole = _sum(placement.pod_sets, offer.pod_sets)
    judged = world.admission.judge(_request(placement, whole))
    if judged.refusal is not None:
        _no_bid(world, offer, (judged.refusal, judged.text))
        return
    seconds = min(offer.hold_seconds, holds.HOLD_SECONDS_MAX)
    sizing.hold = SizeHold(number=offer.size, pod_sets=whole, until=now + seconds)
    world.ask_room(placement, now, placed=True, pod_sets=whole)
    world.capacity_changed = True
    world.wakes.ask(placement.key, sizing.hold.until)
    world.say(Bid(key=offer.key, kind=BidKind.HELD, cost=judged.cost, hold_seconds=seconds, size=offer.size))


def withdraw(world: World, key_size: PlacementSize, now: float) -> None:
    """Let the room go that is held for a growth."""
    placement = world.placements.get(key_size.key)
    sizing = placement.sizing if placement is not None else None
    hold = sizing.hold if sizing is not None else None
    if placement is not None and hold is not None and hold.number <= key_size.number:
        hold.until = now
        world.look(placement.key)


def _why_no_growth(world: World, placement: Placement, sizing: Sizing, offer: Offer, now: float) -> Why | None:
    if offer.size <= sizing.number:
        return Refusal.EPOCH_STALE, f"size {offer.size}: it has size {sizing.number} already; offer a higher one"
    unknown = sorted({one.name for one in offer.pod_sets} - sizing.counts.keys())
    if unknown:
        return Refusal.INVALID, f"pod set {unknown[0]}: it has none of this name"
    if {one.name for one in placement.pod_sets} != sizing.counts.keys():
        return Refusal.NOT_RESYNCED, "what it asks for is not known after a restart; say its commit again"
    if world.standing.lease_until <= now:
        return Refusal.LEASE_NOT_VALID, "the agent's lease has run out; wait for its renewal"
    if world.cordoned:
        return Refusal.CORDONED, "the cluster is cordoned; uncordon it"
    return offers.why_not_there(world, placement.namespace)


def _no_bid(world: World, offer: Offer, why: Why) -> None:
    no = Bid(key=offer.key, kind=BidKind.REFUSED, refusal=why[0], text=cut(why[1]), size=offer.size)
    world.say(no)


def _of_late_commit(world: World, order: Resize) -> Resized:
    """Have a commit that waits to be taken come with this size, where it is a higher one."""
    late = world.late.commits[order.key]
    if not late.commit.size or {one.name for one in late.commit.pod_sets} != _counts(order.pod_sets).keys():
        return _refuse(world, order, (Refusal.INVALID, f"{order.key} was committed without such a size"))
    if order.number <= late.commit.size:
        return Resized.LATE
    changed = replace(late.commit, size=order.number, pod_sets=order.pod_sets)
    world.late.commits[order.key] = replace(late, commit=changed)
    return Resized.KEPT


def _confirm(world: World, placement: Placement, sizing: Sizing, pod_sets: tuple[PodSetRequest, ...]) -> None:
    sizing.move(SizeMove.CONFIRM)
    sizing.confirmed_session = world.standing.session
    if pod_sets and _counts(pod_sets) != sizing.counts:
        text = f"size {sizing.number} was said with other counts than it has: {_counts(pod_sets)}, not {sizing.counts}"
        world.note("warning", text, placement)
    elif pod_sets and {one.name for one in placement.pod_sets} != sizing.counts.keys():
        placement.pod_sets = pod_sets  # after a restart: with what is added to its pods
    world.look(placement.key)


def _refuse(world: World, order: Resize, why: Why) -> Resized:
    world.note("warning", f"{order.key}: size {order.number} is refused: {why[1]}")
    reports.refused(world, order.key, order.number, why)
    return Resized.REFUSED


def _why_not(world: World, placement: Placement, sizing: Sizing, order: Resize) -> Why | None:
    """Return why a higher size is not taken."""
    wanted = _counts(order.pod_sets)
    if not sizing.number:
        return Refusal.INVALID, "the size that it has cannot be read, so no other one is set; stop it"
    for name in sorted(wanted.keys() ^ sizing.counts.keys()):
        text = "is missing" if name in sizing.counts else "is none that it has"
        return Refusal.INVALID, f"pod set {name}: {text}; a size has all of its pod sets, and no other"
    refused = _why_no_pod_sets(world, order.pod_sets) or _why_no_mark(world, placement, order.number, wanted)
    if refused is None and any(count > sizing.counts[name] for name, count in wanted.items()):
        refused = offers.why_not_there(world, placement.namespace)
        judged = world.admission.judge(_request(placement, order.pod_sets))
        if refused is None and judged.refusal is not None:
            refused = judged.refusal, judged.text
    return refused


def _why_no_pod_sets(world: World, pod_sets: Sequence[PodSetRequest]) -> Why | None:
    for one in pod_sets:
        try:
            shapes.additions(one.additions)
        except shapes.ShapeError as error:
            return Refusal.INVALID, f"pod set {one.name}: {error}"
    return None if world.local else policy.additions_refusal(pod_sets, world.settings.policy)


def _why_no_mark(world: World, placement: Placement, number: int, counts: Counts) -> Why | None:
    """Return why the mark of a size cannot be written on what is there."""
    kind = world.kind(placement)
    for tracked in placement.objects.values():
        try:
            if tracked.object is not None and kind.gated(tracked.object):
                kind.size_patch(tracked.object, Size(number=number, counts=counts))
        except SizeError as error:
            return Refusal.TOO_LARGE if "too long" in str(error) else Refusal.INVALID, f"{tracked.ref}: {error}"
    return None


def _request(placement: Placement, pod_sets: tuple[PodSetRequest, ...]) -> Request:
    return Request(key=placement.key, namespace=placement.namespace, name=placement.name, pod_sets=pod_sets)


def _counts(pod_sets: Sequence[PodSetRequest]) -> dict[str, int]:
    return {one.name: one.count for one in pod_sets}


def _higher(before: Sequence[PodSetRequest], after: tuple[PodSetRequest, ...]) -> tuple[PodSetRequest, ...]:
    """Return, of each pod set, the request for more pods: what is to go holds its room until it is out of the way."""
    known = {one.name: one for one in before}
    return tuple(max(known.get(one.name, one), one, key=lambda each: each.count) for one in after)


def _sum(held: Sequence[PodSetRequest], more: Sequence[PodSetRequest]) -> tuple[PodSetRequest, ...]:
    """Return what is asked for with what it grows by, pod set by pod set."""
    grows = {one.name: one for one in more}
    return tuple(_added(one, grows[one.name]) if one.name in grows else one for one in held)


def _added(one: PodSetRequest, more: PodSetRequest) -> PodSetRequest:
    requests = dict(one.requests)
    for name, amount in more.requests:
        requests[name] = requests.get(name, 0) + amount
    return replace(one, count=one.count + more.count, requests=tuple(requests.items()))
