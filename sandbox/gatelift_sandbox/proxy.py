"""A TCP proxy that can be cut: what a network between an agent and its manager does, on one machine."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from gatelift_kube.process.tasks import Supervisor

CHUNK_BYTES = 64 * 1024
CONNECTIONS_MAX = 64
"""Far above what one agent opens."""


class Proxy:
    """Forwards its `port` to a target. `cut` breaks what is open and refuses what comes; `mend` ends that."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server: asyncio.Server | None = None
        self._supervisor = Supervisor(lambda _name, _error: None)
        self._writers: set[asyncio.StreamWriter] = set()
        self._cut = False
        self._cuts = 0
        self.port = 0

    def retarget(self, host: str, port: int) -> None:
        """Send new connections elsewhere."""
        self._target = (host, port)

    async def start(self, host: str = "127.0.0.1") -> None:
        """Listen on a free port of an address of this machine."""
        self._server = await asyncio.start_server(self._connected, host, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close everything."""
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        await self._supervisor.stop(seconds=1.0)

    def cut(self) -> None:
        """Break all connections, those that are being made too, and refuse new ones."""
        self._cut = True
        self._cuts += 1
        for writer in tuple(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Let connections through again."""
        self._cut = False

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut or len(self._writers) >= 2 * CONNECTIONS_MAX:
            writer.transport.abort()
            return
        cuts = self._cuts
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        if self._cuts != cuts:  # a mend since then is for connections that come after it
            far_writer.transport.abort()
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        self._supervisor.spawn("to target", self._copy(reader, far_writer))
        self._supervisor.spawn("from target", self._copy(far_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.transport.abort()
