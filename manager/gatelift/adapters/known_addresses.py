"""Addresses from which somebody has proven to be himself: in a crowd they go before those of whom nothing is known.

An address proves nothing by itself, and others may share it; so being known is worth a place and a turn, never an
answer. Pure and bounded, for each name as well: one worker's key makes nobody else forgotten. Neighbour: `gate`.
"""

from __future__ import annotations

from collections import OrderedDict

KNOWN_MAX = 1024
"""Addresses in all; whichever proved itself longest ago goes first."""
KNOWN_EACH_MAX = 8
"""Of one name: its replicas, on nodes that come and go."""
KNOWN_SECONDS = 24 * 3600.0
"""After this without another proof an address is like any other: addresses are handed on."""


class KnownAddresses:
    """Remembers which address has proven itself last as whom, and when."""

    def __init__(self) -> None:
        self._proofs: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._of: dict[str, OrderedDict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._proofs)

    def remember(self, address: str, who: str, now: float) -> None:
        """Take that somebody has proven to be `who` from an address."""
        self._forget(address)
        mine = self._of.setdefault(who, OrderedDict())
        if len(mine) >= KNOWN_EACH_MAX:
            self._forget(next(iter(mine)))
            mine = self._of.setdefault(who, mine)
        if len(self._proofs) >= KNOWN_MAX:
            self._forget(next(iter(self._proofs)))
        self._of.setdefault(who, mine)[address] = None
        self._proofs[address] = who, now

    def knows(self, address: str, now: float) -> bool:
        """Say whether an address has proven itself within the last day."""
        proof = self._proofs.get(address)
        return proof is not None and now - proof[1] < KNOWN_SECONDS

    def _forget(self, address: str) -> None:
        proof = self._proofs.pop(address, None)
        if proof is not None:
            mine = self._of[proof[0]]
            del mine[address]
            if not mine:
                del self._of[proof[0]]
