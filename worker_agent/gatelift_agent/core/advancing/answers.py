"""Takes the answers to what was asked for. An exception belongs to the placement that asked, which is set aside.

First what is under way is under way no more, outside of all that may raise. An answer that raises counts as one that
nobody knows (R7): what half of it has changed is not believed, and the object is asked for anew (`draining.find_out`).
The object that a write was answered with goes the way of what watches show (`taking`). Our own ConfigMaps are nobody's:
an exception there ends the process, and the next one reads them.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import adopting, gates, giving_up, outcomes
from gatelift_agent.core.leaving import draining
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.seeing import hidden, observing
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import events
from gatelift_agent.core.values.asked import Asked, WritePurpose
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, WriteDone, WriteFailed


def write_answered(world: World, event: WriteDone | WriteFailed, now: float) -> None:
    """Take the answer to a write."""
    asked = world.writes.answered(event.write_id)
    if asked is None:
        return  # of a time before this replica lost its lead
    world.room_again()
    if asked.purpose in {WritePurpose.STATE, WritePurpose.RECORD}:
        _own_written(world, asked, event, now)
    elif asked.purpose is WritePurpose.TURN_AWAY:
        adopting.answered(world, asked, event, now)
    elif asked.purpose is WritePurpose.ROOM:
        containment.hear(world, lambda: world.admission.answered(asked, event), asked.key, now)
    else:
        _of_placement(world, asked, event, now)


def _own_written(world: World, asked: Asked, event: WriteDone | WriteFailed, now: float) -> None:
    if isinstance(event, WriteDone):
        world.namespace_left |= world.keeper.written(asked.name, event.object)
    else:
        world.keeper.failed(asked.name, event.error, now)
        world.note("warning", f"ConfigMap {asked.name}: {event.message}; it is tried again")
    world.look_at_all()


def _of_placement(world: World, asked: Asked, event: WriteDone | WriteFailed, now: float) -> None:
    placement, tracked = outcomes.find(world, asked)
    if tracked is not None:
        tracked.asked = 0
    if placement is None:
        return
    try:
        if isinstance(event, WriteDone):
            outcomes.done(world, asked, event, now)
        else:
            outcomes.failed(world, asked, event, now)
    except Exception as error:  # noqa: BLE001 (containment: one answer ends no process)
        containment.placement_failed(world, placement, error, now)
        _is_unknown(placement, asked, event, now)
        world.look(placement.key)
    else:
        if tracked is not None:
            tracked.untaken_answers = 0


def _is_unknown(placement: Placement, asked: Asked, event: WriteDone | WriteFailed, now: float) -> None:
    """Take that nobody knows what came of a write. In few lines: what raised once may raise again."""
    shortage, pod = placement.shortages.get(asked.form), hidden.found(placement, asked.name)
    if asked.purpose is WritePurpose.WHY and shortage is not None:
        shortage.asking, shortage.again = False, True
    if asked.purpose is WritePurpose.CHILD_LABELS and pod is not None:
        hidden.unanswered(placement, pod, now)
    if asked.purpose is WritePurpose.UNGATE:
        gates.unknown(placement, asked.form, now)
    tracked = placement.objects.get(asked.name)
    if tracked is None:
        return
    tracked.unproven, tracked.unproven_since = True, now
    tracked.untaken_answers += 1
    tracked.attempts = max(tracked.attempts, tracked.untaken_answers)
    tracked.retry_at = now + giving_up.pause(tracked.attempts)
    if asked.purpose is WritePurpose.CREATE and tracked.object is None:
        tracked.doubt_until = now if isinstance(event, WriteDone) else asked.at + WRITE_SECONDS_MAX
    if asked.purpose is WritePurpose.REMOVE:
        tracked.removed = False


def read_answered(world: World, asked: Asked, event: events.ReadAnswer, now: float) -> None:
    """Take the answer to a read for a placement."""
    placement = world.placements.get(asked.key) if asked.key is not None else None
    if placement is None:
        return
    if asked.purpose is WritePurpose.NAMESPACE:
        placement.namespace_asked = False  # whoever asked has a pause of its own, and asks again
    try:
        _read(world, placement, asked, event, now)
    except Exception as error:  # noqa: BLE001 (containment: one answer ends no process)
        containment.placement_failed(world, placement, error, now)
        if asked.purpose is WritePurpose.PODS:
            draining.pods_unread(placement, now)
        world.look(placement.key)


def _read(world: World, placement: Placement, asked: Asked, event: events.ReadAnswer, now: float) -> None:
    match event:
        case events.PodsRead(pods=found):
            draining.pods_read(world, placement, found, now)
        case events.PodsNotRead():
            draining.pods_read(world, placement, None, now)
        case events.NamespaceRead(namespace=namespace):
            observing.namespace_read(world, placement, namespace, asked.at, now)
        case events.NamespaceNotRead():
            pass
