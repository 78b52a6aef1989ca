"""Checks and makes signatures beside the event loop, one at a time, in an order that strangers do not choose.

Whoever has a certificate goes first, then whoever has a token that is expected; of the others addresses take turns.
When too many wait, the last of the address that holds most gives way. Neighbours: `enrol_server`.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

WAITING_MAX = 64
"""Pieces of work of a millisecond each: none waits for more than a tenth of a second."""

T = TypeVar("T")


class SigningBusyError(Exception):
    """Others go first, and too many of them wait; ask again."""


class Rank(enum.IntEnum):
    """Who goes first."""

    SESSION = 0
    EXPECTED = 1
    STRANGER = 2


@dataclass(slots=True, eq=False)
class _Waiting:
    rank: Rank
    address: str
    number: int
    turn: asyncio.Future[None]


class Signing:
    """One thread and the order of its work. Used in one event loop."""

    def __init__(self, waiting_max: int = WAITING_MAX) -> None:
        self._waiting_max = waiting_max
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="signatures")
        self._busy = False
        self._waiting: list[_Waiting] = []
        self._numbers = itertools.count(1)
        self._called: dict[str, int] = {}

    async def run(self, rank: Rank, address: str, function: Callable[..., T], *args: Any) -> T:
        """Return what a function returns, or raise what it raises. BusyError: it was not called."""
        await self._turn(rank, address)
        work = asyncio.get_running_loop().run_in_executor(self._thread, function, *args)
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    def stop(self) -> None:
        """Begin nothing more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _turn(self, rank: Rank, address: str) -> None:
        if not self._busy:
            self._busy = True
            return
        one = _Waiting(rank, address, next(self._numbers), asyncio.get_running_loop().create_future())
        self._waiting.append(one)
        if len(self._waiting) > self._waiting_max:
            last = self._last()
            self._waiting.remove(last)
            last.turn.set_exception(SigningBusyError(f"{self._waiting_max} others are being looked at"))
        try:
            await one.turn
        except asyncio.CancelledError:
            if one in self._waiting:
                self._waiting.remove(one)
            else:
                self._call()
            raise

    def _last(self) -> _Waiting:
        held = Counter(one.address for one in self._waiting)
        return max(self._waiting, key=lambda one: (one.rank, held[one.address], one.number))

    def _done(self, work: asyncio.Future[Any]) -> None:
        if not work.cancelled():
            work.exception()  # told by `run`, unless nobody waits for it any more
        self._call()

    def _call(self) -> None:
        """Give the thread to whose turn it is."""
        waiting = [one for one in self._waiting if not one.turn.done()]
        if not waiting:
            self._busy = False
            self._called.clear()
            return
        first = min(waiting, key=lambda one: (one.rank, self._called.get(one.address, 0), one.number))
        self._waiting.remove(first)
        self._called[first.address] = next(self._numbers)
        first.turn.set_result(None)
