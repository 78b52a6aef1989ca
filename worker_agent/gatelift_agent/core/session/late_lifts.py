"""Lifts that a leader before this one asked for and that may still land: at `local` a no takes a write first (R7).

The user's own object carries no label of ours before it is let go, so after a change of leader nobody here knows which
object an attempt is about, and its lift is conditional on a version that nobody has changed since. The manager names
the object in the commit that it says again; whatever is then said of the attempt waits for a write to that object,
which makes that lift fail.

The agent of `local` has two watches of pods, by two labels: a pod whose labels change goes from one to the other, and
may be gone by the word of both. So what a commit names and nobody here knows is asked for, by its UID, and refused on
the API server's word alone; what is found runs, or waits, and is dealt with as if it had been known.

That write names the version in which the object was held back. Where the lift has landed first, the object runs as its
record says, admitted and charged, and nobody has asked for its end: it is taken up (`retaking`), not stopped.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import EndingKind, Placement, PlacementEnding, PlacementState, Tracked
from gatelift_agent.core.session import naming
from gatelift_agent.core.state.world import World
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Commit, Refused


def defeat_first(world: World, commit: Commit, no: Refused, now: float, *, unknown: bool = True) -> bool:
    """Refuse a commit only after a write to each object that it names; False where there is none to write to.

    An object that is another one by its UID, or runs since, cannot be let go by a write that was asked for before:
    that names its UID and the version in which it was held back. What is not known here is asked for by its UID first
    (`unknown`): a pod that goes from one watch to the other is gone by the word of both.
    """
    kind = world.kinds.named(commit.kind)
    if not world.local or kind is None:
        return False
    placement = Placement(
        key=commit.key,
        kind=commit.kind,
        namespace=commit.namespace,
        name=commit.name,
        state=PlacementState.DRAINING,
        ending=PlacementEnding(kind=EndingKind.REFUSED, reason=no.refusal.value, message=no.text, refusal=no.refusal),
    )
    naming.take_terms(world, placement, commit, now)
    for one in commit.objects:
        ref = ObjectRef(kind.resource, ObjectKey(commit.namespace, one.name))
        tracked = Tracked(ref=ref, pod_set=one.pod_set, uid=one.template, lift_asked=True)
        held = world.objects.get(ref)
        if held is None or held.object.metadata.uid != one.template:
            tracked.missing = unknown and bool(one.template)
        elif not kind.lifted(held.object):
            tracked.object, tracked.raw = held.object, held.raw
        if tracked.missing or tracked.object is not None:
            placement.objects[one.name] = tracked
    if not placement.objects:
        return False
    world.add(placement)
    world.note("info", "refused once its object was written to, or is known to be gone: it may be let go", placement)
    return True
