"""Stops a placement: writes that end each object, then waits until nothing of it runs or can start (rules R7, P6, P10).

A negative statement needs three things: every object that was never let go was changed by a successful write of ours,
every object that ran has stopped by the word of its kind, and no write of ours is in flight or in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gatelift_agent.core.leaving import ending_rest, leftovers, retaking
from gatelift_agent.core.placement import calm, graces
from gatelift_agent.core.placement.placements import EndingKind, Move, Placement, PlacementState, Tracked
from gatelift_agent.core.reporting import all_leaving
from gatelift_agent.core.seeing import doubts, hidden, let_go, orphans
from gatelift_agent.core.state import asking, condemned, unknowns
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedDelete, WantedPatch, WritePurpose
from gatelift_agent.core.watched import ownership
from gatelift_kinds.shared import own_marks, pods
from gatelift_kinds.shared.gathered import OVER_AT_HOME
from gatelift_kinds.shared.json_parts import Json
from gatelift_kinds.shared.patches import stop_mark, stop_marked
from gatelift_kinds.shared.values import DeleteStep, PatchStep, Step
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.keys import FINALIZER_REPORT, LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID

CHECK_SECONDS = 120.0
"""How long an object that should stop may be silent before it is asked for: four default graceful deletions."""

PODS_AGAIN_SECONDS = 2.0
"""Pods of a Job that the watch does not show yet are listed again after this: a usual stop takes seconds."""

UNREAD_SECONDS = 5.0
"""Pause after a list that failed; the client's own retries are behind it."""

LABEL_FOUND = "gatelift.dev/found"
"""Set by a probe on an object whose create had no known outcome, or that one of two watches calls gone.

A label, as `LABEL_STOPPING` is."""


def drain(world: World, placement: Placement, now: float) -> None:
    """Ask for the next writes that stop it; when it is still, move on."""
    if retaking.runs_all_the_same(world, placement):
        retaking.take_up(world, placement, now)
        return
    hidden.ask(world, placement, now)
    let_go.settle(world, placement)
    still = not placement.hidden
    if placement.sizing is not None and placement.sizing.lifts:
        still = False  # the lift of a gate may land
    orphans.taken_off_run(world, placement, now)  # its kind waits for them, as for all pods of a Job
    ended_there = condemned.nothing_runs(world, placement)
    if ended_there:
        placement.stirs()
    objects = placement.to_look_at
    done = [each for each in objects if (not each.asked if ended_there else _stop(world, placement, each, now))]
    still = still and len(done) == len(objects) and not calm.goes_on(placement.calm)
    doubted = doubts.any_may_run(world, placement, now)
    left = orphans.left_run(world, placement, now) if still else True
    unknown = unknowns.may_be_of(world, placement.key)
    if unknown:
        world.wakes.ask(placement.key, now + UNREAD_SECONDS)
    if not (left or doubted or unknown) and _no_pod_unseen(world, placement, now):
        placement.ended_at = now
        leftovers.name_in_end(world, placement)
        placement.move(Move.STILL)
        return
    leftovers.tell_wait(world, placement, still=still)
    if not (placement.hidden or doubted or unknown):
        all_leaving.look(world, placement, now)
    if not ended_there:
        ending_rest.settle(world, placement, done)


def stop_object(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask for the end of one object of a placement that is set aside: as usual, and by a deletion where that raises.

    Not of the user's own objects at `local`: a Job that stops is kept there.
    """
    try:
        _stop(world, placement, tracked, now)
    except Exception:
        if world.local:
            raise
        delete(world, placement, tracked, now)


def delete(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Delete one object of a placement that goes on: the user deleted its counterpart."""
    if tracked.asked or tracked.object is None or tracked.object.metadata.deletion_timestamp is not None:
        return
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
    elif world.has_room(placement):
        _carry_out(world, placement, tracked, DeleteStep(), now)


def has_stopped(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Ask for the next write that ends an object of a placement that goes on; True once nothing of it can run."""
    return _stop(world, placement, tracked, now)


def _is_over_at_home(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether the manager has seen that what was let go here is over: the watch shows it soon, nobody ends it."""
    said = placement.ending is not None and placement.ending.reason == OVER_AT_HOME
    return world.local and said and world.kind(placement).let_go_here(tracked.object)


def _tells_end(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Ask, once, for the write that says on the user's own object why it is deleted next; False when none is due.

    Not where a lease ran out: that has a deadline. A worker's pod is not told: an agent may not write its status.
    """
    ending = placement.ending
    if not world.local or tracked.end_told or ending is None or placement.state is not PlacementState.DRAINING:
        return False
    tracked.end_told = True
    reason = ending.reason if ending.kind is EndingKind.STOPPED else ""
    step = world.kind(placement).local_told_step(tracked.object, tracked.raw, reason, ending.message)
    if step is None:
        return False
    wanted = WantedPatch(purpose=WritePurpose.SAY_END, body=step.body, kind=step.kind, subresource=step.subresource)
    return asking.patch(world, placement, tracked, wanted, now)


def _marks_end(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Ask, once, for the write that says on a member that this agent ends it by itself; False when none is due.

    By that the agent after this one knows that it did not fail. Of what home stops home knows; a lease that ran out has
    a deadline.
    """
    ending = placement.ending
    if world.local or tracked.end_told or ending is None or placement.state is not PlacementState.DRAINING:
        return False
    kind, obj = world.kind(placement), tracked.object
    if ending.kind is EndingKind.STOPPED or not kind.gathers or obj is None or not kind.lifted(obj):
        return False
    is_marked, tracked.end_told = stop_marked(obj.metadata, placement.key), True
    if is_marked:
        return False
    body = msgspec.json.encode({"metadata": {"uid": tracked.uid, "labels": stop_mark(placement.key)}})
    wanted = WantedPatch(purpose=WritePurpose.SAY_END, body=body, kind=PatchKind.MERGE)
    return asking.patch(world, placement, tracked, wanted, now)


def _no_pod_unseen(world: World, placement: Placement, now: float) -> bool:
    """Say whether a list that began after the stop was complete shows no pod of a Job that may run.

    The watch of pods may be behind that of Jobs by seconds: a pod that was made a moment ago is then not known here.
    """
    exists = any(tracked.uid for tracked in placement.objects.values())
    if placement.pods_clear or not exists or not world.kind(placement).pods_are_children:
        return True
    if _counted_all(world, placement):
        return True
    if placement.pods_asked:
        return False
    if placement.pods_read_at > now:
        world.wakes.ask(placement.key, placement.pods_read_at)
    elif world.has_room(placement):
        asking.pods(world, placement, now)
    return False


def _counted_all(world: World, placement: Placement) -> bool:
    """Say whether each pod that its Job has counted is known here, and the Job is over: then it has made no others.

    A Job's controller says the end only when it knows of all its pods, and counts each before that is let go.
    """
    kind, counted = world.kind(placement), doubts.counted_here(world, placement)
    if counted is None:
        return False
    over = all(kind.outcome(tracked.object) is not None for tracked in placement.objects.values())
    return over and counted <= doubts.ended_known(world, placement)


def pods_read(world: World, placement: Placement, found: Iterable[Pod] | None, now: float) -> None:
    """Take the answer to the list of a Job's pods; None: it could not be read."""
    pods_unread(placement, now)
    jobs = {tracked.uid for tracked in placement.objects.values()}
    placement.pods_clear = found is not None and not any(
        pods.holds_resources(pod) for pod in found if _made_by(world, pod, jobs)
    )
    if found is not None:
        placement.pods_read_at = now + PODS_AGAIN_SECONDS
    elif not world.local:
        asking.namespace(world, placement, now)
    world.look(placement.key)


def pods_unread(placement: Placement, now: float) -> None:
    """Take that it is not known which pods of a Job there are."""
    placement.pods_asked = placement.pods_clear = False
    placement.pods_read_at = now + UNREAD_SECONDS


def _made_by(world: World, pod: Pod, jobs: set[str]) -> bool:
    maker = world.job_marked(pod) or world.kinds.maker_of(pod.metadata)
    return maker is not None and maker.uid in jobs


def find_out(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Learn whether the object is there: after a create of unknown outcome, or when its labels may have been taken.

    The probe changes an object only if it is ours: by labels when its UID is not known, else by UID. Of what was never
    seen here (`local`: a commit names it) it changes nothing, and is answered with what is there.
    """
    if tracked.doubt_until is not None and tracked.doubt_until > now:
        world.wakes.ask(placement.key, tracked.doubt_until)
        return
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
        return
    if not tracked.asked and world.leadership.acts(now) and world.has_room(placement):
        _probe(world, placement, tracked, now)


def _probe(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    labels = world.owner_labels(placement)
    if tracked.uid:
        known = tracked.last_object if tracked.object is None else tracked.object
        meta: Json = {"uid": tracked.uid}
        if known is not None or not world.local:  # what waits at home and is not known carries no labels of ours
            meta["labels"] = labels
        said = known.metadata.resource_version if known is not None else world.objects.last_version(tracked.uid)
        if world.local and said:  # two watches show it by turns: its answer has to be younger than theirs
            meta["labels"] = {**meta.get("labels", {}), LABEL_FOUND: said}
        body = msgspec.json.encode({"metadata": meta})
        wanted = WantedPatch(purpose=WritePurpose.PROBE, body=body, kind=PatchKind.MERGE)
        asking.patch(world, placement, tracked, wanted, now)
        return
    tests: list[Json] = [
        {"op": "test", "path": f"/metadata/labels/{name.replace('/', '~1')}", "value": labels[name]}
        for name in (LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH)
    ]
    if tracked.user_uid:  # else another one of the user's under that name would be found for ever, and never taken
        path = f"/metadata/annotations/{ownership.ANNOTATION_USER_UID.replace('/', '~1')}"
        tests.append({"op": "test", "path": path, "value": tracked.user_uid})
    found = {"op": "add", "path": f"/metadata/labels/{LABEL_FOUND.replace('/', '~1')}", "value": "true"}
    wanted = WantedPatch(purpose=WritePurpose.PROBE, body=msgspec.json.encode([*tests, found]))
    asking.patch(world, placement, tracked, wanted, now)


def _stop(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    """Ask for the next write that stops one object; True when nothing of it runs or can start."""
    if tracked.asked:
        return False
    if tracked.missing or tracked.unproven or (tracked.object is None and tracked.doubt_until is not None):
        find_out(world, placement, tracked, now)
        return False
    if tracked.object is None:
        return not doubts.may_run(world, placement, tracked.doubt or tracked.uid, now)
    kind, obj = world.kind(placement), tracked.object
    if world.local and kind.lifted(obj) and not ownership.may_be_for(kind, obj, placement.key):
        return True  # let go for another Workload since: nothing of this one is left, and a late lift of it fails
    if world.local and not kind.lifted(obj) and not own_marks.bears_a_mark(tracked.raw):
        # Its user took all marks of ours off (HD-240): no write of ours lands on it, this one as little as a late lift,
        # which names a version before that. Its pods, should any have been made around us, are waited for.
        return not any(pods.holds_resources(pod) for pod in world.children(placement))
    over = kind.outcome(obj) is not None or _is_over_at_home(world, placement, tracked)
    step = None if over else _next_step(world, placement, tracked)
    if isinstance(step, PatchStep) and step.restores and tracked.restore_tried:
        step = None
    if step is None:
        if kind.stopped(obj, world.children(placement), placement.key):
            return True
        if world.local and ownership.hides_at_home(obj) and len(world.placements_at(tracked.ref)) == 1:
            find_out(world, placement, tracked, now)  # its labels come back: else no watch would show that it stopped
        else:
            _check_now_and_then(world, placement, tracked, now)
        return False
    if tracked.retry_at > now:
        world.wakes.ask(placement.key, tracked.retry_at)
    elif world.has_room(placement):
        _carry_out(world, placement, tracked, step, now)
    return False


def _check_now_and_then(world: World, placement: Placement, tracked: Tracked, now: float) -> None:
    """Ask the API server itself when nothing was heard for long: a watch may have lost what we wait for."""
    if tracked.check_at is None or now >= tracked.check_at:
        if tracked.check_at is not None and not world.local:
            _probe(world, placement, tracked, now)
        tracked.check_at = now + CHECK_SECONDS
    world.wakes.ask(placement.key, tracked.check_at)


def _next_step(world: World, placement: Placement, tracked: Tracked) -> Step | None:
    kind, obj = world.kind(placement), tracked.object
    if world.local:
        return kind.local_stop_step(obj, tracked.raw, placement.key)
    if kind.pods_are_children and obj is not None and obj.metadata.deletion_timestamp is not None:
        # Its controller ignores a Job that is being deleted; only the collector ends the pods, once it is gone.
        body = without_report(tracked)
        return PatchStep(body=body, kind=PatchKind.JSON) if body is not None else None
    return kind.stop_step(obj, placement.key)


def without_report(tracked: Tracked) -> bytes | None:
    """Return the patch that drops our finalizer and no other, None when it is not there."""
    obj = tracked.object
    if obj is None or FINALIZER_REPORT not in obj.metadata.finalizers:
        return None
    index = obj.metadata.finalizers.index(FINALIZER_REPORT)
    path = f"/metadata/finalizers/{index}"
    operations: list[Json] = [
        {"op": "test", "path": "/metadata/uid", "value": obj.metadata.uid},
        {"op": "test", "path": path, "value": FINALIZER_REPORT},
        {"op": "remove", "path": path},
    ]
    return msgspec.json.encode(operations)


def _carry_out(world: World, placement: Placement, tracked: Tracked, step: Step, now: float) -> None:
    if isinstance(step, DeleteStep):
        if _tells_end(world, placement, tracked, now) or _marks_end(world, placement, tracked, now):
            return
        grace = graces.grace_seconds(placement, tracked)
        tracked.deleted_by_us = True
        removal = WantedDelete(purpose=WritePurpose.STOP, uid=tracked.uid, grace_seconds=grace)
        asking.delete(world, placement, tracked, removal, now)
        return
    purpose = WritePurpose.RESTORE if step.restores else WritePurpose.STOP
    wanted = WantedPatch(purpose=purpose, body=step.body, kind=step.kind, subresource=step.subresource)
    asking.patch(world, placement, tracked, wanted, now)
