"""Carries out the size of elastic work: one patch of the object with its mark, lifts by count, and the answer.

Level-triggered, as `progress`, which asks it at each look. The patch names UID and resourceVersion, and starts nothing:
its pods come gated. It is due also where no pod changes, for the mark: by that a process after this one knows the size
(Size 6, Size 9). The answer waits until the surplus is out of the way, and no write of the object or of a gate is under
way or in doubt. Neighbours: `gates` lets pods go, `leaving.surplus` says what is in the way, `changes.size_marks` which
mark is right.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import gates, giving_up
from gatelift_agent.core.changes import size_marks
from gatelift_agent.core.leaving import surplus
from gatelift_agent.core.placement.placements import HELD_BACK, STARTING, Placement, PlacementState, Tracked
from gatelift_agent.core.placement.sizes import SizeMove, SizeState, Sizing
from gatelift_agent.core.reporting import sizes as reports
from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedPatch, WritePurpose
from gatelift_kinds.shared.sizes import SizeError
from gatelift_wire.values.refusals import Refusal

NO_SIZES = "{}: its pods do not wait at the gate of elastic work, so no size can be kept; commit it without one"


def advance(world: World, placement: Placement, now: float) -> None:
    """Look at the size of a live placement and ask for whatever is due."""
    sizing = placement.sizing
    if sizing is None:
        return
    sizing.move(SizeMove.GO_ON)
    _end_hold(world, placement, sizing, now)
    landed = [_set(world, placement, tracked, now) for tracked in tuple(placement.objects.values())]
    if placement.state is not PlacementState.RUNNING and placement.state not in HELD_BACK:
        return
    is_set = bool(landed) and all(landed)
    if is_set:
        sizing.move(SizeMove.LANDED)
        reports.begin(world, placement, sizing)
    gates.advance(world, placement, sizing, now)
    if is_set and sizing.state is SizeState.SET:
        _answer(world, placement, sizing, now)


def _end_hold(world: World, placement: Placement, sizing: Sizing, now: float) -> None:
    """Let the room go that was held for a growth which nobody has committed in time."""
    if sizing.hold is None:
        return
    if sizing.hold.until > now:
        world.wakes.ask(placement.key, sizing.hold.until)
        return
    sizing.hold = None
    world.ask_room(placement, now, placed=True)
    world.capacity_changed = True


def _set(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Ask for the patch that an object needs; True where it is set to the size, as it was seen last."""
    sizing, kind, obj = placement.sizing, world.kind(placement), tracked.object
    if sizing is None or obj is None or tracked.missing or tracked.unproven:
        return False
    if not kind.gated(obj):
        return _has_none(world, placement, sizing, tracked)
    if world.local and not world.runs_as_placed(kind, obj):
        return False  # its lift writes the mark
    try:
        size_marks.learn(sizing, kind.mark(obj))
        body = (kind.local_size_patch if world.local else kind.size_patch)(obj, sizing.size)
    except SizeError as error:
        reports.cannot(world, placement, sizing, (Refusal.INVALID, str(error)))
        return False
    if body is None:
        return True
    changed = sizing.landed is not None and kind.mark(obj) != sizing.landed
    if sizing.state is SizeState.SETTING or (changed and sizing.state is not SizeState.UNCONFIRMED):
        _ask(world, placement, tracked, body, now)
    return False


def _has_none(world: World, placement: Placement, sizing: Sizing, tracked: Tracked) -> bool:
    """Give up what was made with a size, and is of a kind that has none; whose mark was taken off gets it again."""
    if sizing.landed is None and placement.state in STARTING:
        giving_up.refuse(world, placement, Refusal.INVALID, NO_SIZES.format(tracked.ref))
    return False


def _ask(world: World, placement: Placement, tracked: Tracked, body: bytes, now: float) -> None:
    sizing = placement.sizing
    if sizing is None or tracked.asked or not world.leadership.acts(now):
        return
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return
    wanted = WantedPatch(purpose=WritePurpose.SIZE, body=body, what=str(sizing.number))
    if world.has_room(placement) and asking.patch(world, placement, tracked, wanted, now):
        sizing.writes()


def _answer(world: World, placement: Placement, sizing: Sizing, now: float) -> None:
    """Say that no more runs or can start than the size grants, once that is so; until then how many are in the way."""
    if sizing.lifts or any(map(_is_in_doubt, placement.objects.values())) or not reports.can_say(world):
        return
    left = surplus.in_the_way(world, placement, now)
    if left is None:
        return
    if any(left.values()):
        reports.drained(world, placement, sizing, left)
        return
    if doubts.hides_surplus(placement):
        return
    sizing.move(SizeMove.ANSWERED)
    reports.finished(world, placement, sizing)
    if placement.state is PlacementState.RUNNING and placement.pod_sets and sizing.hold is None:
        world.ask_room(placement, now, placed=True)
        world.capacity_changed = True


def _is_in_doubt(tracked: Tracked) -> bool:
    return bool(tracked.asked) or tracked.missing or tracked.unproven or tracked.doubt_until is not None
