"""What runs at `local` under its very record, and is taken up as it runs: that record names the user's object by UID.

After a restart the agent knows by labels what it has let go. What has lost them runs on, and its record says so: the
commit of that record, which names the object by its UID, takes it up again as it is. The same for what a late lift let
go before its refusal was written to the object (`late_lifts`). Nothing is started by that, so neither a hold nor a
lease is needed; it only keeps what runs from being taken for what was never there (R7), or ended with nobody asking.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import EndingKind, Move, Placement, PlacementState, Tracked
from gatelift_agent.core.seeing import doubts, orphans
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held
from gatelift_kinds.shared.patches import stop_marked
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Applied, Commit, GatesLifted


def takes(world: World, commit: Commit) -> bool:
    """Say whether the user's objects that a commit names run already, and no other placement has them.

    A former attempt that ends may stand in the same place: at a restart the object still carried its labels. What
    says since that it was let go for this very commit has left that one (HD-249). A used epoch is not taken up again
    (R5); an object that shows its end is the manager's own to see.
    """
    kind = world.kinds.named(commit.kind)
    if kind is None or not commit.objects or world.epochs.is_used(commit.key):
        return False
    for one in commit.objects:
        held = _found(world, commit, one.name)
        if held is None or held.object.metadata.uid != one.template:
            return False
        let_go = ownership.let_go_as(kind, held.object)
        if world.placements_at(held.ref) and let_go != (world.standing.origin, commit.key):
            return False
        if not kind.let_go_here(held.object) or kind.outcome(held.object) is not None:
            return False
    return True


def runs_already(world: World, commit: Commit) -> Placement:
    """Return the placement of objects that run; what it has to know comes from the commit."""
    placement = Placement(
        key=commit.key, kind=commit.kind, namespace=commit.namespace, name=commit.name, state=PlacementState.RUNNING
    )
    world.add(placement)
    return placement


def retake(world: World, placement: Placement) -> None:
    """Take the objects as they are, tell the manager, and put the labels back (as to one whose labels were taken)."""
    for tracked in placement.objects.values():
        held = world.held(tracked)
        if held is not None:
            tracked.object, tracked.raw = held.object, held.raw
            tracked.last_object, tracked.missing = held.object, True
    _tell(world, placement)
    world.note("warning", "it runs without our labels; they are put back", placement)


def runs_all_the_same(world: World, placement: Placement) -> bool:
    """Say whether all that a refusal is to hold back was let go before a write of ours, for this placement.

    The manager's own stop, or its word that the placement is over, is another matter: then it is ended.
    """
    ending = placement.ending
    if not world.local or placement.state is not PlacementState.DRAINING or placement.forget or not placement.objects:
        return False
    refused = ending is not None and ending.kind is EndingKind.REFUSED and placement.stop_asked is None
    return refused and all(_was_let_go(world, placement, tracked) for tracked in placement.objects.values())


def take_up(world: World, placement: Placement, now: float) -> None:
    """Let a placement that was to be refused go on: what it admits runs, as the record has it."""
    placement.ending = None
    placement.move(Move.TAKEN_UP)
    for tracked in placement.objects.values():
        obj = tracked.object
        tracked.last_object, tracked.retry_at = obj, 0.0
        tracked.missing = obj is not None and ownership.key_of(obj.metadata) is None
    _tell(world, placement)
    world.note("warning", "an earlier lift of it landed before its refusal was written; it goes on", placement)
    world.look(placement.key)
    world.ask_room(placement, now, placed=True)


def _tell(world: World, placement: Placement) -> None:
    orphans.gather(world)
    doubts.begin(world, placement)
    doubts.miss(world, placement)
    world.say(Applied(key=placement.key))
    world.say(GatesLifted(key=placement.key))


def _was_let_go(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether it runs as a lift for this placement left it: a write of ours since would have made that fail."""
    obj = tracked.object
    if obj is None or tracked.asked or tracked.stop_written or tracked.deleted_by_us:
        return False
    kind = world.kind(placement)
    if stop_marked(obj.metadata, placement.key) or not kind.let_go_here(obj):
        return False
    return ownership.may_be_for(kind, obj, placement.key)


def _found(world: World, commit: Commit, name: str) -> Held | None:
    kind = world.kinds.named(commit.kind)
    return world.objects.get(ObjectRef(kind.resource, ObjectKey(commit.namespace, name))) if kind is not None else None
