"""How much of this process one peer gets: CPU, bytes and items per second, for all of its streams together. Pure.

A peer is the identity in a certificate, so more streams are no more budget, greeted or not. Each account is a debt that
is paid off at a steady rate; who owes more than the burst waits. The wait is the stream's own: what is not read stays
with its sender, by flow control. Who owes more for minutes on end is closed, with a reason. Neighbour: `peer_turns`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

CPU_SHARE = 0.1
"""Seconds of this process for the frames of one peer, per second: a worker with 500 reports a second takes 0.03."""

CPU_BURST_SECONDS = 2.0
"""Before anybody waits for that: the inventory of 100,000 placements takes one second."""

PACE_SHARE = 0.2
"""The same within a burst, so that nobody's burst is all that others notice for seconds."""

PACE_BURST_SECONDS = 0.05
"""Before anybody waits for that: two or three large frames, or what a busy worker says in a second and a half."""

BYTES_PER_SECOND = 8 * 1024 * 1024
"""Four times what a worker says that starts a hundred pods a second; a peer's window is through in a second."""

BYTES_BURST = 32 * 1024 * 1024
"""Before anybody waits: one and a half inventories of 100,000 placements."""

ITEMS_PER_SECOND = 10_000
"""Messages, controls and what stands in their lists: a worker with 500 reports a second says fewer than 2,000."""

ITEMS_BURST = 250_000
"""Before anybody waits: two and a half inventories of 100,000 placements."""

STREAM_SECONDS = 0.05
"""What a stream is charged as it opens: handshake, greeting, and the write that each session begins with. Forty within
ten seconds, then two a second; an honest agent dials once a second at the most."""

WAIT_SECONDS_MAX = 10.0
"""One frame waits no longer, what is owed beyond is let off: an honest peer's renewal behind it must not come too late
for its lease (29 s), and the dearest frame takes less than a tenth of this."""

PACE_WAIT_SECONDS_MAX = 1.0
"""The same for the pace: what one frame has cost at the most, four times."""

ABOVE_SECONDS_MAX = 120.0
"""Who owes more than a burst for so long, without a pause, is closed: no inventory takes half as long."""

ACCOUNTS_MAX = 1024
"""Accounts that are kept although nothing is owed: one of each worker."""


PAID_EVERY_SECONDS = 0.001
"""What is owed is paid off in steps of this at the least: one frame asks several times, within a few hundred us."""


class _Limit(NamedTuple):
    rate: float
    burst: float
    wait: float = WAIT_SECONDS_MAX


_SECONDS, _PACE, _SIZE, _ITEMS = range(4)
_LIMITS = (
    _Limit(CPU_SHARE, CPU_BURST_SECONDS),
    _Limit(PACE_SHARE, PACE_BURST_SECONDS, PACE_WAIT_SECONDS_MAX),
    _Limit(BYTES_PER_SECOND, BYTES_BURST),
    _Limit(ITEMS_PER_SECOND, ITEMS_BURST),
)


@dataclass(slots=True)
class _Account:
    at: float
    owed: list[float] = field(default_factory=lambda: [0.0] * len(_LIMITS))
    above_since: float | None = None
    """Since when each frame had to wait for more than its pace."""

    def pay(self, now: float) -> None:
        passed = now - self.at
        if passed < PAID_EVERY_SECONDS:
            return
        self.at = now
        if any(self.owed):
            self.owed = [max(0.0, owed - passed * limit.rate) for owed, limit in zip(self.owed, _LIMITS, strict=True)]


class PeerBudget:
    """The accounts of all peers. `now` is monotonic and never goes back."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def spent(self, peer: str, now: float, *, seconds: float = 0.0, size: int = 0, items: int = 0) -> None:
        """Charge what a peer has cost."""
        owed = self._of(peer, now).owed
        owed[_SECONDS] += seconds
        owed[_PACE] += seconds
        owed[_SIZE] += size
        owed[_ITEMS] += items

    def wait(self, peer: str, now: float) -> float:
        """Return for how many seconds a peer's next frame waits, 0 for not at all."""
        account = self._of(peer, now)
        longest = above = 0.0
        for index, limit in enumerate(_LIMITS):
            account.owed[index] = min(account.owed[index], limit.burst + limit.wait * limit.rate)
            seconds = (account.owed[index] - limit.burst) / limit.rate
            longest = max(longest, seconds)
            above = above if index == _PACE else max(above, seconds)
        if not above:
            account.above_since = None
        elif account.above_since is None:
            account.above_since = now
        return longest

    def pace(self, peer: str, now: float) -> float:
        """Return for how many seconds the next slice of a frame waits, so that its slices are no burst either."""
        limit = _LIMITS[_PACE]
        return max(0.0, min(limit.wait, (self._of(peer, now).owed[_PACE] - limit.burst) / limit.rate))

    def stays_above(self, peer: str, now: float) -> bool:
        """Say whether a peer is to be closed; it then has as long again."""
        account = self._of(peer, now)
        if account.above_since is None or now - account.above_since < ABOVE_SECONDS_MAX:
            return False
        account.above_since = None
        return True

    def _of(self, peer: str, now: float) -> _Account:
        """Return an account with what was paid off since."""
        account = self._accounts.get(peer)
        if account is None:
            if len(self._accounts) >= ACCOUNTS_MAX:
                self._forget(now)
            account = self._accounts[peer] = _Account(at=now)
        account.pay(now)
        return account

    def _forget(self, now: float) -> None:
        for peer, account in tuple(self._accounts.items()):
            account.pay(now)
            if not any(account.owed):
                del self._accounts[peer]
