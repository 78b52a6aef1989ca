"""When quota of what is being stopped is free again, as a deployment chooses. Neighbour: `rules.release`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatelift_wire.values.release import ReleaseRule

DEADLINE_SECONDS = 600.0
"""A pod that has not stopped ten minutes after its time was over does so when somebody has looked at its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSettings:
    """`gatelift.release`: `by_kind` what somebody has chosen, `fast_pods` the gate for kinds whose object is the pod.

    `deadline`: seconds after the last deletionTimestamp after which quota is free of what has not stopped.
    `ghost_limit`: how much of a ClusterQueue may be occupied after its quota was freed early, as a part of what the
    queue could ever have; None: without limit.
    """

    by_kind: Mapping[str, ReleaseRule] = field(default_factory=dict)
    fast_pods: bool = True
    deadline: float = DEADLINE_SECONDS
    ghost_limit: float | None = 1.0
