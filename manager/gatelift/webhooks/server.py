"""Takes reviews over TLS and answers them. Bounded in size, time and number; no request can end the daemon."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from gatelift.webhooks import configuration, conversion, review
from gatelift.webhooks.envelope import BadReviewError
from gatelift.webhooks.judge import Judge
from gatelift.webhooks.review import Question
from gatelift_kube.clock import monotonic

REQUEST_BYTES_MAX = 8 * 1024 * 1024
"""A review holds the object twice, each at most the 3 MiB that an API server takes, and a little around it."""
BODY_SECONDS_MAX = 5.0
"""A body that comes slower than the API server waits for the answer is nobody's."""
IN_FLIGHT_MAX = 256
"""Reviews in work at once; each waits for one read at most. More are refused, and the API server's client retries."""
CLIENT_IDLE_SECONDS = 90.0
"""After this an API server closes a connection of which it has no use (client-go, by Go's default transport)."""
KEEPALIVE_SECONDS = 2 * CLIENT_IDLE_SECONDS
"""It has to be the API server that closes: a review that it sends while we do is lost and is not sent again."""
STOP_SECONDS = 3.0

Answer = Callable[[str, Question], Awaitable[bytes]]
Taken = Callable[[str, str, int, float], None]
"""Told of kind, step, HTTP status and seconds."""


class WebhookServer:
    """An HTTPS server on one port. `tls` may be loaded with a new certificate while it runs."""

    def __init__(self, judge: Judge, missing: Callable[[], str], tls: ssl.SSLContext, taken: Taken) -> None:
        """`missing` returns why reviews cannot be answered yet, "" when they can; `taken` counts them."""
        self._judge = judge
        self._missing = missing
        self._tls = tls
        self._taken = taken
        self._in_flight = 0
        self._runner: web.AppRunner | None = None
        self._log = structlog.get_logger("gatelift.webhooks")
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free one (`self.port`). OSError: the address is taken."""
        app = web.Application(client_max_size=REQUEST_BYTES_MAX)
        for kind in configuration.KINDS:
            for step, answer in (("mutate", self._judge.mutate), ("validate", self._judge.validate)):
                app.router.add_post(configuration.path(step, kind.name), self._taking(kind.name, step, answer))
        for name in configuration.QUEUEING:
            answer = self._judge.validate_queueing
            app.router.add_post(configuration.path("validate", name), self._taking(name, "validate", answer))
        app.router.add_post(configuration.CONVERT_PATH, self._convert)
        self._runner = web.AppRunner(
            app, access_log=None, keepalive_timeout=KEEPALIVE_SECONDS, shutdown_timeout=STOP_SECONDS
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, host or None, port, ssl_context=self._tls).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Stop listening; reviews under way get `STOP_SECONDS`."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _taking(self, kind: str, step: str, answer: Answer) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def take(request: web.Request) -> web.Response:
            began = monotonic()
            response = await self._take(kind, answer, request)
            self._taken(kind, step, response.status, monotonic() - began)
            return response

        return take

    async def _take(self, kind: str, answer: Answer, request: web.Request) -> web.Response:
        missing = self._missing()
        if missing:
            return web.Response(status=503, text=f"the webhooks are not ready: {missing}; try again\n")
        if self._in_flight >= IN_FLIGHT_MAX:
            return web.Response(status=429, text="too many reviews at once; try again\n", headers=_RETRY)
        self._in_flight += 1
        try:
            return await self._answer(kind, answer, request)
        finally:
            self._in_flight -= 1

    async def _convert(self, request: web.Request) -> web.Response:
        """Answer a ConversionReview; needs nothing but the objects in it, so it is answered from the start."""
        if self._in_flight >= IN_FLIGHT_MAX:
            return web.Response(status=429, text="too many reviews at once; try again\n", headers=_RETRY)
        began = monotonic()
        self._in_flight += 1
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                body = await request.read()
            response = web.Response(body=conversion.answer(body), content_type="application/json")
        except TimeoutError:
            response = web.Response(status=408, text=f"the body did not come within {BODY_SECONDS_MAX:g} s\n")
        except BadReviewError as error:
            self._log.warning("refused what is no review", problem=str(error), peer=request.remote)
            response = web.Response(status=400, text=f"{error}\n")
        finally:
            self._in_flight -= 1
        self._taken("all", "convert", response.status, monotonic() - began)
        return response

    async def _answer(self, kind: str, answer: Answer, request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                body = await request.read()
        except TimeoutError:
            return web.Response(status=408, text=f"the body did not come within {BODY_SECONDS_MAX:g} s\n")
        try:
            return web.Response(body=await answer(kind, review.read(body)), content_type="application/json")
        except BadReviewError as error:
            self._log.warning("refused what is no review", problem=str(error), peer=request.remote)
            return web.Response(status=400, text=f"{error}\n")


_RETRY = {"Retry-After": "1"}
