"""An end under way, and whether its quota is free before it has stopped (KEP-6143): what the record says of it. Pure.

Three moments: stop asked, all leaving, stopped. From the second on a condition says that the Workload drains. Released
is not ended (P1): the record keeps its reservation, cluster and epoch until the third, so every leader knows where to
ask and what may still occupy nodes, and nothing of it is begun anew. The reason says whether the quota is free.
Neighbours: `record` reads it, `releasing` has it written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gatelift_kube.objects.conditions import TRUE, find
from gatelift_kube.objects.kueue import Workload

CONDITION: Final = "gatelift.dev/Draining"
HELD: Final = "QuotaHeld"
RELEASED: Final = "QuotaReleased"
RELEASED_BY_DEADLINE: Final = "QuotaReleasedByDeadline"
"""Also the reason of a Warning."""
_RELEASES: Final = frozenset({RELEASED, RELEASED_BY_DEADLINE})


@dataclass(frozen=True, slots=True, kw_only=True)
class AllLeave:
    """All of a placement is on its way out, by its cluster's word. Monotonic seconds.

    `stops_by`: when the time is over that the last of them was given, `running_stops_by` the last whose containers run.
    `holds`: its cluster frees quota when they have stopped, whatever the rule. `asked`: the user's own object has been
    asked for since, before a deadline frees anything by a word that is as old as that.
    """

    at: float
    stops_by: float
    running_stops_by: float
    holds: bool = False
    asked: bool = False


def is_released(workload: Workload) -> bool:
    """Say whether the record says that its quota is free while its pods stop."""
    said = find(workload.status.conditions, CONDITION)
    return said is not None and said.status == TRUE and said.reason in _RELEASES
