"""What the manager offers: a bid holds room here for a while, or says why there is none. Nothing exists of it yet.

Neighbours: `orders` brings offers and what withdraws them, `holds` keeps the room, `commits` asks the remote admission
again.
"""

from __future__ import annotations

from gatelift_agent.core.admission.backend import Judgement, Request
from gatelift_agent.core.advancing import holds
from gatelift_agent.core.placement.placements import PlacementState
from gatelift_agent.core.refusing import policy
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.texts import cut
from gatelift_wire.values.messages import Bid, BidKind, Commit, Offer, Withdraw
from gatelift_wire.values.refusals import Refusal


def bid(world: World, offer: Offer, now: float) -> None:
    """Answer an offer: room is held for it, or why not."""
    refused = _why_no_bid(world, offer, now)
    if refused is not None:
        refusal, text = refused
        world.say(Bid(key=offer.key, kind=BidKind.REFUSED, refusal=refusal, text=cut(text)))
        return
    judged = judge(world, offer)
    if judged.refusal is not None:
        world.say(Bid(key=offer.key, kind=BidKind.REFUSED, refusal=judged.refusal, text=cut(judged.text)))
        return
    seconds = holds.hold(world, offer, now)
    world.say(Bid(key=offer.key, kind=BidKind.HELD, cost=judged.cost, hold_seconds=seconds))


def withdraw(world: World, order: Withdraw) -> None:
    """Let the room go that is held for an offer."""
    placement = world.placements.get(order.key)
    if placement is not None and placement.state is PlacementState.HELD:
        holds.let_go(world, placement)


def judge(world: World, wanted: Offer | Commit) -> Judgement:
    """Ask whether the remote admission serves this here, with room as far as is known by now."""
    request = Request(key=wanted.key, namespace=wanted.namespace, name=wanted.name, pod_sets=wanted.pod_sets)
    return world.admission.judge(request)


def _why_no_bid(world: World, offer: Offer, now: float) -> tuple[Refusal, str] | None:
    held = world.placements.get(offer.key)
    if world.epochs.is_used(offer.key) or (held is not None and held.state is not PlacementState.HELD):
        return Refusal.EPOCH_STALE, f"epoch {offer.key.epoch} was used here already; offer a higher one"
    if not holds.serves(world, offer.kind):
        kinds = ", ".join(world.settings.kinds)
        return Refusal.KIND_NOT_SERVED, f"kind {offer.kind} is not served here; this agent serves {kinds}"
    if world.cordoned:
        return Refusal.CORDONED, "the cluster is cordoned; uncordon it"
    if not world.api.reachable:
        return Refusal.API_UNREACHABLE, "the agent does not reach its API server; wait until it does"
    if not world.leadership.acts(now):
        return Refusal.NOT_RESYNCED, "this replica of the agent does not lead; wait for the one that does"
    if world.standing.lease_until <= now:
        return Refusal.LEASE_NOT_VALID, "the agent's lease has run out; wait for its renewal"
    if held is None and holds.is_full(world):
        return Refusal.QUOTA_BUSY, f"{holds.HOLDS_MAX} offers are held already; wait until some are taken"
    return policy.namespace_refusal(offer.namespace, world.namespaces.get(offer.namespace), world.settings.policy)
