"""Stops of what may be here without being known: where a namespace is not listed yet, or something could not be read.

*Stopped* says that nothing runs (R7), so they are answered once it is known. Meanwhile what says by its labels that it
is meant is asked to end all the same, where it could be seen and not taken; that it has ended, nobody says.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatelift_agent.core.placement import graces
from gatelift_agent.core.state import containment, unknowns
from gatelift_agent.core.state.late import LateStop
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import Asked, WritePurpose
from gatelift_kube.deciding.writes import Delete, KubeObject
from gatelift_kube.values.resources import POD, ObjectRef
from gatelift_wire.values.messages import Stop

LATE_STOPS_MAX = 10_000
"""Stops that wait; of all others the next inventory tells."""

AGAIN_SECONDS = 10.0
"""Between two times that an object is asked to end: it may not have been deleted, or have come since."""


def keep(world: World, stop: Stop) -> None:
    """Let a stop wait until what it names is known, or is known not to be here."""
    if stop.key in world.late.stops or len(world.late.stops) < LATE_STOPS_MAX:
        world.late.stops[stop.key] = LateStop(session=world.standing.session, stop=stop)


def due(world: World, now: float) -> Iterator[Stop]:
    """Yield, and keep no longer, the stops of this session that can be answered now; end what the others name."""
    if not world.late.stops or world.unlisted:
        return
    for key, late in tuple(world.late.stops.items()):
        is_old = late.session != world.standing.session
        waits = key not in world.placements and unknowns.may_be_of(world, key, all_of_it=True)
        if is_old or not waits:
            del world.late.stops[key]
        if waits and not is_old:
            _end_unread(world, late, now)
        elif not is_old:
            yield late.stop


def _end_unread(world: World, late: LateStop, now: float) -> None:
    """Ask for the deletion of what could not be read and says by its labels that it is of what is to be stopped.

    Not of the user's own objects at `local`, where a deletion is more than a stop.
    """
    if world.local or not world.leadership.acts(now) or late.again_at > now:
        return
    late.again_at = now + AGAIN_SECONDS
    for ref, obj in unknowns.objects(world):
        try:
            _end(world, ref, obj, late.stop, now)
        except Exception as error:  # noqa: BLE001 (containment: one object keeps no other from being stopped)
            containment.object_failed(world, ref, error, now)


def _end(world: World, ref: ObjectRef, obj: KubeObject, stop: Stop, now: float) -> None:
    meta = obj.metadata
    if unknowns.key_of(world, obj) == stop.key and meta.deletion_timestamp is None and world.can_ask:
        write_id = world.writes.ask(Asked(purpose=WritePurpose.STOP, key=None, name=ref.key.name, at=now))
        grace = graces.least(obj, stop.grace_seconds)
        # Nothing else ends the pods of a Job that keeps our finalizer.
        how = "Background" if ref.resource == POD else "Foreground"
        deletion = Delete(write_id=write_id, ref=ref, uid=meta.uid, grace_seconds=grace, propagation=how)
        world.commands.append(deletion)
