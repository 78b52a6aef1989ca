"""The gRPC stream to the manager: dials, writes frames in order, reads frames, and says when it is over.

One stream at a time has a task of its own. Frames wait in a bounded queue; a manager that does not read has its stream
broken. No gRPC exception leaves this file: everything ends as one `ManagerStreamClosed` with a line of text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog

from gatelift_agent.adapters.enrolment import EnrolmentError
from gatelift_agent.adapters.identity_store import Identity, IdentityStoreError
from gatelift_agent.adapters.targets import Endpoint
from gatelift_agent.core.values.events import (
    Event,
    FrameViolated,
    ManagerFrameArrived,
    ManagerStreamClosed,
    ManagerStreamOpened,
)
from gatelift_kube.process.tasks import spawn
from gatelift_wire.encoding import codec
from gatelift_wire.streams.frame_writer import FrameWriter
from gatelift_wire.values import limits
from gatelift_wire.values.messages import Frame
from gatelift_wire.values.violations import WireViolation

METHOD = "/gatelift.wire.v1.AgentService/Session"

FRAMES_WAITING_MAX = 1024
"""Frames that wait to be written: as many as there may be unacknowledged messages, and room for controls."""

BYTES_WAITING_MAX = 2 * limits.WINDOW_BYTES_MAX
"""The same in bytes: the window of messages, and as much again for what is not numbered."""

WRITE_SECONDS_MAX = 30.0
"""One frame that is not taken within this: the peer does not read. Below the time at which it counts us as lost."""

CLOSE_SECONDS = 5.0
"""How long the last frames may take to be written."""


class ConnectError(Exception):
    """The manager's port cannot be reached; one line."""


class _Stream:
    def __init__(self, stream_id: int) -> None:
        self.stream_id = stream_id
        self.writer = FrameWriter(
            codec.encode_from_agent, codec.join_from_agent, frames_max=FRAMES_WAITING_MAX, bytes_max=BYTES_WAITING_MAX
        )
        self.task: asyncio.Task[None] | None = None
        self.text = ""


class ManagerClient:
    """Carries out OpenStream, SendFrame and CloseStream. `identity` returns a valid one, enrolling if need be.

    `unreached` is called where no connection came about with it.
    """

    def __init__(
        self,
        post: Callable[[Event], None],
        target: Endpoint,
        identity: Callable[[], Awaitable[Identity]],
        unreached: Callable[[], None] = lambda: None,
    ) -> None:
        self._post = post
        self._target = target
        self._identity = identity
        self._unreached = unreached
        self._streams: dict[int, _Stream] = {}
        self._log = structlog.get_logger("gatelift.agent.stream")

    def dial(self, stream_id: int) -> None:
        """Open a stream; the outcome is posted."""
        stream = self._streams[stream_id] = _Stream(stream_id)
        stream.task = spawn(f"stream {stream_id}", self._run(stream))

    def send(self, stream_id: int, frame: Frame) -> None:
        """Write a frame after those before it; a stream whose queue is full is broken."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        try:
            if not stream.writer.put(frame):
                self._break(stream, "the manager does not read: too much waits for it")
        except WireViolation as error:
            self._log.error("frame not sent", stream=stream_id, problem=str(error))
            self._break(stream, f"a frame could not be sent: {error}")

    def close(self, stream_id: int, text: str = "") -> None:
        """End a stream once everything before is written."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        stream.text = text or "closed"
        stream.writer.end()

    async def stop(self) -> None:
        """End all streams and wait for them, a bounded time."""
        tasks = [stream.task for stream in self._streams.values() if stream.task is not None]
        for stream in list(self._streams.values()):
            self.close(stream.stream_id, "the agent is stopping")
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()

    def _break(self, stream: _Stream, text: str) -> None:
        stream.text = text
        if stream.task is not None:
            stream.task.cancel()

    async def _run(self, stream: _Stream) -> None:
        text = "ended"
        try:
            text = await self._serve(stream)
        except (ConnectError, EnrolmentError, IdentityStoreError) as error:
            text = f"{self._target.address}: {error}"
            if isinstance(error, ConnectError):
                self._unreached()
        except (grpc.RpcError, grpc.aio.UsageError) as error:
            text = _why(error)
        except TimeoutError:
            text = f"no connection to {self._target.address} within {limits.DIAL_SECONDS:g} s"
        except asyncio.CancelledError:
            text = stream.text or "cancelled"
            raise
        finally:
            self._streams.pop(stream.stream_id, None)
            self._post(ManagerStreamClosed(stream_id=stream.stream_id, text=stream.text or text))

    async def _serve(self, stream: _Stream) -> str:
        """Dial, then read and write until one of the two ends; return why."""
        async with asyncio.timeout(limits.DIAL_SECONDS):
            identity = await self._identity()
        credentials = grpc.ssl_channel_credentials(
            root_certificates=identity.bundle,
            private_key=identity.key,
            certificate_chain=identity.certificate,
        )
        async with grpc.aio.secure_channel(
            self._target.address, credentials, options=self._target.options()
        ) as channel:
            async with asyncio.timeout(limits.DIAL_SECONDS):
                await _ready(channel)
            call = channel.stream_stream(METHOD, request_serializer=None, response_deserializer=None)()
            self._post(ManagerStreamOpened(stream_id=stream.stream_id))
            reader = spawn(f"stream {stream.stream_id} in", self._read(stream, call))
            writer = spawn(f"stream {stream.stream_id} out", self._write(stream, call))
            try:
                await asyncio.wait({reader, writer}, return_when=asyncio.FIRST_COMPLETED)
                if writer.done() and not writer.cancelled() and writer.exception() is None:
                    # A cancelled call takes what is still on its way with it: let the manager hang up first.
                    await call.done_writing()
                    await asyncio.wait({reader}, timeout=CLOSE_SECONDS)
                    return writer.result()
                if reader.done() and reader.exception() is None:
                    return await _ending(call)
                failed = reader.exception() if reader.done() else writer.exception()
                return _why(failed) if failed is not None else "ended"
            finally:
                call.cancel()
                for task in (reader, writer):
                    task.cancel()
                await asyncio.wait({reader, writer}, timeout=CLOSE_SECONDS)

    async def _read(self, stream: _Stream, call: Any) -> None:
        async for data in call:
            try:
                frame = codec.decode_from_manager(data)
            except WireViolation as error:
                self._post(FrameViolated(stream_id=stream.stream_id, reason=error.reason, text=str(error)))
            else:
                self._post(ManagerFrameArrived(stream_id=stream.stream_id, frame=frame))

    async def _write(self, stream: _Stream, call: Any) -> str:
        try:
            await stream.writer.run(call.write, WRITE_SECONDS_MAX)
        except TimeoutError:
            return f"the manager does not read: a frame was not taken within {WRITE_SECONDS_MAX:g} s"
        async with asyncio.timeout(CLOSE_SECONDS):
            await call.done_writing()
        return stream.text


async def _ready(channel: Any) -> None:
    """Wait until the connection stands. ConnectError at its first failure: the session knows when to try again."""
    state = channel.get_state(try_to_connect=True)
    while state is not grpc.ChannelConnectivity.READY:
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise ConnectError("no connection: refused, not reachable, or the certificates do not match")
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)


async def _ending(call: Any) -> str:
    """Return what the server said when it ended the stream."""
    code, details = await call.code(), await call.details()
    return f"the manager ended the stream ({code.name}{': ' + details if details else ''})"


def _why(error: BaseException) -> str:
    """Return one line about a broken stream."""
    if isinstance(error, grpc.aio.AioRpcError):
        details = (error.details() or "").splitlines()
        return f"{error.code().name}: {details[0]}" if details else error.code().name
    return f"{type(error).__name__}: {error}"
