"""One budget for writes that only inform: queue status and why something waits. A tenth of all writes, no more.

So that nothing of it ever stands in the way of a transition. Whoever finds no token stands in line and
is called when its turn comes: thousands that ask again and again would keep the manager from everything else.
Shares take turns in the line (`asks`), so that nobody's thousands stand before somebody else's one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.api.asks import WriteAsk
from gatelift_kube.deciding.fair_line import FairLine

SHARE = 0.1
PER_SECOND = 10.0
"""Granted besides the share, so that an idle manager still tells people quickly."""
SAVED_MAX = 50.0
"""What may be saved up for a burst."""
OUT_MAX = 16
"""Writes that only inform under way at a time: an API server that is slow is not asked for more than it carries out."""
CALLED_SECONDS = 60.0
"""Who was called and has not asked for so long has nothing to write any more: its token is lost."""


@dataclass(slots=True)
class StatusBudget:
    """Tokens: one is one write. `of_cluster`: it is for what one cluster says."""

    per_second: float = PER_SECOND
    saved_max: float = SAVED_MAX
    out_max: int = OUT_MAX
    tokens: float = SAVED_MAX
    at: float = 0.0
    out: int = 0
    """How many are under way."""
    of_cluster: bool = False
    _line: FairLine[WriteAsk] = field(default_factory=FairLine)
    _called: dict[WriteAsk, float] = field(default_factory=dict)  # whose turn it is, since when: their token is taken

    def ask(self, asks: WriteAsk, now: float) -> bool:
        """Take a token for a write; where others wait or there is none, who asks stands in line (see `call`)."""
        if self._called.pop(asks, None) is not None:
            return True
        if not self.waiting and self.spend(now):
            return True
        self.stand(asks)
        return False

    def stand(self, asks: WriteAsk) -> None:
        """Stand in line; who is there already keeps its place."""
        if asks not in self._called:
            self._line.stand(asks, asks.share_of_cluster if self.of_cluster else asks.share)

    def stands(self, asks: WriteAsk) -> bool:
        """Say whether it stands in line: it will be called, so nobody need look at it before."""
        return asks in self._line

    def leave(self, asks: WriteAsk) -> None:
        """Leave the line: there is nothing to write any more."""
        self._line.leave(asks)
        self._called.pop(asks, None)

    def call(self, now: float, most: int | None = None) -> list[WriteAsk]:
        """Return whose turn it is, one for each token, at most `saved_max`, or `most`."""
        self._forget_called(now)
        called: list[WriteAsk] = []
        while self.waiting and (most is None or len(called) < most) and self.spend(now):
            asks = self._line.take()
            self._called[asks] = now
            called.append(asks)
        return called

    def _forget_called(self, now: float) -> None:
        while self._called:
            first = next(iter(self._called))
            if now - self._called[first] < CALLED_SECONDS:
                return
            del self._called[first]

    @property
    def waiting(self) -> int:
        """How many stand in line."""
        return len(self._line)

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
