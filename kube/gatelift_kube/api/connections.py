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
from collections import deque
from dataclasses import dataclass

import aiohttp
import yarl
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection

from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.deciding.errors import UndecodableError
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX

CONNECT_SECONDS_MAX = 5.0
"""TCP and TLS on the slowest link we serve; a connection that was not made has done nothing."""
KEEP_ALIVE_SECONDS = 55.0
"""Idle connections are not used after 55 s: many load balancers drop them silently after 60 s."""
ANSWER_BYTES_MAX = 256 * 1024 * 1024
"""Largest answer read: a page of 500 objects of etcd's limit, 1.5 MB, would be 750 MB, real ones are 3 MB."""
LINE_BYTES_MAX = 8 * 1024 * 1024
"""Longest watch line: an object of etcd's limit of 1.5 MB grows by JSON escapes and managedFields."""

PATIENCE_SECONDS = 0.02
"""A request that finds all connections in use waits so long for one of them before it makes another: that is about what
TCP and TLS with a busy API server take, and a handshake costs either end as much as ten requests."""

MAKING_MAX = 4
"""Handshakes at a time, when others are in use: an API server that pauses would be met by one for each request."""

_READ_BYTES = LINE_BYTES_MAX // 2
"""aiohttp takes lines of up to twice this."""
_KEEP_ALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
"""A peer that vanished without a word is noticed within 30 s, not after the kernel's two hours."""
UNDELIVERED_SECONDS_MAX = WRITE_SECONDS_MAX
"""What was sent and has not arrived after this is dropped by the kernel, even when the process is gone by then. The API
server counts the `timeout` of a request from its arrival: both together bound how late a write may land (decision 28).
"""
_CONNECT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS_MAX)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What came back. `retry_after` is the header of that name, empty where it was not there."""

    status: int
    body: bytes
    retry_after: str = ""


@dataclass(slots=True, eq=False)
class OpenConnection:
    """A connection that is in use by one request, or idle since `since` (seconds of the event loop)."""

    connection: Connection
    protocol: ResponseHandler
    session: aiohttp.ClientSession
    used: bool = False
    """It has carried a request before this one."""
    since: float = 0.0

    @property
    def usable(self) -> bool:
        """Whether it stands and nothing came unasked, such as the 408 of a server that is tired of it."""
        return self.protocol.is_connected() and not self.protocol.should_close

    async def ask(self, request: bytes) -> HttpAnswer:
        """Send a whole request and return its answer; raises aiohttp's errors and OSError where none comes.

        UndecodableError for one that is too large. Cancelled, or after an error, it is to be closed.
        """
        protocol = self.protocol
        if protocol.transport is None:
            raise ConnectionResetError("Cannot write to closing transport")
        protocol.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=_READ_BYTES)
        protocol.transport.write(request)
        while True:
            message, content = await protocol.read()
            status = message.code
            if status >= 200 or status == 101:  # the others of 1xx only announce the answer
                break
        body = content.read_nowait() if content.is_eof() else await _rest(content)
        if len(body) > ANSWER_BYTES_MAX:
            raise UndecodableError(f"an answer is larger than {ANSWER_BYTES_MAX} bytes")
        return HttpAnswer(status, body, message.headers.get("Retry-After", "") if status >= 300 else "")

    def close(self) -> None:
        """End the connection."""
        self.connection.close()


class Connections:
    """Makes connections and keeps idle ones. How many are in use at a time is for the caller to limit."""

    def __init__(self, config: ClusterConfig, user_agent: str) -> None:
        self._config = config
        self._user_agent = user_agent
        self._idle: list[OpenConnection] = []
        self._busy = 0
        """Connections that requests have, or are making."""
        self._making = 0
        self._waiting: deque[asyncio.Future[OpenConnection | None]] = deque()
        self._session: aiohttp.ClientSession | None = None

    async def take(self, now: float) -> OpenConnection:
        """Return a connection for one request; raises as aiohttp does. `give_back` or `drop` must follow."""
        line = self._at_hand(now)
        if line is None and self._busy:
            line = await self._given_back()
        elif line is None:
            self._making += 1
        self._busy += 1
        if line is None:
            try:
                line = await self._make()
            except BaseException:
                self._busy -= 1
                raise
            finally:
                self._making -= 1
        return line

    def _at_hand(self, now: float) -> OpenConnection | None:
        """Return the idle connection that was given back last, None where there is none."""
        while self._idle:
            line = self._idle.pop()
            if now - line.since <= KEEP_ALIVE_SECONDS and line.usable:
                return line
            line.close()
        return None

    async def _given_back(self) -> OpenConnection | None:
        """Wait a moment for a connection that is in use, each request in its turn; None: make one, it is counted."""
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[OpenConnection | None] = loop.create_future()
        self._waiting.append(turn)
        loop.call_later(PATIENCE_SECONDS, self._tired, turn)
        try:
            line = await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._refused(turn.result(), loop.time())
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise
        if line is not None and not line.usable:  # it has ended since
            line.close()
            self._making += 1
            return None
        return line

    def _tired(self, turn: asyncio.Future[OpenConnection | None]) -> None:
        """Let a request make a connection of its own, unless enough are being made."""
        if turn.done():
            return
        if self._making < MAKING_MAX:
            self._making += 1
            self._waiting.remove(turn)
            turn.set_result(None)
        else:
            turn.get_loop().call_later(PATIENCE_SECONDS, self._tired, turn)

    def _refused(self, line: OpenConnection | None, now: float) -> None:
        """Take back what a request was given that is there no more."""
        if line is None:
            self._making -= 1
        else:
            self._keep(line, now)

    async def _make(self) -> OpenConnection:
        """Return a new connection; raises as aiohttp does."""
        session = self.session()
        connector = session.connector
        if connector is None:
            raise ConnectionResetError("the session was closed")
        connection = await connector.connect(self._target(session), [], _CONNECT)
        made = connection.protocol
        if made is None:
            raise ConnectionResetError("the connection was closed as soon as it was made")
        return OpenConnection(connection, made, session)

    def give_back(self, line: OpenConnection, now: float) -> None:
        """Keep a connection whose answer was read to its end, unless the server or an error has ended it."""
        if not line.usable or line.session is not self._session:
            self.drop(line)
            return
        self._busy -= 1
        line.used = True
        self._keep(line, now)

    def drop(self, line: OpenConnection) -> None:
        """Close a connection that is of no use any more."""
        self._busy -= 1
        line.close()

    def _keep(self, line: OpenConnection, now: float) -> None:
        """Hand an idle connection to whoever waits for one, or keep it."""
        line.since = now
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(line)
                return
        self._idle.append(line)
        oldest = self._idle[0]
        if now - oldest.since > KEEP_ALIVE_SECONDS:
            self._idle.remove(oldest)
            oldest.close()

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
            line.close()

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
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(UNDELIVERED_SECONDS_MAX * 1000))
    return made
