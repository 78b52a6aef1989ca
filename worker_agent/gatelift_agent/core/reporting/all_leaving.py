"""The second moment of an end (KEP-6143): all of a placement is on its way out, by deletions that were accepted.

Between the stop and *stopped*. By then its quota may be free, here and at the manager, so nothing is said while any
of it is in doubt: a write under way, a pod that vanished, one that another watch may show. What is seen to go on
after all takes it back, as long as nothing was freed by it. Neighbours: `draining` asks each time that it looks; the
kind says what leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gatelift_agent.core.placement.placements import EndingKind, Placement, PlacementState
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import doubts, orphans
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared import pods
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.limits import GRACE_SECONDS_MAX
from gatelift_wire.values.messages import CountsReport, PodSetCounts
from gatelift_wire.values.release import Leaving, ReleaseRule


def look(world: World, placement: Placement, now: float) -> None:
    """Tell that all of a placement leaves, and again when fewer of its pods are left; give its room back by its rule.

    For one that is being stopped and of which nothing is in doubt.
    """
    stops = placement.ending is not None and placement.ending.kind is EndingKind.STOPPED
    if not stops or placement.state is not PlacementState.DRAINING:
        return
    if not _all_leave(world, placement):
        if _goes_on(world, placement):
            _take_back(world, placement)
        return
    if placement.leaving_since is None:
        placement.leaving_since = now
    leaving = _leaving(world, placement, now)
    _give_room_back(world, placement, leaving, now)
    counts, told = _counts(world, placement, now), placement.counts_reported
    if told is not None and told.leaving is not None and told.pod_sets == counts:
        return
    before = told or CountsReport(key=placement.key, pod_sets=())
    placement.counts_reported = replace(before, pod_sets=counts, leaving=leaving)
    world.say(placement.counts_reported)


def _all_leave(world: World, placement: Placement) -> bool:
    if orphans.taken_off(world, placement):
        return False
    for tracked in placement.objects.values():
        if tracked.asked or tracked.missing or tracked.unproven or tracked.doubt_until is not None:
            return False
    return not _goes_on(world, placement)


def _goes_on(world: World, placement: Placement) -> bool:
    """Say whether something of it is seen not to leave: it was let go again, or has a pod that nobody has deleted."""
    kind, children = world.kind(placement), world.children(placement)
    objects = (tracked.object for tracked in placement.objects.values() if tracked.object is not None)
    leave = all(kind.leaving(each, children, placement.key) for each in objects)
    return not (leave and all(map(pods.leaves, _pods(world, placement))))


def _take_back(world: World, placement: Placement) -> None:
    """Say that not all of it leaves any more: when it does, it is from then on."""
    placement.leaving_since = None
    told = placement.counts_reported
    if told is not None and told.leaving is not None:
        placement.counts_reported = replace(told, leaving=None)
        world.say(placement.counts_reported)


def _pods(world: World, placement: Placement) -> Iterator[Pod]:
    """Yield the pods of a placement that are known: its objects, or those that its objects' controllers made."""
    yield from world.children(placement)
    for tracked in placement.objects.values():
        if isinstance(tracked.object, Pod):
            yield tracked.object


def _leaving(world: World, placement: Placement, now: float) -> Leaving:
    left = [pod for pod in _pods(world, placement) if pods.holds_resources(pod)]
    since = placement.leaving_since
    return Leaving(
        since_seconds=max(0.0, now - since) if since is not None else 0.0,
        grace_seconds=max(map(_grace, left), default=0.0),
        running_grace_seconds=max((_grace(pod) for pod in left if pod.status.phase == "Running"), default=0.0),
        holds=world.settings.holds_quota,
    )


def _grace(pod: Pod) -> float:
    """Return what a pod was given: its deletionTimestamp lies so long after the deletion was accepted."""
    said = pod.metadata.deletion_grace_period_seconds
    said = pod.spec.termination_grace_period_seconds if said is None else said
    return min(GRACE_SECONDS_MAX, max(0.0, float(said or 0)))


def _give_room_back(world: World, placement: Placement, leaving: Leaving, now: float) -> None:
    """Free this worker's own quota by the rule that came with the commit, unless the worker insists on the stop."""
    if leaving.holds or placement.room_given_back or placement.leaving_since is None:
        return
    due = {
        ReleaseRule.ON_TERMINATING.value: placement.leaving_since,
        ReleaseRule.AFTER_GRACE.value: placement.leaving_since + leaving.running_grace_seconds,
    }.get(placement.release)
    if due is None:
        return
    if now < due:
        world.wakes.ask(placement.key, due)
        return
    world.give_room_back(placement)
    world.capacity_changed = True


def _counts(world: World, placement: Placement, now: float) -> tuple[PodSetCounts, ...]:
    """Return where the pods are, by pod set, as they leave: of several also those that are gone and may run (P10).

    Of these a start may not know whose slots they had: each pod set of which it knows counts them (HD-664).
    """
    found = list(reports.counted(world, placement)[0].values())
    by_set: dict[str, list[Pod]] = {}
    doubted: Counter[str] = Counter()
    gathers = world.kind(placement).gathers
    unknown = placement.objects_wanted if gathers and _hides_any(world, placement, now) else 0
    for tracked in placement.objects.values():
        name = tracked.pod_set or _only(placement)
        there = by_set.setdefault(name, []) if gathers or isinstance(tracked.object, Pod) else []
        if isinstance(tracked.object, Pod):
            there.append(tracked.object)
        elif gathers and doubts.may_run(world, placement, tracked.doubt or tracked.uid, now):
            doubted[name] += 1
    unknown += doubted[""]
    each_set = ((name, pods.count_pods(name, each)) for name, each in by_set.items() if name)
    found += [replace(each, remaining=each.remaining + doubted[name] + unknown) for name, each in each_set]
    return tuple(sorted(found, key=lambda each: each.name))


def _hides_any(world: World, placement: Placement, now: float) -> bool:
    """Say whether pods may run that a start has not found, and that nobody has named yet."""
    return bool(placement.before) and doubts.may_run(world, placement, placement.before, now)


def _only(placement: Placement) -> str:
    """Return the pod set of an object that was found after a restart, where its placement has one alone."""
    return placement.pod_sets[0].name if len(placement.pod_sets) == 1 else ""
