"""Leader election of a simulation: a Lease that changes by conditional writes, and candidates with clocks of their own.

The times are those of `gatelift_kube.election`: the holder trusts itself for `renew_seconds` from when it sent the
renewal, others wait `lease_seconds` from when they last saw it change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gatelift_kube.election import ElectionTimes
from support.sim_clock import Timeline

TIMES = ElectionTimes()


@dataclass
class SimLease:
    """One Lease object."""

    holder: str = ""
    term: int = 0
    version: int = 0


class SimElector:
    """One candidate, for the life of its process."""

    def __init__(
        self,
        timeline: Timeline,
        lease: SimLease,
        who: str,
        *,
        stands: Callable[[], bool],
        reaches: Callable[[], bool],
        gained: Callable[[int, float, bool], None],
        extended: Callable[[float], None],
        lost: Callable[[], None],
    ) -> None:
        self.valid_until = 0.0
        self.term = 0
        self.over = False
        self._time = timeline
        self._lease = lease
        self._who = who
        self._stands, self._reaches = stands, reaches
        self._gained, self._extended, self._lost = gained, extended, lost
        self._seen = -1
        self._seen_since = 0.0
        timeline.after(timeline.between(0.05, 0.5), self._look)

    def leads(self) -> bool:
        """Say whether the lead is ours by our own clock."""
        return self.term > 0 and self._time.now < self.valid_until

    def look_now(self) -> None:
        """Notice what a pause has done."""
        if self.term and not self.leads() and not self.over:
            self.term = 0
            self._lost()

    def _look(self) -> None:
        if self.over:
            return
        self._time.after(TIMES.retry_seconds * self._time.between(0.8, 1.2), self._look)
        if not self._stands():
            return
        self.look_now()
        if self.over or not self._reaches():
            return
        sent, version = self._time.now, self._lease.version
        if self.term:
            self._time.after(self._time.between(0.001, 0.05), lambda: self._renew(sent, self.term))
            return
        if version != self._seen:
            self._seen, self._seen_since = version, sent
        if not self._lease.holder or sent >= self._seen_since + TIMES.lease_seconds:
            self._time.after(self._time.between(0.001, 0.05), lambda: self._take(sent, version))

    def _renew(self, sent: float, term: int) -> None:
        lease = self._lease
        if self.over or term != self.term or (lease.holder, lease.term) != (self._who, term):
            return
        lease.version += 1
        self.valid_until = sent + TIMES.renew_seconds
        self._extended(self.valid_until)

    def _take(self, sent: float, version: int) -> None:
        lease = self._lease
        if self.over or lease.version != version:
            return
        vacant = not lease.holder
        lease.holder, lease.version, lease.term = self._who, version + 1, lease.term + 1
        self.term, self.valid_until = lease.term, sent + TIMES.renew_seconds
        self._time.say(self._who, f"leads with term {self.term}")
        self._gained(self.term, self.valid_until, vacant)
