"""Scripts of the benches that run beside them as processes: a write floor, fake agents.

A script prints a line that begins with `ready` when it is, and lives until its standard input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from gatelift_kube.process.tasks import spawn

READY_SECONDS = 120.0
END_SECONDS = 10.0
"""What has not ended so long after it was told to is killed."""


@asynccontextmanager
async def beside(module: str, *args: str, fail: Callable[[RuntimeError], None]) -> AsyncIterator[int]:
    """Run `python -m MODULE ARGS` for the time of a block; gives its pid once it is ready.

    `fail` is called if it ends while the block runs. Raises RuntimeError where it ends before it is ready, TimeoutError
    where it is not ready within `READY_SECONDS`.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *args, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(READY_SECONDS):
            if process.stdout is None or not (await process.stdout.readline()).startswith(b"ready"):
                raise RuntimeError(f"{module} ended before it was ready; its error is above")
        life = spawn(module, _watch_over(process, module, fail))
        try:
            yield process.pid
        finally:
            life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await life
    finally:
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _watch_over(process: asyncio.subprocess.Process, module: str, fail: Callable[[RuntimeError], None]) -> None:
    await process.wait()
    fail(RuntimeError(f"{module} ended early; its error is above"))
