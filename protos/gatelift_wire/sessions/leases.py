"""Lease arithmetic of both ends, on each end's own monotonic clock. Pure. Neighbours: the two session machines.

Two different rights hang on a renewal. The *right to start* (R1) lasts `LEASE_SECONDS` from the moment at which the
agent sent it; the manager counts the cluster as LOST later than that right and the landing of the last write begun
under it, which may be long after that was given up: from then on a person may say that nothing runs there. The
*deadline of a placement* (policy `failover`, `stopAfter`) is much longer: `agent_stop_at` and `manager_fence_at`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

from gatelift_wire.values import limits


class LeaseStanding(enum.Enum):
    """How the manager counts a cluster by its lease."""

    CURRENT = "current"
    SUSPECT = "suspect"
    LOST = "lost"


class Sealed(NamedTuple):
    """How often the leader's own Lease had been written when a grant was given, and the manager's proof of it."""

    counter: int = 0
    seal: bytes = b""


UNCOUNTED = Sealed()

RIGHT_SHARE = 0.75
"""Of the time until a cluster is lost, the right to start is this much at most: a right that long outlasts no word."""


def start_right_seconds(seconds: float, drift: float = limits.CLOCK_DRIFT) -> float:
    """How long, on the manager's clock, writes begun under a grant of `seconds` can still land after its reception."""
    return (seconds + limits.LANDED_SECONDS) * (1.0 + drift)


def landed_seconds(drift: float = limits.CLOCK_DRIFT) -> float:
    """How long, on one's own clock, a write may still land after it was asked for."""
    return limits.LANDED_SECONDS * (1.0 + drift)


def longest_right(lost_seconds: float, drift: float = limits.CLOCK_DRIFT) -> float:
    """Return the right to start that one renewal may buy where a cluster counts as lost after `lost_seconds`.

    Three quarters of it, or the whole seconds that the last write leaves of it, if that is less (R1); 0 where nothing
    is left.
    """
    before = math.floor(lost_seconds / (1.0 + drift) - limits.LANDED_SECONDS)
    return max(0.0, min(lost_seconds * RIGHT_SHARE, before))


def least_lost(right_seconds: float) -> float:
    """Return after how many seconds at least a cluster counts as lost where its right to start is that long."""
    return max(right_seconds / RIGHT_SHARE, start_right_seconds(math.ceil(right_seconds)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerLease:
    """The manager's count for one cluster: `contact_at` is the last granted renewal (by its reception) or Welcome.

    `right_until`: no grant of ours, this session's or an earlier one's, lets the agent start anything after it.
    """

    contact_at: float
    right_until: float = 0.0
    suspect_seconds: float = limits.SUSPECT_SECONDS
    lost_seconds: float = limits.LOST_SECONDS

    def touched(self, now: float) -> ManagerLease:
        """Count from `now`: a session was welcomed, or a new leader counts every lease as renewed when it took over."""
        return replace(self, contact_at=max(self.contact_at, now))

    def granted(self, received_at: float, seconds: float) -> ManagerLease:
        """Count from the reception of the renewal that was answered."""
        counted = self.counted(received_at, seconds)
        return replace(counted, contact_at=max(self.contact_at, received_at))

    def counted(self, from_: float, seconds: float) -> ManagerLease:
        """Count that somebody may have granted `seconds` at `from_` at the latest."""
        return replace(self, right_until=max(self.right_until, from_ + start_right_seconds(seconds)))

    @property
    def suspect_at(self) -> float:
        """A renewal was missed."""
        return self.contact_at + self.suspect_seconds

    @property
    def lost_at(self) -> float:
        """Later than the agent's right to start, and than its last write can land (R1)."""
        return max(self.contact_at + self.lost_seconds, self.right_until)

    def standing(self, now: float) -> LeaseStanding:
        """Say how the cluster counts at `now`."""
        if now >= self.lost_at:
            return LeaseStanding.LOST
        return LeaseStanding.SUSPECT if now >= self.suspect_at else LeaseStanding.CURRENT


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLease:
    """The agent's right to start in the present session; counted from the *sending* of the answered renewal."""

    acknowledged_at: float | None = None
    until: float | None = None

    def granted(self, sent_at: float, seconds: float) -> AgentLease:
        """Take an answer; an older one never shortens a younger one's right."""
        return AgentLease(
            acknowledged_at=sent_at if self.acknowledged_at is None else max(self.acknowledged_at, sent_at),
            until=sent_at + seconds if self.until is None else max(self.until, sent_at + seconds),
        )

    def valid(self, now: float) -> bool:
        """Say whether something may be started at `now`."""
        return self.until is not None and now < self.until


def agent_stop_at(acknowledged_at: float, stop_after_seconds: float) -> float:
    """When the agent fences a `failover` placement by itself, on its clock."""
    return acknowledged_at + stop_after_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceMargins:
    """What the manager waits beyond the agent's deadline (P6): all in seconds of its own clock."""

    kill_grace: float
    restart_margin: float
    pods: int = 0
    deletes_per_second: float = 20.0
    drift: float = limits.CLOCK_DRIFT


def manager_fence_at(received_at: float, stop_after_seconds: float, margins: FenceMargins) -> float:
    """Return the earliest moment at which a `failover` placement counts as fenced by arithmetic.

    `manager_deadline >= agent_deadline * (1 + drift) + kill_grace + restart_margin`, and the margin holds the time
    until writes have landed and the time that the deletes of all its pods take. All of it passes on the worker's
    clocks, so all of it is lengthened by the drift.
    """
    deletes = margins.pods / margins.deletes_per_second
    waits = margins.kill_grace + margins.restart_margin + limits.LANDED_SECONDS + deletes
    return received_at + (stop_after_seconds + waits) * (1.0 + margins.drift)
