"""How long what is stopped has for its end (rule P6)."""

from __future__ import annotations

import dataclasses
import math

from gatelift_agent.core.placement.placements import Placement, Tracked
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Pod


def grace_seconds(placement: Placement, tracked: Tracked) -> int | None:
    """Return the deletion's grace: the smaller of the pod's own and what the stop allows (P6); None: the pod's own."""
    ending = placement.ending.grace_seconds if placement.ending is not None else None
    return least(tracked.object, ending, tracked.grace_seconds)


def least(obj: KubeObject | None, *limits: float | None) -> int | None:
    """Return the smallest of the graces that an object may have; None: its own."""
    allowed = [seconds for seconds in limits if seconds is not None]
    if not allowed:
        return None
    # 0 would mean a removal without the kubelet's word; one second is the least that waits for it.
    wanted = max(1, math.trunc(min(allowed)))
    own = obj.spec.termination_grace_period_seconds if isinstance(obj, Pod) else None
    return None if own is not None and own <= wanted else wanted


def replace_grace(placement: Placement, seconds: float) -> None:
    """Shorten the grace of a stop that is under way."""
    if placement.ending is not None:
        placement.ending = dataclasses.replace(placement.ending, grace_seconds=seconds)
