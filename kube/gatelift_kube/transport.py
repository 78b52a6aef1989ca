"""HTTP to one API server: requests with a time limit, and lines of a watch. The only file that knows aiohttp.

`Transport` is the seam: another HTTP client, or a fake, goes in here. `client` speaks Kubernetes on top of it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import aiohttp
import yarl

from gatelift_kube.config import ClusterConfig
from gatelift_kube.errors import SilentError, TimedOutError, UndecodableError, UnreachableError, from_status

CONNECTIONS_MAX = 128
"""Requests under way to one API server: 36 writes, the rest reads. Watches come on top, a connection for each."""
CONNECT_SECONDS_MAX = 5.0
"""TCP and TLS on the slowest link we serve; a connection that was not made has done nothing."""
OPEN_SECONDS_MAX = 30.0
"""An API server answers a watch at once, whether anything happened or not; one that is busy lets it wait its turn."""
KEEP_ALIVE_SECONDS = 55.0
"""Idle connections are closed before the 60 s after which many load balancers drop them silently."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""Largest answer read: a page of 500 objects of etcd's limit, 1.5 MB, would be 750 MB, real ones are 3 MB."""
LINE_BYTES_MAX = 8 * 1024 * 1024
"""Longest watch line: an object of etcd's limit of 1.5 MB grows by JSON escapes and managedFields."""
ERROR_BYTES_MAX = 64 * 1024

_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""A peer that vanished without a word is noticed after 30 s, not after the kernel's two hours."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `retry_after` is the header of that name, empty where it was not there."""

    status: int
    body: bytes
    retry_after: str = ""


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
    ) -> Answer:
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


class HttpTransport:
    """`Transport` by aiohttp: connections are reused, proxies and netrc of the environment are not looked at."""

    def __init__(
        self, config: ClusterConfig, *, connections: int = CONNECTIONS_MAX, user_agent: str = "gatelift"
    ) -> None:
        self._config = config
        self._connections = connections
        self._user_agent = user_agent
        # Requests wait here, first come first served. In aiohttp's own queue one that came later may take the
        # connection that was freed for one that waits: under load some requests waited until their time was up.
        self._turns = asyncio.Semaphore(connections)
        self._session: aiohttp.ClientSession | None = None

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
    ) -> Answer:
        """Send one request; see `Transport`."""
        headers = await self._headers()
        if content_type:
            headers["Content-Type"] = content_type
        began = asyncio.get_running_loop().time()
        async with self._turn(seconds):
            left = max(0.001, began + seconds - asyncio.get_running_loop().time())
            if told:
                query = f"timeout={max(1, round(left * 1000))}ms"
            answer = await self._exchange(method, self._url(path, query), body, headers, left)
        self._look_at(answer.status)
        return answer

    @asynccontextmanager
    async def _turn(self, seconds: float) -> AsyncIterator[None]:
        """Wait for a connection's turn; a request that did not get one in time was not sent."""
        if self._turns.locked():
            try:
                async with asyncio.timeout(seconds):
                    await self._turns.acquire()
            except TimeoutError as error:
                text = (
                    f"{self._config.server}: no turn within {seconds:.3g} s, {self._connections} requests are under way"
                )
                raise UnreachableError(text, maybe_done=False) from error
        else:
            await self._turns.acquire()  # at once, without the price of a timer
        try:
            yield
        finally:
            self._turns.release()

    async def _exchange(
        self, method: str, url: yarl.URL, body: bytes, headers: dict[str, str], seconds: float
    ) -> Answer:
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, CONNECT_SECONDS_MAX))
        try:
            async with self._open().request(
                method,
                url,
                data=body or None,
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=self._config.proxy or None,
                server_hostname=self._config.server_name or None,
            ) as response:
                return await _read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _translated(error, self._config.server, seconds) from error

    async def lines(self, path: str, query: str, *, idle_seconds: float) -> AsyncGenerator[bytes, None]:
        """Stream lines; see `Transport`."""
        headers = await self._headers()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX, sock_read=idle_seconds)
        opening = min(idle_seconds, OPEN_SECONDS_MAX)
        opened = False
        try:
            async with (
                asyncio.timeout(opening) as limit,
                self._open().get(
                    self._url(path, query),
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                    proxy=self._config.proxy or None,
                    server_hostname=self._config.server_name or None,
                ) as response,
            ):
                limit.reschedule(None)
                opened = True
                self._look_at(response.status)
                if response.status != 200:
                    body = await response.content.read(ERROR_BYTES_MAX)
                    raise from_status(response.status, body, response.headers.get("Retry-After", ""))
                async for line in response.content:
                    yield line
        except ValueError as error:  # aiohttp's word for a line that is longer than its buffer
            raise UndecodableError(f"watch: a line is longer than {LINE_BYTES_MAX} bytes") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if opened and isinstance(error, TimeoutError):
                raise SilentError(f"{self._config.server}: nothing came for {idle_seconds:.3g} s") from error
            raise _translated(error, self._config.server, opening) from error

    async def aclose(self) -> None:
        """Close all connections; the transport may be used again afterwards, with new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,  # `_turns` bounds requests, whoever watches bounds watches
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                ssl=self._config.tls if self._config.tls is not None else True,
                socket_factory=_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,  # measured: a proxy look-up for each request costs two thirds of the rate
                auto_decompress=False,
                read_bufsize=LINE_BYTES_MAX // 2,  # aiohttp takes lines of up to twice this
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self._user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
            )
        return self._session

    def _url(self, path: str, query: str) -> yarl.URL:
        return yarl.URL(
            f"{self._config.server}{path}?{query}" if query else f"{self._config.server}{path}", encoded=True
        )

    async def _headers(self) -> dict[str, str]:
        credentials = self._config.credentials
        if credentials is None:
            return {}
        value = await credentials.header()
        return {"Authorization": value} if value else {}

    def _look_at(self, status: int) -> None:
        if status == 401 and self._config.credentials is not None:
            self._config.credentials.reject()


async def _read(response: aiohttp.ClientResponse) -> Answer:
    length = response.content_length
    if length is not None and length <= ANSWER_BYTES_MAX:
        body = await response.read()
    else:
        parts: list[bytes] = []
        left = ANSWER_BYTES_MAX
        async for part in response.content.iter_any():
            left -= len(part)
            if left < 0:
                raise UndecodableError(f"an answer is larger than {ANSWER_BYTES_MAX} bytes")
            parts.append(part)
        body = b"".join(parts)
    return Answer(response.status, body, response.headers.get("Retry-After", ""))


def _socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made


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
