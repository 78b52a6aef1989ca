"""HTTP to one API server: requests with a time limit, and lines of a watch. Only it and `connections` know aiohttp.

`Transport` is the seam: another HTTP client, or a fake, goes in here. `client` speaks Kubernetes on top of it.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Protocol

import aiohttp
import yarl
from aiohttp.http_exceptions import HttpProcessingError

from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.connections import CONNECT_SECONDS_MAX, LINE_BYTES_MAX, Connections, HttpAnswer, OpenConnection
from gatelift_kube.deciding.errors import (
    ConfigError,
    SilentError,
    TimedOutError,
    UndecodableError,
    UnreachableError,
    from_status,
)
from gatelift_kube.process.clock import Clock, monotonic

CONNECTIONS_MAX = 128
"""Requests under way to one API server: 36 writes, the rest reads. Watches come on top, a connection for each."""
OPEN_SECONDS_MAX = 30.0
"""An API server answers a watch at once, whether anything happened or not; one that is busy lets it wait its turn."""
ERROR_BYTES_MAX = 64 * 1024

_BROKEN = (aiohttp.ClientError, HttpProcessingError, OSError)
"""What aiohttp raises where no answer comes that can be read."""


class Transport(Protocol):
    """One API server by HTTP. Raises UnreachableError, TimedOutError, ConfigError, and nothing of its HTTP library."""

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
        """Send one request; any HTTP status is an answer. `path` and `query` are already encoded.

        `told`: the query gets `timeout=` with what is left of `seconds` when the request is sent.
        """
        ...

    def lines(self, path: str, query: str, *, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """Stream an answer line by line; raises ApiError where the status is not 200.

        TimedOutError where the server does not begin to answer within `OPEN_SECONDS_MAX`, SilentError after
        `idle_seconds` without a byte.
        """
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


@dataclass(slots=True, eq=False)
class _Progress:
    """How far a request has come, for the words and the certainty of its failure."""

    turn: bool = False
    sent: bool = False


class HttpTransport:
    """`Transport` by aiohttp: connections are reused, proxies and netrc of the environment are not looked at."""

    def __init__(
        self,
        config: ClusterConfig,
        *,
        connections: int = CONNECTIONS_MAX,
        user_agent: str = "gatelift",
        clock: Clock = monotonic,
    ) -> None:
        self._config = config
        self._clock = clock
        self._limit = connections
        # Requests wait here, first come first served.
        self._turns = asyncio.Semaphore(connections)
        self._connections = Connections(config, user_agent)
        url = yarl.URL(config.server, encoded=True)
        # Through a proxy that does not tunnel, which is one for plain http, a request names the server too.
        relayed = bool(config.proxy) and url.scheme == "http"
        self._before_path = config.server if relayed else url.raw_path.rstrip("/")
        self._always = (
            f"Host: {url.host_port_subcomponent}\r\nUser-Agent: {user_agent}\r\n"
            "Accept: application/json\r\nAccept-Encoding: identity\r\n"
            f"{_proxy_authorization(config.proxy) if relayed else ''}"
        )
        self._credential = ""
        self._headers = self._always.encode()

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
        """Send one request; see `Transport`. ValueError for a path or query that would not stay in its line."""
        for part in (path, query):
            if not part.isascii() or not part.isprintable() or " " in part:
                raise ValueError(f"{part!r}: a path and a query must be encoded")
        loop = asyncio.get_running_loop()
        # A loop's own time may stand still within a step of it, in which the process may be paused for long.
        deadline = self._clock() + seconds
        progress = _Progress()
        try:
            async with asyncio.timeout(seconds):
                if self._config.credentials is not None:
                    self._carry(await self._config.credentials.header())
                await self._turns.acquire()
                progress.turn = True
                try:
                    while True:
                        line = await self._connected(loop.time())
                        limit = f"timeout={max(1, round((deadline - self._clock()) * 1000))}ms" if told else ""
                        asked = "&".join(filter(None, (query, limit)))
                        request = self._request(method, f"{path}?{asked}" if asked else path, body, content_type)
                        if deadline <= self._clock():  # the last thing before it goes out: nothing is sent too late
                            self._connections.give_back(line, loop.time())
                            raise TimeoutError
                        try:
                            answer = await self._exchange(line, request, progress)
                            break
                        except UnreachableError:
                            # An idle connection may be closed by the server just as it is used. A read can be sent
                            # again at once; whether a write may be is not for us to say.
                            if method != "GET" or not line.used:
                                raise
                finally:
                    self._turns.release()
        except TimeoutError as error:
            raise self._too_late(progress, seconds) from error
        if answer.status == 401 and self._config.credentials is not None:
            self._config.credentials.reject()
        return answer

    async def _connected(self, now: float) -> OpenConnection:
        try:
            return await self._connections.take(now)
        except (*_BROKEN, TimeoutError) as error:
            why = f"not within {CONNECT_SECONDS_MAX:g} s" if isinstance(error, TimeoutError) else _why(error)
            raise UnreachableError(f"{self._config.server}: cannot connect: {why}", maybe_done=False) from error

    async def _exchange(self, line: OpenConnection, request: bytes, progress: _Progress) -> HttpAnswer:
        progress.sent = True
        try:
            answer = await line.ask(request)
        except _BROKEN as error:
            self._connections.drop(line)
            text = f"{self._config.server}: the connection broke: {_why(error)}"
            raise UnreachableError(text, maybe_done=True) from error
        except BaseException:
            self._connections.drop(line)
            raise
        self._connections.give_back(line, asyncio.get_running_loop().time())
        return answer

    def _too_late(self, progress: _Progress, seconds: float) -> UnreachableError | TimedOutError:
        if progress.sent:
            return TimedOutError(f"{self._config.server}: no answer within {seconds:.3g} s")
        if progress.turn:
            text = f"cannot connect: not within {seconds:.3g} s"
        else:
            text = f"no turn within {seconds:.3g} s, {self._limit} requests are under way"
        return UnreachableError(f"{self._config.server}: {text}", maybe_done=False)

    def _request(self, method: str, target: str, body: bytes, content_type: str) -> bytes:
        """Return a request as it is sent."""
        first = f"{method} {self._before_path}{target} HTTP/1.1\r\n".encode()
        if not body and method == "GET":
            return b"%s%s\r\n" % (first, self._headers)
        described = f"Content-Type: {content_type}\r\n" if content_type else ""
        return b"%s%s%sContent-Length: %d\r\n\r\n%s" % (first, self._headers, described.encode(), len(body), body)

    def _carry(self, credential: str) -> None:
        """Put the credential into all requests from now on. Raises ConfigError for one that is no header's value."""
        if credential == self._credential:
            return
        if not credential.isascii() or not credential.isprintable():
            raise ConfigError(f"{self._config.server}: the credential holds characters that a header cannot carry")
        self._credential = credential
        self._headers = (
            f"{self._always}Authorization: {credential}\r\n".encode() if credential else self._always.encode()
        )

    async def lines(self, path: str, query: str, *, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """Stream lines; see `Transport`."""
        headers = await self._authorization()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=idle_seconds)
        opening = min(idle_seconds, OPEN_SECONDS_MAX)
        opened = False
        try:
            async with (
                asyncio.timeout(opening) as limit,
                self._connections.session().get(
                    yarl.URL(f"{self._config.server}{path}?{query}", encoded=True),
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                    proxy=self._config.proxy or None,
                    server_hostname=self._config.server_name or None,
                ) as response,
            ):
                limit.reschedule(None)
                opened = True
                if response.status == 401 and self._config.credentials is not None:
                    self._config.credentials.reject()
                if response.status != 200:
                    body = await response.content.read(ERROR_BYTES_MAX)
                    raise from_status(response.status, body, response.headers.get("Retry-After", ""))
                content = response.content
                begun = b""  # a line of which the end has not come yet
                while part := await content.readany():
                    *lines, begun = (begun + part).split(b"\n")
                    for line in lines:
                        yield line
                    if len(begun) > LINE_BYTES_MAX:
                        raise UndecodableError(f"watch: a line is longer than {LINE_BYTES_MAX} bytes")
                if begun:
                    yield begun
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if opened and isinstance(error, TimeoutError):
                raise SilentError(f"{self._config.server}: nothing came for {idle_seconds:.3g} s") from error
            raise _translated(error, self._config.server, opening) from error

    async def aclose(self) -> None:
        """Close all connections; the transport may be used again afterwards, with new ones."""
        await self._connections.aclose()

    async def _authorization(self) -> dict[str, str]:
        credentials = self._config.credentials
        value = await credentials.header() if credentials is not None else ""
        return {"Authorization": value} if value else {}


def _proxy_authorization(proxy: str) -> str:
    url = yarl.URL(proxy)
    if url.user is None:
        return ""
    return f"Proxy-Authorization: {aiohttp.encode_basic_auth(url.user, url.password or '')}\r\n"


def _translated(error: BaseException, server: str, seconds: float) -> UnreachableError | TimedOutError:
    """Turn an error of aiohttp into ours. A connection that was never made cannot have carried a write."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError | aiohttp.InvalidURL):
        return UnreachableError(f"{server}: cannot connect: {_why(error)}", maybe_done=False)
    if isinstance(error, TimeoutError):
        return TimedOutError(f"{server}: no answer within {seconds:.3g} s")
    return UnreachableError(f"{server}: the connection broke: {_why(error)}", maybe_done=True)


def _why(error: BaseException) -> str:
    """Return the reason in a few words; aiohttp's own texts repeat the address and print Python values."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno)
    if isinstance(cause, aiohttp.ClientPayloadError):
        return "the answer ended too early"
    return " ".join(str(cause).split()) or type(cause).__name__
