"""How many pods of elastic work were let go and may run, by pod set (Size 7): what lifts and answers go by.

Counted is what is seen without the gate and has not stopped, who stops among them; what we asked to be let go, whatever
came of that; and what vanished while its node may run it (P10). What names no pod set counts in each.
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_agent.core.placement import slots
from gatelift_agent.core.placement.placements import Placement
from gatelift_agent.core.placement.slots import SlotFacts
from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared import pods, sized_pods
from gatelift_kube.objects.core import Pod


@dataclass(slots=True, kw_only=True)
class LetGoCounts:
    """By pod set: `holding` all that take a slot, `going_on` those of them that nobody has ended yet.

    `unknown`: more may run than is counted. `unseen`: so many of each are counted that nobody here has ever seen.
    """

    holding: dict[str, int]
    going_on: dict[str, int]
    unknown: bool
    unseen: int = 0

    def count(self, pod_set: str, *, going_on: bool, times: int = 1) -> None:
        """Count pods of a pod set, or in each where that is not known."""
        for name in [pod_set] if pod_set in self.holding else list(self.holding):
            self.holding[name] += times
            self.going_on[name] += times * going_on


def count(world: World, placement: Placement, now: float) -> LetGoCounts:
    """Return what of a placement was let go."""
    sizing = placement.sizing
    names = dict.fromkeys(sizing.counts, 0) if sizing is not None else {}
    found = LetGoCounts(holding=dict(names), going_on=dict(names), unknown=False)
    lifts = sizing.lifts if sizing is not None else {}
    doubts.any_may_run(world, placement, now)
    for pod in world.children(placement):
        lift = lifts.get(pod.metadata.uid)
        gated = sized_pods.is_gated(pod)
        over = not pods.holds_resources(pod)
        if slots.takes_slot(SlotFacts(let_go=not gated, in_doubt=lift is not None, over=over)):
            found.count(sized_pods.pod_set_of(pod), going_on=not pods.leaves(pod))
    known = {pod.metadata.uid for pod in world.children(placement)}
    for uid, lift in lifts.items():
        if (
            uid not in known and uid not in placement.lost_children and lift.asked
        ):  # its answer tells whether it went before it was let go
            found.count(lift.pod_set, going_on=True)  # its answer tells whether it went before it was let go
    for uid, lost in placement.lost_children.items():
        if not isinstance(lost, Pod):
            found.unknown = True  # nobody knows how many (`doubts.unwatched`)
        elif not sized_pods.is_gated(lost) or uid in lifts:
            found.count(sized_pods.pod_set_of(lost), going_on=True)
    if placement.unseen_ends:
        found.count("", going_on=True, times=placement.unseen_ends)
        found.unseen = placement.unseen_ends
    found.unknown = found.unknown or placement.cut_short
    return found


def settle(world: World, placement: Placement) -> None:
    """Forget lifts that can land no more: the pod is seen let go, in another version, or is gone (`GateLift`)."""
    sizing = placement.sizing
    if sizing is None or not (sizing.lifts or sizing.rests):
        return
    for uid, lift in tuple(sizing.lifts.items()):
        pod = child(world, placement, uid)
        waits = pod is not None and sized_pods.is_gated(pod) and pod.metadata.resource_version == lift.version
        lost = uid in placement.lost_children  # it may run, if its lift has landed
        if not (waits or lost or lift.asked):
            del sizing.lifts[uid]
    sizing.rests = {uid: rest for uid, rest in sizing.rests.items() if child(world, placement, uid) is not None}


def child(world: World, placement: Placement, uid: str) -> Pod | None:
    """Return the pod of this UID, None where none is known that is of the placement: without a look at all (HD-685)."""
    return world.objects.child(uid, {each.uid for each in placement.objects.values() if each.uid})
