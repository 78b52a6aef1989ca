"""What is known of pods of a Job that its controller does not make. Neighbour: `reporting.missing_pods` changes it."""

from __future__ import annotations

from dataclasses import dataclass


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
