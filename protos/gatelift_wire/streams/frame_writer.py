"""Writes the frames of one stream in order, each within a time limit, joined and paced as `packing` says.

Both ends use it with their own gRPC call: the only thing that it knows of a stream is a coroutine that writes bytes. It
costs one timer in a while instead of a queue, a task and a time limit for each frame. Neighbours: `packing` (decides),
the adapters of both ends (own the stream).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from gatelift_wire.sessions.packing import Join, Packer
from gatelift_wire.values.messages import Frame


class FrameWriter:
    """One stream's way out. `put` and `end` never wait; `run` is awaited in a task of the stream's own, once."""

    def __init__(self, encode: Callable[[Frame], bytes], join: Join, *, frames_max: int, bytes_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._encode = encode
        self._packer = Packer(join)
        self._frames_max = frames_max
        self._bytes_max = bytes_max
        self._writing = 0
        self._ended = False
        self._sleeper: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._began: float | None = None
        self._seconds = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._late = False

    def put(self, frame: Frame) -> bool:
        """Queue a frame. False: too much waits, so it was not taken, and the stream is of no use any more.

        Raises `WireViolation` or `TooLarge` for a frame that the peer would refuse; nothing was queued then.
        """
        data = self._encode(frame)
        packer = self._packer
        if packer.frames >= self._frames_max or packer.size + self._writing + len(data) > self._bytes_max:
            return False
        packer.put(frame, data, self._loop.time())
        if self._sleeper is not None:
            self._arm()
        return True

    def end(self) -> None:
        """Let `run` return once all that waits is written; nothing is held any longer."""
        self._ended = True
        self._packer.hurry(self._loop.time())
        self._wake()

    async def run(self, write: Callable[[bytes], Awaitable[None]], seconds: float) -> None:
        """Write until `end`. Raises TimeoutError if a frame is not taken within `seconds`, and what `write` does."""
        self._task = asyncio.current_task()
        self._seconds = seconds
        packer, loop = self._packer, self._loop
        try:
            while True:
                due = packer.due
                if due is None and self._ended:
                    return
                if due is None or due > loop.time():
                    await self._sleep()
                    continue
                data = packer.take(loop.time())
                self._writing = len(data)
                await self._limited(write(data))
                self._writing = 0
        finally:
            for timer in (self._alarm, self._watch):
                if timer is not None:
                    timer.cancel()

    # --- waiting for what is due -----------------------------------------------------------------------------------

    async def _sleep(self) -> None:
        self._sleeper = self._loop.create_future()
        self._arm()
        try:
            await self._sleeper
        finally:
            self._sleeper = None

    def _arm(self) -> None:
        """Have the sleeper woken when something is due; an alarm that comes too early only looks again."""
        due = self._packer.due
        if due is None:
            return
        if due <= self._loop.time():
            self._wake()
        elif self._alarm is None or due < self._alarm_at:
            if self._alarm is not None:
                self._alarm.cancel()
            self._alarm, self._alarm_at = self._loop.call_at(due, self._rung), due

    def _rung(self) -> None:
        self._alarm = None
        if self._sleeper is not None:
            self._arm()

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    # --- the time limit of a write ---------------------------------------------------------------------------------

    async def _limited(self, writing: Awaitable[None]) -> None:
        self._began = self._loop.time()
        if self._watch is None:
            self._watch = self._loop.call_later(self._seconds, self._look)
        try:
            await writing
        except asyncio.CancelledError:
            if self._late and self._task is not None:
                self._task.uncancel()
                raise TimeoutError from None
            raise
        finally:
            self._began = None

    def _look(self) -> None:
        """Cancel the write that takes too long; one timer serves all writes that begin before it rings."""
        self._watch = None
        if self._began is None or self._task is None:
            return
        left = self._began + self._seconds - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look)
        else:
            self._late = True
            self._task.cancel()
