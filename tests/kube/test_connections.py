"""What a request does with its connection: used again, not used again, and what is said when it breaks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from gatelift_kube.api import connections
from gatelift_kube.api import transport as http
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.api.connections import Connections, HttpAnswer, OpenConnection
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding import errors
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.process.tasks import spawn

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

Script = Callable[[int, int], list[bytes]]
"""What to write for request `n` of connection `m`, both from 0, piece by piece; the piece b"" closes the connection."""


class ScriptedServer:
    """Answers each request with what the script says."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.connections = 0
        self.heads: list[str] = []
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()
        self.answers.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection, self.connections = self.connections, self.connections + 1
        number = 0
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                self.asked.set()
                length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
                await reader.readexactly(int(length or 0))
                await self.answers.wait()
                for piece in self._script(connection, number):
                    if not piece:
                        return
                    writer.write(piece)
                    await writer.drain()
                number += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    script: Script, *, clock: Clock = monotonic, **settings: str
) -> AsyncIterator[tuple[ScriptedServer, HttpTransport]]:
    scripted = ScriptedServer(script)
    listening = await asyncio.start_server(scripted.serve, "127.0.0.1", 0)
    scripted.port = listening.sockets[0].getsockname()[1]
    named = {name: value.format(url=scripted.url) for name, value in settings.items()}
    config = ClusterConfig(**{"server": scripted.url, **named})  # type: ignore[arg-type] # names and proxies only
    transport = HttpTransport(config, clock=clock)
    try:
        yield scripted, transport
    finally:
        await transport.aclose()
        listening.close()
        await listening.wait_closed()


async def get(transport: HttpTransport) -> HttpAnswer:
    return await transport.request("GET", "/api", seconds=60.0)


async def test_hd_176_nothing_is_sent_too_late_by_a_process_that_was_paused_just_before() -> None:
    """HD-176: paused in the step that sends, where the loop's own time stands still and no timer has rung."""
    times = iter([1e12, 1e12 + WRITE_SECONDS_MAX])
    async with serving(lambda _connection, _number: [OK], clock=lambda: next(times)) as (server, transport):
        with pytest.raises(errors.UnreachableError) as late:
            await transport.request("PATCH", "/api", body=b"{}", seconds=WRITE_SECONDS_MAX)
        assert not late.value.maybe_done
        assert server.heads == []
        times = iter([2e12, 2e12])
        assert (await transport.request("PATCH", "/api", body=b"{}", seconds=WRITE_SECONDS_MAX)).body == b"{}"
        assert server.connections == 1, "the connection that was not used is used now"


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with serving(lambda _connection, _number: [OK]) as (server, transport):
        for _ in range(5):
            assert (await get(transport)).body == b"{}"
        assert server.connections == 1


async def test_after_a_burst_the_connection_used_last_is_used_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)
    by: list[int] = []

    def script(connection: int, _number: int) -> list[bytes]:
        by.append(connection)
        return [OK]

    async with serving(script) as (server, transport):
        await asyncio.gather(*(get(transport) for _ in range(4)))
        opened = server.connections
        by.clear()
        for _ in range(6):
            await get(transport)
        assert opened > 1
        assert server.connections == opened
        assert len(set(by)) == 1


async def test_a_burst_waits_for_connections_in_use_before_it_makes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 60.0)
    async with serving(lambda _connection, _number: [OK]) as (server, transport):
        answers = await asyncio.gather(*(get(transport) for _ in range(20)))
        assert len(answers) == 20
        assert server.connections == 1


async def test_a_request_that_has_waited_long_enough_makes_a_connection_of_its_own() -> None:
    async with serving(lambda connection, _number: [OK] if connection else []) as (server, transport):
        silent = spawn("silent", get(transport))
        await server.asked.wait()
        assert (await get(transport)).body == b"{}"
        assert server.connections == 2
        silent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await silent
        assert (await get(transport)).body == b"{}"
        assert server.connections == 2


async def test_a_request_that_gives_up_waiting_takes_no_connection_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 60.0)
    async with serving(lambda _connection, _number: [OK]) as (server, transport):
        server.answers.clear()
        burst = [spawn(f"get {number}", get(transport)) for number in range(8)]
        await server.asked.wait()
        for waiting in burst[1::2]:
            waiting.cancel()
        server.answers.set()
        await asyncio.wait(burst)
        assert [each.cancelled() for each in burst] == [False, True] * 4
        assert (await get(transport)).body == b"{}"
        assert server.connections == 1


async def test_few_connections_are_made_at_a_time_and_all_requests_get_their_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    under_way: list[int] = []
    full = asyncio.Event()

    async def make(_self: Connections) -> OpenConnection:
        under_way.append(len(under_way) + 1)
        if len(under_way) == connections.MAKING_MAX:
            full.set()
        await full.wait()
        most.append(len(under_way))
        under_way.pop()
        raise OSError("refused")

    most: list[int] = []
    monkeypatch.setattr(connections, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(Connections, "_make", make)
    made = Connections(ClusterConfig(server="http://127.0.0.1:1"), "test")
    outcomes = await asyncio.gather(*(made.take(0.0) for _ in range(20)), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["refused"] * 20
    assert max(most) == connections.MAKING_MAX


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "KEEP_ALIVE_SECONDS", -1.0)
    async with serving(lambda _connection, _number: [OK]) as (server, transport):
        await get(transport)
        await get(transport)
        assert server.connections == 2


async def test_a_connection_that_the_server_ends_is_not_used_again() -> None:
    ended = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    async with serving(lambda _connection, _number: [ended]) as (server, transport):
        await get(transport)
        await get(transport)
        assert server.connections == 2


@pytest.mark.parametrize(
    "pieces",
    [
        [b"HTTP/1.1 100 Continue\r\n\r\n", OK],
        [b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 2\r\n\r\n", b"{", b"}"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", b"1\r\n}\r\n0\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n\r\n{}", b""],
    ],
)
async def test_an_answer_is_read_however_it_comes(pieces: list[bytes]) -> None:
    async with serving(lambda _connection, _number: pieces) as (_, transport):
        assert await get(transport) == HttpAnswer(200, b"{}")
        assert await get(transport) == HttpAnswer(200, b"{}")


async def test_an_answer_without_a_body_is_an_answer() -> None:
    async with serving(lambda _connection, _number: [b"HTTP/1.1 204 No Content\r\n\r\n"]) as (server, transport):
        assert await get(transport) == HttpAnswer(204, b"")
        assert await get(transport) == HttpAnswer(204, b"")
        assert server.connections == 1


async def test_an_answer_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_BYTES_MAX", 10)
    long = [b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n", b"x" * 20, b"x" * 20]
    async with serving(lambda _connection, _number: long) as (_, transport):
        with pytest.raises(errors.UndecodableError, match="larger than 10 bytes"):
            await get(transport)


@pytest.mark.parametrize(
    "broken", [[b""], [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", b""], [b"nonsense\r\n\r\n"]]
)
async def test_a_read_on_a_kept_connection_that_breaks_is_sent_again_on_another(broken: list[bytes]) -> None:
    def script(connection: int, number: int) -> list[bytes]:
        return broken if (connection, number) == (0, 1) else [OK]

    async with serving(script) as (server, transport):
        await get(transport)
        assert (await get(transport)).body == b"{}"
        assert server.connections == 2


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE"])
async def test_a_write_on_a_kept_connection_that_breaks_is_not_sent_again(method: str) -> None:
    async with serving(lambda _connection, number: [OK] if number == 0 else [b""]) as (server, transport):
        await get(transport)
        with pytest.raises(errors.UnreachableError, match="the connection broke") as caught:
            await transport.request(method, "/api", body=b"{}", content_type="application/json", seconds=60.0)
        assert caught.value.maybe_done is True
        assert len(server.heads) == 2


async def test_an_answer_that_is_no_http_is_a_broken_connection() -> None:
    async with serving(lambda _connection, _number: [b"nonsense\r\n\r\n"]) as (_, transport):
        with pytest.raises(errors.UnreachableError, match="the connection broke"):
            await transport.request("POST", "/api", seconds=60.0)


async def test_an_answer_that_stops_half_way_ends_at_the_limit_and_its_connection_with_it() -> None:
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"
    async with serving(lambda connection, _number: [half if connection == 0 else OK]) as (server, transport):
        with pytest.raises(errors.TimedOutError, match="no answer within 1 s"):
            await transport.request("POST", "/api", seconds=1.0)
        assert (await get(transport)).body == b"{}"
        assert server.connections == 2


async def test_a_request_says_to_whom_it_goes_what_it_carries_and_nothing_twice() -> None:
    async with serving(lambda _connection, _number: [OK], server="{url}/k8s/clusters/c-1") as (server, transport):
        await transport.request("PATCH", "/api", "a=b", b"[]", "application/json", seconds=60.0)
        first, *lines = server.heads[0].rstrip().split("\r\n")
    assert first == "PATCH /k8s/clusters/c-1/api?a=b HTTP/1.1"
    assert sorted(lines) == [
        "Accept-Encoding: identity",
        "Accept: application/json",
        "Content-Length: 2",
        "Content-Type: application/json",
        f"Host: 127.0.0.1:{server.port}",
        "User-Agent: gatelift",
    ]


async def test_a_proxy_for_plain_http_is_told_the_server_and_who_we_are() -> None:
    name, proxy = "http://api.example.com", "{url}"
    async with serving(lambda _connection, _number: [OK], server=name, proxy=proxy) as (server, transport):
        assert (await get(transport)).body == b"{}"
    assert server.heads[0].startswith("GET http://api.example.com/api HTTP/1.1\r\nHost: api.example.com\r\n")


@pytest.mark.parametrize(
    ("path", "query"), [("/a b", ""), ("/a\r\nX: y", ""), ("/\u00e4", ""), ("/a", "b c"), ("/a", "b=c\r\nX: y")]
)
async def test_what_is_not_encoded_is_never_sent(path: str, query: str) -> None:
    async with serving(lambda _connection, _number: [OK]) as (server, transport):
        with pytest.raises(ValueError, match="must be encoded"):
            await transport.request("GET", path, query, seconds=60.0)
    assert not server.heads


@pytest.mark.parametrize(
    "pieces",
    [
        [b'{"a":1}\n{"b":2}\n\n{"c":3}\n'],
        [b'{"a":', b'1}\n{"b":2}', b'\n\n{"c":3}\n'],
        [b'{"a":1}\n', b'{"b":2}\n\n', b'{"c"', b":3}"],
    ],
)
async def test_lines_of_a_watch_are_put_together_however_they_come(pieces: list[bytes]) -> None:
    async with serving(lambda _connection, _number: [b"HTTP/1.1 200 OK\r\n\r\n", *pieces, b""]) as (_, transport):
        lines = [line async for line in transport.lines("/api", "watch=1", idle_seconds=60.0)]
    assert [line for line in lines if line.strip()] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


async def test_a_line_that_is_too_long_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LINE_BYTES_MAX", 10)
    long = [b"HTTP/1.1 200 OK\r\n\r\n", b"short\n", b"x" * 30, b""]
    async with (
        serving(lambda _connection, _number: long) as (_, transport),
        aclosing(transport.lines("/api", "watch=1", idle_seconds=60.0)) as lines,
    ):
        assert await anext(lines) == b"short"
        with pytest.raises(errors.UndecodableError, match="a line is longer than 10 bytes"):
            await anext(lines)


def test_hd_102_a_request_that_has_not_arrived_within_the_time_limit_of_a_write_never_arrives() -> None:
    """The kernel would go on trying for minutes, also for a process that is gone."""
    with connections._socket((socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 0))) as made:
        given_up = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
    assert given_up == WRITE_SECONDS_MAX * 1000
