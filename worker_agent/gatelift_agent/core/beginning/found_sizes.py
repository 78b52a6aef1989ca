"""The size of what a start found, by the mark on its object, and which slots of it are open (Size 9).

Open are as many as pods of it are found let go, whether they run or have ended, within the mark: so what was
unsuspended and never let a pod go opens none before the manager has said so. A mark that cannot be read is an error,
and not none: nothing is set or let go by it, and what runs goes on and is listed. Neighbours: `rebuilding` asks once
all pods of a placement are known, `session.sizes` for what a commit names again.
"""

from __future__ import annotations

from gatelift_agent.core.placement.placements import LIVE, Placement
from gatelift_agent.core.placement.sizes import Sizing
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared import sized_pods
from gatelift_kinds.shared.sizes import SizeError

FIRST = 1
"""The number of a size with which a chain begins."""


def take(world: World, placement: Placement) -> None:
    """Know the size of a placement that was just made of what is there."""
    if placement.sizing is None and placement.state in LIVE:
        placement.sizing = found(world, placement)


def found(world: World, placement: Placement) -> Sizing | None:
    """Return the size of what is there, None where nothing of it has one."""
    kind = world.kind(placement)
    for tracked in placement.objects.values():
        obj = tracked.object
        if obj is None or not kind.gated(obj):
            continue
        try:
            mark = kind.mark(obj)
        except SizeError as error:
            world.note("warning", f"{tracked.ref}: {error}; it runs on as it is", placement)
            mark = None
        if mark is None:
            return Sizing(number=0, counts={})
        fewer = any(kind.wanted(obj).get(name, 0) < count for name, count in mark.counts.items())  # by a user, at home
        sizing = Sizing(number=mark.number, counts=dict(mark.counts), landed=mark)
        sizing.resized_unseen = fewer or mark.number > FIRST
        sizing.opened = {name: min(count, _let_go(world, placement, name)) for name, count in mark.counts.items()}
        return sizing
    return None


def _let_go(world: World, placement: Placement, pod_set: str) -> int:
    """Return how many pods of a pod set are found without the gate, whatever has become of them."""
    found_pods = world.children(placement)
    return sum(not sized_pods.is_gated(pod) and sized_pods.pod_set_of(pod) == pod_set for pod in found_pods)
