"""Room held for offers: a hold is a placement in state HELD, with a time limit and no object.

A hold uses no epoch up: nothing was promised but time. It ends by commit, withdrawal or its limit, whichever is first.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import Move, Placement, PlacementState
from gatelift_agent.core.state.world import World
from gatelift_wire.values.messages import Offer

HOLDS_MAX = 10_000
"""Holds at once: what a manager can offer within their time; more is a fault of the peer, answered as busy."""

HOLD_SECONDS_MAX = 300.0
"""Longest hold that is given, whatever is asked for: room must not be lost to a manager that went away."""


def hold(world: World, offer: Offer, now: float) -> float:
    """Hold room for an offer that fits, or lengthen its hold; return for how many seconds."""
    seconds = min(max(offer.hold_seconds, 0.0), HOLD_SECONDS_MAX)
    placement = world.placements.get(offer.key)
    if placement is None:
        placement = Placement(
            key=offer.key, kind=offer.kind, namespace=offer.namespace, name=offer.name, queue=offer.queue
        )
        placement.move(Move.HOLD)
        world.add(placement)
    placement.priority, placement.pod_sets = offer.priority, offer.pod_sets
    placement.hold_until = max(placement.hold_until, now + seconds)
    world.ask_room(placement, now, placed=False)
    world.capacity_changed = True
    world.wakes.ask(offer.key, placement.hold_until)
    return placement.hold_until - now


def let_go(world: World, placement: Placement) -> None:
    """End a hold: its limit passed or the offer was withdrawn."""
    placement.move(Move.EXPIRE)
    world.remove(placement)


def is_full(world: World) -> bool:
    """Say whether no further hold is given."""
    return (
        len(world.placements) >= HOLDS_MAX
        and sum(1 for placement in world.placements.values() if placement.state is PlacementState.HELD) >= HOLDS_MAX
    )


def serves(world: World, kind: str) -> bool:
    """Say whether this agent places objects of that kind."""
    found = world.kinds.named(kind)
    return found is not None and found.travels and kind in world.settings.kinds
