"""How often each epoch of a Workload is charged and released, as the outside check counts it: once each.

A leader that was writing an end as it died may have that land late: its successor, which cannot tell it from a
stranger's, may put back what stood until then, and ends it once its cluster was heard. That very reservation, on that
very cluster, granted at that very time, once for each such write: anything else is a second charge (decision 48).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from support.sim.objects import TruthError

Doc = dict[str, Any]
Epoch = tuple[str, int]


def _standing(workload: Doc) -> tuple[Any, ...]:
    """Return what one reservation is: what it grants, where, and since when it says so."""
    status = workload["status"]
    said = [each for each in status["conditions"] if each["type"] == "QuotaReserved"]
    return status.get("admission"), status.get("clusterName"), said


class Charges:
    """Counts. An epoch is (UID, number)."""

    def __init__(self) -> None:
        self._charges: Counter[Epoch] = Counter()
        self._releases: Counter[Epoch] = Counter()
        self._late: dict[Epoch, tuple[Any, ...]] = {}
        self._reserved_late: dict[str, Epoch] = {}

    def clear(self) -> None:
        """Take that the records were put back to an earlier time."""
        for each in (self._charges, self._releases, self._late, self._reserved_late):
            each.clear()

    def is_late(self, workload: str) -> bool:
        """Say whether a reservation stands that whoever asked for it could begin nothing by: it is to be taken back."""
        return workload in self._reserved_late

    def charged(self, name: str, epoch: Epoch, after: Doc, *, late: bool = False) -> None:
        """Take that an epoch is charged from this write on; `late`: whoever asked for that leads no more."""
        if late:
            self._reserved_late[epoch[0]] = epoch
            return
        if self._late.pop(epoch, None) == _standing(after):
            self._releases[epoch] -= 1
            return
        self._charges[epoch] += 1
        if self._charges[epoch] > 1:
            raise TruthError(f"workload {name}: epoch {epoch[1]} is charged twice")

    def released(self, name: str, epoch: Epoch, before: Doc, *, late: bool) -> None:
        """Take that an epoch is charged no more; `late`: whoever asked for that leads no more."""
        if self._reserved_late.pop(epoch[0], None) is not None:
            return
        self._releases[epoch] += 1
        if self._releases[epoch] > 1:
            raise TruthError(f"workload {name}: epoch {epoch[1]} is released twice")
        if late:
            self._late[epoch] = _standing(before)

    def taken_away(self, epoch: Epoch) -> None:
        """Take that a person took a reservation off its record: that may be put back."""
        self._charges[epoch] -= 1
