"""Objects whose write found no turn: they are looked at again when there is one. Pure. Neighbour: `passes` (looks)."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.lines import take_first
from gatelift_kube.values.resources import ObjectRef


@dataclass(slots=True)
class Unsent:
    """Each object once, oldest first. Only this module writes it."""

    _refs: dict[ObjectRef, None] = field(default_factory=dict)

    def stand(self, ref: ObjectRef) -> None:
        """Let an object wait for a turn; who waits already keeps its place."""
        self._refs.setdefault(ref)

    def next(self, count: int = 1) -> list[ObjectRef]:
        """Take the first objects that wait for a turn."""
        return take_first(self._refs, count)

    def __contains__(self, ref: ObjectRef) -> bool:
        """Say whether an object waits for a turn."""
        return ref in self._refs

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._refs)
