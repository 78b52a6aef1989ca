"""HD-299: what a stranger sends to a port of ours is a line a minute of the log; what we did wrong keeps its trace."""

from __future__ import annotations

import asyncio

import structlog
from aiohttp import web

from gatelift_kube.serving.door import Door, Limits
from gatelift_kube.serving.http_log import TEXT_CHARACTERS_MAX
from support.until import until

SMALL = Limits(connections_max=4, bytes_max=1000, idle_seconds=75.0)


async def broken(_request: web.Request) -> web.Response:
    raise LookupError("not there")


async def say(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await reader.readline()
    writer.transport.abort()
    return answer


async def test_hd_299_malformed_requests_are_one_line_a_minute_and_failures_of_ours_have_their_trace() -> None:
    app = web.Application()
    app.router.add_get("/broken", broken)
    with structlog.testing.capture_logs() as lines:
        door = Door("test", SMALL)
        await door.open(app, "127.0.0.1", 0, stop_seconds=1.0)
        port = door.address[1]
        for _ in range(20):
            head = b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 3000 + b"x\r\n\r\n"
            assert b"400" in await say(port, head)
            assert b"500" in await say(port, b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: door.places.count == 0, "nobody is left")
        await door.close()
    assert [(each["event"], each["port"]) for each in lines] == [
        ("malformed request", "test"),
        ("request failed", "test"),
    ]
    malformed, failed = lines
    assert malformed["peer"] == "127.0.0.1"
    assert len(malformed["problem"]) <= TEXT_CHARACTERS_MAX
    assert failed["problem"] == "LookupError: not there"
    assert isinstance(failed["exc_info"], LookupError)
