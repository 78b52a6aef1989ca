"""A placement of `local` whose labels somebody took off: the manager's record names the user's object by UID.

After a restart the agent knows by labels what it has let go. What has lost them runs on, and its record says so: the
commit of that record, which names the object by its UID, takes it up again as it is. Nothing is started by that, so
neither a hold nor a lease is needed; it only keeps what runs from being taken for what was never there.
"""

from __future__ import annotations

from gatelift_agent.core import doubts, orphans
from gatelift_agent.core.objects import Held
from gatelift_agent.core.placements import Placement, State
from gatelift_agent.core.world import World
from gatelift_kinds import registry
from gatelift_kube.resources import ObjectKey, ObjectRef
from gatelift_wire.messages import Applied, Commit, GatesLifted


def takes(world: World, commit: Commit) -> bool:
    """Say whether the user's objects that a commit names run already, and no placement knows them.

    A used epoch is not taken up again (R5); an object that shows its end is the manager's own to see.
    """
    kind = registry.kind_named(commit.kind)
    if kind is None or not commit.objects or world.epochs.is_used(commit.key):
        return False
    for one in commit.objects:
        held = _found(world, commit, one.name)
        if held is None or held.object.metadata.uid != one.template or world.placements_at(held.ref):
            return False
        if not kind.let_go_here(held.object) or kind.outcome(held.object) is not None:
            return False
    return True


def runs_already(world: World, commit: Commit) -> Placement:
    """Return the placement of objects that run; what it has to know comes from the commit."""
    placement = Placement(
        key=commit.key, kind=commit.kind, namespace=commit.namespace, name=commit.name, state=State.RUNNING
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
    orphans.gather(world)
    doubts.begin(world, placement)
    world.say(Applied(key=placement.key))
    world.say(GatesLifted(key=placement.key))
    world.note("warning", "it runs without our labels; they are put back", placement)


def _found(world: World, commit: Commit, name: str) -> Held | None:
    kind = registry.kind_named(commit.kind)
    return world.objects.get(ObjectRef(kind.resource, ObjectKey(commit.namespace, name))) if kind is not None else None
