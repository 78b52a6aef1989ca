"""The clocks of this machine, as adapters read them. Deciding code gets `now` as an argument instead.

Durations and deadlines use `monotonic` (or `boottime`, which goes on while the machine is suspended). Wall time is
only ever shown to people, in events, conditions and leases; nothing is decided by comparing two wall clocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""Seconds on a scale that only its own readings share."""

monotonic: Clock = time.monotonic


def boottime() -> float:
    """Return seconds since boot, time of suspension included; plain monotonic where the system has no such clock."""
    kind = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if kind is None else time.clock_gettime(kind)


def wall() -> float:
    """Return seconds since 1970, for texts that people read."""
    return datetime.now(UTC).timestamp()
