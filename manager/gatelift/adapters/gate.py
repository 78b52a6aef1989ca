"""Stands before a gRPC server on a port that anybody reaches: bounds connections, their bytes, time and pace.

gRPC accepts by itself, gives each connection a hundred KiB before anything is proven, and has no hook for an address.
So the gate accepts, waits for the first bytes, and passes all on to the server at a port of the loopback; TLS goes
through untouched. The server tells by the port that it sees (`peer`) who has proven something, and what has come of the
bytes. Who has proven nothing is displaced by whoever comes when all is taken (`places`). Bytes that come to nothing are
counted, since gRPC keeps a block of headers until it ends, many times as large, and says nothing of it.
Neighbours: `agents_server`, `enrol_server`; `handshake_turns` says who is next, `known_addresses` who was here before.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, replace
from typing import cast

import structlog

from gatelift.adapters.handshake_turns import HandshakeTurns
from gatelift.adapters.known_addresses import KnownAddresses
from gatelift_kube.deciding.places import FullError, Guest, Places
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.repetitions import PeerRepetitions
from gatelift_kube.process.tasks import spawn
from gatelift_kube.serving.door import ACCEPT_PAUSE_SECONDS, listening
from gatelift_kube.values import numbers

FIRST_BYTES_SECONDS = 3.0
"""From the connection to the first bytes of a TLS handshake: two round trips."""
PROOF_SECONDS = 10.0
"""From the moment at which the server hears of it to what it calls a proof: a handshake, and a call with its body."""
CROWD_SECONDS = 2.0
"""When more addresses wait for a handshake than begin one in this time, the latest goes first: whoever has waited for
longest would be displaced just before his turn, and nobody's wait would ever end well."""
HANDSHAKE_BYTE = 0x16
"""Which every TLS handshake begins with; nothing else is served here."""
FIRST_BYTES_MAX = 16 * 1024
"""Read before the server is dialled: more than a greeting has, and all that is kept of who waits for a turn."""
PIECE_BYTES = 256 * 1024
"""Read at once; a peer that does not take its bytes is read for no further (64 KiB in the transport)."""
UNPROVEN_BYTES_MAX = 16 * 1024 * 1024
"""The same of all connections together that have proven nothing: whoever owes most makes room. A fleet that dials at
once sends a tenth."""
BARRED_SECONDS = 60.0
"""For so long nobody is let in who has proven to be himself and sent more than there may be of which nothing came."""
OVERHEAD_BYTES = 1024
"""What one message costs beside itself, either way: records of TLS, frames, acknowledgements, windows."""
TURNS_OF_AN_END = 3
"""Turns of the loop from the abort of a connection to its end at both sides."""
DESCRIPTORS_EACH = 3
"""Of a connection: the peer's, and both ends of the one on the loopback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """`connections_max` in all, `unproven_max` of them without a proof; `pace`: handshakes begun a second, in all.

    `unproven_bytes_max`, `bytes_max`: bytes of one connection of which nothing has come yet, before and after a proof.
    """

    connections_max: int
    unproven_max: int
    pace: float
    unproven_bytes_max: int
    bytes_max: int

    def within(self, descriptors: int) -> GateLimits:
        """Return the same with no more connections than there are files for; at most half of them are unproven."""
        connections = max(2, min(self.connections_max, descriptors // DESCRIPTORS_EACH))
        return replace(self, connections_max=connections, unproven_max=min(self.unproven_max, connections // 2))


def whose(address: str) -> str:
    """Return under which address a peer counts: of IPv6 one host has a whole network of 64 bits."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv4Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, 64), strict=False))


class _End(asyncio.BufferedProtocol):
    """One end of a connection: what it reads the other one writes."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.transport: asyncio.Transport | None = None

    @property
    def other(self) -> _End:
        return self.visit.inner if self is self.visit.outer else self.visit.outer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.visit.joined(self)

    def get_buffer(self, _sizehint: int) -> memoryview:
        whole = self.visit.gate.scratch
        return whole if self.visit.passes else whole[:FIRST_BYTES_MAX]

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self.visit.gate.scratch[:nbytes])
        if not self.visit.passes:
            self.visit.began(data)
        elif self.other.transport is not None and (self is self.visit.inner or self.visit.owes(nbytes)):
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        """Pass on that this end writes no more; it may still read, until the other one writes no more either."""
        other = self.other.transport
        self.visit.ends += 1
        if not self.visit.passes or other is None or other.is_closing() or self.visit.ends > 1:
            return False
        other.write_eof()
        return True

    def pause_writing(self) -> None:
        """Read on at the other end only when this one has taken what waits for it."""
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the other end as well: after what waits to be written, unless this one broke."""
        self.transport = None
        other = self.other.transport
        if other is not None:
            if exc is None:
                other.close()
            else:
                other.abort()
        self.visit.gate.left(self.visit)


class Visit:
    """One connection of a peer, from its acceptance to its end."""

    def __init__(self, gate: Gate, guest: Guest) -> None:
        self.gate = gate
        self.guest = guest
        self.outer, self.inner = _End(self), _End(self)
        self.passes = False
        self.ends = 0
        """Ends that write no more."""
        self.first = b""
        self.port = 0
        self.who = ""
        """Who has proven to be whom here."""
        self.streams = 0
        """What is served here by that proof."""
        self.owed = 0
        """Bytes of which nothing has come."""
        self._deadline: asyncio.TimerHandle | None = None

    def joined(self, end: _End) -> None:
        """Take that an end is connected; with both, what has come goes on."""
        if end is self.outer:
            self.limit(FIRST_BYTES_SECONDS, "nothing came")
            return
        self.port = end.transport.get_extra_info("sockname")[1] if end.transport is not None else 0
        if self.outer.transport is None or self.outer.transport.is_closing():
            self.abort()
            return
        self.passes = True
        self.gate.seen_at(self)
        if end.transport is not None:
            end.transport.write(self.first)
        self.first = b""
        self.outer.transport.resume_reading()

    def began(self, data: bytes) -> None:
        """Wait for a turn with the first bytes, and read no more until then."""
        if data[0] != HANDSHAKE_BYTE:
            self.gate.cut(self, "no TLS handshake came")
            return
        self.first = data
        if self.outer.transport is not None:
            self.outer.transport.pause_reading()
        self.limit(0.0)
        self.gate.waits(self)

    def owes(self, count: int) -> bool:
        """Take that so many bytes go on to the server; False: nothing has come of too many, and it is cut."""
        self.gate.owes(self, count)
        most = self.gate.limits.bytes_max if self.streams else self.gate.limits.unproven_bytes_max
        if self.owed > most:
            self.gate.overran(self, f"nothing came of {most} bytes")
        return self.owed > 0  # nothing is owed by who was cut

    def limit(self, seconds: float, why: str = "") -> None:
        """Cut this connection in so many seconds; 0: not at all."""
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(seconds, self.gate.cut, self, f"{why} in time") if seconds else None

    def abort(self) -> None:
        """End it now, at both ends."""
        self.limit(0.0)
        self.first = b""
        for end in (self.outer, self.inner):
            if end.transport is not None:
                end.transport.abort()


class Gate:
    """One port. `open` it, `close` it; the server says `begins_answer`, `answered` and `proven` by what it sees."""

    def __init__(self, name: str, limits: GateLimits, known: KnownAddresses) -> None:
        """`name` stands in the log. `known` is kept here, and may be of several ports."""
        self.places = Places(limits.unproven_max, 0)
        self.scratch = memoryview(bytearray(PIECE_BYTES))
        self.limits = limits
        self._name = name
        self._visits: dict[Guest, Visit] = {}
        self._by_port: dict[int, Visit] = {}
        self.known = known
        self._turns = HandshakeTurns(limits.pace * CROWD_SECONDS)
        self._turn: asyncio.TimerHandle | None = None
        self._next_turn = 0.0
        self._inner_port = 0
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._barred: dict[str, float] = {}
        self._unproven_owed = 0
        self._repetitions = PeerRepetitions()
        self._log = structlog.get_logger("gatelift.gate")
        self.port = 0

    @property
    def count(self) -> int:
        """Connections that are open."""
        return len(self._visits)

    async def open(self, address: str, inner_port: int) -> None:
        """Listen on `host:port` (port 0 takes a free one) for the server at a port of the loopback.

        RuntimeError, as gRPC has it: the address is taken or not ours.
        """
        host, _, text = address.rpartition(":")
        host, port = host.strip("[]"), numbers.whole(text)
        self._inner_port = inner_port
        if port is None:
            raise RuntimeError(f"{address}: the port is no number")
        try:
            self._sockets = await listening("" if host in {"0.0.0.0", "::"} else host, port)  # noqa: S104
        except (OSError, ValueError) as error:
            raise RuntimeError(f"{address}: {error}") from error
        self.port = self._sockets[0].getsockname()[1]
        self._accepting = [spawn(f"gate of {self._name}", self._accept(one)) for one in self._sockets]

    async def close(self) -> None:
        """Stop listening, and end all connections: those of a server that has stopped are over already."""
        for task in self._accepting:
            task.cancel()
        if self._accepting:
            await asyncio.wait(self._accepting)
        for one in self._sockets:
            one.close()
        self._accepting, self._sockets = [], []
        if self._turn is not None:
            self._turn.cancel()
        for visit in tuple(self._visits.values()):
            visit.abort()
        for _ in range(TURNS_OF_AN_END):
            await asyncio.sleep(0)

    # --- what the server says, by `context.peer()` -------------------------------------------------------------------

    def address_of(self, peer: str) -> str:
        """Return the address of who is at the other end; "" where it came past the gate."""
        visit = self._of(peer)
        return visit.guest.address if visit is not None else ""

    def proven(self, peer: str, who: str) -> None:
        """Take that a stream is served on a connection that has shown a certificate: nobody displaces it any more."""
        visit = self._of(peer)
        if visit is not None:
            visit.limit(0.0)
            if not visit.streams:
                self._unproven_owed -= visit.owed
            visit.who, visit.streams = who, visit.streams + 1  # what came to nothing so far still counts
            self.known.remember(visit.guest.address, who, monotonic())
            self.places.leave(visit.guest)

    def is_barred(self, who: str) -> bool:
        """Say whether somebody sent too much of which nothing came, a moment ago: he is not to be let in."""
        return monotonic() < self._barred.get(who, 0.0)

    def unproven(self, peer: str) -> None:
        """Take that a stream is over: a connection without any has as long for the next as for the first."""
        visit = self._of(peer)
        if visit is not None:
            visit.streams -= 1
            self.known.remember(visit.guest.address, visit.who, monotonic())
            if not visit.streams:
                self._unproven_owed += visit.owed
                visit.limit(PROOF_SECONDS, "no further stream came")

    def came(self, peer: str, count: int) -> None:
        """Take that a message of so many bytes has come, or one was sent (0)."""
        visit = self._of(peer)
        if visit is not None:
            self._owed(visit, max(0, visit.owed - count - OVERHEAD_BYTES))

    def begins_answer(self, peer: str) -> None:
        """Take that a request is whole: it is answered before anybody displaces it."""
        visit = self._of(peer)
        if visit is not None:
            visit.limit(0.0)
            self._owed(visit, 0)
            visit.guest.whole()

    def answered(self, peer: str) -> None:
        """Take that it has its answer."""
        visit = self._of(peer)
        if visit is not None:
            visit.guest.done(monotonic())

    def recognised(self, peer: str, who: str) -> None:
        """Take that who was answered has shown a key that is known: his address goes first in a crowd."""
        visit = self._of(peer)
        if visit is not None:
            self.known.remember(visit.guest.address, who, monotonic())

    def _of(self, peer: str) -> Visit | None:
        port = numbers.whole(peer.rpartition(":")[2])
        return self._by_port.get(port) if port is not None else None

    # --- what connections say ----------------------------------------------------------------------------------------

    def seen_at(self, visit: Visit) -> None:
        """Know a connection by the port that the server sees."""
        self._by_port[visit.port] = visit

    def left(self, visit: Visit) -> None:
        """Forget a connection, of which one end is over."""
        visit.limit(0.0)
        self._owed(visit, 0)
        if self._by_port.get(visit.port) is visit:
            del self._by_port[visit.port]
        self._visits.pop(visit.guest, None)
        self._turns.leave(visit.guest)
        self.places.leave(visit.guest)

    def cut(self, visit: Visit, why: str) -> None:
        """End a connection; the log says so once a minute for each of a few addresses, and for all the others."""
        visit.abort()
        self.left(visit)
        self._told(visit.guest.address, why)

    def owes(self, visit: Visit, count: int) -> None:
        """Take that so many bytes came, of which nothing has come yet."""
        self._owed(visit, visit.owed + count)
        if self._unproven_owed > UNPROVEN_BYTES_MAX:
            most = max((each for each in self._visits.values() if not each.streams), key=lambda each: each.owed)
            self.cut(most, f"nothing came of {UNPROVEN_BYTES_MAX} bytes of all, most of them here")

    def _owed(self, visit: Visit, owed: int) -> None:
        if not visit.streams:
            self._unproven_owed += owed - visit.owed
        visit.owed = owed

    def overran(self, visit: Visit, why: str) -> None:
        """End a connection of whose bytes nothing came; who has proven to be somebody is not let in for a while."""
        now = monotonic()
        self._barred = {who: until for who, until in self._barred.items() if until > now}
        if visit.who:
            self._barred[visit.who] = now + BARRED_SECONDS
        self.cut(visit, why)

    def waits(self, visit: Visit) -> None:
        """Have a connection wait for its handshake."""
        visit.guest.waits()
        self._turns.wait(visit.guest)
        self._call()

    def _told(self, address: str, why: str) -> None:
        untold = self._repetitions.untold(address, why)
        if untold is not None:
            named, count = untold
            self._log.warning("connection cut", port=self._name, peer=named, problem=why, times_before=count)

    def _call(self) -> None:
        """Begin handshakes at the pace of the port; addresses take turns, so that who floods waits for himself."""
        now = monotonic()
        while now >= self._next_turn and (guest := self._turns.next()) is not None:
            visit = self._visits[guest]
            if visit.outer.transport is None or visit.outer.transport.is_closing():
                continue
            guest.turn(now)
            self._next_turn = max(self._next_turn, now - 1.0) + 1 / self.limits.pace  # a second's worth at once
            visit.limit(PROOF_SECONDS, "no proof came")
            spawn(f"greeting at {self._name}", self._dial(visit))
        if self._turns and self._turn is None:
            self._turn = asyncio.get_running_loop().call_later(self._next_turn - now, self._called)

    def _called(self) -> None:
        self._turn = None
        self._call()

    async def _dial(self, visit: Visit) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: visit.inner, "127.0.0.1", self._inner_port)
        except OSError as error:
            self.cut(visit, f"the server could not be reached: {error.strerror}")

    # --- who comes ---------------------------------------------------------------------------------------------------

    async def _accept(self, one: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(one)
            except OSError as error:
                self._told("", f"not accepted: {error.strerror}")
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            self._let_in(connection, whose(str(address[0])))
            await asyncio.sleep(0)  # a backlog that is full does not keep those inside waiting

    def _let_in(self, connection: socket.socket, address: str) -> None:
        """Give a connection a place: another unproven one gives up its own where there is none."""
        proven = len(self._visits) - self.places.count
        # As many as may be unproven are kept for those: how else would an agent come in again?
        if proven >= self.limits.connections_max - self.limits.unproven_max:
            connection.close()
            self._told(address, f"{self.limits.connections_max} connections are open")
            return
        try:
            now = monotonic()
            guest, displaced = self.places.come(address, now, known=self.known.knows(address, now))
        except FullError as error:
            connection.close()
            self._told(address, f"turned away: {error}")
            return
        if displaced is not None and displaced in self._visits:
            self.cut(self._visits[displaced], f"displaced: {self.limits.unproven_max} connections had no proof")
        visit = self._visits[guest] = Visit(self, guest)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        spawn(f"connection at {self._name}", self._join(visit, connection))

    async def _join(self, visit: Visit, connection: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: visit.outer, connection)
        except OSError:
            connection.close()
            self.left(visit)
