"""Which objects a placement has, by the manager's word: after a restart labels alone tell, and anybody can write those.

A commit that is said again names the objects. What else carries the placement's labels is left alone, and what carries
them under the right name is taken instead; at `local` it is the user's object, by UID. Decides nothing else: the state
follows from the objects that are kept, as at the start.
"""

from __future__ import annotations

from gatelift_agent.core.beginning import found_state
from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.seeing import orphans
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import Held
from gatelift_agent.core.watched.ownership import Ownership
from gatelift_kinds.kind import Kind
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.messages import Commit, ObjectTemplate


def take_terms(world: World, placement: Placement, commit: Commit, now: float) -> None:
    """Know what a commit says of a placement, its objects apart."""
    placement.kind, placement.namespace, placement.name = commit.kind, commit.namespace, commit.name
    placement.queue, placement.policy = commit.queue, commit.policy
    placement.stop_after_seconds, placement.release = commit.stop_after_seconds, commit.release
    placement.pod_sets = commit.pod_sets or placement.pod_sets
    world.newcomers.opens((commit.namespace, commit.name), commit.key)
    placement.objects_wanted = len(commit.objects)
    placement.confirmed_session = world.standing.session
    placement.committed_at = now


def keep_named(world: World, placement: Placement, commit: Commit) -> bool:
    """Keep of a live placement what the commit names; False if nothing is left of it then, which proves its absence.

    The lists of a start are complete, and what was seen here once stays known under its name: so what was placed and
    carries neither name nor labels any more is as absent as what no inventory lists (R4). At `local`, where a pod may
    be in neither of two watches, who asks looks for it first (`late_lifts`).
    """
    kind = world.kinds.named(commit.kind)
    if kind is None or not commit.objects:
        return True
    named = [_named(world, placement, commit, kind, one) for one in commit.objects]
    kept = {tracked.name: tracked for tracked in named if tracked is not None}
    if all(placement.objects.get(name) is tracked for name, tracked in kept.items()) and len(kept) == len(
        placement.objects
    ):
        return True
    others = [tracked for tracked in placement.objects.values() if kept.get(tracked.name) is not tracked]
    for tracked in others:
        world.untrack(placement, tracked)
        text = "carries our labels and is not what was placed: it is left alone"
        world.note("warning", text, placement, object=str(tracked.ref))
    placement.kind, placement.namespace, placement.name = commit.kind, commit.namespace, commit.name
    placement.objects_wanted = len(commit.objects)
    for tracked in kept.values():
        world.track(placement, tracked)
    if kept:
        found_state.set_state(world, placement)
        orphans.gather(world)
    return bool(kept)


def named(world: World, placement: Placement, commit: Commit, one: ObjectTemplate) -> Tracked | None:
    """Return the object that a commit means, None if there is none."""
    kind = world.kinds.named(commit.kind)
    return _named(world, placement, commit, kind, one) if kind is not None else None


def meta_of(tracked: Tracked) -> ObjectMeta:
    """Return the metadata of an object as it was seen last."""
    return tracked.object.metadata if tracked.object is not None else ObjectMeta()


def _named(
    world: World, placement: Placement, commit: Commit, kind: Kind[object], one: ObjectTemplate
) -> Tracked | None:
    """Return the object that a commit means: the one that is tracked, or one that is there; None if there is none."""
    ref = ObjectRef(kind.resource, ObjectKey(commit.namespace, one.name))
    tracked = placement.objects.get(one.name)
    if tracked is not None and tracked.ref == ref and (not world.local or tracked.uid == one.template):
        return tracked
    held = world.objects.get(ref)
    if held is None or not _is_meant(world, placement, held, one):
        return None
    return Tracked(
        ref=ref,
        pod_set=one.pod_set,
        uid=held.object.metadata.uid,
        user_uid=one.uid,
        object=held.object,
        raw=held.raw,
    )


def _is_meant(world: World, placement: Placement, held: Held, one: ObjectTemplate) -> bool:
    meta = held.object.metadata
    if world.local:
        return meta.uid == one.template
    ours = ownership.owner(world.kinds, held.object, placement.key, world.standing.origin) is Ownership.OURS
    return ours and ownership.stands_for(meta, one.uid)
