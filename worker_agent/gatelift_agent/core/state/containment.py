"""Exceptions while one thing is handled: it is left as it is, told and tried again, and all others go on. Pure.

Neighbours: `machine`, `link` and `rebuilding` catch at the boundary of what one object, placement or message is. What
fails is never concluded to have ended: a placement that rests is neither stopped nor released, and is listed.
"""

from __future__ import annotations

from collections.abc import Callable

from gatelift_agent.core.admission.backend import Heard
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.state import unknowns
from gatelift_agent.core.state.world import World
from gatelift_kube.deciding.contained import Failure
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.values.resources import ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Bid, BidKind, Capacity, CapacityEntry, Commit, Message, Offer, Refused
from gatelift_wire.values.refusals import Refusal

INTERNAL_ERROR = "InternalError"
"""Reason of the event on an object that could not be handled."""
NOT_TAKEN = "what was said could not be taken; the agent greets anew"
"""Text of a close: the agent's log has the exception."""


def placement_failed(world: World, placement: Placement, error: Exception, now: float) -> None:
    """Take that a look at a placement raised an exception; it is looked at again after a pause."""
    failure = world.contained.failed(placement.key, error, now)
    world.wakes.ask(placement.key, failure.again_at)
    _say(world, "placement", failure, now, placement)
    text = f"Gatelift could not handle this object, leaves it as it is and tries again: {failure.text}"
    for tracked in placement.objects.values():
        if tracked.uid:
            told = EmitEvent(ref=tracked.ref, uid=tracked.uid, warning=True, reason=INTERNAL_ERROR, message=text)
            world.commands.append(told)
            break  # one of them is enough: a placement has up to a thousand


def hear(world: World, hears: Callable[[], Heard], key: PlacementKey | None, now: float) -> None:
    """Let the backend of the remote admission take an event; an exception belongs to the placement it is about."""
    try:
        heard = hears()
    except Exception as error:  # noqa: BLE001 (containment: a backend ends no process)
        _backend_failed(world, key, error, now)
        return
    world.capacity_changed |= heard.capacity
    for each in heard.keys:
        world.look(each)


def capacity(world: World, said: tuple[int, Capacity] | None, now: float) -> tuple[CapacityEntry, ...]:
    """Return the backend's capacity; where it raises, what was said last."""
    try:
        return world.admission.entries()
    except Exception as error:  # noqa: BLE001 (containment: a backend ends no process)
        _backend_failed(world, None, error, now)
        return said[1].entries if said is not None else ()


def _backend_failed(world: World, key: PlacementKey | None, error: Exception, now: float) -> None:
    placement = world.placements.get(key) if key is not None else None
    if placement is not None:
        placement_failed(world, placement, error, now)
    else:
        _say(world, "remote admission", world.contained.failed("remote admission", error, now), now)


def release_again(world: World, now: float) -> None:
    """Tell of each release that raised, and try it again when it has rested: room that nobody gives back is lost."""
    for key, error in tuple(world.admission.unreleased.items()):
        what = f"room of {key}"
        if error is None and not world.contained.rests_until(what, now) and world.admission.release(key):
            world.contained.well(what)
            continue
        failed = world.admission.unreleased[key]
        if failed is not None:
            world.admission.unreleased[key] = None
            _say(world, what, world.contained.failed(what, failed, now), now)
        world.wakes.ask(key, world.contained.rests_until(what, now))


def object_failed(world: World, ref: ObjectRef, error: Exception, now: float) -> float:
    """Take that an object that came in raised an exception, and return when to try again: what was known stands."""
    failure = world.contained.failed(ref, error, now)
    _say(world, str(ref), failure, now)
    return failure.again_at


def not_rebuilt(world: World, what: ObjectRef | PlacementKey, error: Exception, now: float) -> None:
    """Take that an object or a record raised an exception as placements were rebuilt: no object stops a rebuild."""
    failure = world.contained.failed(rebuilding(what), error, now)
    _say(world, rebuilding(what), failure, now)
    not_read(world, what, failure.again_at)


def rebuilding(what: ObjectRef | PlacementKey) -> str:
    """Return by which name it rests that something could not be rebuilt."""
    return f"rebuilding: {what}"


def not_read(world: World, what: ObjectRef | PlacementKey, again_at: float) -> None:
    """Take that something may be of a placement, and nobody here can say of which.

    It may run: until it was read, or is gone, what is not listed is not absent.
    """
    world.unread[what] = again_at
    world.unheard = world.capacity_changed = True


def message_failed(world: World, message: Message, error: Exception, now: float) -> bool:
    """Take that a message of the manager raised an exception; True when it is answered with a refusal.

    What was not accepted is refused, so that another cluster is asked; anything else ends the session, since the next
    one begins with an inventory, and all is said again.
    """
    failure = world.contained.failed(type(message).__name__, error, now)
    _say(world, type(message).__name__, failure, now)
    text = f"it could not be looked at: {failure.text}"[:500]
    match message:
        case Offer(key=key, size=size):
            world.say(Bid(key=key, kind=BidKind.REFUSED, refusal=Refusal.INVALID, text=text, size=size))
        case Commit(key=key) if not world.has_accepted(key):
            placement = world.placements.get(key)
            if placement is None and unknowns.may_be_of(world, key, all_of_it=True):
                return False  # a refusal would say that nothing of it runs
            if placement is not None:
                world.remove(placement)
            world.epochs.use(key)
            world.say(Refused(key=key, refusal=Refusal.INVALID, text=text))
        case _:
            return False
    return True


def session_failed(world: World, error: Exception, now: float) -> None:
    """Take that what a stream brought raised an exception: its session ends, and the next one begins anew."""
    _say(world, "session", world.contained.failed("session", error, now), now)


def _say(world: World, what: str, failure: Failure, now: float, placement: Placement | None = None) -> None:
    text = f"{what}: {failure.text}; it is left as it is and tried again in {failure.again_at - now:g} s"
    world.note("warning", text, placement, traceback=failure.where)


def rests(world: World, key: PlacementKey, now: float) -> bool:
    """Say whether a placement rests after an exception; it is looked at again when it has rested."""
    until = world.contained.rests_until(key, now)
    if until:
        world.wakes.ask(key, until)
    return bool(until)
