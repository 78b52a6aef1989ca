"""When the status of each queue, cohort and check was written last, and which flavors leave. Pure.

Neighbours: `core` (owns it), `showing` (sees that they are looked at), `rules.checks` and `rules.in_use` (write them).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from gatelift.core.api.agenda import Key
from gatelift_kube.values.resources import ObjectKey


@dataclass(slots=True)
class ShownQueues:
    """Only this module writes it."""

    _written_at: dict[Key, float] = field(default_factory=dict)
    _leaving: dict[ObjectKey, None] = field(default_factory=dict)

    def written(self, key: Key, now: float) -> None:
        """Take that a status is being written."""
        self._written_at[key] = now

    def due(self, key: Key, every: float) -> float | None:
        """Return from when on a status may be written again; None: it was not yet."""
        written = self._written_at.get(key)
        return None if written is None else written + every

    def forget(self, key: Key) -> None:
        """Keep nothing of an object that is gone."""
        self._written_at.pop(key, None)

    def leaves(self, flavor: ObjectKey) -> None:
        """Take that a ResourceFlavor is being deleted."""
        self._leaving[flavor] = None

    def left(self, flavor: ObjectKey) -> None:
        """Take that a ResourceFlavor is gone."""
        self._leaving.pop(flavor, None)

    def leaving(self) -> Collection[ObjectKey]:
        """Return the ResourceFlavors that are being deleted."""
        return self._leaving.keys()
