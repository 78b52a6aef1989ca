"""What may still be occupied of each cluster, as it was counted last: what a choice of clusters goes by.

Neighbour: `ghosts` counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gatelift_admission.values.model import Usage

COUNT_SECONDS = 1.0
"""What a choice goes by is counted so often at most where there are many: a thousand take milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ghost:
    """What one workload still may occupy of a cluster, by flavor and resource of its ClusterQueue."""

    uid: str
    cluster: str
    queue: str
    usage: Usage


@dataclass(slots=True)
class Haunted:
    """By cluster and resource, and by ClusterQueue. `changes`: how often a ghost has come, changed or gone."""

    _counted_at: float = float("-inf")
    _counted_as: int = 0
    _found: dict[str, dict[str, int]] = field(default_factory=dict)
    _of_queues: dict[str, dict[tuple[str, str], int]] = field(default_factory=dict)

    def is_old(self, now: float, *, changes: int, few: bool) -> bool:
        """Say whether it is to be counted anew; of `few` as often as one comes or goes."""
        return now >= self._counted_at + COUNT_SECONDS or (few and self._counted_as != changes)

    def count(self, found: Iterable[Ghost], now: float, *, changes: int) -> None:
        """Take what there is now."""
        self._counted_at, self._counted_as = now, changes
        self._found, self._of_queues = {}, {}
        for each in found:
            total = self._found.setdefault(each.cluster, {})
            queue = self._of_queues.setdefault(each.queue, {})
            for cell, amount in each.usage.items():
                total[cell[1]] = total.get(cell[1], 0) + amount
                queue[cell] = queue.get(cell, 0) + amount

    def old_from(self, changes: int) -> float | None:
        """Return from when on it is counted anew, None where nothing has changed since it was."""
        return None if self._counted_as == changes else self._counted_at + COUNT_SECONDS

    def of_queue(self, name: str) -> Usage:
        """Return what may still be occupied of a ClusterQueue, by flavor and resource."""
        return self._of_queues.get(name, {})

    def at(self, cluster: str) -> Mapping[str, int]:
        """Return what may still be occupied of a cluster."""
        return self._found.get(cluster, {})
