"""One budget for writes that only inform: queue status and why something waits. A tenth of all writes, no more.

So that nothing of it ever stands in the way of a transition. Whoever finds no token stands in line and
is called when its turn comes: thousands that ask again and again would keep the manager from everything else.
Workloads, of which there may be thousands, stand in one line, all else (queues) in another; the lines take turns.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gatelift.core.api.agenda import Key, Look

SHARE = 0.1
PER_SECOND = 10.0
"""Granted besides the share, so that an idle manager still tells people quickly."""
SAVED_MAX = 50.0
"""What may be saved up for a burst."""
OUT_MAX = 16
"""Writes that only inform under way at a time: an API server that is slow is not asked for more than it carries out."""
STALE_MAX = 64
"""Entries of the line beyond twice those that count, before it is tidied up."""


@dataclass(slots=True)
class _Line:
    """Who waits, oldest first; who leaves is skipped."""

    order: deque[Key] = field(default_factory=deque)
    waiting: set[Key] = field(default_factory=set)  # those that count, each once

    def stand(self, key: Key) -> None:
        self.waiting.add(key)
        self.order.append(key)
        if len(self.order) > 2 * len(self.waiting) + STALE_MAX:
            self.order = deque(dict.fromkeys(one for one in self.order if one in self.waiting))

    def take(self) -> Key:
        key = self.order.popleft()
        while key not in self.waiting:
            key = self.order.popleft()
        self.waiting.discard(key)
        return key


@dataclass(slots=True)
class StatusBudget:
    """Tokens: one is one write."""

    per_second: float = PER_SECOND
    saved_max: float = SAVED_MAX
    out_max: int = OUT_MAX
    tokens: float = SAVED_MAX
    at: float = 0.0
    out: int = 0
    """How many are under way."""
    _lines: list[_Line] = field(default_factory=lambda: [_Line(), _Line()])  # all else, workloads
    _turn: int = 0
    _called: set[Key] = field(default_factory=set)  # whose turn it is: their token is taken

    def ask(self, key: Key, now: float) -> bool:
        """Take a token for a write about `key`; where others wait or there is none, it stands in line (see `call`)."""
        if key in self._called:
            self._called.discard(key)
            return True
        if not self.waiting and self.spend(now):
            return True
        self.stand(key)
        return False

    def stand(self, key: Key) -> None:
        """Stand in line; who is there already keeps its place."""
        line = self._line_of(key)
        if key not in line.waiting and key not in self._called:
            line.stand(key)

    def stands(self, key: Key) -> bool:
        """Say whether `key` stands in line: it will be called, so nobody need look at it before."""
        return key in self._line_of(key).waiting

    def leave(self, key: Key) -> None:
        """Leave the line: there is nothing to write any more."""
        self._line_of(key).waiting.discard(key)
        self._called.discard(key)

    def call(self, now: float, most: int | None = None) -> list[Key]:
        """Return whose turn it is, one for each token, at most `saved_max`, or `most`."""
        called: list[Key] = []
        while self.waiting and (most is None or len(called) < most) and self.spend(now):
            self._turn = 1 - self._turn
            line = self._lines[self._turn] if self._lines[self._turn].waiting else self._lines[1 - self._turn]
            key = line.take()
            self._called.add(key)
            called.append(key)
        return called

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return sum(len(line.waiting) for line in self._lines)

    def _line_of(self, key: Key) -> _Line:
        return self._lines[key.look is Look.WORKLOAD]

    def began(self, *, informs: bool) -> None:
        """Take that a write is under way, and whether it only informs."""
        self.out += informs

    def ended(self, *, informs: bool) -> None:
        """Take that its outcome is there."""
        self.out -= informs

    def counts(self, out: int) -> None:
        """Take how many writes are under way, where somebody else counts them."""
        self.out = out

    def allow(self, out_max: int) -> None:
        """Take how many may be under way."""
        self.out_max = out_max

    def earn(self) -> None:
        """Note a write that is a transition."""
        self.tokens = min(self.saved_max, self.tokens + SHARE)

    def spend(self, now: float) -> bool:
        """Take one token; False when there is none (look again after `wait`)."""
        self.tokens = min(self.saved_max, self.tokens + max(0.0, now - self.at) * self.per_second)
        self.at = now
        if self.tokens < 1.0 or self.out >= self.out_max:
            return False
        self.tokens -= 1.0
        return True

    @property
    def wait(self) -> float:
        """Seconds until the next token, at the most."""
        return 1.0 / self.per_second
