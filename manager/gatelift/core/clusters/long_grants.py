"""Lease grants longer than the default, and how long they may still count (rule P3). Pure. Neighbour: `cluster_record`.

A right to start that an agent was given cannot be taken back, and the leader that follows may have shorter times. So a
longer grant stands in `WorkerCluster.status.leaseSeconds` before it is given; whoever leads next counts it as given at
the moment it took over, and takes the record back when all such grants are over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gatelift.core.clusters.cluster_facts import Facts
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.limits import LEASE_SECONDS


@dataclass(slots=True)
class LongGrants:
    """One cluster's. `over_at`: when the grants of earlier leaders are over, on this process's clock."""

    session: ManagerSession
    led_at: float = 0.0
    over_at: float = 0.0
    silence_counts_at: float = 0.0
    """Before this LOST is not written: a record came late, and with it a right that the session had not counted."""

    @property
    def needed(self) -> int:
        """What has to stand in the status before a renewal is answered, 0 for the default."""
        seconds = self.session.lease_seconds
        return math.ceil(seconds) if seconds > LEASE_SECONDS else 0

    def led(self, now: float) -> None:
        """Take that the session counts from `now` on, with what was recorded till then."""
        self.led_at, self.over_at = now, self.session.right_until

    def stepped_down(self) -> None:
        """Follow what others record from here on."""
        self.led_at = 0.0

    def seen(self, facts: Facts, recorded: int) -> None:
        """Take what the status says. More than we know of was given by a leader before us, whose record came late."""
        if not self.led_at:
            facts.lease_seconds = recorded
        elif recorded > facts.lease_seconds:
            facts.lease_seconds = recorded
            self.session.count_grant(recorded, self.led_at)
            self.over_at = self.silence_counts_at = self.session.right_until

    def lower(self, facts: Facts, now: float) -> None:
        """Take the record back when no grant that needed it counts any more."""
        if self.led_at and now >= self.over_at:
            facts.lease_seconds = min(facts.lease_seconds, self.needed)

    def due(self, facts: Facts) -> float | None:
        """Return when `lower` has something to do."""
        return self.over_at if self.led_at and facts.lease_seconds > self.needed else None
