"""Why workloads wait, until their Workloads say so. Pure. Neighbours: `core` (owns it), `requeueing` (writes it)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class WaitingReasons:
    """By UID: reason and message to be said, and when something was said last. Only this module writes it."""

    _reasons: dict[str, tuple[str, str]] = field(default_factory=dict)
    _written_at: dict[str, float] = field(default_factory=dict)

    def say(self, uid: str, said: tuple[str, str]) -> bool:
        """Take what is to be said; False: it already was."""
        before, self._reasons[uid] = self._reasons.get(uid), said
        return before != said

    def of(self, uid: str) -> tuple[str, str] | None:
        """Return what is to be said, None for nothing."""
        return self._reasons.get(uid)

    def said(self, uid: str) -> None:
        """Take that nothing is to be said any more: the Workload says it, or waits no more."""
        self._reasons.pop(uid, None)

    def written(self, uid: str, now: float) -> None:
        """Take that a Workload is being told."""
        self._written_at[uid] = now

    def due(self, uid: str, every: float) -> float:
        """Return from when on a Workload may be told something, `every` seconds after the last time."""
        return self._written_at.get(uid, 0.0) + every

    def forget(self, uid: str) -> None:
        """Keep nothing of a workload."""
        self._reasons.pop(uid, None)
        self._written_at.pop(uid, None)
