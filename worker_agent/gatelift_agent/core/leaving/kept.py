"""What has ended stays at the worker for a while, to be looked at (decision 72).

For the manager it is over, and forgotten: no quota, no entry in an inventory, no finalizer of ours. So nothing may be
kept that could still run, and that is asked at every look, not once. No mark says that an object is kept, since anybody
could forge one: it is terminal, it bears what says whose it was, and our finalizer is off. A start believes no more.
Neighbours: `closing` carries out, `rebuilding` finds what a process before this one kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_agent.core.placement.placements import EndingKind, Move, Placement, PlacementState, Tracked
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched.objects import Held
from gatelift_kube.values.resources import ObjectRef
from gatelift_kube.values.timestamps import to_seconds


def is_wanted(world: World, placement: Placement, now: float) -> bool:
    """Say whether a placement that is forgotten is to be kept: it ended by itself, not too long ago."""
    own_end = placement.ending is not None and placement.ending.kind is EndingKind.FINISHED
    if world.local or placement.gives_way or not (own_end or placement.over_before):
        return False
    there = [tracked for tracked in placement.objects.values() if tracked.object is not None]
    if not there or _size(world, placement) > world.settings.keep.objects_max:
        return False
    return now < _until(world, placement, now) and stays(placement) and is_quiet(world, placement)


def seconds(world: World, placement: Placement, now: float) -> float:
    """Return for how long it will be kept after its end, by what is known of it now; 0: not at all."""
    return _until(world, placement, now) - _ended(placement, now) if is_wanted(world, placement, now) else 0.0


def begin(world: World, placement: Placement, now: float) -> None:
    """Keep it from now on; what is kept longest goes where there would be too much."""
    placement.kept_until = _until(world, placement, now)
    placement.move(Move.KEEP)
    world.failures.forget(placement)
    world.kept[placement.key] = None
    world.look(placement.key)
    count = sum(_size(world, world.placements[key]) for key in world.kept)
    while count > world.settings.keep.objects_max:
        oldest = world.placements[next(iter(world.kept))]
        count -= _size(world, oldest)
        let_go(world, oldest)


def _size(world: World, placement: Placement) -> int:
    """Return how many objects it leaves, with the pods of its Jobs."""
    return len(placement.objects) + len(world.children(placement))


def let_go(world: World, placement: Placement) -> None:
    """Keep nothing of it, or no longer: what is kept is deleted when it is looked at next."""
    if not placement.gives_way:
        placement.gives_way = True
        world.kept.pop(placement.key, None)
        world.look(placement.key)


def make_room(world: World, ref: ObjectRef) -> None:
    """Know nothing more of what is kept under a name that is needed: who needs it removes it, as any leftover."""
    for placement in world.placements_at(ref):
        if placement.state is PlacementState.KEPT:
            world.remove(placement)


def stays(placement: Placement) -> bool:
    """Say whether something is there that nobody deletes."""
    there = [tracked.object.metadata for tracked in placement.objects.values() if tracked.object is not None]
    return bool(there) and all(meta.deletion_timestamp is None for meta in there) and not placement.gives_way


def is_quiet(world: World, placement: Placement) -> bool:
    """Say whether nothing of it runs or can start, for certain, by all that is known of it."""
    if placement.hidden or placement.lost_children or placement.unseen_ends or placement.cut_short:
        return False
    there = (tracked for tracked in placement.objects.values() if tracked.object is not None)
    return all(_is_terminal(world, placement, tracked) for tracked in there)


def _is_terminal(world: World, placement: Placement, tracked: Tracked) -> bool:
    kind, obj = world.kind(placement), tracked.object
    if kind.outcome(obj) is None or not kind.stopped(obj, world.children(placement), placement.key):
        return False
    return kind.at_rest(obj, tracked.raw)


def found(world: World, now: float) -> list[Placement]:
    """Return what a process before this one may have kept, oldest first."""
    over = [each for each in world.placements.values() if each.state is PlacementState.STOPPED and each.over_before]
    return sorted(over, key=lambda each: (_ended(each, now), each.key))


def take_up(world: World, placement: Placement, now: float) -> None:
    """Keep on what a process before this one kept; what is not to be kept is removed."""
    if is_wanted(world, placement, now):
        begin(world, placement, now)


def ended_at(world: World, objects: Iterable[Held], now: float) -> float:
    """Return when what a start found had ended, by what it says of itself; now where nobody can tell.

    By the worker's clock and ours: if they disagree it goes too early, or stays as long as what has just ended.
    """
    said = [moment for held in objects for moment in _moments(world, held)]
    ahead = world.leadership.unix_ahead
    if not said or ahead is None:
        return now
    try:
        return min(now, max(map(to_seconds, said)) - ahead)
    except ValueError:
        return now


def _moments(world: World, held: Held) -> tuple[str, ...]:
    kind = world.kinds.of(held.ref.resource, held.object)
    return kind.moments(held.object) if kind is not None else ()


def _ended(placement: Placement, now: float) -> float:
    return now if placement.ended_at is None else placement.ended_at


def _until(world: World, placement: Placement, now: float) -> float:
    """Return until when it is kept, by how it ended: one object that failed is the failure of all."""
    kind, keep = world.kind(placement), world.settings.keep
    ends = [kind.outcome(tracked.object) for tracked in placement.objects.values() if tracked.object is not None]
    succeeded = all(end is not None and end.succeeded for end in ends)
    return _ended(placement, now) + (keep.succeeded_seconds if succeeded else keep.failed_seconds)
