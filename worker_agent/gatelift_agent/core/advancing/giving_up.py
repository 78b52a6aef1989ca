"""How a live placement is given up: its end is decided once, and the next look at it begins to carry that out.

Also how long is waited before a write that failed is tried again. Neighbours: `progress`, `applying` and `outcomes` ask
for it.
"""

from __future__ import annotations

import msgspec

from gatelift_agent.core.placement import graces
from gatelift_agent.core.placement.placements import (
    ENDING,
    EndingKind,
    Move,
    Placement,
    PlacementEnding,
    Tracked,
)
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.texts import cut
from gatelift_wire.values.refusals import Refusal

RETRY_FIRST_SECONDS = 0.25
RETRY_MAX_SECONDS = 30.0
"""Longest pause between two tries of a write that fails: an API server that comes back is found within this."""


def end(world: World, placement: Placement, ending: PlacementEnding) -> None:
    """Decide the end of a live placement; the first decision stands, a later one may only shorten the grace."""
    if placement.ending is None:
        placement.move(Move.END)  # first: an end that was only half decided would not be decided again
        placement.ending = ending
    elif placement.state in ENDING and ending.grace_seconds is not None:
        known = placement.ending.grace_seconds
        if known is None or ending.grace_seconds < known:
            graces.replace_grace(placement, ending.grace_seconds)
    world.look(placement.key)


def pause(attempts: int) -> float:
    """Return the seconds before the next try of a write that failed, or had no effect, `attempts` times."""
    return min(RETRY_MAX_SECONDS, RETRY_FIRST_SECONDS * 2.0 ** min(attempts, 16))


def refuse(world: World, placement: Placement, refusal: Refusal, text: str) -> None:
    """End a placement that cannot be carried out; the manager is told once nothing of it exists."""
    end(world, placement, PlacementEnding(kind=EndingKind.REFUSED, reason=refusal.value, message=text, refusal=refusal))


def refuse_object(world: World, placement: Placement, tracked: Tracked, why: tuple[Refusal, str]) -> None:
    """Give up an object that cannot be placed: with its placement, or by itself where that was live before it came."""
    if not tracked.joined:
        refuse(world, placement, *why)
        return
    tracked.raw = refused_status(*why)
    tracked.delete_asked = True
    world.note("warning", f"does not join: {why[1]}", placement, object=str(tracked.ref))
    world.look(placement.key)


def refused_status(refusal: Refusal, text: str) -> bytes:
    """Return an object, as JSON, that says why it cannot be placed, where there is none that could."""
    return msgspec.json.encode({"status": {"phase": "Failed", "reason": refusal.value, "message": cut(text)}})
