"""Lifts that a leader before this one asked for and that may still land: at `local` a no takes a write first (R7).

The user's own object carries no label of ours before it is let go, so after a change of leader nobody here knows which
object an attempt is about, and its lift is conditional on a version that nobody has changed since. The manager names
the object in the commit that it says again; whatever is then said of the attempt waits for a write to that object,
which makes that lift fail.

That write names the version in which the object was held back. Where the lift has landed first, the object runs as its
record says, admitted and charged, and nobody has asked for its end: it is taken up (`retaking`), not stopped.
"""

from __future__ import annotations

from gatelift_agent.core import naming
from gatelift_agent.core.placements import Ending, EndingKind, Placement, State, Tracked
from gatelift_agent.core.world import World
from gatelift_kinds import registry
from gatelift_kube.resources import ObjectKey, ObjectRef
from gatelift_wire.messages import Commit
from gatelift_wire.refusals import Refusal


def defeat_first(world: World, commit: Commit, refusal: Refusal, text: str, now: float) -> bool:
    """Refuse a commit only after a write to each object that it names; False where there is none to write to.

    An object that is not here, is another one by its UID, or runs since cannot be let go by a write that was asked for
    before: that names its UID and the version in which it was held back.
    """
    kind = registry.kind_named(commit.kind)
    if not world.local or kind is None:
        return False
    placement = Placement(
        key=commit.key,
        kind=commit.kind,
        namespace=commit.namespace,
        name=commit.name,
        state=State.DRAINING,
        ending=Ending(kind=EndingKind.REFUSED, reason=refusal.value, message=text, refusal=refusal),
    )
    naming.take_terms(world, placement, commit, now)
    for one in commit.objects:
        held = world.objects.get(ObjectRef(kind.resource, ObjectKey(commit.namespace, one.name)))
        if held is not None and held.object.metadata.uid == one.template and not kind.lifted(held.object):
            placement.objects[one.name] = Tracked(
                ref=held.ref, pod_set=one.pod_set, uid=one.template, object=held.object, raw=held.raw, lift_asked=True
            )
    if not placement.objects:
        return False
    world.add(placement)
    world.note("info", "refused once its object was written to: an earlier leader's lift may be under way", placement)
    return True
