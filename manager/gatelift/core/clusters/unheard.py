"""Whether a cluster's last inventory can be decided now that it could not be then (P10), by one link.

An agent that has just begun to watch says that it has not heard of all nodes since: what its inventory does not list
may have been removed by force before, and run on. Such a placement counts as lost. When the agent says that all nodes
were heard of, or are gone, the cluster greets anew, and its next inventory decides; where nothing waits, it need not.
So it does when the time is over that what is not listed was given to stop (`absences`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

GREET_ANEW = "not all that is charged here was listed, and what was not can be decided now: greet anew"


class Undecided(NamedTuple):
    """How many placements of a cluster its next inventory may decide; `over_at`: when it decides the first by time."""

    placements: int = 0
    over_at: float | None = None


NOTHING_UNDECIDED = Undecided()


@dataclass(slots=True)
class Unheard:
    """`inventory`: the last one left open what it does not list. `over`: it would not now. `undecided`: how many.

    `asked_at`: the moment of which an inventory was asked for last. `resyncs`: its next session is not a resumed one,
    which would ask for no inventory.
    """

    inventory: bool = False
    over: bool = False
    undecided: Undecided = NOTHING_UNDECIDED
    asked_at: float = -math.inf
    resyncs: bool = False

    def inventoried(self, *, unheard: bool) -> None:
        """Take an inventory."""
        self.inventory, self.over, self.undecided, self.resyncs = unheard, False, NOTHING_UNDECIDED, False

    def said(self, *, unheard: bool) -> None:
        """Take what the agent says after it, in the same session."""
        self.over = not unheard

    def due(self) -> float | None:
        """Return when the next inventory decides by time what this one did not; None: it does not."""
        over_at = self.undecided.over_at
        return over_at if over_at is not None and over_at > self.asked_at else None

    def greets_anew(self, now: float) -> bool:
        """Say, once, that the next inventory decides what this one did not."""
        due = self.due()
        if due is not None and due <= now:
            self.asked_at = due
        elif not (self.inventory and self.over and self.undecided.placements):
            return False
        self.inventory, self.resyncs = False, True
        return True
