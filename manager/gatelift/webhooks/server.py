"""Takes reviews over TLS and answers them. Bounded in size, time and number; no request can end the daemon.

Nothing is decided for a body that has not come, and whoever trickles keeps nobody else waiting (`door`, `places`); who
sends long ones keeps only those of their size waiting (`lanes`).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from gatelift.webhooks import bodies, configuration, conversion, review
from gatelift.webhooks.bodies import BodyLateError, BodyTooLargeError
from gatelift.webhooks.envelope import BadReviewError
from gatelift.webhooks.judge import Judge
from gatelift.webhooks.lanes import Decide, Lanes
from gatelift.webhooks.review import Question
from gatelift_kube.deciding.places import FullError
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.repetitions import Repetitions
from gatelift_kube.serving.door import Door, Limits, visit_of

CLIENT_IDLE_SECONDS = 90.0
"""After this an API server closes a connection of which it has no use (client-go, by Go's default transport)."""
KEEPALIVE_SECONDS = 2 * CLIENT_IDLE_SECONDS
"""It has to be the API server that closes: a review that it sends while we do is lost and is not sent again."""
CONNECTIONS_MAX = 256
"""Three API servers keep 25 idle each, and use one for each review on its way. More displace what is unfinished."""
BODY_BYTES_MAX = 48 * 1024 * 1024
"""Bodies and answers held at once: six of the largest, a thousand of common size. The Deployment has room."""
ANSWER_SECONDS_MAX = 5.0
"""From the whole body to the answer: what the API server waits for it."""
STOP_SECONDS = 3.0

LIMITS = Limits(connections_max=CONNECTIONS_MAX, bytes_max=BODY_BYTES_MAX, idle_seconds=KEEPALIVE_SECONDS)

Answer = Callable[[bytearray, Decide], Awaitable[bytes]]
Taken = Callable[[str, str, int, float], None]
"""Told of kind, step, HTTP status and seconds."""


class WebhookServer:
    """An HTTPS server on one port. `tls` returns what the next handshake is made with."""

    def __init__(
        self, judge: Judge, missing: Callable[[], str], tls: Callable[[], ssl.SSLContext], taken: Taken
    ) -> None:
        """`missing` returns why reviews cannot be answered yet, "" when they can; `taken` counts them."""
        self._judge = judge
        self._missing = missing
        self._taken = taken
        self._lanes = Lanes()
        self._repetitions = Repetitions()
        self._log = structlog.get_logger("gatelift.webhooks")
        self.door = Door("webhooks", LIMITS, tls)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self.door.address[1]

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free one (`self.port`). OSError: the address is taken."""
        app = web.Application()
        for kind in configuration.KINDS:
            for step, judged in (
                ("mutate", self._judge.mutate),
                ("validate", self._judge.validate),
                (configuration.GROWN, self._judge.validate_size),
            ):
                self._add(app, configuration.path(step, kind.name), kind.name, step, self._reviewing(kind.name, judged))
        for name in configuration.SHOWN:
            answer = self._reviewing(name, self._judge.validate_queueing)
            self._add(app, configuration.path("validate", name), name, "validate", answer)
        for name, judged in (
            (configuration.UNSERVED, self._judge.validate_unserved),
            (configuration.OWNED, self._judge.validate_owned),
        ):
            self._add(app, configuration.path("validate", name), name, "validate", self._reviewing(name, judged))
        self._add(app, configuration.CONVERT_PATH, "all", "convert", self._convert)
        await self.door.open(app, host, port, stop_seconds=STOP_SECONDS)

    async def stop(self) -> None:
        """Stop listening; reviews under way get `STOP_SECONDS`."""
        await self.door.close()
        self._lanes.stop()

    def _add(self, app: web.Application, path: str, kind: str, step: str, answer: Answer) -> None:
        async def take(request: web.Request) -> web.Response:
            began = monotonic()
            response = await self._take(request, answer)
            self._taken(kind, step, response.status, monotonic() - began)
            return response

        app.router.add_post(path, take)

    def _reviewing(self, kind: str, judged: Callable[[str, Question, Decide], Awaitable[bytes]]) -> Answer:
        async def answer(body: bytearray, decide: Decide) -> bytes:
            missing = self._missing()
            if missing:
                raise _NotReadyError(f"the webhooks are not ready: {missing}; try again")
            return await judged(kind, await decide(review.read, body), decide)

        return answer

    async def _convert(self, body: bytearray, decide: Decide) -> bytes:
        """Answer a ConversionReview; needs nothing but the objects in it, so it is answered from the start."""
        return await decide(conversion.answer, body)

    async def _take(self, request: web.Request, answer: Answer) -> web.Response:
        visit = visit_of(request)
        try:
            async with bodies.taken(request, visit) as body:
                visit.body_is_whole()
                lane = self._lanes.lane(len(body), visit.guest.address)
                async with asyncio.timeout(ANSWER_SECONDS_MAX), lane as decide:
                    answered = await answer(body, decide)
            visit.hold(len(answered))
            return web.Response(body=answered, content_type="application/json")
        except BadReviewError as error:
            if self._repetitions.untold(request.remote) is not None:
                self._log.warning("refused what is no review", problem=str(error), peer=request.remote)
            return _refused(400, str(error))
        except BodyLateError as error:
            return _refused(408, str(error))
        except BodyTooLargeError as error:
            return _refused(413, str(error))
        except FullError as error:
            return _refused(429, f"{error}; try again", {"Retry-After": "1"})
        except _NotReadyError as error:
            return web.Response(status=503, text=f"{error}\n")
        except ConnectionError:
            raise  # nobody is there any more; the door ends it
        except TimeoutError:
            return _refused(503, f"no answer within {ANSWER_SECONDS_MAX:g} s; try again")
        except Exception as error:  # noqa: BLE001 (containment: one review keeps no other from being answered)
            if self._repetitions.untold(type(error).__name__) is not None:
                self._log.error("review not answered", path=request.path, problem=str(error), exc_info=error)
            return _refused(500, f"{type(error).__name__}: it could not be looked at; the webhooks' log says why")


class _NotReadyError(Exception):
    """Something that answers depend on has not been read yet."""


def _refused(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    """Return an answer after which the connection ends: whoever sends such things again shakes hands again."""
    response = web.Response(status=status, text=f"{text}\n", headers=headers)
    response.force_close()
    return response
