"""How many requests may be under way and how many a second, by class of traffic. `TokenBucket` is pure.

Transitions (reserve, create, lift, finish) have nearly all of it; status texts that only inform have little;
events have their own, and so has what is read on request. So none ever stands in the way of a transition.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass


class Traffic(enum.Enum):
    """What a write is for, or a read of single objects and lists that somebody asks for."""

    TRANSITION = "transitions"
    STATUS = "status texts"
    EVENT = "events"
    READ = "reads"


READS_AT_ONCE = 8
"""So many reads are under way: a thousand are read in seconds, and the API server sees no more of it than of one more
client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Part of the budget: at most `in_flight` requests at a time, `per_second` on average, `burst` at once."""

    in_flight: int
    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class Budget:
    """The shares of one process towards one API server."""

    shares: Mapping[Traffic, Share]

    def describe(self) -> str:
        """Return one line that names every limit, to be printed at start."""
        parts = [
            f"{traffic.value}: {share.in_flight} in flight, {share.per_second:g}/s, burst {share.burst}"
            for traffic, share in self.shares.items()
        ]
        return "API budget: " + "; ".join(parts)


def budget(
    *, per_second: float = 500.0, burst: int | None = None, in_flight: int = 32, events_per_second: float = 20.0
) -> Budget:
    """Return a budget of `per_second` writes, `burst` at once (None: those of a second), as many reads, and events.

    Status texts have a tenth of those a second, and a thirty-second of those in flight: an API server that answers at
    once does all of them, one that is loaded to its limit does transitions first, since few of these wait in it.

    The default of 500 a second is what a real API server with etcd does on one core (1.1 to 3.2 ms a write); 32 in
    flight keep it busy at a network delay of up to 60 ms.
    """
    events = math.trunc(events_per_second * 2)
    status, most = max(1.0, per_second / 10), max(1, math.trunc(per_second) if burst is None else burst)
    return Budget(
        {
            Traffic.TRANSITION: Share(in_flight=in_flight, per_second=per_second, burst=most),
            Traffic.STATUS: Share(in_flight=max(1, in_flight // 32), per_second=status, burst=max(1, most // 10)),
            Traffic.EVENT: Share(in_flight=1, per_second=events_per_second, burst=max(1, events)),
            Traffic.READ: Share(in_flight=READS_AT_ONCE, per_second=per_second, burst=most),
        }
    )


REST = 2.0
"""Times as long as a write took: a loaded API server gets a third of what it would be asked for one after the other."""
REST_SECONDS_MAX = 1.0
"""What ended by its time limit says nothing of how long the next will take."""


def rest(took: float) -> float:
    """Return the seconds for which nothing that only informs follows a write that took `took` seconds.

    An API server that answers at once is hardly asked for less; one that is loaded to its limit gets a third of these
    writes, and transitions have the room.
    """
    return min(REST_SECONDS_MAX, REST * took)


class TokenBucket:
    """Lets `burst` through at once and `per_second` on average. Pure: `now` is an argument, monotonic seconds."""

    def __init__(self, share: Share, now: float) -> None:
        self._share = share
        self._tokens = float(share.burst)
        self._at = now

    def take(self, now: float) -> float:
        """Take one token and return the seconds after which it may be used; 0 where there was one.

        Tokens are given out in the order of the calls: each caller waits for its own.
        """
        passed = max(0.0, now - self._at)
        self._tokens = min(float(self._share.burst), self._tokens + passed * self._share.per_second)
        self._at = max(self._at, now)
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0 else -self._tokens / self._share.per_second

    def give_back(self) -> None:
        """Return a token that was taken but not used."""
        self._tokens = min(float(self._share.burst), self._tokens + 1.0)
