"""What the manager is told of a placement, and when: deltas, coalesced, newest wins.

The way down of a single pod is three messages: running, finished, and nothing between that nobody waits for. A change
that somebody waits for (running and ready, over, deleting, fewer pods that need quota) goes out at once; all else at
most once a second.
After a session that was not resumed everything is told anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gatelift_agent.core.placement.placements import (
    HELD_BACK,
    STARTING,
    SUPERSEDED,
    EndingKind,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.reporting import made_here, troubles
from gatelift_agent.core.seeing import doubts, orphans
from gatelift_agent.core.state import own_ends
from gatelift_agent.core.state.world import AT_ONCE, World
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared import pod_trouble
from gatelift_kinds.shared.values import Seen
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import raw_status
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.messages import (
    Applied,
    CountsReport,
    Evicted,
    Finished,
    GatesLifted,
    Message,
    ObjectReport,
    PodSetCounts,
    Refused,
    Stopped,
)
from gatelift_wire.values.told import PodTrouble

REPORTS_AT_ONCE = 64
"""Objects of one placement that are told of in one call; the others follow at once after it."""
COALESCE_SECONDS = 1.0
"""Changes that nobody waits for are told this late at most: one status write per second and object at the manager."""


GONE = Seen(("gone",), ())
"""What is seen of an object that is not there any more, and of which nothing may run."""
WAITS = Seen(("waits",), ())
"""What is seen of an object that joined, and for which no slot is free: its manager may have to turn it away."""


def observe(world: World, placement: Placement, now: float) -> None:
    """Tell what changed of a placement whose objects are let go; put off what can wait."""
    total, reclaimable = counted(world, placement)
    troubles.note(world, placement, total.values(), now)
    here = made_here.counts(world, placement, now)
    counts = _counts(world, placement, total, reclaimable, here)
    if placement.state is PlacementState.RUNNING:
        world.reclaim_room(placement, _over(placement, counts))
    changed, urgent = _changed(world, placement, now)
    told = placement.counts_reported
    waits = placement.state in STARTING and _troubles(counts) == _troubles(told)
    if not changed and (counts == told or waits):
        placement.report_at = None
        return
    urgent = urgent or made_here.is_news(told, here)
    urgent = urgent or _terminating(counts) != _terminating(told) or _given_back(counts) != _given_back(told)
    if not urgent and (placement.report_at is None or placement.report_at > now):
        placement.report_at = placement.report_at or now + COALESCE_SECONDS
        world.wakes.ask(placement.key, placement.report_at)
        return
    placement.report_at = None
    for tracked, sight in changed[:REPORTS_AT_ONCE]:
        tracked.reported, tracked.told_of = sight, tracked.object
        world.say(object_report(placement, tracked))
    if len(changed) > REPORTS_AT_ONCE:
        placement.report_at = now
        world.wakes.ask(placement.key, AT_ONCE)
    if counts is not None and counts != told:
        placement.counts_reported = counts
        world.say(counts)


def _changed(world: World, placement: Placement, now: float) -> tuple[list[tuple[Tracked, Seen]], bool]:
    """Return what is seen otherwise than was told, one more than are told at once; and whether it is urgent."""
    kind = world.kind(placement)
    changed: list[tuple[Tracked, Seen]] = []
    urgent = False
    for tracked in placement.to_look_at:
        told = tracked.leave_said or (tracked.told_of is not None and tracked.told_of is tracked.object)
        if tracked.made_here or told:
            continue
        if len(changed) > REPORTS_AT_ONCE:
            urgent = True  # so many are told of in parts, and the others are looked into with theirs
            break
        if kind.gathers and tracked.is_gone and not world.local and not _may_run(world, placement, tracked, now):
            sight = GONE
        elif tracked.object is None:
            continue
        elif not kind.lifted(tracked.object):
            if not _waits(world, placement, tracked):
                continue
            sight = WAITS
        else:
            sight = seen_of(kind, tracked.object, tracked.raw)
        if sight != tracked.reported:
            changed.append((tracked, sight))
            known = tracked.reported
            urgent = urgent or (known.marks != sight.marks if isinstance(known, Seen) else _is_news(sight))
        else:
            tracked.told_of = tracked.object
    return changed, urgent


def _may_run(world: World, placement: Placement, tracked: Tracked, now: float) -> bool:
    return doubts.may_run(world, placement, tracked.doubt or tracked.uid, now)


def _waits(world: World, placement: Placement, tracked: Tracked) -> bool:
    """Say whether nobody has let an object go that joined, for want of a slot."""
    at_rest = tracked.joined and not (tracked.lift_asked or tracked.asked or tracked.delete_asked)
    return at_rest and tracked.slotless and not world.local and placement.state is PlacementState.RUNNING


def tell_trouble(world: World, placement: Placement, reason: str, name: str, text: str) -> None:
    """Tell what a Job waits for while it stops, with the counts that were told last: nothing more is given back."""
    counts = placement.counts_reported or _counts(world, placement, *counted(world, placement))
    known = counts or CountsReport(key=placement.key, pod_sets=())
    trouble = PodTrouble(reason=reason, pod=name, text=plain(text, pod_trouble.TEXT_CHARS_MAX))
    placement.counts_reported = replace(known, troubles=(trouble,))
    world.say(placement.counts_reported)


def everything(world: World, placement: Placement) -> None:
    """Tell all of a placement anew, for a session that knows nothing of the one before."""
    for tracked in placement.objects.values():
        tracked.reported = tracked.told_of = None
        tracked.leave_said = tracked.leave_heard = False
    placement.counts_reported = None
    placement.report_at = None
    placement.wait_told = ""
    if placement.state in HELD_BACK:
        world.say(Applied(key=placement.key))
    elif placement.state is PlacementState.RUNNING:
        world.say(Applied(key=placement.key))
        world.say(GatesLifted(key=placement.key))
    elif placement.state is PlacementState.REPORTED:
        tell_end(world, placement)
    elif placement.state is PlacementState.KEPT and placement.over_before:
        # The process before this one may have died with the word that the user's object is gone: it is said again.
        world.say(Stopped(key=placement.key, reason=SUPERSEDED))
    world.look(placement.key)


def tell_end(world: World, placement: Placement) -> Message | None:
    """Say the last word on a placement that has ended, and return it; None before that.

    Before it what a driver has made here. Of several objects each that is over is told of before it, where it does not
    tell of them itself: who succeeded does not run again. Of who was ended with all nobody is told that it failed.
    """
    final = final_message(placement)
    if final is None:
        return None
    here = made_here.last(world, placement)
    if here is not None:
        world.say(here)
    if world.kind(placement).gathers and not (world.local or isinstance(final, Finished | Stopped)):
        for tracked in placement.objects.values():
            obj = tracked.object
            over = tracked.succeeded or (obj is not None and world.kind(placement).outcome(obj) is not None)
            if (over or tracked.is_gone) and _is_told(tracked) and not own_ends.ended_here(world, placement, tracked):
                world.say(object_report(placement, tracked))
    world.say(final)
    return final


def final_message(placement: Placement) -> Message | None:
    """Return the last word on a placement that has ended, None before that."""
    ending = placement.ending
    if ending is None:
        return None
    return _FINAL[ending.kind](placement, ending)


def object_report(placement: Placement, tracked: Tracked, *, gone: bool = False) -> ObjectReport:
    """Return the report of one object as last seen; its status is the JSON as served.

    `gone`: it has stopped, and is about to be removed.
    """
    obj = None if gone else tracked.object
    raw = tracked.refused_as if obj is None and tracked.refused_as else tracked.raw
    return ObjectReport(
        key=placement.key,
        kind=placement.kind,
        name=tracked.name,
        uid=tracked.uid,
        status=raw_status(raw) if raw else b"{}",
        deleting=tracked.deleted_by_us if obj is None else obj.metadata.deletion_timestamp is not None,
        gone=obj is None,
        owner_uid=tracked.user_uid,
        waits=obj is not None and tracked.reported == WAITS,
    )


def seen_of(kind: Kind[Any], obj: KubeObject, raw: bytes) -> Seen:
    """Return what people see of an object's status; that it is being deleted is waited for."""
    seen = kind.seen(obj, raw)
    return Seen((*seen.marks, obj.metadata.deletion_timestamp is not None), seen.details)


def _is_news(sight: Seen) -> bool:
    """Say whether a first report cannot wait: the pod runs and is ready, is over or is being deleted already."""
    return any(mark not in ("", False, ()) for mark in sight.marks)


def counted(world: World, placement: Placement) -> tuple[dict[str, PodSetCounts], dict[str, int]]:
    """Return where the pods are, by pod set, and how many of these are needed no more; of what is at rest none is."""
    kind = world.kind(placement)
    total: dict[str, PodSetCounts] = {}
    reclaimable: dict[str, int] = {}
    for tracked in placement.to_look_at:
        if tracked.object is None:
            continue
        for counts in kind.counts(tracked.object, world.children(placement)):
            known = total.get(counts.name)
            total[counts.name] = counts if known is None else _sum(known, counts)
        for name, count in kind.reclaimable(tracked.object):
            reclaimable[name] = reclaimable.get(name, 0) + count
    return total, reclaimable


def _counts(
    world: World,
    placement: Placement,
    total: dict[str, PodSetCounts],
    reclaimable: dict[str, int],
    here: tuple[PodSetCounts, ...] = (),
) -> CountsReport | None:
    """Return what is told of that, None where objects say so themselves and there is no trouble to tell of."""
    if not (total or here) and placement.trouble is None and placement.counts_reported is None:
        return None
    # What may run (P10), and what runs beside what was granted: nothing of that is given back.
    lost = len(placement.lost_children) + placement.unseen_ends
    unknown = lost + len(orphans.taken_off(world, placement))
    return CountsReport(
        key=placement.key,
        pod_sets=tuple(total[name] for name in sorted(total)),
        reclaimable=tuple((name, count - unknown) for name, count in sorted(reclaimable.items()) if count > unknown),
        troubles=(PodTrouble(**placement.trouble._asdict()),) if placement.trouble is not None else (),
        made_here=here,
    )


def _sum(left: PodSetCounts, right: PodSetCounts) -> PodSetCounts:
    return PodSetCounts(
        name=left.name,
        active=left.active + right.active,
        ready=left.ready + right.ready,
        succeeded=left.succeeded + right.succeeded,
        failed=left.failed + right.failed,
        terminating=left.terminating + right.terminating,
        remaining=left.remaining + right.remaining,
    )


def _troubles(counts: CountsReport | None) -> tuple[PodTrouble, ...]:
    return counts.troubles if counts is not None else ()


def _terminating(counts: CountsReport | None) -> tuple[int, ...]:
    return tuple(one.terminating for one in (counts.pod_sets if counts is not None else ()) if one.terminating)


def _given_back(counts: CountsReport | None) -> tuple[tuple[str, int, int], ...]:
    """Return of pod sets whose quota is given back what that depends on: how many are over, and how many are there."""
    if counts is None or not counts.reclaimable:
        return ()
    held = {one.name: one.remaining for one in counts.pod_sets}
    return tuple((name, count, held.get(name, 0)) for name, count in counts.reclaimable)


def _over(placement: Placement, counts: CountsReport | None) -> tuple[tuple[str, int], ...]:
    """Return of how many pods per pod set no room is needed here any more: what holds resources keeps its own."""
    placed = {one.name: one.count for one in placement.pod_sets}
    over = ((name, min(count, placed.get(name, 0) - held)) for name, count, held in _given_back(counts))
    return tuple((name, count) for name, count in over if count > 0)


def _objects(placement: Placement) -> tuple[ObjectReport, ...]:
    return tuple(object_report(placement, tracked) for tracked in placement.objects.values() if _is_told(tracked))


def _members(placement: Placement) -> tuple[str, ...]:
    """Return whom of home's objects this agent knows: who is missing vanished before it began (HD-661)."""
    return tuple(each.user_uid for each in placement.objects.values() if each.user_uid and not each.made_here)


def _is_told(tracked: Tracked) -> bool:
    """Say whether home has an object for which one stands."""
    return bool(tracked.uid) and not tracked.made_here


def _finished(placement: Placement, ending: PlacementEnding) -> Message:
    return Finished(
        key=placement.key,
        succeeded=ending.succeeded,
        reason=ending.reason,
        message=ending.message,
        objects=_objects(placement),
        failed=placement.failed,
        kept_seconds=placement.kept_seconds,
    )


def _stopped(placement: Placement, ending: PlacementEnding) -> Message:
    return Stopped(key=placement.key, reason=ending.reason, message=ending.message, objects=_objects(placement))


def _refused(placement: Placement, ending: PlacementEnding) -> Message:
    return Refused(key=placement.key, refusal=ending.refusal, text=ending.message, members=_members(placement))


def _evicted(placement: Placement, ending: PlacementEnding) -> Message:
    return Evicted(key=placement.key, reason=ending.reason, message=ending.message, members=_members(placement))


_FINAL = {
    EndingKind.FINISHED: _finished,
    EndingKind.STOPPED: _stopped,
    EndingKind.REFUSED: _refused,
    EndingKind.EVICTED: _evicted,
}
