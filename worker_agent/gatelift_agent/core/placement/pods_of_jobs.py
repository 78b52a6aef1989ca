"""What is known of pods of a Job that no watch shows, or that are not there. Neighbour: `placements` has them."""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_kube.objects.core import Pod


@dataclass(slots=True, kw_only=True)
class Hidden:
    """A pod of a Job that the watch calls gone, as it was seen last; see `hidden`."""

    pod: Pod
    asked: bool = False
    retry_at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Shortage:
    """Pods of a pod set that are not there; see `missing_pods`. `made`: so many were seen, the last at `since`."""

    since: float
    made: int
    asking: bool = False
    """The API server is being asked for one more; from `again_at` on it may be `again`, and is where nobody could tell.
    `why`: its no, "" for none."""
    again: bool = False
    again_at: float = 0.0
    answered: bool = False
    why: str = ""
