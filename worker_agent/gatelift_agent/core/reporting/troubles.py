"""What keeps the pods of a placement from running, as the manager is told of it beside their counts.

Of a Job's pods the first trouble; of a pod only that it waits for gates, or cannot be let go while others of its group
are, since its own status tells the rest once it is let go. Neighbours: `objects` keeps what each pod says,
`missing_pods` what is not there, `reports` tells.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_agent.core.reporting import missing_pods
from gatelift_agent.core.state.world import World
from gatelift_kinds.shared import markers, pod_trouble
from gatelift_kinds.shared.pod_trouble import Trouble
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.messages import PodSetCounts

TROUBLE_SECONDS = 5.0
"""A trouble, or its end, is told when it has stood for so long: most of it passes."""


def note(world: World, placement: Placement, seen: Iterable[PodSetCounts], now: float) -> None:
    """Take note of what is to be told; `seen`: where its pods are."""
    found = _first(world, placement, seen, now)
    if found == placement.trouble:
        placement.trouble_at = None
        return
    if found is not None and found.reason == pod_trouble.MISSING:
        placement.trouble_at = now  # it has stood for longer
    placement.trouble_at = now + TROUBLE_SECONDS if placement.trouble_at is None else placement.trouble_at
    if now < placement.trouble_at:
        world.wakes.ask(placement.key, placement.trouble_at)
    else:
        placement.trouble, placement.trouble_at = found, None


def _first(world: World, placement: Placement, seen: Iterable[PodSetCounts], now: float) -> Trouble | None:
    tracked = placement.to_look_at
    jobs = (_of_job(world, placement, each) for each in tracked if each.uid and each.ref.resource in world.kinds.makers)
    missing = (missing_pods.trouble(world, placement, one, now) for one in seen)
    refused = map(_refused, tracked)
    return pod_trouble.first((*missing, *jobs, *map(_at_gates, tracked), *refused))


def _of_job(world: World, placement: Placement, tracked: Tracked) -> Trouble | None:
    """Return the trouble of the pods of a Job. That some wait for a size that is not granted yet is said elsewhere."""
    by_count = tracked.object is not None and world.kind(placement).gated(tracked.object)
    return world.objects.trouble(tracked.uid, by_count=by_count)


def _refused(tracked: Tracked) -> Trouble | None:
    """Return why one of several pods at home is not let go while the others are."""
    if not tracked.refused:
        return None
    return Trouble(pod_trouble.START_REFUSED, tracked.name, plain(tracked.refused, pod_trouble.TEXT_CHARS_MAX))


def _at_gates(tracked: Tracked) -> Trouble | None:
    """Return that a pod has other gates than ours, which goes last."""
    if not isinstance(tracked.object, Pod) or not tracked.object.spec.scheduling_gates:
        return None
    gates = (each.name for each in tracked.object.spec.scheduling_gates)
    return pod_trouble.gated(tracked.name, (name for name in gates if name not in markers.GATES_OF_ADMISSION))
