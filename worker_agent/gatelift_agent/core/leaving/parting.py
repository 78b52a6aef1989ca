"""Objects that leave a live placement: each is ended by itself, and told of once nothing of it runs or can start (R7).

Until then it keeps its slot (`advancing.room`) and its name (MC-8). Neighbours: `draining` ends what is to end,
`closing` removes it, `members` takes what the manager says of it.
"""

from __future__ import annotations

from gatelift_agent.core.leaving import closing, draining
from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedPatch, WritePurpose

LEFT_MAX = 8192
"""UIDs of objects that have left a placement which are remembered: its group is replaced twice over by then."""


def leave(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the next write that ends an object; know it no more once nothing of it is left."""
    if not draining.has_stopped(world, placement, tracked, now):
        return
    outcome = world.kind(placement).outcome(tracked.object) if tracked.object is not None else None
    if tracked.succeeded or (outcome is not None and outcome.succeeded):
        tracked.delete_asked = False  # what succeeded stays, and so does its slot
        return
    if world.local or (
        _is_heard(world, placement, tracked, now) and closing.is_removed(world, placement, tracked, now)
    ):
        has_left(world, placement, tracked)


def _is_heard(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether the manager has heard that an object has stopped, saying it once; a minute without it is enough.

    What is removed before that the agent after this one would have to doubt (P10), should this one end (HD-431).
    """
    if tracked.leave_heard or tracked.made_here or draining.without_report(tracked) is None:
        return True
    if not world.standing.open:
        due = world.standing.away_since + closing.KEPT_SECONDS_MAX
        if now < due:
            world.wakes.ask(placement.key, due)
        return now >= due
    if not tracked.leave_said:
        world.say(reports.object_report(placement, tracked, gone=True))
        world.last_words.add(placement.key, tracked)
    return False


def has_left(world: World, placement: Placement, tracked: Tracked) -> None:
    """Know an object no more, and say so; who waits for its name is next."""
    world.untrack(placement, tracked)
    placement.came_and_went.left[whose(world, tracked)] = None  # "" of what nobody can name is nobody's
    if len(placement.came_and_went.left) > LEFT_MAX:
        del placement.came_and_went.left[next(iter(placement.came_and_went.left))]
    tracked.object = None
    if not (world.local or tracked.made_here or tracked.leave_said):
        world.say(reports.object_report(placement, tracked))
    heir = placement.came_and_went.heirs.pop(tracked.name, None)
    if heir is not None:
        world.track(placement, heir)
    for other in world.placements_at(tracked.ref):
        world.look(other.key)
    world.look_on(placement.key)


def whose(world: World, tracked: Tracked) -> str:
    """Return the UID of the user's object that one stands for, or at `local` is."""
    return tracked.uid if world.local else tracked.user_uid


def give_way(world: World, placement: Placement, now: float) -> None:
    """Drop our finalizer of what somebody deletes at the worker and has stopped: a drained node does not wait for us.

    Its last state was told in this session; while there is none it is held up for a while. So it is where a start found
    it, until its manager has named it or says stop: the agent before this one may have deleted it for that (HD-523).
    That it succeeded is kept first, as that of what was removed by force is: a restart would take it for gone, and it
    would run again.
    """
    if world.local:
        return
    for tracked in placement.to_look_at:
        obj = tracked.object
        if obj is None and tracked.succeeded:
            world.keeper.keep_member(placement, tracked)
        if obj is None or obj.metadata.deletion_timestamp is None or tracked.delete_asked or tracked.asked:
            continue
        body = draining.without_report(tracked)
        if body is None or not world.kind(placement).stopped(obj, (), placement.key):
            continue
        due = tracked.retry_at
        if not world.standing.open:
            due = max(due, world.standing.away_since + closing.KEPT_SECONDS_MAX)
        if placement.found:
            due = max(due, placement.committed_at + closing.KEPT_SECONDS_MAX)
        if now < due:
            world.wakes.ask(placement.key, due)
        elif _is_kept(world, placement, tracked, now) and world.has_room(placement):
            asking.patch(world, placement, tracked, WantedPatch(purpose=WritePurpose.UNFINALIZE, body=body), now)


def _is_kept(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Say whether a restart would know how an object ended; a node is held up for that for a while, no longer."""
    outcome = world.kind(placement).outcome(tracked.object)
    if outcome is None or not outcome.succeeded or world.keeper.keep_member(placement, tracked):
        return True
    if tracked.waited_for_since is None:
        tracked.waited_for_since = now
    limit = tracked.waited_for_since + closing.KEPT_SECONDS_MAX
    if now < limit and not world.keeper.full:
        world.wakes.ask(placement.key, limit)
        return False
    return True
