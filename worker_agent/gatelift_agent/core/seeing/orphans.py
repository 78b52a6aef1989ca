"""Pods of a Job that it does not control: taken off it by somebody, or left by a deletion with the policy Orphan.

They are its placement's all the same: by their UID once they were seen under the Job, and by the mark that nobody can
take off them after a restart (`gatelift_kinds.shared.placed_mark`). Nobody granted what runs beside the pods that the
Job's controller makes in their place: so they hold the placement until they have ended, and are ended by us.
"""

from __future__ import annotations

from collections.abc import Sequence

from gatelift_agent.core.placement import graces
from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.placement.pods_of_jobs import Hidden
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.world import World
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.objects import ref_of
from gatelift_kinds.shared import pods
from gatelift_kinds.shared.placed_mark import Mark
from gatelift_kinds.shared.values import Maker
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD
from gatelift_wire.values.keys import LABEL_ORIGIN

COLLECT_SECONDS = 10.0
"""How long others have before we delete such a pod: the collector, where its Job is gone, and the Job's controller,
which takes back a pod that has lost its owner alone."""

GRACE_SECONDS = 30.0
"""The most that a pod has for its end which was taken off a Job that has made another one in its place: Kubernetes' own
default. Nobody is charged for it meanwhile, and how long its spec gives it is its user's choice."""

TAKEN_OFF = "PodTakenOffJob"
"""Reason of the event on a Job."""


def all_pods(world: World) -> tuple[Pod, ...]:
    """Return all pods that are known."""
    own = (held.object for held in world.objects.own() if isinstance(held.object, Pod))
    return (*own, *world.objects.all_children())


def mark_of(world: World, pod: Pod) -> Mark | None:
    """Return the first mark of the origin that is served, None where a pod has none."""
    return next((mark for mark in ownership.marks(world.kinds, pod) if mark.origin == world.standing.origin), None)


def gather(world: World) -> None:
    """Take the pods that were made for what is tracked, whatever they were taken for until that was known."""
    for pod in all_pods(world):
        gather_one(world, pod)


def gather_one(world: World, pod: Pod) -> None:
    """Take a pod that was made for what is tracked, if it was."""
    maker = world.job_marked(pod)
    if maker is not None:
        take(world, pod, maker)


def take(world: World, pod: Pod, maker: Maker) -> None:
    """Know a pod as a child of this Job, and see that its labels are put back where no watch shows it."""
    world.objects.adopt(pod, maker)
    for placement in world.placements_of(maker, pod.metadata.namespace):
        if LABEL_ORIGIN not in pod.metadata.labels:
            placement.hidden[pod.metadata.uid] = Hidden(pod=pod)
        world.look(placement.key)


def taken_off_run(world: World, placement: Placement, now: float) -> bool:
    """Say whether pods run that were taken off a Job that is there, and delete those that it does not take back."""
    if not _is_there(placement):
        return False
    taken = taken_off(world, placement)
    if not taken and not placement.child_retry_at:  # as nearly always
        return False
    for pod in _end(world, placement, taken, now, most=GRACE_SECONDS):
        text = (
            f"pod {pod.metadata.name} was taken off its Job by somebody: it is deleted, since no quota was given for it"
        )
        world.note("warning", text, placement)
        for job in placement.objects.values():
            world.commands.append(EmitEvent(ref=job.ref, uid=job.uid, warning=True, reason=TAKEN_OFF, message=text))
    return bool(taken)


def taken_off(world: World, placement: Placement) -> list[Pod]:
    """Return the pods that may run and that none of the placement's Jobs controls; nothing while a Job is not there."""
    if not _is_there(placement):
        return []
    children = world.children(placement)
    if not children:
        return []
    jobs = {tracked.uid for tracked in placement.objects.values()}
    return [
        pod
        for pod in children
        if pods.holds_resources(pod) and not any(ownership.controlled_by(pod.metadata, uid) for uid in jobs)
    ]


def left_run(world: World, placement: Placement, now: float) -> bool:
    """Say whether pods of a Job that is gone still run, and delete those that nobody does.

    While the Job is there its kind answers for them. Once it is gone they are the garbage collector's, but for a
    deletion with the policy Orphan: so after a while we end them.
    """
    if _is_there(placement):
        return False
    left = [pod for pod in world.children(placement) if pods.holds_resources(pod)]
    _end(world, placement, left, now)
    return bool(left)


def _is_there(placement: Placement) -> bool:
    return any(tracked.object is not None for tracked in placement.objects.values())


def _end(
    world: World, placement: Placement, unwanted: Sequence[Pod], now: float, *, most: float | None = None
) -> list[Pod]:
    """Ask for the deletion of pods whose time has come, again and again; return those asked for now.

    `most`: seconds of grace that they have at most. Who is on the way with more, by whomever, is asked for as well.
    """
    known = placement.child_retry_at
    retry_at = {pod.metadata.uid: known.get(pod.metadata.uid, now + COLLECT_SECONDS) for pod in unwanted}
    placement.child_retry_at = retry_at
    asked = []
    for pod in unwanted:
        uid = pod.metadata.uid
        if pod.metadata.deletion_timestamp is not None and not _ends_later(pod, most):
            continue
        if retry_at[uid] > now:
            world.wakes.ask(placement.key, retry_at[uid])
        elif world.leadership.acts(now) and world.has_room(placement):
            retry_at[uid] = now + COLLECT_SECONDS
            world.wakes.ask(placement.key, now + COLLECT_SECONDS)
            own = Tracked(ref=ref_of(POD, pod.metadata), object=pod, grace_seconds=most)
            asking.child_delete(world, placement, pod, now, grace_seconds=graces.grace_seconds(placement, own))
            asked.append(pod)
    return asked


def _ends_later(pod: Pod, most: float | None) -> bool:
    """Say whether a pod that is being deleted was given more time than it may have."""
    given = pod.metadata.deletion_grace_period_seconds
    return most is not None and given is not None and given > most
