"""How many pods a driver has made at this worker by itself, and where they are: home has no object of theirs.

Told for each set that is declared so, also none at all: until a leader has heard it, its group is not over for it.
Neighbours: `reports` says it, `advancing.adopting` takes them in.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.seeing import doubts
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared import pods
from gatelift_kube.objects.core import Pod
from gatelift_wire.values.messages import CountsReport, PodSetCounts


def counts(world: World, placement: Placement, now: float) -> tuple[PodSetCounts, ...]:
    """Return them by pod set: what waits at its gate is active, what vanished and may run is on its way out."""
    if not world.settings.adopts:
        return ()
    found: dict[str, list[Tracked]] = {one.name: [] for one in placement.pod_sets if one.shape}
    for tracked in placement.to_look_at:
        if tracked.made_here:  # also of a set of which nothing is known any more after a start
            found.setdefault(tracked.pod_set, []).append(tracked)
    return tuple(_of_set(world, placement, name, found[name], now) for name in sorted(found))


def last(world: World, placement: Placement) -> CountsReport | None:
    """Return the counts to be told before the last word on a placement: it says nothing of them. None of none."""
    here = counts(world, placement, math.inf if placement.ended_at is None else placement.ended_at)
    told = placement.counts_reported or CountsReport(key=placement.key, pod_sets=())
    return replace(told, made_here=here) if here else None


def is_news(told: CountsReport | None, now: tuple[PodSetCounts, ...]) -> bool:
    """Say whether somebody waits for it: none had been told, or none of a set is left or one has come."""
    before = {one.name: one.remaining for one in (told.made_here if told is not None else ())}
    return any((one.remaining > 0) != (before.get(one.name, -1) > 0) or one.name not in before for one in now)


def _of_set(world: World, placement: Placement, name: str, of_set: list[Tracked], now: float) -> PodSetCounts:
    known = [tracked.object or (tracked.last_object if tracked.missing else None) for tracked in of_set]
    total = pods.count_pods(name, [each for each in known if isinstance(each, Pod)])
    gone = [tracked for tracked, obj in zip(of_set, known, strict=True) if obj is None]
    succeeded = sum(tracked.succeeded for tracked in gone)
    left = sum(
        not tracked.succeeded and doubts.may_run(world, placement, tracked.doubt or tracked.uid, now)
        for tracked in gone
    )
    return replace(
        total,
        succeeded=total.succeeded + succeeded,
        terminating=total.terminating + left,
        remaining=total.remaining + left,
        rejected=placement.came_and_went.turned_away.get(name, 0),
    )
