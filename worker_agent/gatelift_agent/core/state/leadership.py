"""This replica's own Lease in the worker: which of the agent's replicas acts (rule R8).

Moments are on this process's clock (CLOCK_BOOTTIME, which goes on while the machine is suspended). The manager's lease
is another thing: the session holds it, see `starting`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Leadership:
    """The Lease as the elector tells of it. `lists_from`: from then on a list shows all the predecessor ever wrote."""

    term: int = 0
    held: bool = False
    valid_until: float = 0.0
    lists_from: float = 0.0
    mark: int = 0
    """What the Lease counted when it was taken over."""
    counts: int = 0
    """What it counts now."""
    unix_ahead: float | None = None
    """By how much the wall clock was ahead of `now` at the takeover; None: nobody has said."""

    def gain(self, term: int, lists_from: float, mark: int = 0, *, unix_ahead: float | None = None) -> None:
        """Take over; objects are listed from `lists_from` on."""
        self.unix_ahead = unix_ahead
        self.term, self.held, self.lists_from, self.valid_until = term, True, lists_from, 0.0
        self.mark = self.counts = mark

    def extend(self, valid_until: float, mark: int = 0) -> None:
        """Take the elector's word that the Lease was renewed; ignored by a replica that does not lead."""
        if self.held:
            self.valid_until = max(self.valid_until, valid_until)
            self.counts = max(self.counts, mark)

    def lose(self) -> None:
        """Act no more."""
        self.held, self.valid_until = False, 0.0

    def acts(self, now: float) -> bool:
        """Say whether this replica may create and lift at this moment."""
        return self.held and self.valid_until > now
