"""One budget for writes that only inform: queue status and why something waits. A tenth of all writes, no more.

So that nothing of it ever stands in the way of a transition (design 11).
"""

from __future__ import annotations

from dataclasses import dataclass

SHARE = 0.1
PER_SECOND = 10.0
"""Granted besides the share, so that an idle manager still tells people quickly."""
SAVED_MAX = 50.0
"""What may be saved up for a burst."""


@dataclass(slots=True)
class StatusBudget:
    """Tokens: one is one write."""

    tokens: float = SAVED_MAX
    at: float = 0.0

    def earn(self) -> None:
        """Note a write that is a transition."""
        self.tokens = min(SAVED_MAX, self.tokens + SHARE)

    def spend(self, now: float) -> bool:
        """Take one token; False when there is none (look again after `wait`)."""
        self.tokens = min(SAVED_MAX, self.tokens + max(0.0, now - self.at) * PER_SECOND)
        self.at = now
        if self.tokens < 1.0:
            return False
        self.tokens -= 1.0
        return True

    @property
    def wait(self) -> float:
        """Seconds until the next token, at the most."""
        return 1.0 / PER_SECOND
