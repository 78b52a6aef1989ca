"""What the Lease of a kubelet proves: that it reached its API server without a break (P10). Pure.

A kubelet repeats a status that has not changed every five minutes, and renews its Lease every ten seconds. Lists of
Leases are no watch of nodes, and neither is behind the other by a known time: a node that was cut off and came back may
show a new renewal before its Node says that it was away. So renewals prove something in a row only, with no break
between them in which a cut could hide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

BREAK_SECONDS = 40.0
"""A kubelet that has not renewed for this long counts as away: so long is a Lease of its own valid."""


@dataclass(slots=True)
class LeaseRenewals:
    """Renewals of one kubelet, as lists showed them.

    `asked_at`: when the last list was asked for. `made_after`: a moment after which the last renewal was made.
    `steady_from`: the renewals since then followed each other without a break.
    """

    text: str = ""
    asked_at: float = -math.inf
    made_after: float = -math.inf
    steady_from: float = math.inf

    def shown(self, text: str, asked_at: float, now: float) -> None:
        """Take what a list showed that was asked for at `asked_at`; wall clocks are not compared."""
        if self.text and text != self.text:
            if now - self.made_after > BREAK_SECONDS:
                self.steady_from = now
            self.made_after = self.asked_at  # the list before did not show it
        self.text, self.asked_at = text, asked_at

    def reached(self, since: float, settles: float) -> bool:
        """Say whether it reached its API server after `since`, and without a break for `settles` before that."""
        return self.made_after >= max(since, self.steady_from + settles)
