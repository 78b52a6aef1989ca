"""Lets pods of elastic work go one by one, up to what its size grants (Size 7, Size 9).

A slot is *opened* where lease, leadership and the size are confirmed in the present session, as anything is started
(R1, R8), the mark of the size stands on the object, and the remote admission has granted what is more than before. A
slot that is open is *filled again* without all that, as a plain Job's controller does by itself: only who leads writes.
What is said again of a pod whose lift has no known outcome is that same write: it keeps its slot until then.
Neighbours: `sizing` sets the object to the size, `seeing.let_go` counts.
"""

from __future__ import annotations

from typing import NamedTuple

from gatelift_agent.core.admission.backend import RoomAnswer
from gatelift_agent.core.advancing import giving_up
from gatelift_agent.core.leaving import draining
from gatelift_agent.core.placement import slots
from gatelift_agent.core.placement.placements import Placement, PlacementState
from gatelift_agent.core.placement.sizes import GateLift, SizeState, Sizing
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.reporting import sizes as reports
from gatelift_agent.core.seeing import let_go, taking
from gatelift_agent.core.state import asking
from gatelift_agent.core.state.placing import placing
from gatelift_agent.core.state.world import AT_ONCE, MANY_OBJECTS, World
from gatelift_agent.core.values.asked import Asked
from gatelift_kinds.shared import sized_pods
from gatelift_kinds.shared.patches import add_to_map, encode, guards
from gatelift_kinds.shared.values import MergeConflictError, PodSetStart
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD

_LABELS = ("metadata", "labels")
_NOT_WRITTEN = frozenset(
    {
        WriteError.INVALID,
        WriteError.DENIED,
        WriteError.FORBIDDEN,
        WriteError.TOO_LARGE,
        WriteError.QUOTA,
        WriteError.NOT_DONE,
        WriteError.NOT_SENT,
    }
)
"""The API server did not do it. All others say nothing for certain of a lift before: a conflict may be its landing."""


class _Turn(NamedTuple):
    """A pod whose turn it is. `is_above`: its lift is in doubt, and the size grants less by now."""

    pod_set: str
    pod: Pod
    is_above: bool


def advance(world: World, placement: Placement, sizing: Sizing, now: float) -> None:
    """Ask for the lifts that are due."""
    let_go.settle(world, placement)
    if placement.state is not PlacementState.RUNNING or not world.leadership.acts(now):
        return
    waiting = _waiting(world, placement, sizing)
    sizing.waits((pod.metadata.uid for pods in waiting.values() for pod in pods), now)
    if not any(waiting.values()):
        return
    found = let_go.count(world, placement, now)
    if found.unknown:
        return  # news of nodes, or time, look again
    limit = _limit(world, placement, sizing, now)
    free = slots.left(limit, found.holding.items())
    asked = 0
    for name, pods in waiting.items():
        above = _above(sizing, pods, free.get(name, 0))
        for pod in pods:
            if asked >= MANY_OBJECTS:
                world.wakes.ask(placement.key, AT_ONCE)
                return
            if not world.has_room(placement):
                return
            has_slot, room = pod.metadata.uid in sizing.lifts, free.get(name, 0)
            turn = _Turn(name, pod, is_above=pod.metadata.uid in above)
            if not (has_slot or room > 0) or not _let_go(world, placement, turn, now):
                continue
            asked += 1
            if not has_slot:
                free[name] = room - 1
                taken = limit[name] - free[name] - found.unseen  # what is only doubted nobody has opened a slot for
                sizing.opened[name] = max(sizing.opened.get(name, 0), taken)


def _above(sizing: Sizing, pods: tuple[Pod, ...], free: int) -> frozenset[str]:
    """Return those whose lift is in doubt while more may run than the size grants: the last ones in order."""
    doubted = [uid for uid in (pod.metadata.uid for pod in pods) if uid in sizing.lifts]
    return frozenset(doubted[len(doubted) - min(len(doubted), max(0, -free)) :])


def _waiting(world: World, placement: Placement, sizing: Sizing) -> dict[str, tuple[Pod, ...]]:
    """Return the pods that wait, of pod sets that the size has; none of an object that is not let go, or is over."""
    kind, children = world.kind(placement), world.children(placement)
    shown = [pod for pod in children if pod.metadata.uid not in placement.hidden]
    found: dict[str, tuple[Pod, ...]] = {}
    for tracked in placement.objects.values():
        obj = tracked.object
        if obj is None or tracked.missing or tracked.unproven:
            continue
        if not (kind.gated(obj) and world.runs_as_placed(kind, obj)) or kind.outcome(obj) is not None:
            continue
        for name, pods in kind.gated_pods(obj, shown).items():
            if name in sizing.counts:
                found[name] = (*found.get(name, ()), *pods)
    return found


def _limit(world: World, placement: Placement, sizing: Sizing, now: float) -> dict[str, int]:
    """Return how many pods of each pod set may be let go by now: all slots, or those that are open."""
    if _may_open(world, placement, sizing, now):
        return dict(sizing.counts)
    return {name: min(count, sizing.opened.get(name, 0)) for name, count in sizing.counts.items()}


def _may_open(world: World, placement: Placement, sizing: Sizing, now: float) -> bool:
    """Say whether slots may be opened that never were; ask for what is missing."""
    if all(sizing.opened.get(name, 0) >= count for name, count in sizing.counts.items()):
        return False
    if sizing.confirmed_session != world.standing.session or starting.why_not(world, placement, now):
        if reports.can_say(world):
            starting.ask_word(world, placement, now)
        return False
    if sizing.state not in {SizeState.SET, SizeState.ANSWERED}:
        return False
    return not sizing.waits_for_room or _has_room(world, placement, sizing, now)


def _has_room(world: World, placement: Placement, sizing: Sizing, now: float) -> bool:
    verdict = world.admission.verdict(placement.key, now)
    if verdict.again_at is not None:
        world.wakes.ask(placement.key, verdict.again_at)
    if verdict.answer is RoomAnswer.REFUSED:
        reports.cannot(world, placement, sizing, (verdict.refusal, verdict.text))
    sizing.waits_for_room = verdict.answer is not RoomAnswer.GRANTED
    return not sizing.waits_for_room


def _let_go(world: World, placement: Placement, turn: _Turn, now: float) -> bool:
    """Ask for the lift of one pod; False where it is under way, or has to wait.

    Of one that is above the size by now a write that changes nothing else tells: it names the same version, so where
    it lands no earlier lift has, nor ever will (R7).
    """
    sizing, pod, pod_set = placement.sizing, turn.pod, turn.pod_set
    uid = pod.metadata.uid
    lift = sizing.lifts.get(uid) if sizing is not None else None
    if sizing is None or (lift is not None and lift.asked):
        return False
    again_at = lift.again_at if lift is not None else sizing.rests.get(uid, (0, 0.0))[1]
    if again_at > now:
        world.wakes.ask(placement.key, again_at)
        return False
    if turn.is_above:
        return lift is not None and _prove(world, placement, pod, lift, now)
    try:
        start = placing(world, placement).start(pod_set) if placement.pod_sets else PodSetStart(pod_set=pod_set)
        body = world.kind(placement).ungate_patch(pod, world.objects.raw_of_gated(uid) or b'{"spec":{}}', start)
    except MergeConflictError as error:
        _rest(world, placement, sizing, uid, now)
        world.note("warning", f"pod {pod.metadata.name} is not let go: {error}", placement)
        return False
    since = sizing.gated.get(uid, (0, now))[1]
    known = lift or GateLift(pod_set=pod_set, version=pod.metadata.resource_version, since=since)
    known.asked = True
    sizing.lifts[uid] = known
    asking.ungate(world, placement, pod, body, now)
    return True


def _prove(world: World, placement: Placement, pod: Pod, lift: GateLift, now: float) -> bool:
    meta, said = pod.metadata, {draining.LABEL_FOUND: pod.metadata.resource_version}
    lift.asked = True
    asking.ungate(world, placement, pod, encode([*guards(meta), *add_to_map(_LABELS, meta.labels, said)]), now)
    return True


def _rest(world: World, placement: Placement, sizing: Sizing, uid: str, now: float) -> None:
    """Let the others have their turn, before this pod is tried again."""
    tries = sizing.rests.get(uid, (0, 0.0))[0] + 1
    sizing.rests[uid] = (tries, now + giving_up.pause(tries))
    world.wakes.ask(placement.key, sizing.rests[uid][1])


def answered(world: World, placement: Placement, asked: Asked, event: WriteDone | WriteFailed, now: float) -> None:
    """Take the answer to a lift: it went, it did not, or nobody knows."""
    sizing = placement.sizing
    lift = sizing.lifts.get(asked.form) if sizing is not None else None
    world.look(placement.key)
    if sizing is None or lift is None:
        return
    if isinstance(event, WriteDone):
        if event.object is not None:
            taking.answer(world, POD, event.object, event.raw, now)
        lift.asked = False
        let_go.settle(world, placement)  # seen let go by now; or a webhook gave it back its gate
        if sizing.lifts.pop(asked.form, None) is not None or _is_gated(world, placement, asked.form):
            _rest(world, placement, sizing, asked.form, now)
        else:
            sizing.rests.pop(asked.form, None)
            world.gate_waits.add(placement, now - lift.since)
        return
    _failed(world, placement, asked, event, now)


def _is_gated(world: World, placement: Placement, uid: str) -> bool:
    pod = let_go.child(world, placement, uid)
    return pod is not None and sized_pods.is_gated(pod)


def _failed(world: World, placement: Placement, asked: Asked, event: WriteFailed, now: float) -> None:
    sizing = placement.sizing
    lift = sizing.lifts.get(asked.form) if sizing is not None else None
    if sizing is None or lift is None:
        return
    lift.asked = False
    lift.attempts += 1
    lift.again_at = now + giving_up.pause(lift.attempts)
    if event.error is WriteError.UNKNOWN:
        lift.in_doubt, lift.again_at = True, asked.at + WRITE_SECONDS_MAX
    if event.error in _NOT_WRITTEN and not lift.in_doubt:
        del sizing.lifts[asked.form]
        _rest(world, placement, sizing, asked.form, now)
    else:
        world.wakes.ask(placement.key, lift.again_at)
    if event.error in {WriteError.INVALID, WriteError.DENIED, WriteError.FORBIDDEN}:
        world.note("warning", f"a pod is not let go: {event.message}; it is tried again", placement)


def unknown(placement: Placement, uid: str, now: float) -> None:
    """Take that an answer could not be taken: it counts as none."""
    lift = placement.sizing.lifts.get(uid) if placement.sizing is not None else None
    if lift is not None:
        lift.asked, lift.in_doubt, lift.again_at = False, True, now + WRITE_SECONDS_MAX
