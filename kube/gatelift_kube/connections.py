"""Connections to one API server, one request at a time on each: taken, spoken on, given back. `transport` uses them.

aiohttp makes them (names, TCP, TLS, proxies), reads and parses the answers, and is asked for a whole session only by
watches. Requests do without its `ClientSession`: ours come one by one, and each then runs on cold caches, where the
session's objects, its task for each body and its timers cost two fifths of a write (measured at 200 a second: 430 us
CPU each with them, 250 without).

The connection that was used last is used first: its TLS state is still in the cache, and those that a burst has opened
grow old and are closed.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from gatelift_kube.config import ClusterConfig
from gatelift_kube.errors import UndecodableError

CONNECT_SECONDS_MAX = 5.0
"""TCP and TLS on the slowest link we serve; a connection that was not made has done nothing."""
KEEP_ALIVE_SECONDS = 55.0
"""Idle connections are not used after 55 s: many load balancers drop them silently after 60 s."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""Largest answer read: a page of 500 objects of etcd's limit, 1.5 MB, would be 750 MB, real ones are 3 MB."""
LINE_BYTES_MAX = 8 * 1024 * 1024
"""Longest watch line: an object of etcd's limit of 1.5 MB grows by JSON escapes and managedFields."""

_READ_BYTES = LINE_BYTES_MAX // 2
"""aiohttp takes lines of up to twice this."""
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""A peer that vanished without a word is noticed after 30 s, not after the kernel's two hours."""
_CONNECT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `retry_after` is the header of that name, empty where it was not there."""

    status: int
    body: bytes
    retry_after: str = ""


@dataclass(slots=True, eq=False)
class Line:
    """A connection that is in use by one request, or idle since `since` (seconds of the event loop)."""

    connection: Connection
    protocol: ResponseHandler
    session: aiohttp.ClientSession
    used: bool = False
    """It has carried a request before this one."""
    since: float = 0.0

    def send(self, request: bytes) -> None:
        """Send a whole request; OSError where the connection is gone."""
        protocol = self.protocol
        if protocol.transport is None:
            raise ConnectionResetError("Cannot write to closing transport")
        protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=_READ_BYTES)
        protocol.transport.write(request)

    async def answer(self) -> Answer:
        """Wait for the answer; raises aiohttp's errors and OSError where none comes, UndecodableError."""
        while True:
            message, content = await self.protocol.read()
            status = message.code
            if status >= 200 or status == 101:  # the others of 1xx only announce the answer
                break
        body = content.read_nowait() if content.is_eof() else await _rest(content)
        if len(body) > ANSWER_BYTES_MAX:
            raise UndecodableError(f"an answer is larger than {ANSWER_BYTES_MAX} bytes")
        return Answer(status, body, message.headers.get("Retry-After", "") if status >= 300 else "")


class Connections:
    """Makes connections and keeps idle ones. How many are in use at a time is for the caller to limit."""

    def __init__(self, config: ClusterConfig, user_agent: str) -> None:
        self._config = config
        self._user_agent = user_agent
        self._idle: list[Line] = []
        self._session: aiohttp.ClientSession | None = None

    async def take(self) -> Line:
        """Return a connection for one request, the last one given back or a new one; raises as aiohttp does."""
        now = asyncio.get_running_loop().time()
        while self._idle:
            line = self._idle.pop()
            protocol = line.protocol
            # `should_close` again: something may have come unasked, such as the 408 of a server that is tired of it.
            if now - line.since <= KEEP_ALIVE_SECONDS and protocol.is_connected() and not protocol.should_close:
                return line
            line.connection.close()
        session = self.session()
        connector = session.connector
        if connector is None:
            raise ConnectionResetError("the session was closed")
        connection = await connector.connect(self._target(session), [], _CONNECT)
        made = connection.protocol
        if made is None:
            raise ConnectionResetError("the connection was closed as soon as it was made")
        return Line(connection, made, session)

    def give_back(self, line: Line) -> None:
        """Keep a connection whose answer was read to its end, unless the server or an error has ended it."""
        if line.protocol.should_close or line.session is not self._session:
            line.connection.close()
            return
        line.used = True
        line.since = now = asyncio.get_running_loop().time()
        self._idle.append(line)
        oldest = self._idle[0]
        if now - oldest.since > KEEP_ALIVE_SECONDS:
            self._idle.remove(oldest)
            oldest.connection.close()

    def session(self) -> aiohttp.ClientSession:
        """Return the session that owns all connections; made when it is first needed."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,  # whoever asks limits requests, whoever watches limits watches
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                ssl=self._config.tls if self._config.tls is not None else True,
                socket_factory=_socket,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                trust_env=False,  # measured: a proxy look-up for each request costs two thirds of the rate
                auto_decompress=False,
                read_bufsize=_READ_BYTES,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self._user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
            )
        return self._session

    async def aclose(self) -> None:
        """Close all connections; new ones are made afterwards when they are asked for."""
        idle, self._idle = self._idle, []
        session, self._session = self._session, None
        if session is not None:
            await session.close()  # waits for the end of all its connections, idle or not
        for line in idle:
            line.connection.close()

    def _target(self, session: aiohttp.ClientSession) -> aiohttp.ClientRequest:
        """Return what tells the connector where to connect to."""
        return aiohttp.ClientRequest(
            "GET",
            yarl.URL(self._config.server, encoded=True),
            loop=asyncio.get_running_loop(),
            session=session,
            proxy=yarl.URL(self._config.proxy) if self._config.proxy else None,
            server_hostname=self._config.server_name or None,
        )


async def _rest(content: aiohttp.StreamReader) -> bytes:
    parts: list[bytes] = []
    left = ANSWER_BYTES_MAX
    while not content.at_eof():
        part = await content.readany()
        left -= len(part)
        if left < 0:
            raise UndecodableError(f"an answer is larger than {ANSWER_BYTES_MAX} bytes")
        parts.append(part)
    return b"".join(parts)


def _socket(info: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, _, _ = info
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE:
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return made
