"""After a placement is still: its last word, the wait for Forget, and what is removed then.

The finalizer keeps the final state readable until the manager has it. When the manager cannot be reached and somebody
waits for the object to go (a node drain, a namespace's deletion), the state is kept in a record instead (`records`) and
the finalizer dropped. What ended by itself may stay a while, to be looked at (`kept`). Local objects are the user's
own: nothing of them is removed here.
"""

from __future__ import annotations

from gatelift_agent.core.leaving import draining, ending_rest, kept, leftovers
from gatelift_agent.core.placement import calm
from gatelift_agent.core.placement.placements import (
    ENDED,
    SUPERSEDED,
    EndingKind,
    Move,
    Placement,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import observing
from gatelift_agent.core.state import asking, condemned, containment
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedDelete, WantedPatch, WritePurpose
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held
from gatelift_kinds.shared import pods
from gatelift_wire.values.messages import Stopped

KEPT_SECONDS_MAX = 60.0
"""How long an object that somebody deletes is held up for a manager that does not answer."""

KEPT_IN_CONDEMNED_SECONDS = 2.0
"""The same where the namespace is being deleted, and may take our rights along a moment later: a manager that hears us
answers within a second, and where it does not, the record says all that the object would."""


def close(world: World, placement: Placement, now: float) -> None:
    """Report the end, then wait for Forget and clean up."""
    if _runs_again(world, placement):
        world.note("warning", "somebody else let it go after it had stopped; it is stopped again", placement)
        placement.move(Move.AGAIN)
        placement.pods_clear = False
        world.look(placement.key)
        return
    if placement.state is PlacementState.STOPPED:
        if placement.ended_at is None:
            placement.ended_at = now
        world.epochs.use(placement.key)
        world.give_room_back(placement)
        world.capacity_changed = True
        if not world.local:  # there it is the user's own, to be looked at
            placement.failed = placement.failed or world.failures.of(placement)
            placement.kept_seconds = kept.seconds(world, placement, now)
        for tracked in placement.objects.values():  # whoever waits for the name
            for other in world.placements_at(tracked.ref):
                world.look(other.key)
        _report(world, placement)
    if placement.forget:
        _clean_up(world, placement, now)
    else:
        _give_way(world, placement, now)


def _runs_again(world: World, placement: Placement) -> bool:
    """Say whether something of it was let go since it stopped: then *stopped* is no longer true (R7).

    At `local` it is the user's own object, which may have been let go for another Workload: the manager sees to that.
    """
    if world.local:
        return False
    kind, pods_of_it = world.kind(placement), world.children(placement)
    return any(
        tracked.object is not None
        and kind.outcome(tracked.object) is None
        and (kind.lifted(tracked.object) or any(map(pods.holds_resources, pods_of_it)))
        and not kind.stopped(tracked.object, pods_of_it, placement.key)
        and not leftovers.never_runs(world, placement)
        for tracked in placement.to_look_at
    )


def remove_stray(world: World, placement: Placement, tracked: Tracked, held: Held, now: float) -> None:
    """Ask for the next write that removes an object of ours without a placement, which blocks a name."""
    if tracked.asked or not world.has_room(placement):
        return
    stray = Tracked(ref=held.ref, uid=held.object.metadata.uid, object=held.object, raw=held.raw)
    body = draining.without_report(stray)
    if held.object.metadata.deletion_timestamp is None:
        wanted = WantedDelete(purpose=WritePurpose.REMOVE_STRAY, uid=stray.uid)
        asking.delete(world, placement, tracked, wanted, now)
    elif body is not None:
        asking.patch(world, placement, tracked, WantedPatch(purpose=WritePurpose.REMOVE_STRAY, body=body), now)


def _nobody_asks(placement: Placement) -> bool:
    """Say whether the end needs no report: it was superseded, or its removal was all that was wanted."""
    return placement.ending is not None and placement.ending.reason == SUPERSEDED


def _report(world: World, placement: Placement) -> None:
    final = reports.tell_end(world, placement) if not _nobody_asks(placement) else None
    if final is not None and placement.stop_asked is not None and not isinstance(final, Stopped):
        world.say(Stopped(key=placement.key, reason=placement.stop_asked))
    placement.move(Move.REPORTED)
    if placement.ending is not None:
        world.note(
            "info",
            "ended",
            placement,
            name=f"{placement.namespace}/{placement.name}",
            ending=placement.ending.kind.value,
            reason=placement.ending.reason,
        )
    refused = placement.ending is not None and placement.ending.kind is EndingKind.REFUSED
    if refused:
        # A refusal is as strong as an absence (R7): what is left here is ours alone to remove.
        placement.forget = True


def keep_on(world: World, placement: Placement, now: float) -> None:
    """Look after what is kept: until its time is over or somebody needs it gone, and as long as nothing of it runs."""
    unknown = [each for each in placement.objects.values() if each.missing or each.unproven]
    for tracked in unknown:  # perhaps only its label was taken off
        draining.find_out(world, placement, tracked, now)
    if not _is_quiet(world, placement, now):
        world.note("warning", "what was kept after its end may run: it is stopped", placement)
        kept.let_go(world, placement)
        placement.move(Move.AGAIN)
        placement.pods_clear = False
        for tracked in placement.objects.values():
            draining.delete(world, placement, tracked, now)
    elif kept.stays(placement) and now < placement.kept_until:
        world.wakes.ask(placement.key, placement.kept_until)
    elif not unknown or placement.gives_way:
        kept.let_go(world, placement)
        _clean_up(world, placement, now)


def _is_quiet(world: World, placement: Placement, now: float) -> bool:
    """Say whether it is certain that nothing of it runs; what cannot be read may run, and is listed so."""
    try:
        return kept.is_quiet(world, placement)
    except Exception as error:  # noqa: BLE001 (containment: one that cannot be read is left out of no inventory)
        containment.placement_failed(world, placement, error, now)
        return False


def _keep(world: World, placement: Placement, now: float) -> None:
    """Drop finalizers and what a record says, and leave the objects where they are."""
    free = [_set_free(world, placement, tracked, now) for tracked in placement.objects.values()]
    if all(free) and world.keeper.forgotten(placement.key):
        kept.begin(world, placement, now)


def _clean_up(world: World, placement: Placement, now: float) -> None:
    """Drop finalizers, delete what is left; when all is asked for and answered the placement is gone."""
    done = True
    if placement.state is not PlacementState.KEPT and kept.is_wanted(world, placement, now):
        _keep(world, placement, now)
        return
    if not world.local:
        objects = placement.to_look_at
        removed = [each for each in objects if _remove(world, placement, each, now)]
        done = len(removed) == len(objects) and not calm.goes_on(placement.calm)
        if placement.state in ENDED:
            ending_rest.settle(world, placement, removed)
    if not done and condemned.is_said(world, placement):
        world.keeper.keep(placement)  # a restart would take what is left there for a run
    if done and world.keeper.forgotten(placement.key):
        placement.move(Move.CLEARED)
        world.remove(placement)
        _look_behind(world, placement)


def _look_behind(world: World, placement: Placement) -> None:
    """Look at what has landed in the places of a placement while it was cleaned up: a create that was given up."""
    for tracked in placement.objects.values():
        held = world.held(tracked)
        if held is None or world.was_cleared(held.object.metadata.uid) or world.placements_at(held.ref):
            continue
        if held.object.metadata.uid != tracked.uid:
            observing.stray(world, held)


def is_removed(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Ask for the next write that removes an object which has stopped; True when nothing of ours is left to do."""
    return _remove(world, placement, tracked, now)


def _remove(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Remove one object; True when nothing of ours is left to do."""
    if tracked.missing or tracked.unproven:  # perhaps only its label was taken off: it and our finalizer would stay
        draining.find_out(world, placement, tracked, now)
        return False
    if tracked.object is None or (tracked.removed and not tracked.asked):
        return not tracked.asked
    if not _set_free(world, placement, tracked, now):
        return False
    if tracked.object.metadata.deletion_timestamp is not None:
        tracked.removed = True
        world.mark_cleared(tracked.uid)
        return True
    wanted = WantedDelete(purpose=WritePurpose.REMOVE, uid=tracked.uid)
    tracked.removed = asking.delete(world, placement, tracked, wanted, now)
    return False


def _set_free(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Drop our finalizer of one object; True when it is off, no write is on its way and one more may be asked for."""
    if tracked.asked:
        return False
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return False
    if not world.has_room(placement):
        return False
    body = draining.without_report(tracked)
    if body is not None:
        # Without our finalizer the watch's word that it is gone means no more than that.
        asking.patch(world, placement, tracked, WantedPatch(purpose=WritePurpose.UNFINALIZE, body=body), now)
    return body is None


def _give_way(world: World, placement: Placement, now: float) -> None:
    """Drop finalizers that somebody waits for, once the final state is in a record."""
    doomed = condemned.is_said(world, placement)
    if world.local or not any(_is_waited_for(tracked, doomed=doomed) for tracked in placement.objects.values()):
        return
    most = KEPT_IN_CONDEMNED_SECONDS if doomed else KEPT_SECONDS_MAX
    away = not world.standing.open and world.standing.away_since + most <= now
    limit = (placement.ended_at if placement.ended_at is not None else now) + most
    if not away and now < limit:
        if not world.standing.open:
            limit = min(limit, world.standing.away_since + most)
        world.wakes.ask(placement.key, limit)
        return
    if not _is_recorded(world, placement):
        return  # the record's write looks at the placement again
    for tracked in placement.objects.values():
        body = draining.without_report(tracked)
        if body is None or tracked.asked or not _is_waited_for(tracked, doomed=doomed):
            continue
        if tracked.retry_at > now:
            world.wakes.ask(placement.key, tracked.retry_at)
        elif world.has_room(placement):
            asking.patch(world, placement, tracked, WantedPatch(purpose=WritePurpose.UNFINALIZE, body=body), now)


def _is_recorded(world: World, placement: Placement) -> bool:
    """Have the final state recorded; each of several objects that succeeded by itself: it is not to run again."""
    kind = world.kind(placement)
    ends = [(each, kind.outcome(each.object)) for each in placement.objects.values() if each.object is not None]
    done = [each for each, end in ends if end is not None and end.succeeded] if kind.gathers else []
    kept = [world.keeper.keep_member(placement, each) for each in done]
    return world.keeper.keep(placement) and all(kept)


def _is_waited_for(tracked: Tracked, *, doomed: bool) -> bool:
    """Say whether somebody waits for our finalizer; in a namespace that goes (`doomed`) its controller is about to."""
    obj = tracked.object
    if obj is None or not ownership.keeps_report(obj.metadata):
        return False
    return doomed or obj.metadata.deletion_timestamp is not None
