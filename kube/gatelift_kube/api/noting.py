"""A transport that notes what an API server says we may not do. Neighbour: `deciding.lacked_rights`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from gatelift_kube.api.connections import HttpAnswer
from gatelift_kube.api.transport import Transport
from gatelift_kube.deciding.errors import ForbiddenError, from_status
from gatelift_kube.deciding.lacked_rights import LackedRights, asked
from gatelift_kube.process.clock import Clock, monotonic

UNAUTHORIZED, FORBIDDEN, FAILED = 401, 403, 500


class NotingTransport:
    """Passes everything on. `on_lacked` gets a line for each refusal for lack of a right; `lacked` says what is so."""

    def __init__(self, inner: Transport, on_lacked: Callable[[str], None], clock: Clock = monotonic) -> None:
        self._inner = inner
        self._on_lacked = on_lacked
        self._clock = clock
        self._rights = LackedRights()

    @property
    def lacked(self) -> str:
        """What right is lacked now, in one line; "" for nothing."""
        return self._rights.told(self._clock())

    async def request(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        content_type: str = "",
        *,
        seconds: float,
        told: bool = False,
    ) -> HttpAnswer:
        """Send one request, as the transport does."""
        answer = await self._inner.request(method, path, query, body, content_type, seconds=seconds, told=told)
        if answer.status == FORBIDDEN:
            error = from_status(answer.status, answer.body)
            if isinstance(error, ForbiddenError):
                self._refused(method, path, query, error)
        elif answer.status < FAILED and answer.status != UNAUTHORIZED:
            self._rights.granted(asked(method, path, query))  # what is not there, or not valid, was looked at
        return answer

    async def lines(self, path: str, query: str, *, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """Stream an answer line by line, as the transport does."""
        try:
            async with aclosing(self._inner.lines(path, query, idle_seconds=idle_seconds)) as lines:
                async for line in lines:
                    self._rights.granted(asked("GET", path, query))
                    yield line
        except ForbiddenError as error:
            self._refused("GET", path, query, error)
            raise

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()

    def _refused(self, method: str, path: str, query: str, error: ForbiddenError) -> None:
        text = self._rights.refused(asked(method, path, query), error, self._clock())
        if text:
            self._on_lacked(text)
