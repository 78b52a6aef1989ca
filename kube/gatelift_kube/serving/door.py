"""Listens on a port that anybody may reach, and lets aiohttp serve what comes: bounded in connections, bytes and time.

aiohttp bounds one request; it does not bound how many there are, how long a handshake or a head may take, or what all
of them hold together. The door does, before the handshake. Neighbours: `places` says who is displaced, `http_log` what
is said of requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from gatelift_kube.deciding.budget import Share as Pace
from gatelift_kube.deciding.places import FullError, Guest, Places
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.paced_turns import PacedTurns
from gatelift_kube.process.repetitions import PeerRepetitions, Repetitions
from gatelift_kube.process.tasks import spawn
from gatelift_kube.serving.http_log import http_logger

HANDSHAKE_SECONDS_MAX = 3.0
"""From the connection to the end of the handshake; two round trips."""
HEAD_SECONDS_MAX = 2.0
"""From the first byte of a request to the end of its head, which is one packet."""
TURNS_MAX = 4
"""Turns of the loop from the end of a head to whoever serves it: a loop that is late itself cuts nobody for that."""
WRITE_SECONDS_MAX = 5.0
"""An answer that is not taken within this is nobody's: the API server and probes wait no longer for it."""
PIECE_BYTES = 32 * 1024
"""Written at once, so that what a peer does not read stays in its own memory."""
BUFFER_BYTES = 64 * 1024
"""Of a connection: in the kernel each way, in TLS and in aiohttp. Left alone the kernel grows its own to megabytes, and
the others hold as much again of what is sent faster than it is taken. 64 KiB a round trip is enough for a body."""
LINE_BYTES_MAX = 4096
"""A line of a head. The longest that comes is a bearer token, of some 1,500."""
HEADERS_MAX = 32
"""Headers of a request. An API server and Prometheus send less than ten."""
LINGER_SECONDS = 1.0
"""How long the rest of a body that is not wanted is read and thrown away, so that its sender reads the answer."""
BACKLOG = 128
"""Connections that the kernel accepts for us while the loop is at something else."""
ACCEPT_PAUSE_SECONDS = 0.1
"""Between two attempts when the system has no file or memory left for a connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one port holds at most. Each connection costs up to 1 MiB besides `bytes_max`, in buffers of TLS.

    `pace`: of requests, in which addresses take turns; None where whoever serves them bounds what they cost.
    """

    connections_max: int
    bytes_max: int
    idle_seconds: float
    pace: Pace | None = None


class DoorVisit(asyncio.Protocol):
    """One connection: hands everything on to aiohttp, and watches the time."""

    def __init__(self, inner: asyncio.Protocol, guest: Guest, door: Door, greeted: socket.socket) -> None:
        self.guest = guest
        self._greeted: socket.socket | None = greeted
        self._inner = inner
        self._door = door
        self._transport: asyncio.Transport | None = None
        self._head: asyncio.TimerHandle | None = None
        self._in_request = False

    # --- what the server says ---

    def head_is_whole(self) -> None:
        """Go on without the limit of a head: aiohttp has read it."""
        self._in_request = True
        self._stop_waiting()

    def body_is_whole(self) -> None:
        """Nothing more is waited for, so nobody displaces this one until it is answered."""
        self.guest.whole()

    def answered(self) -> None:
        """Let go of what was held: the peer has its answer."""
        self._in_request = False
        self._door.places.release(self.guest)
        self.guest.done(monotonic())

    def hold(self, count: int) -> None:
        """Hold bytes of a body or an answer until `answered`. FullError: ask again. ConnectionError: displaced."""
        for displaced in self._door.places.hold(self.guest, count):
            self._door.cut(displaced, "displaced: too many bytes were held")
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("displaced")

    def abort(self) -> None:
        """End this connection now."""
        self.hang_up()
        if self._transport is not None:
            self._transport.abort()

    def hang_up(self) -> None:
        """End a handshake: it then fails by itself, while asyncio may leave open what is cancelled in it."""
        if self._greeted is not None:
            with contextlib.suppress(OSError):
                self._greeted.shutdown(socket.SHUT_RDWR)

    # --- what the connection says ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Go on after the handshake."""
        self._transport = cast("asyncio.Transport", transport)
        self._greeted = None
        self._transport.set_write_buffer_limits(high=1)  # at 0 the standard TLS never resumes
        self._inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if not self._in_request and self._head is None:
            self.guest.began(monotonic())
            self._head = asyncio.get_running_loop().call_later(HEAD_SECONDS_MAX, self._head_is_late)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on that the peer writes no more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the peer does not read."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the peer reads again."""
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of everything."""
        self._stop_waiting()
        self._transport = None
        self._door.left(self)
        self._inner.connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _head_is_late(self, turns: int = TURNS_MAX) -> None:
        if turns:
            self._head = asyncio.get_running_loop().call_later(0, self._head_is_late, turns - 1)
            return
        self._head = None
        self._door.cut(self.guest, f"the head of a request did not come within {HEAD_SECONDS_MAX:g} s")


class Door:
    """One port. `open`, then `close`; requests find their `DoorVisit` with `visit_of`."""

    def __init__(self, name: str, limits: Limits, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        """`name` stands in the log. `tls` returns what the next handshake is made with; None: in the clear."""
        self.places = Places(limits.connections_max, limits.bytes_max)
        self._limits = limits
        self._name = name
        self._tls = tls
        self._visits: dict[Guest, DoorVisit] = {}
        self._listening: list[asyncio.Task[None]] = []
        self._greetings: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._runner: web.AppRunner | None = None
        self._repetitions = Repetitions()
        self._told = PeerRepetitions()
        self._log = structlog.get_logger("gatelift.door")
        self.cuts = 0
        self.address: tuple[str, int] = ("", 0)

    async def open(self, app: web.Application, host: str, port: int, *, stop_seconds: float) -> None:
        """Serve `app` on host ("" for all addresses) and port (0 for a free one). OSError: the address is taken.

        `stop_seconds` is what requests under way get when the door closes.
        """
        app.middlewares.append(_visited)
        if self._limits.pace is not None:
            app.middlewares.append(_paced(PacedTurns(self._limits.pace)))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=http_logger(self._name),
            keepalive_timeout=self._limits.idle_seconds,
            shutdown_timeout=stop_seconds,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
            lingering_time=LINGER_SECONDS,
            auto_decompress=False,
            read_bufsize=BUFFER_BYTES,
        )
        await self._runner.setup()
        try:
            self._sockets = await listening(host, port, BUFFER_BYTES)
        except OSError:
            await self._runner.cleanup()
            raise
        self.address = self._sockets[0].getsockname()[:2]
        self._listening = [spawn(f"door of {self._name}", self._accept(one)) for one in self._sockets]

    async def close(self) -> None:
        """Stop listening; end connections."""
        for task in self._listening:
            task.cancel()
        if self._listening:
            await asyncio.wait(self._listening)
        for one in self._sockets:
            one.close()
        self._listening, self._sockets = [], []
        if self._greetings:
            for visit in tuple(self._visits.values()):
                visit.hang_up()
            await asyncio.wait(self._greetings, timeout=HANDSHAKE_SECONDS_MAX)
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def cut(self, guest: Guest, why: str) -> None:
        """End a connection; the log says so once a minute for each of a few addresses, and for all the others."""
        self.cuts += 1
        visit = self._visits.get(guest)
        if visit is not None:
            visit.abort()
        untold = self._told.untold(guest.address, why)
        if untold is not None:
            named, count = untold
            self._log.warning("connection cut", port=self._name, peer=named, problem=why, times_before=count)

    def left(self, visit: DoorVisit) -> None:
        """Forget a connection that is over."""
        self._visits.pop(visit.guest, None)
        self.places.leave(visit.guest)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:
                if self._repetitions.untold(("accept", error.errno)) is not None:
                    self._log.warning("connection not accepted", port=self._name, problem=str(error))
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            self._let_in(connection, str(address[0]))
            await asyncio.sleep(0)  # a backlog that is full does not keep those inside waiting

    def _let_in(self, connection: socket.socket, address: str) -> None:
        server = self._runner.server if self._runner is not None else None
        try:
            guest, displaced = self.places.come(address, monotonic())
        except FullError as error:
            connection.close()
            self.cut(Guest(address, 0.0), f"turned away: {error}")
            return
        if displaced is not None:
            self.cut(displaced, f"displaced: {self._limits.connections_max} connections were open")
        assert server is not None  # noqa: S101  # set up before the first socket listens
        visit = self._visits[guest] = DoorVisit(server(), guest, self, connection)
        greeting = spawn(f"greeting at {self._name}", self._greet(visit, connection))
        self._greetings.add(greeting)
        greeting.add_done_callback(self._greetings.discard)

    async def _greet(self, visit: DoorVisit, connection: socket.socket) -> None:
        """Shake hands. Whatever comes of it, nobody else is touched."""
        loop = asyncio.get_running_loop()
        tls = None if self._tls is None else self._tls()
        timeout = None if tls is None else HANDSHAKE_SECONDS_MAX
        try:
            await loop.connect_accepted_socket(lambda: visit, connection, ssl=tls, ssl_handshake_timeout=timeout)
        except OSError:
            connection.close()
            self.left(visit)


def visit_of(request: web.Request) -> DoorVisit:
    """Return the connection that a request came on. ConnectionError: it is over."""
    transport = request.transport
    visit = None if transport is None else transport.get_protocol()
    if not isinstance(visit, DoorVisit):
        raise ConnectionResetError("the connection is over")
    return visit


@web.middleware
async def _visited(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Keep the books of one request, until its answer has left: what waits to be written holds memory, too."""
    try:
        visit = visit_of(request)
    except ConnectionError:
        return web.Response(status=499)
    visit.head_is_whole()
    try:
        response = await handler(request)
        visit.body_is_whole()
        async with asyncio.timeout(WRITE_SECONDS_MAX):
            return await _written(request, response)
    except (TimeoutError, ConnectionError, web.RequestPayloadError):
        visit.abort()
        return web.Response(status=499)  # read by nobody: aiohttp wants one
    finally:
        visit.answered()


def _paced(turns: PacedTurns) -> Middleware:
    @web.middleware
    async def paced(request: web.Request, handler: Handler) -> web.StreamResponse:
        await turns.wait((request.remote or "",))
        return await handler(request)

    return paced


async def _written(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """Write an answer in pieces: of one large piece the transport would say at once that it has been written."""
    body = response.body if isinstance(response, web.Response) else None
    if not isinstance(body, bytes | bytearray) or len(body) <= PIECE_BYTES:
        await response.prepare(request)
        await response.write_eof()
        return response
    streamed = web.StreamResponse(status=response.status, headers=response.headers)
    streamed.content_length = len(body)
    await streamed.prepare(request)
    for start in range(0, len(body), PIECE_BYTES):
        await streamed.write(body[start : start + PIECE_BYTES])
    await streamed.write_eof()
    return streamed


async def listening(host: str, port: int, buffer_bytes: int = 0) -> list[socket.socket]:
    """Return sockets that listen on all addresses of a host; on both families at once for none.

    `buffer_bytes`: of a connection in the kernel, each way; 0 leaves that to the kernel.
    """
    if not host:
        dual = socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual else socket.AF_INET
        made = [socket.create_server(("", port), family=family, backlog=BACKLOG, dualstack_ipv6=dual)]
    else:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        made = []
        with contextlib.ExitStack() as stack:
            for family, address in sorted({(each[0], each[4]) for each in found}):
                one = socket.create_server(address[:2], family=family, backlog=BACKLOG)
                made.append(stack.enter_context(one))
            stack.pop_all()
    for one in made:
        one.setblocking(False)
        for buffer in (socket.SO_RCVBUF, socket.SO_SNDBUF) if buffer_bytes else ():  # connections inherit them
            one.setsockopt(socket.SOL_SOCKET, buffer, buffer_bytes)
    return made
