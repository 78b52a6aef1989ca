"""Who holds how much of a port: connections and bytes, bounded in all, and shared fairly among addresses.

Where nobody is known by name, strangers and whoever the port is for look alike until a request is whole. So nobody is
turned away for coming late: whoever comes when all is taken displaces who has been unfinished for longest, first from
the address that holds most. An honest request is whole within milliseconds and is answered; what trickles is displaced.
Pure; neighbours: `door` accepts and cuts, servers hold bytes.
"""

from __future__ import annotations

from collections import Counter

STALE_SECONDS = 0.5
"""A handshake or a request that is not whole after this is displaced first; an honest one takes milliseconds."""


class FullError(Exception):
    """Everything is held by requests that are being answered; ask again."""


class Guest:
    """One connection. `since` is when it came, began what it has not finished yet, or was answered last."""

    __slots__ = ("address", "answered", "bytes_held", "serving", "since")

    def __init__(self, address: str, now: float) -> None:
        self.address = address
        self.since = now
        self.bytes_held = 0
        self.serving = False
        """Its request is whole and is being answered: it is not displaced."""
        self.answered = False
        """It has been answered and has begun nothing since."""

    def began(self, now: float) -> None:
        """Note the first bytes of a request."""
        self.since, self.answered = now, False

    def whole(self) -> None:
        """Note that its request is whole."""
        self.serving = True

    def done(self, now: float) -> None:
        """Note that its peer has the answer."""
        self.since, self.serving, self.answered = now, False, True


class Places:
    """Connections and bytes of one port. Never holds more than `guests_max` and `bytes_max`."""

    def __init__(self, guests_max: int, bytes_max: int) -> None:
        self._guests_max = guests_max
        self._bytes_max = bytes_max
        self._guests: set[Guest] = set()
        self._of: Counter[str] = Counter()
        self.bytes_held = 0

    @property
    def count(self) -> int:
        """Connections held now."""
        return len(self._guests)

    def come(self, address: str, now: float) -> tuple[Guest, Guest | None]:
        """Give a connection a place; return it and whom it displaces, who has left. FullError: everybody is served."""
        displaced = None
        if len(self._guests) >= self._guests_max:
            self._of[address] += 1  # its own address counts with it
            displaced = self._longest_unfinished(now)
            self._drop(address)
            if displaced is None:
                raise FullError(f"{self._guests_max} connections, all of them being answered")
            self.leave(displaced)
        guest = Guest(address, now)
        self._guests.add(guest)
        self._of[address] += 1
        return guest, displaced

    def leave(self, guest: Guest) -> None:
        """Free what a connection holds; again is nothing."""
        if guest in self._guests:
            self._guests.remove(guest)
            self.release(guest)
            self._drop(guest.address)

    def hold(self, guest: Guest, count: int) -> list[Guest]:
        """Hold bytes for a connection; return whom that displaces, who have left (it may be among them).

        FullError: what is being answered holds everything.
        """
        if guest not in self._guests:
            return [guest]
        displaced: list[Guest] = []
        while self.bytes_held + count > self._bytes_max:
            largest = self._largest_unfinished(guest, count)
            if largest is None:
                raise FullError(f"requests of {self._bytes_max} bytes are being answered")
            self.leave(largest)
            displaced.append(largest)
            if largest is guest:
                return displaced
        guest.bytes_held += count
        self.bytes_held += count
        return displaced

    def release(self, guest: Guest) -> None:
        """Let go of all bytes of a connection."""
        self.bytes_held -= guest.bytes_held
        guest.bytes_held = 0

    def _drop(self, address: str) -> None:
        self._of[address] -= 1
        if not self._of[address]:
            del self._of[address]

    def _longest_unfinished(self, now: float) -> Guest | None:
        """Return who is displaced: what is stale, else of the address that holds most what is idle, else the oldest."""

        def order(guest: Guest) -> tuple[bool, int, bool, float]:
            stale = not guest.answered and now - guest.since >= STALE_SECONDS
            return not stale, -self._of[guest.address], not guest.answered, guest.since

        return min((guest for guest in self._guests if not guest.serving), key=order, default=None)

    def _largest_unfinished(self, asking: Guest, count: int) -> Guest | None:
        """Return whose bytes are given up: of the address that holds most, the body that was begun first."""
        held: Counter[str] = Counter({asking.address: count})
        for guest in self._guests:
            held[guest.address] += guest.bytes_held
        unfinished = [guest for guest in self._guests if guest.bytes_held and not guest.serving]
        if not asking.serving and asking not in unfinished:
            unfinished.append(asking)
        return min(unfinished, key=lambda guest: (-held[guest.address], guest.since), default=None)
