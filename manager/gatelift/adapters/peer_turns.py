"""Takes frames of peers in turns: one of each peer at a time, within its budget, large ones beside the event loop.

A peer's next frame is taken when the core has handled the one before, so that at most one frame of each peer stands in
the core's queue: whoever floods waits for himself. Neighbours: `agents_server` (reads), `peer_budget`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from gatelift.adapters.peer_budget import ABOVE_SECONDS_MAX, STREAM_SECONDS, PeerBudget
from gatelift_kube.process.clock import Clock, monotonic

COMPARED_SECONDS = 0.00002
"""What a placement of an inventory costs when it is compared with the record, after the frame that it came in."""

INLINE_BYTES_MAX = 8 * 1024
"""A frame up to this is decoded in the event loop: 3 ms at the worst. A larger one in a thread: the loop goes on after
at most 0.1 ms, the interpreter's switch interval (`app.SWITCH_SECONDS`)."""

FRAME_SECONDS = 0.0002
"""What a frame of any size costs before it is decoded: TLS, gRPC, the loop. An agent writes at most 100 a second."""

THREADS = 4
"""Large frames that are decoded at once. Each peer has one at a time, so that one peer fills none of the others'."""

HANDLED_SECONDS_MAX = 10.0
"""A frame that the core has not handled within this no longer keeps the next one waiting: the core is busy with others,
and renewals have to be read."""

STAYS_ABOVE = (
    f"Frame: more than one agent's share of CPU, bytes or items came for {ABOVE_SECONDS_MAX:g} s without a pause; "
    "is there a second sender, or an agent that repeats itself?"
)

T = TypeVar("T")


class PeerTurns:
    """Whose turn it is. One for a server; used in its event loop only."""

    def __init__(self, clock: Clock = monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._clock = clock
        self._sleep = sleep
        self.budget = PeerBudget()
        self._locks: dict[str, tuple[asyncio.Lock, set[int]]] = {}
        self._handled: dict[int, asyncio.Future[None]] = {}
        self._peers: dict[int, str] = {}
        self._threads = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="frames")

    def opened(self, stream_id: int, peer: str) -> None:
        """Take that a stream is served."""
        self._peers[stream_id] = peer
        self._locks.setdefault(peer, (asyncio.Lock(), set()))[1].add(stream_id)

    def closed(self, stream_id: int) -> None:
        """Take that a stream is over and nothing of it waits for the core."""
        peer = self._peers.pop(stream_id, "")
        self._handled.pop(stream_id, None)
        if peer in self._locks:
            lock, streams = self._locks[peer]
            streams.discard(stream_id)
            if not streams and not lock.locked():  # a thread may still be at its last frame
                del self._locks[peer]

    def handled(self, stream_id: int, seconds: float) -> None:
        """Take that the core has handled a frame of a stream, and what that cost."""
        if stream_id in self._peers:
            self.budget.spent(self._peers[stream_id], self._clock(), seconds=seconds)
        waiting = self._handled.pop(stream_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def stop(self) -> None:
        """Take no more; what is being decoded is left to its thread."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def admitted(self, peer: str) -> None:
        """Charge a peer for one more stream, and wait until that may be served."""
        self.budget.spent(peer, self._clock(), seconds=STREAM_SECONDS)
        seconds = self.budget.wait(peer, self._clock())
        if seconds:
            await self._sleep(seconds)

    def stays_above(self, stream_id: int) -> bool:
        """Say whether the peer of a stream has been above its budget for too long."""
        return self.budget.stays_above(self._peers[stream_id], self._clock())

    def holds(self, stream_id: int, items: int, listed: int) -> None:
        """Charge the peer of a stream for the items of a frame, and for so many placements that are compared later."""
        self.budget.spent(self._peers[stream_id], self._clock(), seconds=listed * COMPARED_SECONDS, items=items)

    @asynccontextmanager
    async def turn(self, stream_id: int, size: int) -> AsyncIterator[None]:
        """Wait for the turn of a stream's frame of so many bytes."""
        peer = self._peers[stream_id]
        lock = self._locks[peer][0]
        async with lock:
            wait = self.budget.wait(peer, self._clock())
            if wait:
                await self._sleep(wait)
            self.budget.spent(peer, self._clock(), seconds=FRAME_SECONDS, size=size)
            yield

    async def paced(self, stream_id: int) -> None:
        """Wait until a further slice of a frame is no burst: what others do comes between. Inside a turn."""
        peer = self._peers.get(stream_id)  # None: the stream ended meanwhile
        wait = self.budget.pace(peer, self._clock()) if peer is not None else 0.0
        if wait:
            await self._sleep(wait)

    async def until_handled(self, stream_id: int, post: Callable[[], None]) -> None:
        """Post something of a stream and wait until the core has handled it; inside a turn, once or several times."""
        waiting = self._handled[stream_id] = asyncio.get_running_loop().create_future()
        post()
        await asyncio.wait({waiting}, timeout=HANDLED_SECONDS_MAX)

    async def decoded(self, stream_id: int, data: bytes, decode: Callable[[bytes], T]) -> T:
        """Return what a frame decodes to, and charge its peer for it; inside a turn.

        Cancelled, it ends when its thread has: a peer that hangs up gets no further thread meanwhile.
        """
        peer = self._peers[stream_id]
        if len(data) <= INLINE_BYTES_MAX:
            found, seconds = _timed(decode, data)
        else:
            work = asyncio.get_running_loop().run_in_executor(self._threads, _timed, decode, data)
            try:
                found, seconds = await asyncio.shield(work)
            except asyncio.CancelledError:
                await asyncio.wait({work})
                self.budget.spent(peer, self._clock(), seconds=work.result()[1])
                raise
        self.budget.spent(peer, self._clock(), seconds=seconds)
        return found


def _timed(decode: Callable[[bytes], T], data: bytes) -> tuple[T, float]:
    began = time.thread_time()
    return decode(data), time.thread_time() - began
