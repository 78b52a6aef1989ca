"""Who holds how much of a port: connections and bytes, bounded in all, and shared fairly among addresses.

Where nobody is known by name, strangers and whoever the port is for look alike until a request is whole. So nobody is
turned away for coming late: whoever comes when all is taken displaces who has been unfinished for longest, first from
the address that holds most. An honest request is whole within milliseconds and is answered; what trickles is displaced.
Where a port has a pace, who waits for his turn is not unfinished: it is we who are late. Who has it goes on at once.
Pure; neighbours: `door` accepts and cuts, servers hold bytes.
"""

from __future__ import annotations

import heapq
from collections import Counter

STALE_SECONDS = 0.5
"""A handshake or a request that is not whole after this is displaced first; an honest one takes milliseconds."""
TURN_SECONDS = 1.0
"""The same from the turn for which it had to wait: a handshake and a call, some round trips from far away."""

PART_OF_ALL = 32
"""Who is displaced is looked for as often as this part of all has changed."""


class FullError(Exception):
    """Everything is held by requests that are being answered; ask again."""


class Guest:
    """One connection. `since` is when it came, began what it has not finished yet, or was answered last."""

    __slots__ = ("address", "answered", "bytes_held", "has_turn", "known", "serving", "since", "waiting")

    def __init__(self, address: str, now: float, *, known: bool = False) -> None:
        self.address = address
        self.known = known
        """Its address has proven itself before: others are displaced first."""
        self.since = now
        self.waiting = False
        """It has said what it can, and waits for its turn."""
        self.has_turn = False
        """It was given its turn, and has not finished yet."""
        self.bytes_held = 0
        self.serving = False
        """Its request is whole and is being answered: it is not displaced."""
        self.answered = False
        """It has been answered and has begun nothing since."""

    def began(self, now: float) -> None:
        """Note the first bytes of a request."""
        self.since, self.answered = now, False

    def waits(self) -> None:
        """Note that it is we who are late."""
        self.waiting = True

    def turn(self, now: float) -> None:
        """Note that it may go on."""
        self.since, self.waiting, self.has_turn = now, False, True

    def whole(self) -> None:
        """Note that its request is whole."""
        self.serving = True

    def done(self, now: float) -> None:
        """Note that its peer has the answer."""
        self.since, self.serving, self.answered, self.has_turn = now, False, True, False


class Places:
    """Connections and bytes of one port. Never holds more than `guests_max` and `bytes_max`."""

    def __init__(self, guests_max: int, bytes_max: int) -> None:
        self._guests_max = guests_max
        self._bytes_max = bytes_max
        self._guests: set[Guest] = set()
        self._of: Counter[str] = Counter()
        self._known = 0
        self._next: list[tuple[int, Guest]] = []
        """Who is displaced next, the first at the end, each with its rank of then."""
        self.bytes_held = 0

    @property
    def count(self) -> int:
        """Connections held now."""
        return len(self._guests)

    def come(self, address: str, now: float, *, known: bool = False) -> tuple[Guest, Guest | None]:
        """Give a connection a place; return it and whom it displaces, who has left. FullError: everybody is served."""
        displaced = None
        if len(self._guests) >= self._guests_max:
            self._of[address] += 1  # its own address counts with it
            displaced = self._longest_unfinished(now)
            self._drop(address)
            if displaced is None:
                raise FullError(f"{self._guests_max} connections, all of them being answered")
            self.leave(displaced)
        guest = Guest(address, now, known=known)
        self._guests.add(guest)
        self._known += known
        self._of[address] += 1
        return guest, displaced

    def leave(self, guest: Guest) -> None:
        """Free what a connection holds; again is nothing."""
        if guest in self._guests:
            self._guests.remove(guest)
            self._known -= guest.known
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
        """Return who is displaced: what is stale, else of the address that holds most what is idle, else the oldest.

        All are looked through for a few at once: a crowd that comes fast costs no more for there being many places.
        """
        while self._next:
            rank, guest = self._next.pop()
            if guest in self._guests and not guest.serving and self._rank(guest, now) <= rank:
                return guest

        def order(each: tuple[int, Guest]) -> tuple[int, int, bool, float]:
            rank, guest = each
            return rank, -self._of[guest.address], not guest.answered, guest.since

        unfinished = ((self._rank(guest, now), guest) for guest in self._guests if not guest.serving)
        self._next = heapq.nsmallest(max(1, self._guests_max // PART_OF_ALL), unfinished, key=order)[::-1]
        return self._next.pop()[1] if self._next else None

    def _rank(self, guest: Guest, now: float) -> int:
        """Return how soon a connection is displaced, 0 first: late by itself, waiting, going on, known.

        Known addresses go last as long as they hold no more than half of all.
        """
        if guest.known and self._known <= self._guests_max // 2:
            return 3
        if guest.answered or guest.waiting:
            return 1
        late = now - guest.since >= (TURN_SECONDS if guest.has_turn else STALE_SECONDS)
        return 0 if late else 1 + guest.has_turn

    def _largest_unfinished(self, asking: Guest, count: int) -> Guest | None:
        """Return whose bytes are given up: of the address that holds most, the body that was begun first."""
        held: Counter[str] = Counter({asking.address: count})
        for guest in self._guests:
            held[guest.address] += guest.bytes_held
        unfinished = [guest for guest in self._guests if guest.bytes_held and not guest.serving]
        if not asking.serving and asking not in unfinished:
            unfinished.append(asking)
        return min(unfinished, key=lambda guest: (-held[guest.address], guest.since), default=None)
