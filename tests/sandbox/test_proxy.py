"""The TCP proxy of the sandbox: what a cut breaks, and where new connections go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gatelift_kube.process.tasks import spawn
from gatelift_sandbox.proxy import Proxy

LIMIT_SECONDS = 60.0


@asynccontextmanager
async def a_target(word: bytes) -> AsyncIterator[int]:
    """Serve a word to each connection; yields the port."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(word)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def heard(port: int, host: str = "127.0.0.1") -> bytes:
    """Return what a new connection through the proxy brings, empty when it is broken off."""
    async with asyncio.timeout(LIMIT_SECONDS):
        reader, writer = await asyncio.open_connection(host, port)
        try:
            return await reader.read(100)
        except ConnectionError:
            return b""
        finally:
            writer.transport.abort()


async def test_is_48_it_listens_where_containers_reach_it() -> None:
    async with a_target(b"word") as port:
        proxy = Proxy("127.0.0.1", port)
        await proxy.start("127.0.0.2")
        try:
            assert await heard(proxy.port, "127.0.0.2") == b"word"
            with pytest.raises(ConnectionRefusedError):
                await heard(proxy.port)
        finally:
            await proxy.stop()


async def test_a_cut_breaks_a_connection_that_is_just_being_made_even_when_it_is_mended_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with a_target(b"old") as old, a_target(b"new") as new:
        proxy = Proxy("127.0.0.1", old)
        await proxy.start()
        reaching, go_on = asyncio.Event(), asyncio.Event()
        open_connection = asyncio.open_connection

        async def slow(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            if port == old:
                reaching.set()
                await go_on.wait()
            return await open_connection(host, port)

        # the moment in between lasts for microseconds otherwise
        monkeypatch.setattr("gatelift_sandbox.proxy.asyncio.open_connection", slow)
        try:
            first = spawn("first", heard(proxy.port))
            await reaching.wait()
            proxy.cut()
            proxy.retarget("127.0.0.1", new)
            proxy.mend()
            go_on.set()
            assert await first == b"", "it would stay with the old target"
            assert await heard(proxy.port) == b"new"
        finally:
            await proxy.stop()


async def test_while_it_is_cut_it_refuses_and_once_mended_it_lets_through() -> None:
    async with a_target(b"there") as port:
        proxy = Proxy("127.0.0.1", port)
        await proxy.start()
        try:
            proxy.cut()
            assert await heard(proxy.port) == b""
            proxy.mend()
            assert await heard(proxy.port) == b"there"
        finally:
            await proxy.stop()
