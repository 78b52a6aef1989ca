"""Which objects of a group that ends, or is removed, need not be looked at: what is done, and what waits for an answer.

At a worker alone: at home what is due for the user's own object may follow from others. Who has still to be asked for,
while no more may be in one call, waits for its turn. Who is stopped by its kubelet is looked at with each look, since
time makes another question due. Neighbours: `draining` and `closing` say what is done.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.state.world import AT_ONCE, World


def settle(world: World, placement: Placement, done: Iterable[Tracked]) -> None:
    """Let those rest that may, of the objects that were looked at; `done`: for these nothing is left to do."""
    if world.local or not world.kind(placement).gathers:
        return
    looked_at, names = placement.to_look_at, {each.name for each in done}
    calm = placement.calms()
    for tracked in looked_at:
        if tracked.missing or tracked.unproven or tracked.doubt_until is not None or tracked.retry_at:
            continue
        if tracked.asked or tracked.name in names:
            calm.rests(tracked.name, None, under_way=bool(tracked.asked))
        elif not world.has_room(placement):  # which has it looked at again
            calm.waits(tracked.name)
    if calm.waiting and world.has_room(placement):
        world.wakes.ask(placement.key, AT_ONCE)
