"""Whether containers of pods that vanished may run on (P10): of those that were seen to vanish, and of what nobody saw.

Nothing of a doubt is written down: the agent may die before its write, and a pod may be removed while no agent watches.
So what a start finds is doubted by what is there. A Job's controller counts each pod that ended or was deleted before
it lets it go: what is counted and was not seen here vanished unseen. So did one whose finalizer somebody else took off:
nobody counts it, and a later pod stands in its place, or none. It does not count those that it deletes itself, so a Job
that was let go and is found suspended is doubted as a whole. Of several objects one that is not found is doubted by
itself once its manager has named it, and before that, should all be stopped first, with the others. A placement of
which nothing is found is the manager's to doubt: `inventory` says whether it has to. All of that may run on any node,
and ends as each such doubt: when every node was heard of after its grace and a margin (counted from the start), or is
gone.
"""

from __future__ import annotations

from typing import Any

from gatelift_agent.core.placement.placements import ENDING, Placement, Tracked
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.events import KubeletsRead
from gatelift_agent.core.watched import ownership
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import pods
from gatelift_kube.objects.core import Pod, PodSpec
from gatelift_wire.values.limits import GRACE_SECONDS
from gatelift_wire.values.moments import soonest

_UNWATCHED = "unwatched "
"""No UID begins so."""

_AS_MADE = 1
"""`metadata.generation` of what nobody has changed; a lift is a change."""


def may_run(world: World, placement: Placement, name: str, now: float) -> bool:
    """Say whether containers of a vanished pod may run; news of nodes look again, and time where there are none.

    `name`: the pod's UID, or what stands for all that vanished before this process watched.
    """
    over_at = world.nodes.over_at(name)
    if over_at is not None and over_at > now:
        world.wakes.ask(placement.key, over_at)
    return world.nodes.may_run(name, now)


def any_may_run(world: World, placement: Placement, now: float) -> bool:
    """Say whether a pod of a Job that vanished may run; those that have ended are forgotten."""
    for uid in tuple(placement.lost_children):
        if not may_run(world, placement, uid, now):
            del placement.lost_children[uid]
    count(world, placement, now)
    return bool(placement.lost_children or placement.cut_short or placement.unseen_ends)


def begin(world: World, placement: Placement, *specs: PodSpec, cut_short: bool = False) -> None:
    """Doubt what a start has found: pods of it may have vanished while nobody watched."""
    if not world.kind(placement).pods_are_children:
        return  # our finalizer is on each pod, and goes when the manager has its end
    kind = world.kind(placement)
    there = [each.object for each in placement.objects.values() if each.object is not None]
    asked = [spec for each in there for spec in kind.specs(each)] + list(specs)
    graces = (each.termination_grace_period_seconds for each in asked)
    placement.before = world.nodes.before(max((float(each) for each in graces if each is not None), default=0.0))
    stopping = any(not kind.lifted(each) and each.metadata.generation > _AS_MADE for each in there)
    placement.cut_short = cut_short or stopping


def miss(world: World, placement: Placement) -> None:
    """Count the pods of what a start has found that are gone and that nobody counted.

    Once all that there are were found, those among them that somebody took off their Job (`orphans.gather`).
    """
    kind = world.kind(placement)
    if kind.gathers and not world.local and _lacks_any(placement, kind):
        _doubt_others(world, placement)
    there = [each.object for each in placement.objects.values() if each.object is not None]
    let_go = [each for each in there if placement.before and kind.lifted(each)]
    placement.uncounted = sum(kind.uncounted(each, world.objects.children(each.metadata.uid)) for each in let_go)
    placement.unseen_ends = placement.uncounted


def _lacks_any(placement: Placement, kind: Kind[Any]) -> bool:
    """Say whether fewer of home's objects were found than were placed; one that failed and was replaced is none."""
    mine = [each for each in placement.objects.values() if not each.made_here]
    there = [each for each in mine if each.object is not None or each.succeeded]
    seen = [each.object for each in there if each.object is not None]
    failed = sum((end := kind.outcome(each)) is not None and not end.succeeded for each in seen)
    replaced = min(failed, sum(each.joined for each in there))
    wanted = (ownership.objects_wanted(each.metadata) for each in seen)
    return len(there) - replaced < max(wanted, default=placement.objects_wanted)


def _doubt_others(world: World, placement: Placement) -> None:
    """Doubt objects that a start has not found: none of them is known, so nothing of the placement is over (HD-660)."""
    placement.before, placement.cut_short = world.nodes.before(longest_grace(placement)), True


def longest_grace(placement: Placement) -> float:
    """Return the longest that any of several objects that are there was given for its end."""
    there = [each.object for each in placement.objects.values() if isinstance(each.object, Pod)]
    return max((float(each.spec.termination_grace_period_seconds or 0) for each in there), default=0.0)


def are_named(world: World, placement: Placement) -> None:
    """Take that a manager has named which of several objects are there: who is not found is doubted by itself.

    But at home, where of some slots nobody knows who had them (HD-520): these are doubted until nodes were heard of.
    """
    placement.before, placement.cut_short = "", False
    if world.local and placement.unsure and world.unheard and placement.came_and_went.unknown:
        _doubt_others(world, placement)


def count(world: World, placement: Placement, now: float) -> None:
    """Count the pods that vanished before anybody here watched, as long as they may run."""
    if not placement.before:
        return
    if not may_run(world, placement, placement.before, now):
        placement.before, placement.cut_short = "", False
        placement.uncounted = placement.unseen_ends = 0
        return
    counted = counted_here(world, placement)
    if counted is not None:
        known = ended_known(world, placement) + _noted_here(world, placement)
        placement.unseen_ends = placement.uncounted + max(0, counted - known)


def hides_surplus(placement: Placement) -> bool:
    """Say whether pods above a size of before may run that nobody here has seen.

    Their controller deletes them and counts none, and those that are left are as many as they are to be: nothing tells
    that one of them was removed by force before this process watched (HD-625).
    """
    return bool(placement.before) and placement.sizing is not None and placement.sizing.resized_unseen


def counted_here(world: World, placement: Placement) -> int | None:
    """Return how many pods the Jobs of a placement have counted as ended; None where one is gone or is suspended.

    What a suspended Job has deleted is not counted.
    """
    kind = world.kind(placement)
    found = [tracked.object for tracked in placement.objects.values()]
    if any(obj is None or not kind.lifted(obj) for obj in found):
        return None
    return sum(map(kind.pods_ended, found))


def ended_known(world: World, placement: Placement) -> int:
    """Return how many pods of a placement's Jobs were seen to end, or are doubted by themselves.

    None that was taken off them: its Job has not counted it.
    """
    jobs = [tracked.uid for tracked in placement.objects.values()]
    return placement.children_gone + sum(
        pods.over(pod) and any(ownership.controlled_by(pod.metadata, uid) for uid in jobs)
        for pod in world.children(placement)
    )


def unwatched(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Doubt pods of a Job that may have come and gone while nobody was let watch it: on any node, from now on."""
    job = tracked.last_object if tracked.object is None else tracked.object
    specs = world.kind(placement).specs(job) if job is not None else ()
    graces = [each.termination_grace_period_seconds for each in specs]
    longest = max((GRACE_SECONDS if each is None else float(each) for each in graces), default=GRACE_SECONDS)
    name = f"{_UNWATCHED}{tracked.uid}"
    world.nodes.vanished(name, "", longest, now)
    if job is not None and world.nodes.may_run(name, now):
        placement.lost_children[name] = job


def _noted_here(world: World, placement: Placement) -> int:
    """Return how many pods are there that a Job has noted as ended, whose own end comes later by another watch."""
    kind = world.kind(placement)
    there = [tracked.object for tracked in placement.objects.values() if tracked.object is not None]
    noted = {uid for each in there for uid in kind.noted(each)}
    return sum(pod.metadata.uid in noted and not pods.over(pod) for pod in world.children(placement)) if noted else 0


def unseen(world: World, pod: Pod, now: float) -> None:
    """Doubt a pod that may be of a placement, could not be taken while it was there, and is gone."""
    if pods.holds_resources(pod):
        asked = pod.metadata.deletion_grace_period_seconds or pod.spec.termination_grace_period_seconds
        grace = GRACE_SECONDS if asked is None else float(asked)
        world.nodes.vanished(pod.metadata.uid, pod.spec.node_name, grace, now)
        world.untaken.doubted.add(pod.metadata.uid)
        world.unheard = True


def look_again(world: World, now: float) -> None:
    """Take that a node was heard of, or is gone: look at what waits for that."""
    settle(world, now)
    for placement in world.placements.values():
        vanished = placement.lost_children or any(each.vanished or each.doubt for each in placement.to_look_at)
        hidden = placement.unseen_ends or hides_surplus(placement)
        unseen = placement.before and (hidden or placement.state in ENDING)
        if vanished or unseen:
            world.look(placement.key)


def renewed(world: World, event: KubeletsRead, now: float) -> None:
    """Take what kubelets have renewed: it may end what waits for nodes to be heard of."""
    world.nodes.renewed(event.renewals, event.asked_at, now)
    look_again(world, now)


def settle(world: World, now: float) -> None:
    """End the doubt about placements of which nothing was found, once it can be; the manager is told."""
    if not world.ready or not world.unheard or world.unlisted or world.unread:
        return
    world.untaken.doubted = {uid for uid in world.untaken.doubted if world.nodes.may_run(uid, now)}
    if not world.untaken.doubted and not world.nodes.may_run(world.nodes.before(GRACE_SECONDS), now):
        world.unheard, world.capacity_changed = False, True
        for placement in world.placements.values():
            if placement.unsure:
                world.look(placement.key)


def look_into(world: World, namespaces: tuple[str, ...]) -> None:
    """Look into the namespaces in which the manager's record has placements, whatever was kept of them here (HD-141).

    One that is not there has nothing; before all others are listed, what is not found says nothing.
    """
    if world.local:
        return
    world.unlisted = {name for name in (*namespaces, *world.unlisted) if name in world.namespaces} - world.listed
    for name in sorted(world.unlisted):
        if name in namespaces or name not in world.shut:
            world.keeper.cover(name)
        world.namespace_left = world.unheard = True


def listed(world: World, now: float) -> None:
    """Take that a namespace is listed, or is gone: the last one may end the doubt."""
    if world.unlisted:
        world.unlisted = (world.unlisted & world.namespaces.keys()) - world.listed
        settle(world, now)


def settles_at(world: World) -> float | None:
    """Return when that doubt ends by time alone; None: news of a node ends it, or it is over."""
    if not world.unheard or not world.ready or world.unlisted or world.unread:
        return None
    ends = [world.nodes.over_at(name) for name in (world.nodes.before(GRACE_SECONDS), *world.untaken.doubted)]
    return soonest(*ends)
