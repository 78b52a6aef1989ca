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
    """Give up an object that cannot be placed: with its placement, or by itself where others of that run, or may.

    Of the user's own pods, at `local`, none is ended or deleted for that: it waits at its gate, and is tried again.
    """
    others = [one for one in placement.objects.values() if one is not tracked and not one.is_gone]
    if world.local and world.kind(placement).gathers:
        tracked.refused = cut(why[1])
        goes_on = any(not one.refused for one in others)
        tracked.joined = tracked.joined or goes_on  # the others wait for it no more
    else:
        goes_on = tracked.joined or (world.kind(placement).gathers and any(map(_may_run, others)))
        tracked.refused_as = refused_status(*why) if goes_on else b""
        tracked.delete_asked = tracked.delete_asked or goes_on
    if not goes_on:
        refuse(world, placement, *why)
        return
    world.note("warning", f"is not let go: {why[1]}", placement, object=str(tracked.ref))
    world.look(placement.key)


def _may_run(tracked: Tracked) -> bool:
    """Say whether one of several objects was let go, and is not to leave."""
    return tracked.lift_asked and not tracked.delete_asked


def refused_status(refusal: Refusal, text: str) -> bytes:
    """Return an object, as JSON, that says why it cannot be placed, where there is none that could."""
    return msgspec.json.encode({"status": {"phase": "Failed", "reason": refusal.value, "message": cut(text)}})
