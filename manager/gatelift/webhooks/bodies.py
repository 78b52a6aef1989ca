"""Takes the bodies of reviews: bounded in size, time, rate and in all. Neighbour: `server` (has them decided)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from gatelift_kube.serving.door import DoorVisit

REQUEST_BYTES_MAX = 8 * 1024 * 1024
"""A review holds the object twice, each at most the 3 MiB that an API server takes, and a little around it."""
BODY_SECONDS_MAX = 4.0
"""A body that comes slower than the API server waits for the answer (5 s) is nobody's."""
BODY_SECONDS_FREE = 2.0
BODY_RATE_MIN = 2 * 1024 * 1024
"""Bytes a second, after the first two. An API server writes a body at once, over a network that carries far more."""


class BodyTooLargeError(Exception):
    """More than `REQUEST_BYTES_MAX`, said or sent."""


class BodyLateError(Exception):
    """The body did not come in time, or too slowly."""


@asynccontextmanager
async def taken(request: web.Request, visit: DoorVisit) -> AsyncIterator[bytearray]:
    """Yield the body, held by `visit`; it is empty afterwards.

    BodyTooLargeError, BodyLateError; FullError and ConnectionError of `hold`.
    """
    body = bytearray()
    try:
        await _read(body, request, visit)
        yield body
    finally:
        body.clear()  # what failed is kept by its traceback until it is collected, which is too late for megabytes


async def _read(body: bytearray, request: web.Request, visit: DoorVisit) -> None:
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
