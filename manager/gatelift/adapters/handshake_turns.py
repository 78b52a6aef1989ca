"""Whose handshake begins next: addresses take turns, and those that have proven themselves have every second one. Pure.

Neighbour: `gate`, which gives turns at its pace.
"""

from __future__ import annotations

from collections import OrderedDict

from gatelift_kube.deciding.places import Guest


class HandshakeTurns:
    """Those who have said their first bytes and wait for us. Never holds who has left."""

    def __init__(self, crowd: float) -> None:
        """`crowd`: where more addresses wait than this, the latest goes first."""
        self._crowd = crowd
        self._known: OrderedDict[str, dict[Guest, None]] = OrderedDict()
        self._others: OrderedDict[str, dict[Guest, None]] = OrderedDict()
        self._known_next = True

    def __len__(self) -> int:
        """Addresses that wait."""
        return len(self._known) + len(self._others)

    def wait(self, guest: Guest) -> None:
        """Put a connection into the queue of its address."""
        self._line(guest).setdefault(guest.address, {})[guest] = None

    def leave(self, guest: Guest) -> None:
        """Let a connection wait no longer; again is nothing."""
        line = self._line(guest)
        mine = line.get(guest.address, {})
        mine.pop(guest, None)
        if not mine:
            line.pop(guest.address, None)

    def next(self) -> Guest | None:
        """Return whose turn it is; he waits no longer."""
        line = self._known if self._known and (self._known_next or not self._others) else self._others
        if not line:
            return None
        self._known_next = line is self._others
        crowded = len(line) > self._crowd
        address, mine = line.popitem(last=crowded)
        guest = next(iter(mine))
        del mine[guest]
        if mine:
            line[address] = mine
            line.move_to_end(address, last=not crowded)
        return guest

    def _line(self, guest: Guest) -> OrderedDict[str, dict[Guest, None]]:
        return self._known if guest.known else self._others
