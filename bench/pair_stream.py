"""What the two scripts of `group_pair` tell each other, and the gRPC stream on which they do.

A word is what cannot be left out: which pods to make, how one is, which to take away. As on a stream of Gatelift's what
comes within `WRITE_GAP_SECONDS` travels as one, by TLS with a certificate at each end; nothing is numbered, kept or
acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import msgspec

from bench.bare_sessions import dialled
from gatelift_kube.process.tasks import Supervisor, spawn
from gatelift_wire.values.limits import JOINED_MESSAGES_MAX, WRITE_GAP_SECONDS

SERVICE = "gatelift.bench.Pair"


class Place(msgspec.Struct, tag="place", array_like=True):
    """Make a group's pods, each as `like` says, by name and the UID of the user's; let all of them go."""

    workload: str
    like: bytes
    members: list[tuple[str, str]]


class Shown(msgspec.Struct, tag="shown", array_like=True):
    """How a pod is: its phase, and its status as it is served."""

    name: str
    phase: str
    status: bytes


class Stop(msgspec.Struct, tag="stop", array_like=True):
    """Delete this pod: its user has deleted his."""

    name: str


class Leave(msgspec.Struct, tag="leave", array_like=True):
    """Take these pods away."""

    names: list[str]


Word = Place | Shown | Stop | Leave
Hear = Callable[[Word], None]
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Word])


def frames(words: list[Word]) -> Iterator[bytes]:
    """Yield what is written to say so many words."""
    for first in range(0, len(words), JOINED_MESSAGES_MAX):
        yield _ENCODER.encode(words[first : first + JOINED_MESSAGES_MAX])


def heard(data: bytes) -> list[Word]:
    """Return the words of what was read."""
    return _DECODER.decode(data)


class Teller:
    """Words on their way to the other end, in order."""

    def __init__(self) -> None:
        self._words: list[Word] = []
        self._called = asyncio.Event()

    def say(self, word: Word) -> None:
        """Have it written."""
        self._words.append(word)
        self._called.set()

    async def run(self, write: Callable[[bytes], Awaitable[Any]], gap: float = WRITE_GAP_SECONDS) -> None:
        """Write what is said, until cancelled; what comes within `gap` of a write waits for it."""
        while True:
            await self._called.wait()
            self._called.clear()
            words, self._words = self._words, []
            for frame in frames(words):
                await write(frame)
            await asyncio.sleep(gap)


@asynccontextmanager
async def served(folder: Path, teller: Teller, hear: Hear, gap: float = WRITE_GAP_SECONDS) -> AsyncIterator[None]:
    """Let the other end dial, for the time of a block; `folder` has keys and certificates, and gets the port."""

    async def session(requests: AsyncIterator[bytes], context: Any) -> None:
        telling = spawn("tell", teller.run(context.write, gap))
        try:
            async for data in requests:
                for word in heard(data):
                    hear(word)
        finally:
            telling.cancel()

    server = grpc.aio.server()
    handlers = {"Session": grpc.stream_stream_rpc_method_handler(session)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    pair = (folder / "server.key").read_bytes(), (folder / "server.pem").read_bytes()
    trusted = (folder / "ca.pem").read_bytes()
    credentials = grpc.ssl_server_credentials([pair], trusted, require_client_auth=True)
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    (folder / "port").write_text(str(port))
    try:
        yield
    finally:
        await server.stop(grace=None)


@asynccontextmanager
async def dialling(
    folder: Path, teller: Teller, hear: Hear, supervisor: Supervisor, gap: float = WRITE_GAP_SECONDS
) -> AsyncIterator[None]:
    """Dial the end that serves, for the time of a block."""
    async with dialled(folder) as channel:
        await channel.channel_ready()
        call: Any = channel.stream_stream(f"/{SERVICE}/Session")()

        async def read() -> None:
            async for data in call:
                for word in heard(data):
                    hear(word)

        both = [supervisor.spawn("hear", read()), supervisor.spawn("tell", teller.run(call.write, gap))]
        try:
            yield
        finally:
            for task in both:
                task.cancel()
            await asyncio.wait(both)
            call.cancel()
