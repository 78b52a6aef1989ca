"""Turns at a pace, for those who wait: so many at once and a second, and shares of those that wait take them in turn.

Belongs to one event loop. Neighbour: `door`, whose requests take turns.
"""

from __future__ import annotations

import asyncio

from gatelift_kube.deciding.budget import Share as Pace
from gatelift_kube.deciding.budget import TokenBucket
from gatelift_kube.deciding.fair_line import FairLine, Share
from gatelift_kube.process.clock import Clock, monotonic


class PacedTurns:
    """Whoever has had a turn is done with it: nothing is given back."""

    def __init__(self, pace: Pace, clock: Clock = monotonic) -> None:
        self._bucket = TokenBucket(pace, clock())
        self._clock = clock
        self._line: FairLine[asyncio.Future[None]] = FairLine()
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, share: Share) -> None:
        """Return once it is the caller's turn, at once where nobody waits and there is one."""
        if not self._line and not self._later():
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.stand(turn, share)
        self._go_on()
        try:
            await turn
        finally:
            self._line.leave(turn)

    def _later(self) -> float:
        """Take a turn; where there is none, return after how many seconds there is."""
        wait = self._bucket.take(self._clock())
        if wait > 0:
            self._bucket.give_back()
        return wait

    def _go_on(self) -> None:
        """Give turns to whoever waits, and come back when there is another one."""
        if self._timer is not None:
            return
        while self._line:
            wait = self._later()
            if wait > 0:
                self._timer = asyncio.get_running_loop().call_later(wait, self._rung)
                return
            turn = self._line.take()
            if not turn.done():
                turn.set_result(None)

    def _rung(self) -> None:
        self._timer = None
        self._go_on()
