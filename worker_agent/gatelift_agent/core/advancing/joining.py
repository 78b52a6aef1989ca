"""What joins a live placement: it is made held back, and let go as soon as there is a slot for it (`room`).

Only once all that was placed first is let go, or is no longer to be. What the manager says of it `session.members`
takes. Neighbours: `progress` asks for it, `applying` makes, `lifting` lets go.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import applying, lifting
from gatelift_agent.core.changes import edits
from gatelift_agent.core.placement.placements import Placement, PlacementState, Tracked
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.state.world import World


def advance(world: World, placement: Placement, now: float) -> None:
    """Make what is missing of it, and let go what there is room for."""
    joined = [each for each in placement.to_look_at if each.joined and not each.delete_asked]
    for tracked in joined:
        if tracked.object is None and not (tracked.asked or tracked.is_gone or tracked.made_here):
            applying.make(world, placement, tracked, now)
        elif tracked.object is not None and edits.let_go_by_others(world, placement, tracked):
            text = "was let go in the worker cluster by somebody else, before there was room for it: it is ended"
            world.note("warning", text, placement, object=str(tracked.ref))
            tracked.delete_asked = True
            world.look(placement.key)
    if not world.local and any(_is_to_go(world, placement, each) for each in joined):
        starting.ask_word(world, placement, now)  # a session that was resumed has confirmed nothing that runs
    if placement.state is PlacementState.RUNNING:
        lifting.lift_joined(world, placement, joined, now)


def _is_to_go(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether one is there to be let go: a lift that was asked for may have been lost with its session (HD-663)."""
    obj = tracked.object
    return not tracked.is_gone and (obj is None or not world.runs_as_placed(world.kind(placement), obj))
