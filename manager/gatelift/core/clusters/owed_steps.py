"""Steps of links that raised and are taken again: one of a kind for each cluster, the newest. Pure.

What a link was to hear once, and nobody says again (that it leads, its WorkerCluster as it is, that a stream is over),
is kept here until it could be taken. Neighbour: `links` (owns it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gatelift.core.clusters.linking import Effects

Take = Callable[[float, Effects], None]
LEAD, SEEN = "lead", "seen"
"""Kinds of steps; a stream that is over is one of its own, by its number. They are taken in this order."""


@dataclass(slots=True)
class OwedSteps:
    """By cluster: what is owed, and when it is tried."""

    _steps: dict[str, dict[str, Take]] = field(default_factory=dict)
    _at: dict[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Say whether anything is owed."""
        return bool(self._steps)

    def owe(self, cluster: str, kind: str, take: Take, at: float) -> None:
        """Keep a step until it could be taken."""
        self._steps.setdefault(cluster, {})[kind] = take
        self._at[cluster] = at

    def paid(self, cluster: str, kind: str) -> None:
        """Take that a step was taken, or a newer one of the kind."""
        mine = self._steps.get(cluster)
        if mine is not None and mine.pop(kind, None) is not None and not mine:
            self.forget(cluster)

    def owes(self, cluster: str, kind: str) -> bool:
        """Say whether a step is owed."""
        return kind in self._steps.get(cluster, ())

    def of(self, cluster: str) -> tuple[tuple[str, Take], ...]:
        """Return what is owed to a cluster: first that it leads, then what its object is, then the rest."""
        mine = self._steps.get(cluster, {})
        first = [kind for kind in (LEAD, SEEN) if kind in mine]
        return tuple((kind, mine[kind]) for kind in (*first, *(each for each in mine if each not in first)))

    def due(self, now: float) -> list[str]:
        """Return whose turn it is."""
        return sorted(cluster for cluster, at in self._at.items() if at <= now)

    def next_time(self) -> float | None:
        """Return when the next is tried."""
        return min(self._at.values(), default=None)

    def forget(self, cluster: str) -> None:
        """Owe nothing to a cluster."""
        self._steps.pop(cluster, None)
        self._at.pop(cluster, None)

    def clear(self) -> None:
        """Owe nothing: the lead is lost."""
        self._steps.clear()
        self._at.clear()
