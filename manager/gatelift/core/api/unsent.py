"""Objects whose write found no turn: they are looked at again when there is one. Pure. Neighbour: `passes` (looks).

Namespaces take turns: one that has thousands to write keeps nobody else's one waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_kube.deciding.fair_line import FairLine
from gatelift_kube.values.resources import ObjectRef


@dataclass(slots=True)
class Unsent:
    """Each object once, oldest first in its namespace. Only this module writes it."""

    _line: FairLine[ObjectRef] = field(default_factory=FairLine)
    _charging: set[ObjectRef] = field(default_factory=set)

    def stand(self, ref: ObjectRef, *, charges: bool = False) -> None:
        """Let an object wait for a turn; who waits already keeps its place. `charges`: quota is kept for its write."""
        self._line.stand(ref, (ref.key.namespace,))
        if charges:
            self._charging.add(ref)

    def next(self, count: int = 1) -> list[ObjectRef]:
        """Take the first objects that wait for a turn."""
        taken = [self._line.take() for _ in range(min(count, len(self._line)))]
        self._charging.difference_update(taken)
        return taken

    @property
    def charging(self) -> int:
        """How many of them quota is kept for."""
        return len(self._charging)

    def __contains__(self, ref: ObjectRef) -> bool:
        """Say whether an object waits for a turn."""
        return ref in self._line

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._line)
