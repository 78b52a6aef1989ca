"""The room rule (MC-9): of each pod set, what was let go and has not stopped is never more than was granted. Pure.

Asked before each object of a placement whose objects come and go is let go. A slot is taken by what runs, by a lift of
which nobody knows what came of it, by what vanished while its node may run it, and by what succeeded: that is given
back as quota (KEP-78), not as a slot. What was placed first has its slot from the commit on; what joined waits for one,
and after a start until nothing can run of what vanished while nobody watched. The rule itself is `slots`,
which pods of elastic work share. Neighbour: `lifting`.
"""

from __future__ import annotations

from gatelift_agent.core.placement import slots
from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.placement.slots import SlotFacts
from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.state.world import World


def free(world: World, placement: Placement, now: float) -> dict[str, int]:
    """Return of each pod set how many objects more may be let go; below zero where more run than were granted."""
    granted = {one.name: one.count for one in placement.pod_sets}
    at_rest = placement.calm.taken.items() if placement.calm is not None else ()
    looked_at = ((one.pod_set, 1) for one in placement.to_look_at if has_slot(world, placement, one, now))
    return slots.left(granted, (*at_rest, *looked_at))


def for_joining(world: World, placement: Placement, now: float) -> dict[str, int]:
    """Return the same for what joined: nothing while something may run of which nothing is known here.

    At home it is known of which slots that may be.
    """
    left = free(world, placement, now)
    if not (placement.unsure and world.unheard):
        placement.unsure = False
        return left
    unknown = placement.came_and_went.unknown
    return {name: count - unknown.get(name, 0) for name, count in left.items()} if world.local else {}


def has_slot(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether an object takes a slot: it was let go, whatever is known of that, and has not stopped."""
    return slots.takes_slot(_facts(world, placement, tracked, now))


def _facts(world: World, placement: Placement, tracked: Tracked, now: float) -> SlotFacts:
    kind, obj = world.kind(placement), tracked.object
    if obj is None:
        last = tracked.last_object
        if tracked.missing or tracked.unproven:
            return SlotFacts(let_go=last is not None and kind.lifted(last), in_doubt=tracked.lift_asked)
        may_run = not tracked.succeeded and doubts.may_run(world, placement, tracked.doubt or tracked.uid, now)
        return SlotFacts(keeps=tracked.succeeded, may_run=may_run)
    outcome = kind.outcome(obj)
    if outcome is not None:
        return SlotFacts(over=True, keeps=outcome.succeeded)
    let_go = tracked.lift_asked or kind.lifted(obj)
    return SlotFacts(
        let_go=kind.lifted(obj),
        in_doubt=tracked.lift_asked,
        over=let_go and kind.stopped(obj, (), placement.key),
    )
