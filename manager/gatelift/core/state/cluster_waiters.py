"""Who waits for a cluster: for room at one, or for any that could take it. Pure. Neighbours: `core` (owns it)."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.lines import take_first


@dataclass(slots=True)
class ClusterWaiters:
    """UIDs of attempts, each list with who has waited longest first. Only this module writes it."""

    _for_room: dict[str, None] = field(default_factory=dict)
    _for_any: dict[str, None] = field(default_factory=dict)

    def wait_for_room(self, uid: str) -> None:
        """Let an attempt wait until a cluster has room; who waits already keeps its place."""
        self._for_room.setdefault(uid)

    def next_for_room(self) -> str | None:
        """Take whoever has waited longest for room."""
        return next(iter(take_first(self._for_room, 1)), None)

    def waits_for_room(self, uid: str) -> bool:
        """Say whether an attempt waits for room."""
        return uid in self._for_room

    def count_for_room(self) -> int:
        """Return how many wait for room."""
        return len(self._for_room)

    def wants_no_room(self, uid: str) -> None:
        """Take that an attempt waits for no room any more."""
        self._for_room.pop(uid, None)

    def wait_for_any(self, uid: str) -> None:
        """Let an attempt wait that no cluster could take, until something about one of them changes."""
        self._for_any[uid] = None

    def next_for_any(self, count: int) -> list[str]:
        """Take so many of those that no cluster could take."""
        return take_first(self._for_any, count)

    def forget(self, uid: str) -> None:
        """Keep nothing of an attempt."""
        self._for_room.pop(uid, None)
        self._for_any.pop(uid, None)
