"""The gRPC server that agents dial: streams in, frames out, each agent in its own task with its own bounded queue.

mTLS only: who an agent is comes from its certificate, never from a message. A stream that does not read is broken when
its queue is full, so that one slow agent never delays another. Certificates are taken anew at each handshake.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import structlog

from gatelift.core.commands import CloseStream, SendFrame
from gatelift.core.events import Event, FrameArrived, StreamClosed, StreamOpened, StreamViolated
from gatelift_kube.tasks import spawn
from gatelift_wire import codec, identity, limits
from gatelift_wire.messages import Close, Frame
from gatelift_wire.refusals import CloseReason
from gatelift_wire.violations import TooLarge, WireViolation

SERVICE = "gatelift.wire.v1.AgentService"

FRAMES_WAITING_MAX = 1024
"""Frames that wait for one agent: as many as there may be unacknowledged messages (`limits.WINDOW_MESSAGES_MAX`)."""

CLOSE_SECONDS = 5.0
"""How long a stream may take to write its last frame."""

KEEPALIVE_MILLISECONDS = 20_000
"""Below the idle limit of common proxies (60 s), above what would be a load with a thousand agents."""

MESSAGE_BYTES_MAX = limits.FRAME_BYTES_MAX + 64 * 1024
"""A little above the codec's own limit, so that what is too large gets our typed answer; beyond, gRPC's."""

_OPTIONS = (
    ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.so_reuseport", 0),
)

Credentials = Callable[[], tuple[bytes, bytes, bytes]]
"""Returns the server's key, its certificate chain and the bundle of CAs that agents must be signed by, as of now."""


class _Stream:
    def __init__(self) -> None:
        self.waiting: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=FRAMES_WAITING_MAX)
        self.broken = asyncio.Event()


class AgentsServer:
    """Serves `AgentService.Session`. `post` takes what happens; `send` and `close` never wait."""

    def __init__(self, post: Callable[[Event], None], credentials: Credentials) -> None:
        self._post = post
        self._credentials = credentials
        self._streams: dict[int, _Stream] = {}
        self._ids = itertools.count(1)
        self._server: grpc.aio.Server | None = None
        self._log = structlog.get_logger("gatelift.agents")
        self.port = 0

    async def start(self, address: str) -> None:
        """Listen on `host:port` (port 0 takes a free one). Raises RuntimeError when the address is taken."""
        server = grpc.aio.server(options=_OPTIONS, maximum_concurrent_rpcs=None)
        handlers = {"Session": grpc.stream_stream_rpc_method_handler(self._session)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = server.add_secure_port(address, mutual_credentials(self._credentials))
        await server.start()
        self._server = server

    async def stop(self) -> None:
        """End all streams."""
        if self._server is not None:
            await self._server.stop(grace=CLOSE_SECONDS / 5)

    def send(self, command: SendFrame) -> None:
        """Queue a frame; a stream whose queue is full is broken and its end posted."""
        stream = self._streams.get(command.stream_id)
        if stream is None:
            return
        try:
            stream.waiting.put_nowait(codec.encode_from_manager(command.frame))
        except asyncio.QueueFull:
            self._log.warning("agent does not read; its stream is broken", stream=command.stream_id)
            stream.broken.set()
        except WireViolation as error:
            self._log.error("frame not sent", stream=command.stream_id, problem=str(error))
            stream.broken.set()

    def close(self, command: CloseStream) -> None:
        """Tell why and end the stream once everything before is written."""
        stream = self._streams.get(command.stream_id)
        if stream is None:
            return
        try:
            stream.waiting.put_nowait(codec.encode_from_manager(Frame(session=0, control=(command.close,))))
            stream.waiting.put_nowait(None)
        except asyncio.QueueFull:
            stream.broken.set()

    async def _session(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        """Serve one stream: read in a task of gRPC's, write here."""
        stream_id = next(self._ids)
        try:
            peer = identity.peer_of_context(context.auth_context())
        except identity.IdentityError as error:
            yield codec.encode_from_manager(
                Frame(session=0, control=(Close(reason=CloseReason.UNKNOWN_CLUSTER, text=str(error)),))
            )
            return
        stream = self._streams[stream_id] = _Stream()
        reader = spawn(f"stream {stream_id} in", self._read(stream_id, requests, stream))
        self._post(StreamOpened(stream_id=stream_id, cluster=peer.cluster, key_digest=peer.key_digest))
        try:
            async for data in _outgoing(stream):
                yield data
        finally:
            reader.cancel()
            self._streams.pop(stream_id, None)
            self._post(StreamClosed(stream_id=stream_id, text="stream ended"))

    async def _read(self, stream_id: int, requests: AsyncIterator[bytes], stream: _Stream) -> None:
        try:
            async for data in requests:
                try:
                    frame = codec.decode_from_agent(data)
                except TooLarge as error:
                    self._post(StreamViolated(stream_id=stream_id, text=str(error), too_large=True))
                except WireViolation as error:
                    self._post(StreamViolated(stream_id=stream_id, text=str(error)))
                else:
                    self._post(FrameArrived(stream_id=stream_id, frame=frame))
        except grpc.RpcError as error:
            self._log.info("stream broke", stream=stream_id, problem=type(error).__name__)
        finally:
            stream.broken.set()


async def _outgoing(stream: _Stream) -> AsyncIterator[bytes]:
    """Yield queued frames until one says stop or the stream is broken."""
    broken = spawn("stream broken", stream.broken.wait())
    try:
        while True:
            taking = spawn("stream out", stream.waiting.get())
            await asyncio.wait({taking, broken}, return_when=asyncio.FIRST_COMPLETED)
            if not taking.done():
                taking.cancel()
                return
            data = taking.result()
            if data is None:
                return
            yield data
    finally:
        broken.cancel()


def mutual_credentials(credentials: Credentials) -> grpc.ServerCredentials:
    """Return credentials that demand a client certificate and are read anew at each handshake."""

    def configuration() -> grpc.ServerCertificateConfiguration:
        key, chain, bundle = credentials()
        return grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=bundle)

    return grpc.dynamic_ssl_server_credentials(configuration(), configuration, require_client_authentication=True)
