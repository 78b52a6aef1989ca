"""Pods that came to our gate, were let go, or were turned away (KEP-976): counted by who leads, each once. Pure.

What a leader found as it began was there before, and is not counted again. Neighbours: `told.pod_moments` counts,
`adapters.pod_figures` shows it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gatelift_kube.values.waits import Waits


@dataclass(slots=True)
class PodCounts:
    """By ClusterQueue, "" where a pod names no queue that there is; `rejected` by reason as well.

    `removal`: how long they were gated after their Workload was admitted, by ClusterQueue and whether they are of a
    group. Only this module writes it.
    """

    gated: Counter[str] = field(default_factory=Counter)
    ungated: Counter[str] = field(default_factory=Counter)
    rejected: Counter[tuple[str, str]] = field(default_factory=Counter)
    removal: dict[tuple[str, bool], Waits] = field(default_factory=dict)

    def is_gated(self, queue: str) -> None:
        """Count a pod that has come, with our gate."""
        self.gated[queue] += 1

    def is_ungated(self, queue: str, seconds: float | None, *, of_group: bool) -> None:
        """Count a pod that was let go; `seconds` after its Workload was admitted, where it was."""
        self.ungated[queue] += 1
        if seconds is not None:
            self.removal.setdefault((queue, of_group), Waits()).add(max(0.0, seconds))

    def is_rejected(self, queue: str, reason: str) -> None:
        """Count a pod that was turned away."""
        self.rejected[queue, reason] += 1
