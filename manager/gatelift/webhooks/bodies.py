"""Takes the bodies of reviews: bounded in size, time, rate and in all; and gives places to decide them in, in turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from gatelift_kube.door import Visit

REQUEST_BYTES_MAX = 8 * 1024 * 1024
"""A review holds the object twice, each at most the 3 MiB that an API server takes, and a little around it."""
BODY_SECONDS_MAX = 4.0
"""A body that comes slower than the API server waits for the answer (5 s) is nobody's."""
BODY_SECONDS_FREE = 2.0
BODY_RATE_MIN = 2 * 1024 * 1024
"""Bytes a second, after the first two. An API server writes a body at once, over a network that carries far more."""
DECIDED_BYTES_MAX = 4 * 1024 * 1024
"""Bodies that are decided at once, or one larger: read as objects they take up to thirty times their size."""


class BodyTooLargeError(Exception):
    """More than `REQUEST_BYTES_MAX`, said or sent."""


class BodyLateError(Exception):
    """The body did not come in time, or too slowly."""


@asynccontextmanager
async def taken(request: web.Request, visit: Visit) -> AsyncIterator[bytearray]:
    """Yield the body, held by `visit`; it is empty afterwards.

    BodyTooLargeError, BodyLateError; FullError and ConnectionError of `hold`.
    """
    body = bytearray()
    try:
        await _read(body, request, visit)
        yield body
    finally:
        body.clear()  # what failed is kept by its traceback until it is collected, which is too late for megabytes


async def _read(body: bytearray, request: web.Request, visit: Visit) -> None:
    if (request.content_length or 0) > REQUEST_BYTES_MAX:
        raise BodyTooLargeError(f"the body is larger than {REQUEST_BYTES_MAX} bytes")
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        async with asyncio.timeout(BODY_SECONDS_FREE) as limit:
            async for part in request.content.iter_any():
                if len(body) + len(part) > REQUEST_BYTES_MAX:
                    raise BodyTooLargeError(f"the body is larger than {REQUEST_BYTES_MAX} bytes")
                visit.hold(len(part))
                body += part
                seconds = BODY_SECONDS_FREE + len(body) / BODY_RATE_MIN
                limit.reschedule(began + min(BODY_SECONDS_MAX, seconds))
    except TimeoutError as error:
        text = f"the body came slower than {BODY_RATE_MIN} bytes/s after {BODY_SECONDS_FREE:g} s"
        raise BodyLateError(f"{text}, or not within {BODY_SECONDS_MAX:g} s") from error


class Deciding:
    """Places for bodies that are decided at once, given in the order in which they came whole."""

    def __init__(self, bytes_max: int = DECIDED_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def place(self, size: int) -> AsyncIterator[None]:
        """Hold a place for a body of this size; one that is larger than all places is decided alone."""
        size = min(size, self._bytes_max)
        if self._waiting or self._taken + size > self._bytes_max:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.cancelled():
                    self._call()  # those behind may fit
                else:
                    self._free(size)
                raise
        else:
            self._taken += size
        try:
            yield
        finally:
            self._free(size)

    def _free(self, size: int) -> None:
        self._taken -= size
        self._call()

    def _call(self) -> None:
        """Give places to those who wait, in their order; who went away is passed over."""
        while self._waiting:
            size, turn = self._waiting[0]
            if not turn.cancelled():
                if self._taken + size > self._bytes_max:
                    return
                self._taken += size
                turn.set_result(None)
            self._waiting.popleft()
