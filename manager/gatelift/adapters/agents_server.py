"""The gRPC server that agents dial: streams in, frames out, each agent in its own tasks with its own bounded queue.

mTLS only: who an agent is comes from its certificate, never from a message. A stream that does not read is broken when
its queue is full or one frame is not taken in time, so that one slow agent never delays another. Certificates are taken
anew at each handshake, and looked at again while a stream lives: it ends with its certificate, or with its CA.
Neighbours: `authority` (what is trusted), `core.links` (who may have a session), `encoding.codec` (what may come),
`peer_turns` (how much of it, and when).
"""

from __future__ import annotations

import asyncio
import collections
import datetime as dt
import functools
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import structlog

from gatelift.adapters import authority, frame_slices
from gatelift.adapters.gate import Gate, GateLimits
from gatelift.adapters.handshakes import ServerCredentials, credentials_of_now
from gatelift.adapters.known_addresses import KnownAddresses
from gatelift.adapters.peer_turns import STAYS_ABOVE, PeerTurns
from gatelift.adapters.stream_gate import GREETING_BYTES_MAX, StreamGate, Worth
from gatelift.core.api.commands import CloseAgentStream, SendToAgent
from gatelift.core.api.events import AgentFrameArrived, AgentStreamClosed, AgentStreamOpened, Event, StreamViolated
from gatelift.core.clusters.links import STREAMS_MAX
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.encoding.cuts import cut_from_agent
from gatelift_wire.encoding.pieces import PIECE_BYTES, Header
from gatelift_wire.streams import identity
from gatelift_wire.streams.frame_writer import FrameWriter
from gatelift_wire.values import limits
from gatelift_wire.values.messages import Close, Frame
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import TooLarge, WireViolation

SERVICE = "gatelift.wire.v1.AgentService"

FRAMES_WAITING_MAX = limits.WINDOW_MESSAGES_MAX
"""Frames that wait for one agent: as many as there may be unacknowledged messages."""

BYTES_WAITING_MAX = 2 * limits.WINDOW_BYTES_MAX
"""The same in bytes: the window of messages, and as much again for what is not numbered."""

STREAMS_PER_CLUSTER_MAX = 2 * limits.STREAMS_WAITING_MAX
"""Streams of one identity, those included that the peer has not let go of: its replicas and a few being replaced."""

TURN_AWAY_SECONDS = 1.0
"""How long a stream too many waits for its answer: an honest agent asks again after as much."""

WRITE_SECONDS_MAX = 30.0
"""One frame that is not taken within this: the peer does not read. Below the time after which it counts as lost."""

CLOSE_SECONDS = 5.0
"""How long a stream that is being closed may take to write what waits."""

STOP_SECONDS = 1.0
"""How long a stopping server lets its streams end by themselves."""

TRUST_SECONDS = 10.0
"""How soon a stream ends after its certificate or its CA: as soon as a rotation is seen (`authority_store`)."""

KEEPALIVE_MILLISECONDS = 20_000
"""Below the idle limit of common proxies (60 s), above what would be a load with a thousand agents."""

MESSAGE_BYTES_MAX = limits.FRAME_BYTES_MAX + 64 * 1024
"""A little above the codec's own limit, so that what is too large gets our typed answer; beyond, gRPC's."""

CONNECTIONS_MAX = 2 * STREAMS_MAX
"""Those included that have not shaken hands."""

UNPROVEN_MAX = 1024
"""Connections that have opened no stream yet, some hundred KiB each: a fleet that dials at once, from one address."""

GREETINGS_PER_SECOND = 400.0
"""Handshakes that are begun, each a millisecond of CPU: a fleet of a thousand is back within three seconds."""

IDLE_MILLISECONDS = 60_000
"""A connection whose streams are over; an agent has one that lasts."""

UNPROVEN_BYTES_MAX = GREETING_BYTES_MAX + 32 * 1024
"""Of one connection: a handshake with a chain of certificates, the headers of a call, and the greeting behind them."""

UNREAD_BYTES_MAX = MESSAGE_BYTES_MAX + 4 * limits.MEBIBYTE
"""Of one connection: a message that is not whole yet, and far more than the windows of its streams let under way."""

BARRED = "bytes were sent of which nothing came, more than there may be: ask again in a minute"

GATE = GateLimits(
    connections_max=CONNECTIONS_MAX,
    unproven_max=UNPROVEN_MAX,
    pace=GREETINGS_PER_SECOND,
    unproven_bytes_max=UNPROVEN_BYTES_MAX,
    bytes_max=UNREAD_BYTES_MAX,
)

_OPTIONS = (
    ("grpc.max_connection_idle_ms", IDLE_MILLISECONDS),
    ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.bdp_probe", 0),  # windows do not grow, so that what may be under way is known
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_concurrent_streams", STREAMS_PER_CLUSTER_MAX),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.so_reuseport", 0),
)

GRPC_ERRORS = (grpc.RpcError, grpc.aio.BaseError, asyncio.InvalidStateError)
"""What reading and writing raise once the peer or the server has ended the stream."""

ITEMS_MAX = limits.FRAME_PARTS_MAX + limits.FRAME_MESSAGES_MAX
_TOO_MANY = TooLarge("Frame", f"must have at most {limits.FRAME_PARTS_MAX} items in its lists")

Decode = Callable[[bytes], "tuple[Event, ...]"]

Credentials = Callable[[], tuple[bytes, bytes, bytes]]
"""Returns the server's key, its certificate chain and the bundle of CAs that agents must be signed by, as of now.

Called by a thread of gRPC's at each handshake: it must be quick and must not change anything.
"""


class _Stream:
    """One stream that is served: what waits to be written, what its certificate rests on."""

    __slots__ = ("broken", "connection", "gate", "issuer", "not_after", "said", "why", "writer")

    def __init__(self, connection: str, not_after: dt.datetime, issuer: bytes) -> None:
        self.connection = connection
        self.writer = FrameWriter(
            codec.encode_from_manager,
            codec.join_from_manager,
            frames_max=FRAMES_WAITING_MAX,
            bytes_max=BYTES_WAITING_MAX,
        )
        self.gate = StreamGate()
        self.broken = asyncio.Event()
        self.why = "stream ended"
        self.said = False
        self.not_after = not_after
        self.issuer = issuer

    def put(self, frame: Frame) -> bool:
        """Queue a frame; False when the stream is broken instead. Raises `WireViolation`."""
        if self.writer.put(frame):
            self.gate.told(frame)
            return True
        self.break_off("the agent does not read: too much waits for it")
        return False

    def break_off(self, why: str) -> None:
        """End the stream now, whatever waits."""
        if not self.broken.is_set():
            self.why = why
            self.broken.set()


def _utc_now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class AgentsServer:
    """Serves `AgentService.Session`. `post` takes what happens; `send` and `close` never wait.

    For every stream that it posts as opened, it posts exactly one `AgentStreamClosed`, and nothing of that stream after
    it. Whoever handles what is posted says so by `handled`: a peer's next frame waits for that.
    """

    def __init__(
        self,
        post: Callable[[Event], None],
        credentials: Credentials,
        *,
        wall: Callable[[], dt.datetime] = _utc_now,
        limits: GateLimits = GATE,
        known: KnownAddresses | None = None,
    ) -> None:
        self._post = post
        self._credentials = credentials
        self._wall = wall
        self._streams: dict[int, _Stream] = {}
        self._held: collections.Counter[str] = collections.Counter()
        self._waiting: collections.Counter[str] = collections.Counter()
        self._ids = itertools.count(1)
        self._turns = PeerTurns()
        self.gate = Gate("sessions", limits, known if known is not None else KnownAddresses())
        self._server: grpc.aio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._log = structlog.get_logger("gatelift.agents")
        self.port = 0

    @property
    def streams(self) -> int:
        """Streams that are served now."""
        return len(self._streams)

    def handled(self, event: Event, seconds: float) -> None:
        """Take that an event is handled, which cost so much of the core's time."""
        match event:
            case AgentFrameArrived() | StreamViolated():
                self._turns.handled(event.stream_id, seconds)
            case AgentStreamClosed():
                self._turns.closed(event.stream_id)
            case _:
                pass

    async def start(self, address: str) -> None:
        """Listen on `host:port` (port 0 takes a free one). Raises RuntimeError when the address is taken."""
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=STREAMS_MAX)
        handlers = {"Session": grpc.stream_stream_rpc_method_handler(self._session)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        inner_port = server.add_secure_port("127.0.0.1:0", credentials_of_now(self._shown))
        await server.start()
        self._server = server
        await self.gate.open(address, inner_port)
        self.port = self.gate.port
        self._watch = spawn("trust in agents", self._watch_trust())

    async def stop(self) -> None:
        """End all streams, saying so; returns within a few seconds whatever the peers do."""
        if self._watch is not None:
            self._watch.cancel()
        close = Close(reason=CloseReason.SHUTTING_DOWN, text="this manager stops; ask again")
        for stream_id in tuple(self._streams):
            self.close(CloseAgentStream(stream_id=stream_id, close=close))
        if self._server is not None:
            await self._server.stop(grace=STOP_SECONDS)
        await self.gate.close()
        self._turns.stop()

    def send(self, command: SendToAgent) -> None:
        """Queue a frame; a stream whose queue is full is broken and its end posted."""
        stream = self._streams.get(command.stream_id)
        if stream is None or stream.broken.is_set():
            return
        for control in command.frame.control:
            stream.said = stream.said or isinstance(control, Close)
        try:
            if not stream.put(command.frame):
                self._log.warning("agent does not read; its stream is broken", stream=command.stream_id)
        except WireViolation as error:
            self._log.error("frame not sent", stream=command.stream_id, problem=str(error))
            stream.break_off(f"a frame could not be sent: {error}")

    def close(self, command: CloseAgentStream) -> None:
        """Tell why, unless the last frame said so, and end the stream once everything before is written."""
        stream = self._streams.get(command.stream_id)
        if stream is None:
            return
        if not stream.said:
            stream.said = True
            stream.put(Frame(session=0, control=(command.close,)))
        stream.writer.end()
        limit = "the agent does not read: the stream was not closed in time"
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, stream.break_off, limit)

    def drop_untrusted(self) -> None:
        """End the streams whose certificate has run out or whose CA was retired; their agents dial again."""
        now = self._wall()
        trusted = authority.fingerprints(self._credentials()[2])
        for stream_id, stream in tuple(self._streams.items()):
            if now >= stream.not_after:
                text = "the certificate of this stream has run out; connect with the renewed one"
            elif stream.issuer not in trusted:
                text = "the CA of this stream's certificate was retired; connect with a renewed certificate"
            else:
                continue
            self._log.info("stream ended with its certificate", stream=stream_id, problem=text)
            self.close(CloseAgentStream(stream_id=stream_id, close=Close(reason=CloseReason.SHUTTING_DOWN, text=text)))

    async def _watch_trust(self) -> None:
        while True:
            await asyncio.sleep(TRUST_SECONDS)
            self.drop_untrusted()

    def _shown(self) -> ServerCredentials:
        key, chain, bundle = self._credentials()
        return ServerCredentials(key=key, chain=chain, client_bundle=bundle)

    # --- one stream ------------------------------------------------------------------------------------------------

    async def _session(self, requests: AsyncIterator[bytes], context: Any) -> None:
        """Serve one stream. Returning ends it: the peer reads what was written, then the end."""
        shown = context.auth_context()
        try:
            peer = identity.peer_of_context(shown)
            issuer = authority.issuer_of(shown[identity.AUTH_CERTIFICATE][0], self._credentials()[2])
        except (identity.IdentityError, authority.AuthorityError) as error:
            await self._turn_away(context, CloseReason.UNKNOWN_CLUSTER, str(error))
            return
        if self.gate.is_barred(peer.cluster):
            await self._let_wait(peer.cluster)
            await self._turn_away(context, CloseReason.SHUTTING_DOWN, BARRED)
            return
        if self._held[peer.cluster] >= STREAMS_PER_CLUSTER_MAX:
            await self._let_wait(peer.cluster)
            text = f"{STREAMS_PER_CLUSTER_MAX} streams of {peer.cluster} are open, no more are served; close the others"
            await self._turn_away(context, CloseReason.SHUTTING_DOWN, text)
            return
        self._held[peer.cluster] += 1
        connection = context.peer()
        self.gate.proven(connection, peer.cluster)
        context.add_done_callback(lambda _: self._let_go(peer.cluster, connection))
        await self._turns.admitted(peer.cluster)
        stream_id = next(self._ids)
        stream = self._streams[stream_id] = _Stream(connection, peer.not_after, issuer)
        self._turns.opened(stream_id, peer.cluster)
        issued_at = (peer.not_before + authority.CLOCK_SKEW).timestamp()
        opened = AgentStreamOpened(
            stream_id=stream_id, cluster=peer.cluster, key_digest=peer.key_digest, issued_at=issued_at
        )
        self._post(opened)
        tasks = {
            spawn(f"stream {stream_id} in", self._read(stream_id, requests, stream)),
            spawn(f"stream {stream_id} out", self._write(context, stream)),
            spawn(f"stream {stream_id} broken", stream.broken.wait()),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()  # it takes no further step: nothing of the stream is posted after its end
            self._streams.pop(stream_id, None)
            self._post(AgentStreamClosed(stream_id=stream_id, text=stream.why))

    async def _let_wait(self, cluster: str) -> None:
        """Let one stream too many wait for its answer, so that asking again and again is no work for anybody else."""
        if self._waiting[cluster] >= STREAMS_PER_CLUSTER_MAX:
            return
        self._waiting[cluster] += 1
        try:
            await asyncio.sleep(TURN_AWAY_SECONDS)
        finally:
            self._waiting[cluster] -= 1
            if not self._waiting[cluster]:
                del self._waiting[cluster]

    def _let_go(self, cluster: str, connection: str) -> None:
        self.gate.unproven(connection)
        self._held[cluster] -= 1
        if not self._held[cluster]:
            del self._held[cluster]

    async def _turn_away(self, context: Any, reason: CloseReason, text: str) -> None:
        """Say why there is no session. A peer that does not even read this is cut off."""
        self._log.warning("stream turned away", reason=reason.value, problem=text)
        data = codec.encode_from_manager(Frame(session=0, control=(Close(reason=reason, text=text),)))
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await context.write(data)
        except (TimeoutError, *GRPC_ERRORS):
            return

    async def _read(self, stream_id: int, requests: AsyncIterator[bytes], stream: _Stream) -> None:
        """Post what comes, until the peer ends its side or the stream ends here."""
        try:
            async for data in requests:
                self.gate.came(stream.connection, len(data))
                async with self._turns.turn(stream_id, len(data)):
                    await self._take(stream_id, data, stream)
        except GRPC_ERRORS as error:
            stream.break_off(f"stream broke: {type(error).__name__}")
        stream.break_off("the agent hung up")

    async def _take(self, stream_id: int, data: bytes, stream: _Stream) -> None:
        """Post what a frame says, a slice in a turn; nothing of one that is of an earlier session.

        The first slice, which has the renewal, waits for nothing more. Of a large frame no more is decoded at a time
        than a part, and each slice is let go of before the next.
        """
        first, items = True, 0
        decode, parts = await self._parts(stream_id, data, stream)
        for part in parts:
            events = collections.deque(await self._turns.decoded(stream_id, part, decode))
            while events:
                if not first:
                    await self._turns.paced(stream_id)
                first = False
                event = events.popleft()
                if isinstance(event, AgentFrameArrived):
                    held = frame_slices.items(event.frame)
                    items += held
                    self._turns.holds(stream_id, held, frame_slices.listed(event.frame))
                    event = event if items <= ITEMS_MAX else _violated(stream_id, _TOO_MANY)
                await self._turns.until_handled(stream_id, functools.partial(self._post, event))
                if isinstance(event, StreamViolated):
                    return  # whatever becomes of the stream: the rest of the frame would cost as much again

    async def _parts(self, stream_id: int, data: bytes, stream: _Stream) -> tuple[Decode, tuple[bytes, ...]]:
        """Return what is decoded of a frame, and how. To look through its fields costs its peer, too."""
        if self._turns.stays_above(stream_id):
            above = StreamViolated(stream_id=stream_id, text=STAYS_ABOVE, too_large=True)
            return lambda _: (above,), (b"",)
        header = await self._turns.decoded(stream_id, data, _header)
        try:
            if isinstance(header, WireViolation):
                raise header
            worth = stream.gate.look(header, len(data))
        except WireViolation as error:
            violated = _violated(stream_id, error)
            return lambda _: (violated,), (b"",)
        if worth is Worth.NOTHING:
            return lambda _: (), ()
        if worth is Worth.CONTROLS:
            return functools.partial(_arrived, stream_id, codec.controls_from_agent, is_cut=False), (data,)
        decode = functools.partial(_arrived, stream_id, codec.decode_from_agent, is_cut=len(data) > PIECE_BYTES)
        if len(data) <= PIECE_BYTES:
            return decode, (data,)
        return decode, await self._turns.decoded(stream_id, data, functools.partial(_cut, header.sequence))

    async def _write(self, context: Any, stream: _Stream) -> None:
        """Write what waits, in order, until the end is reached or the peer takes too long."""

        async def write(data: bytes) -> None:
            await context.write(data)
            self.gate.came(stream.connection, 0)

        try:
            await stream.writer.run(write, WRITE_SECONDS_MAX)
        except TimeoutError:
            stream.break_off(f"the agent does not read: a frame was not taken within {WRITE_SECONDS_MAX:g} s")
        except GRPC_ERRORS as error:
            stream.break_off(f"stream broke: {type(error).__name__}")
        else:
            stream.why = "closed by the manager"


def _header(data: bytes) -> Header | WireViolation:
    try:
        return codec.header_from_agent(data)
    except WireViolation as error:
        return error


def _cut(sequence: int, data: bytes) -> tuple[bytes, ...]:
    return tuple(cut_from_agent(data, sequence))


def _arrived(stream_id: int, decode: Callable[[bytes], Frame], data: bytes, *, is_cut: bool) -> tuple[Event, ...]:
    try:
        slices = frame_slices.sliced(decode(data), is_cut=is_cut)
        return tuple(AgentFrameArrived(stream_id=stream_id, frame=each) for each in slices)
    except WireViolation as error:
        return (_violated(stream_id, error),)


def _violated(stream_id: int, error: WireViolation) -> StreamViolated:
    return StreamViolated(stream_id=stream_id, text=str(error), too_large=isinstance(error, TooLarge))
