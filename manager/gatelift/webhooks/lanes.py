"""Where reviews are read and decided: short ones in the event loop, longer ones beside it, each size in its own turn.

A review of 8 MiB takes seconds to be looked through. In the loop it would keep everybody waiting, in one queue with
short ones whoever asks after it. So there are lanes by size. In each, addresses take turns: who sends many long ones
waits for himself. Neighbours: `server` (takes what is whole), `judge` (decides).
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

INLINE_BYTES_MAX = 8 * 1024
"""A body up to this is decided in the loop: 20 ms at the worst, below one for a pod as people write it."""
SHORT_BYTES_MAX = 64 * 1024
"""A body up to this is decided within a quarter of a second: nearly all pods and Jobs, with their managed fields."""
INLINE_LANE_BYTES = 1024 * 1024
SHORT_LANE_BYTES = 1024 * 1024
LONG_LANE_BYTES = 4 * 1024 * 1024
"""Bodies that are decided at once in a lane, or one larger: read as objects they take up to thirty times their size."""

T = TypeVar("T")


class Decide(Protocol):
    """Calls a pure function, wherever that belongs, and returns what it returns or raises what it raises."""

    async def __call__(self, function: Callable[..., T], *args: Any) -> T:
        """Call it. Cancelled, this ends when the function has: nobody takes its place meanwhile."""
        ...


async def in_loop(function: Callable[..., T], *args: Any) -> T:
    """Decide here and now."""
    return function(*args)


@dataclass(slots=True)
class _Waiting:
    size: int
    address: str
    turn: asyncio.Future[None]


class ReviewPlaces:
    """Places for bodies that are decided at once. Addresses take turns; those of one are served as they came whole."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._waiting: list[_Waiting] = []
        self._counted: Counter[str] = Counter()
        """Those of an address that wait or hold a place; where there are none, nothing is remembered of it."""
        self._called: dict[str, int] = {}
        self._calls = itertools.count(1)

    @asynccontextmanager
    async def place(self, size: int, address: str) -> AsyncIterator[None]:
        """Hold a place for a body of this size; one that is larger than all places is decided alone."""
        size = min(size, self._bytes_max)
        self._counted[address] += 1
        try:
            await self._taken_place(size, address)
            try:
                yield
            finally:
                self._taken -= size
                self._call()
        finally:
            self._counted[address] -= 1
            if not self._counted[address]:
                del self._counted[address]
                self._called.pop(address, None)

    async def _taken_place(self, size: int, address: str) -> None:
        if not self._waiting and self._taken + size <= self._bytes_max:
            self._take(size, address)
            return
        waiting = _Waiting(size, address, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.cancelled():
                self._waiting.remove(waiting)
            else:
                self._taken -= size
            self._call()  # those behind may fit
            raise

    def _take(self, size: int, address: str) -> None:
        self._taken += size
        self._called[address] = next(self._calls)

    def _call(self) -> None:
        """Give places, first to the address that was called longest ago; who does not fit keeps all others waiting."""
        while self._waiting:
            first = min(self._waiting, key=lambda one: self._called.get(one.address, 0))
            if self._taken + first.size > self._bytes_max:
                return
            self._waiting.remove(first)
            if not first.turn.cancelled():
                self._take(first.size, first.address)
                first.turn.set_result(None)


class _Lane:
    """Places, and a thread for what is decided beside the loop: one, since each may hold it up for 5 ms a turn."""

    def __init__(self, name: str, size_max: float, bytes_max: int) -> None:
        self.size_max = size_max
        self.places = ReviewPlaces(bytes_max)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"{name} reviews")

    async def decide(self, function: Callable[..., T], *args: Any) -> T:
        work = asyncio.get_running_loop().run_in_executor(self._thread, function, *args)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            await asyncio.wait({work})
            raise

    def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class Lanes:
    """All lanes of one server."""

    def __init__(self) -> None:
        self._inline = ReviewPlaces(INLINE_LANE_BYTES)
        self._beside = (
            _Lane("short", SHORT_BYTES_MAX, SHORT_LANE_BYTES),
            _Lane("long", float("inf"), LONG_LANE_BYTES),
        )

    @asynccontextmanager
    async def lane(self, size: int, address: str) -> AsyncIterator[Decide]:
        """Yield how a body of this size is read and decided, once there is a place for it."""
        if size <= INLINE_BYTES_MAX:
            async with self._inline.place(size, address):
                yield in_loop
            return
        lane = next(each for each in self._beside if size <= each.size_max)
        async with lane.places.place(size, address):
            yield lane.decide

    def stop(self) -> None:
        """Decide nothing more; what is being decided is left to its thread."""
        for lane in self._beside:
            lane.stop()
