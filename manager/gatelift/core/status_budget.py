"""One budget for writes that only inform: queue status and why something waits. A tenth of all writes, no more.

So that nothing of it ever stands in the way of a transition (design 11). Whoever finds no token stands in one line and
is called when its turn comes: thousands that ask again and again would keep the manager from everything else.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gatelift.core.agenda import Key

SHARE = 0.1
PER_SECOND = 10.0
"""Granted besides the share, so that an idle manager still tells people quickly."""
SAVED_MAX = 50.0
"""What may be saved up for a burst."""
STALE_MAX = 64
"""Entries of the line beyond twice those that count, before it is tidied up."""


@dataclass(slots=True)
class StatusBudget:
    """Tokens: one is one write."""

    tokens: float = SAVED_MAX
    at: float = 0.0
    _line: deque[Key] = field(default_factory=deque)
    _waiting: set[Key] = field(default_factory=set)  # those in the line that count, each once
    _called: set[Key] = field(default_factory=set)  # whose turn it is: their token is taken

    def ask(self, key: Key, now: float) -> bool:
        """Take a token for a write about `key`; where others wait or there is none, it stands in line (see `call`)."""
        if key in self._called:
            self._called.discard(key)
            return True
        if not self._waiting and self.spend(now):
            return True
        self.stand(key)
        return False

    def stand(self, key: Key) -> None:
        """Stand in line; who is there already keeps its place."""
        if key in self._waiting or key in self._called:
            return
        self._waiting.add(key)
        self._line.append(key)
        if len(self._line) > 2 * len(self._waiting) + STALE_MAX:
            self._line = deque(dict.fromkeys(one for one in self._line if one in self._waiting))

    def leave(self, key: Key) -> None:
        """Leave the line: there is nothing to write any more."""
        self._waiting.discard(key)
        self._called.discard(key)

    def call(self, now: float) -> list[Key]:
        """Return whose turn it is, one for each token, at most SAVED_MAX."""
        called: list[Key] = []
        while self._waiting and self.spend(now):
            key = self._line.popleft()
            while key not in self._waiting:
                key = self._line.popleft()
            self._waiting.discard(key)
            self._called.add(key)
            called.append(key)
        return called

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._waiting)

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
