"""Objects that come to a live placement and leave it, and what most placements have nothing of. Pure.

Neighbour: `placements`. A pod of its own has none of this, and there are ten thousands of those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gatelift_agent.core.placement.placements import Tracked

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def nothing() -> Mapping[str, Any]:
    """Return one empty mapping for all that have nothing."""
    return _NOTHING


@dataclass(slots=True)
class Membership:
    """Who came to a live placement, and who left it.

    `heirs`: those that wait until one of another user's object has stopped, whose name they are to have. `left`: UIDs
    of user's objects of which nothing is left here: none is made again. `turned_away`: by pod set, how many pods that a
    driver made here were ended unused, beyond the count. `in_slots`: pod set by UID of what a start found let go at
    home, and not replaced by another one since; `unknown`: by pod set, slots of which it found nothing.
    """

    heirs: dict[str, Tracked] = field(default_factory=dict)
    left: dict[str, None] = field(default_factory=dict)
    turned_away: dict[str, int] = field(default_factory=dict)
    in_slots: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    def turns_away(self, pod_set: str) -> None:
        """Count one that was ended unused."""
        self.turned_away[pod_set] = self.turned_away.get(pod_set, 0) + 1

    def finds(self, uid: str, pod_set: str) -> None:
        """Take that a start has found one in a slot of a pod set."""
        self.in_slots[uid] = pod_set

    def knows_of(self, pod_sets: Mapping[str, str], granted: Mapping[str, int]) -> None:
        """Take of which pod set each is that has a slot, by UID: of the other slots nothing is known."""
        known = Counter((self.in_slots | dict(pod_sets)).values())
        free = {name: count - known[name] for name, count in granted.items()}
        self.unknown = {name: count for name, count in free.items() if count > 0}
