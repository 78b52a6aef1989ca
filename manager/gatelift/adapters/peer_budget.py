"""How much of this process one peer gets: bytes and CPU per second, for all of its streams together. Pure.

A peer is the identity in a certificate, so more streams are no more budget, greeted or not. Each account is a debt that
is paid off at a steady rate; who owes more than the burst waits. The wait is the stream's own: what is not read stays
with its sender, by flow control. Neighbour: `peer_turns`.
"""

from __future__ import annotations

from dataclasses import dataclass

CPU_SHARE = 0.1
"""Seconds of this process for the frames of one peer, per second: a worker with 500 reports a second takes 0.03."""

CPU_BURST_SECONDS = 2.0
"""Before anybody waits: the inventory of 100,000 placements takes one second."""

BYTES_PER_SECOND = 8 * 1024 * 1024
"""Four times what a worker says that starts a hundred pods a second; a peer's window is through in a second."""

BYTES_BURST = 32 * 1024 * 1024
"""Before anybody waits: one and a half inventories of 100,000 placements."""

WAIT_SECONDS_MAX = 10.0
"""One frame waits no longer, what is owed beyond is let off: an honest peer's renewal behind it must not come too late
for its lease (45 s), and the dearest frame takes less than a tenth of this."""

ACCOUNTS_MAX = 1024
"""Accounts that are kept although nothing is owed: one of each worker."""


@dataclass(slots=True)
class _Account:
    seconds: float = 0.0
    size: float = 0.0
    at: float = 0.0


class PeerBudget:
    """The accounts of all peers. `now` is monotonic and never goes back."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def spent(self, peer: str, now: float, *, seconds: float = 0.0, size: int = 0) -> None:
        """Charge what a peer has cost."""
        account = self._of(peer, now)
        account.seconds += seconds
        account.size += size

    def wait(self, peer: str, now: float) -> float:
        """Return for how many seconds a peer's next frame waits, 0 for not at all."""
        account = self._of(peer, now)
        account.seconds = min(account.seconds, CPU_BURST_SECONDS + WAIT_SECONDS_MAX * CPU_SHARE)
        account.size = min(account.size, BYTES_BURST + WAIT_SECONDS_MAX * BYTES_PER_SECOND)
        return max(
            0.0,
            (account.seconds - CPU_BURST_SECONDS) / CPU_SHARE,
            (account.size - BYTES_BURST) / BYTES_PER_SECOND,
        )

    def _of(self, peer: str, now: float) -> _Account:
        """Return an account with what was paid off since."""
        account = self._accounts.get(peer)
        if account is None:
            if len(self._accounts) >= ACCOUNTS_MAX:
                self._forget(now)
            account = self._accounts[peer] = _Account(at=now)
        _pay(account, now)
        return account

    def _forget(self, now: float) -> None:
        for peer, account in tuple(self._accounts.items()):
            _pay(account, now)
            if not account.seconds and not account.size:
                del self._accounts[peer]


def _pay(account: _Account, now: float) -> None:
    passed, account.at = now - account.at, now
    account.seconds = max(0.0, account.seconds - passed * CPU_SHARE)
    account.size = max(0.0, account.size - passed * BYTES_PER_SECOND)
