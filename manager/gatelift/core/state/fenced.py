"""Placements of which a person said that they do not run. Pure. Neighbours: `core` (owns it), `endings`, `reports`."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_wire.values.keys import PlacementKey

FENCED_MAX = 10_000
"""Placements declared fenced that are remembered, for the event that tells a person that he erred."""


@dataclass(slots=True)
class FencedPlacements:
    """By whom each was declared fenced, as long as it was not heard of again. Only this module writes it."""

    _by: dict[PlacementKey, str] = field(default_factory=dict)

    def remember(self, key: PlacementKey, who: str) -> None:
        """Remember that a person said that this placement does not run."""
        if len(self._by) >= FENCED_MAX:
            del self._by[next(iter(self._by))]
        self._by[key] = who

    def heard(self, key: PlacementKey) -> str | None:
        """Return who declared a placement fenced of which its cluster tells, once; None for nobody."""
        return self._by.pop(key, None)
