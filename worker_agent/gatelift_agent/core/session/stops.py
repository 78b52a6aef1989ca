"""What the manager ends: a placement, one of its objects, or what is left and known of one that has ended.

*Stopped* is said once nothing runs (R7), and at once of what never was here; its epoch is used all the same (R5).
Neighbours: `orders` brings stops, `late_stops` keeps those of what may be here without being known, `giving_up` begins
the end, `commits` asks for the last word again.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import giving_up, holds
from gatelift_agent.core.changes import edits
from gatelift_agent.core.leaving import kept
from gatelift_agent.core.placement.placements import (
    ENDED,
    ENDING,
    LIVE,
    EndingKind,
    Placement,
    PlacementEnding,
    PlacementState,
)
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import observing
from gatelift_agent.core.session import late_stops
from gatelift_agent.core.state import unknowns
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.texts import cut
from gatelift_wire.values.messages import Forget, Stop, Stopped
from gatelift_wire.values.single import DeleteObject


def stop(world: World, order: Stop, now: float) -> None:
    """End a placement, or say that nothing of it is left to end."""
    placement = world.placements.get(order.key)
    if placement is None and world.unlisted:
        late_stops.keep(world, order)
        return
    world.epochs.use(order.key)  # also of what was never seen: an offer or commit behind it comes too late (R5)
    if placement is None:
        ending = PlacementEnding(kind=EndingKind.STOPPED, reason=order.reason, message=cut(order.message))
        observing.strays_of(world, order.key, now, ending=ending)
        if order.key in world.placements:
            return  # it says so when nothing of it is left
        if unknowns.may_be_of(world, order.key, all_of_it=True):
            late_stops.keep(world, order)
            return
    if placement is None or placement.state in {PlacementState.HELD, PlacementState.KEPT}:
        if placement is not None and placement.state is PlacementState.KEPT:
            kept.let_go(world, placement)
        elif placement is not None:
            holds.let_go(world, placement)
        world.say(Stopped(key=order.key, reason=order.reason, message=cut(order.message)))
        return
    if placement.state is PlacementState.REPORTED:
        say_final(world, placement, stopped=order)
        return
    if placement.state in LIVE or placement.state in ENDING:
        _end_for(world, placement, order)


def answer_late(world: World, now: float) -> None:
    """Obey stops of this session that came while what they name could be here without being known."""
    for order in late_stops.due(world, now):
        stop(world, order, now)


def forget(world: World, order: Forget, now: float) -> None:
    """Let go of a placement whose end the manager has: its objects go, and it is known no more."""
    key, placement = order.key, world.placements.get(order.key)
    if placement is None:
        world.epochs.use(key)
        if not order.gone:  # said of each that goes at home, and nearly always nothing of it is left
            observing.strays_of(world, key, now)
        return
    if placement.state is PlacementState.HELD:
        holds.let_go(world, placement)
        return
    if order.gone:
        kept.let_go(world, placement)
    if placement.state not in LIVE | ENDING | ENDED:
        return
    placement.forget = True
    if placement.state in LIVE:
        # Not ended here, but the manager is done with it: it is stopped first, whatever the manager thought.
        giving_up.end(world, placement, PlacementEnding(kind=EndingKind.STOPPED, reason="Forgotten"))
    world.look(key)


def delete_object(world: World, order: DeleteObject) -> None:
    """End one object of a placement that goes on; with its only one it ends itself."""
    placement = world.placements.get(order.key)
    tracked = placement.objects.get(order.name) if placement is not None else None
    if placement is None or tracked is None or placement.state not in LIVE:
        return
    if len(placement.objects) == 1:
        _end_for(world, placement, Stop(key=order.key, reason="Deleted", grace_seconds=order.grace_seconds))
        return
    tracked.delete_asked = True
    tracked.grace_seconds = order.grace_seconds
    world.look(order.key)


def _end_for(world: World, placement: Placement, order: Stop) -> None:
    ending = PlacementEnding(
        kind=EndingKind.STOPPED,
        reason=order.reason,
        message=cut(order.message),
        grace_seconds=order.grace_seconds,
    )
    if placement.ending is not None and _is_provisional(world, placement.ending):
        placement.ending = ending
        world.look(placement.key)
        return
    if placement.ending is not None:
        placement.stop_asked = order.reason
    giving_up.end(world, placement, ending)


def _is_provisional(world: World, ending: PlacementEnding) -> bool:
    """Say whether the manager's cause stands for what was begun without it.

    A stop of before a restart; at `local` what became of the commit that only names what is to be stopped.
    """
    return ending.reason == edits.STOPPED or (world.local and ending.kind is EndingKind.REFUSED)


def say_final(world: World, placement: Placement, stopped: Stop | None = None) -> None:
    """Say the last word again; to a stop, that it is stopped, whatever ended it."""
    final = reports.tell_end(world, placement)
    if stopped is not None and not isinstance(final, Stopped):
        world.say(Stopped(key=placement.key, reason=stopped.reason, message=cut(stopped.message)))
