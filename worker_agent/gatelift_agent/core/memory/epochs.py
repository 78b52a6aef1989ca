"""The memory of used epochs (rule R5): an epoch of a workload is used once in this cluster.

Counted as used: accepted, refused at commit, stopped (also before it was ever seen), finished, or found on an object.
A bid that refuses does not use the epoch up: nothing was promised, and the same attempt may be offered again.
The memory lasts as long as the process; together with rule R6 (messages belong to a session) that is enough, and
Forget does not erase it.
"""

from __future__ import annotations

from gatelift_wire.values.keys import PlacementKey

REMEMBERED_MAX = 500_000
"""Workloads remembered; about 60 MB. The oldest entry goes first: it is many sessions old by then."""


class EpochMemory:
    """Highest used epoch by workload UID."""

    __slots__ = ("_highest", "_limit")

    def __init__(self, limit: int = REMEMBERED_MAX) -> None:
        self._highest: dict[str, int] = {}
        self._limit = limit

    def use(self, key: PlacementKey) -> None:
        """Remember that this epoch, and with it every lower one, is used up."""
        highest = self._highest.pop(key.uid, 0)
        self._highest[key.uid] = max(highest, key.epoch)
        if len(self._highest) > self._limit:
            del self._highest[next(iter(self._highest))]

    def is_used(self, key: PlacementKey) -> bool:
        """Say whether an offer or commit of this epoch comes too late."""
        return key.epoch <= self._highest.get(key.uid, 0)

    def highest(self, uid: str) -> int:
        """Return the highest used epoch of the workload, 0 if none."""
        return self._highest.get(uid, 0)
