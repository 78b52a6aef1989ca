"""Strangers at a port, in a process of their own so that they cost the server nothing but what they do to it.

`python crowd.py PORT COUNT WHAT TLS`: prints a line when all have been connected once, and goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

Stranger = tuple[asyncio.StreamReader, asyncio.StreamWriter]
PIECE = b"[" * 65536
BODY_BYTES = 2_900_000


def blind() -> ssl.SSLContext:
    """Return what takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default one reads all CAs of the machine
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def head(size: int) -> bytes:
    return (
        b"POST /mutate-pod HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % size
    )


async def trickling_body(stranger: Stranger) -> AsyncIterator[None]:
    stranger[1].write(head(1000))
    while True:
        stranger[1].write(b" ")
        yield


async def trickling_head(stranger: Stranger) -> AsyncIterator[None]:
    stranger[1].write(b"POST /mutate-pod HTTP/1.1\r\nHost: x\r\nX: ")
    while True:
        stranger[1].write(b"x")
        yield


async def endless_body(stranger: Stranger) -> AsyncIterator[None]:
    stranger[1].write(head(BODY_BYTES + 10))
    for _ in range(BODY_BYTES // len(PIECE)):
        stranger[1].write(PIECE)
        await stranger[1].drain()
    while True:
        yield


async def silence(stranger: Stranger) -> AsyncIterator[None]:
    while True:
        yield


WHAT: dict[str, Callable[[Stranger], AsyncIterator[None]]] = {
    one.__name__: one for one in (trickling_body, trickling_head, endless_body, silence)
}


async def main(port: int, count: int, do: Callable[[Stranger], AsyncIterator[None]], tls: bool) -> None:
    context = blind() if tls else None
    left = count

    async def stranger() -> None:
        nonlocal left
        first = True
        while True:
            with contextlib.suppress(OSError):
                made = await asyncio.open_connection("127.0.0.1", port, ssl=context)
                left -= first
                if first and not left:
                    sys.stdout.write("ready\n")
                    sys.stdout.flush()
                first = False
                try:
                    async for _ in do(made):
                        await asyncio.sleep(0.2)
                        if made[0].at_eof():
                            break
                finally:
                    made[1].transport.abort()
            await asyncio.sleep(0.5)

    await asyncio.gather(*(stranger() for _ in range(count)))


@contextlib.asynccontextmanager
async def crowd(port: int, count: int, what: str, *, tls: bool = True) -> AsyncIterator[None]:
    """Hold a crowd at a port; all have been connected when this begins."""
    arguments = (str(Path(__file__)), str(port), str(count), what, "tls" if tls else "")
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"ready\n"
        yield
    finally:
        process.kill()
        await process.communicate()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), WHAT[sys.argv[3]], bool(sys.argv[4])))
