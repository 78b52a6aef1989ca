"""Ports that anybody may reach: bounded in connections and time, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from gatelift_kube.process import event_loop
from gatelift_kube.process.paced_turns import PacedTurns
from gatelift_kube.process.tasks import spawn
from gatelift_kube.serving import certificates
from gatelift_kube.serving import door as doors
from gatelift_kube.serving.door import Door, Limits
from gatelift_kube.serving.status_server import LIMITS, PACE, StatusServer
from support.until import until

SMALL = Limits(connections_max=4, bytes_max=1000, idle_seconds=75.0)


async def hello(_request: web.Request) -> web.Response:
    return web.Response(text="hello")


async def large(_request: web.Request) -> web.Response:
    return web.Response(body=b"x" * 8_000_000)


async def opened(tls: ssl.SSLContext | None = None) -> Door:
    app = web.Application()
    app.router.add_get("/", hello)
    app.router.add_get("/large", large)
    made = Door("test", SMALL, None if tls is None else lambda: tls)
    await made.open(app, "127.0.0.1", 0, stop_seconds=1.0)
    return made


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    made = await opened()
    yield made
    await made.close()


def connections(port: int, count: int) -> list[socket.socket]:
    return [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]


async def get(port: int, path: str = "/", scheme: str = "http") -> str:
    url = f"{scheme}://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=False) as response:
        return await response.text()


async def test_hd_118_who_comes_when_all_places_are_held_is_served(door: Door) -> None:
    silent = connections(door.address[1], 20)
    for _ in range(5):
        assert await get(door.address[1]) == "hello"
        assert door.places.count <= SMALL.connections_max
    for one in silent:
        one.close()
    await until(lambda: door.places.count == 0, "nobody is left")


async def test_hd_118_a_head_that_trickles_is_cut(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "HEAD_SECONDS_MAX", 0.05)
    (slow,) = connections(door.address[1], 1)
    slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX")
    await until(lambda: door.cuts == 1, "the head was late")
    await until(lambda: door.places.count == 0, "nobody is left")
    slow.close()


async def test_hd_118_a_head_without_end_is_refused(door: Door) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.address[1])
    line = b"X: " + b"x" * (doors.LINE_BYTES_MAX - 10) + b"\r\n"
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n" + line * (doors.HEADERS_MAX + 1) + b"\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.0 400")
    writer.transport.abort()


async def test_hd_118_an_answer_that_nobody_reads_is_dropped(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as short:
        short.setattr(doors, "WRITE_SECONDS_MAX", 0.1)
        (deaf,) = connections(door.address[1], 1)
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: door.places.count == 1, "it is there")
        await until(lambda: door.places.count == 0, "it is gone")
        deaf.close()
    assert len(await get(door.address[1], "/large")) == 8_000_000


async def test_hd_118_a_probe_is_answered_beside_silent_connections() -> None:
    server = StatusServer(CollectorRegistry(), str, lambda: None)
    await server.start("127.0.0.1:0")
    try:
        port = int(server.address.rpartition(":")[2])
        silent = await asyncio.to_thread(connections, port, 3 * LIMITS.connections_max)  # more than the backlog
        assert await get(port, "/healthz") == "ok\n"
        for one in silent:
            one.close()
    finally:
        await server.stop()


async def test_hd_573_who_asks_without_end_is_answered_at_a_pace_in_turns_of_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HD-573: twenty connections that asked for figures without end had an answer each in every turn of the loop."""
    waits, shares = PacedTurns.wait, set[tuple[str, ...]]()

    async def wait(turns: PacedTurns, share: tuple[str, ...]) -> None:
        shares.add(share)
        await waits(turns, share)

    monkeypatch.setattr(PacedTurns, "wait", wait)
    server, loop = StatusServer(CollectorRegistry(), str, lambda: None), asyncio.get_running_loop()
    await server.start("127.0.0.1:0")
    url = f"http://127.0.0.1:{int(server.address.rpartition(':')[2])}/healthz"
    answers = 0

    async def asks_without_end() -> None:
        nonlocal answers
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.get(url) as answer:
                    await answer.read()
                answers += 1

    began = loop.time()
    floods = [spawn(f"flood {number}", asks_without_end()) for number in range(20)]
    try:
        await until(lambda: answers > 2 * PACE.burst)
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.2", 0))
        async with aiohttp.ClientSession(connector=connector) as session, session.get(url) as answer:
            assert await answer.text() == "ok\n"
        assert answers <= PACE.burst + PACE.per_second * (loop.time() - began)
        assert shares == {("127.0.0.1",), ("127.0.0.2",)}, "in whose turns they wait (`test_paced_turns`)"
    finally:
        for each in floods:
            each.cancel()
        await asyncio.gather(*floods, return_exceptions=True)
        await server.stop()


async def test_hd_118_figures_that_take_long_to_make_are_not_made_for_each_who_asks() -> None:
    now, made = 0.0, 0

    def refresh() -> None:
        nonlocal now, made
        now, made = now + 1.0, made + 1

    server = StatusServer(CollectorRegistry(), str, refresh, clock=lambda: now)
    await server.start("127.0.0.1:0")
    port = int(server.address.rpartition(":")[2])
    try:
        for _ in range(5):
            await get(port, "/metrics")
        assert made == 1
        now += 10.0
        await get(port, "/metrics")
        assert made == 2
    finally:
        await server.stop()


async def _displaced_in_handshakes(tls: ssl.SSLContext) -> None:
    door = await opened(tls)
    port = door.address[1]
    silent = connections(port, 20)
    assert await get(port, scheme="https") == "hello"
    assert door.places.count <= SMALL.connections_max
    (broken,) = connections(port, 1)
    broken.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert len(await get(port, "/large", "https")) == 8_000_000
    for one in (*silent, broken):
        one.close()
    await until(lambda: door.places.count == 0, "nobody is left")
    silent = connections(port, 3)
    await until(lambda: door.places.count == 3, "they are there")
    await door.close()
    await until(lambda: door.places.count == 0, "nobody outlives the door")
    for one in silent:
        one.close()


@pytest.mark.parametrize("run", [pytest.param(asyncio.run, id="asyncio"), pytest.param(event_loop.run, id="uvloop")])
def test_hd_118_handshakes_that_are_not_begun_are_displaced_on_each_loop(
    run: Callable[[Coroutine[None, None, None]], None], tmp_path: Path
) -> None:
    made = certificates.make(("127.0.0.1",), datetime.now(UTC))
    pair = tmp_path / "pair.pem"
    pair.write_bytes(made.key + made.certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair)
    run(_displaced_in_handshakes(tls))


async def test_all_addresses_are_listened_on_when_none_is_named() -> None:
    app = web.Application()
    app.router.add_get("/", hello)
    door = Door("test", SMALL)
    await door.open(app, "", 0, stop_seconds=1.0)
    try:
        assert await get(door.address[1]) == "hello"
        with pytest.raises(OSError, match="in use"):
            await Door("other", SMALL).open(web.Application(), "", door.address[1], stop_seconds=1.0)
    finally:
        await door.close()
