"""Brings one placement forward: create what is missing, admit, let go, notice its end. Level-triggered.

`drive` reads the placement's state and objects, compares them with what should be and asks for the next writes; it may
be called at any time and as often as one likes. Creating and lifting are two decisions, with `starting.why_not` before
each (R1, R8); between them stands the remote admission, which may take its time. Neighbours: `applying` creates,
`lifting` lets go, `sizing` resizes, `losing` notices an end; `draining` stops, `closing` reports and cleans up.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import (
    adopting,
    applying,
    giving_up,
    holds,
    joining,
    lifting,
    losing,
    resting,
    sizing,
)
from gatelift_agent.core.changes import edits, relabelling
from gatelift_agent.core.leaving import closing, draining, parting
from gatelift_agent.core.placement.placements import (
    ENDED,
    ENDING,
    HELD_BACK,
    STARTING,
    EndingKind,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.placement.sizes import SizeMove
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import doubts, hidden, orphans
from gatelift_agent.core.state.world import MANY_OBJECTS, World


def drive(world: World, placement: Placement, now: float) -> None:
    """Look at a placement and ask for whatever is due."""
    if placement.state is PlacementState.HELD:
        if placement.hold_until <= now:
            holds.let_go(world, placement)
        else:
            world.wakes.ask(placement.key, placement.hold_until)
        return
    if placement.calm is not None:
        placement.calm.take_turns(MANY_OBJECTS)
    if placement.state in STARTING or placement.state is PlacementState.RUNNING:
        _advance(world, placement, now)
    if placement.state in ENDING or placement.state in ENDED:
        adopting.turn_away_all(world, placement, now)
        if placement.sizing is not None:
            placement.sizing.move(SizeMove.STOP)
    if placement.state in ENDING:
        draining.drain(world, placement, now)
    if placement.state in ENDED:
        closing.close(world, placement, now)
    elif placement.state is PlacementState.KEPT:
        closing.keep_on(world, placement, now)


def _advance(world: World, placement: Placement, now: float) -> None:
    gathers = world.kind(placement).gathers
    for tracked in placement.to_look_at:
        _tend(world, placement, tracked, now)
    hidden.ask(world, placement, now)
    orphans.taken_off_run(world, placement, now)
    doubts.count(world, placement, now)
    lost = losing.lost(world, placement, now)
    if lost is not None:
        giving_up.end(world, placement, lost)
        return
    if placement.state in {PlacementState.COMMITTED, PlacementState.APPLYING}:
        applying.apply(world, placement, now)
    if placement.state in HELD_BACK:
        lifting.lift(world, placement, now)
    if gathers and (placement.state in HELD_BACK or placement.state is PlacementState.RUNNING):
        joining.advance(world, placement, now)
        parting.give_way(world, placement, now)
    if gathers and placement.state is PlacementState.RUNNING:
        adopting.advance(world, placement, now)
    sizing.advance(world, placement, now)
    if placement.state in HELD_BACK or placement.state is PlacementState.RUNNING:
        outcome = losing.own_end(world, placement)
        if outcome is None:
            reports.observe(world, placement, now)
            resting.settle(world, placement, now)
            return
        # A Job may say its end while its pods stop (before Kubernetes 1.31), or of pods that it no longer knows (P10).
        kind = EndingKind.FINISHED
        said = PlacementEnding(kind=kind, reason=outcome.reason, message=outcome.message, succeeded=outcome.succeeded)
        giving_up.end(world, placement, said)
    else:
        resting.settle(world, placement, now)


def _tend(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """See to one object of a live placement, whatever the others are like."""
    if tracked.missing or tracked.unproven:
        draining.find_out(world, placement, tracked, now)
    elif tracked.delete_asked:
        ends = parting.leave if world.kind(placement).gathers else draining.delete
        ends(world, placement, tracked, now)
    elif not adopting.is_ready(world, placement, tracked):
        adopting.take_in(world, placement, tracked, now)
    else:
        relabelling.put_labels_back(world, placement, tracked, now)
        relabelling.put_note_back(world, placement, tracked, now)
        edits.learn(world, placement, tracked)
        edits.tell_of_uncharged(world, placement, tracked)
        edits.put_back(world, placement, tracked, now)
        edits.keep_told(world, placement, tracked, now)
