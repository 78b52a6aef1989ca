"""How many placements the manager may have un-applied at one agent. Pure. Neighbour: the manager's dispatch.

The agent grants a level (not a delta) and lowers it when its API server is slow; a lower grant takes nothing back, it
only stops new ones until enough have been applied.
"""

from __future__ import annotations

from gatelift_wire.keys import PlacementKey


class CreditWindow:
    """Placements sent and not applied, against the grant. Forgotten with the session: `reset`."""

    __slots__ = ("_outstanding", "granted", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.granted = 0
        self._outstanding: set[PlacementKey] = set()

    @property
    def outstanding(self) -> int:
        """How many placements are sent and not applied."""
        return len(self._outstanding)

    @property
    def free(self) -> int:
        """How many more may be sent now; never negative."""
        return max(0, min(self.granted, self.window) - len(self._outstanding))

    def grant(self, credits_: int) -> None:
        """Take the agent's latest word."""
        self.granted = max(0, credits_)

    def take(self, key: PlacementKey) -> bool:
        """Count a placement as sent if there is room. True also when it is counted already."""
        if key in self._outstanding:
            return True
        if self.free == 0:
            return False
        self._outstanding.add(key)
        return True

    def settle(self, key: PlacementKey) -> None:
        """Free its credit: the agent applied, refused, stopped or lost it, or the manager took it back."""
        self._outstanding.discard(key)

    def reset(self, credits_: int) -> None:
        """Start anew: a session after a resync, with the grant of its Hello."""
        self._outstanding.clear()
        self.grant(credits_)
