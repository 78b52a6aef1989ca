"""Runs the command of somebody else's tool with a time limit; its failure is one line. Used by the provider `kind`."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence

from gatelift_sandbox import children
from gatelift_sandbox.errors import MissingToolError, SandboxError, StartError

LINES_TOLD = 3
ERROR = "ERROR"
"""So kind's line of what went wrong begins."""


def require(program: str, advice: str) -> None:
    """Raise MissingToolError with `advice` unless the program is on the PATH."""
    if shutil.which(program) is None:
        raise MissingToolError(f"`{program}` is not on the PATH: {advice}")


async def run(command: Sequence[str], seconds: float, error: type[SandboxError] = StartError) -> str:
    """Run a command and return its standard output; it ends with us. Raises `error` with the last lines it said."""
    name = " ".join(command[:3])
    process = await asyncio.create_subprocess_exec(
        *children.tied(command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, said = await process.communicate()
    except TimeoutError:
        raise error(f"`{name}` was not done after {seconds:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise error(f"`{name}` failed: {_told(said or out) or f'exit code {process.returncode}'}")
    return out.decode()


def _told(said: bytes) -> str:
    """Return the last lines of what a tool said; of those that it calls errors, where it does: a stack may follow."""
    lines = [line.strip() for line in said.decode(errors="replace").splitlines() if line.strip()]
    return " | ".join(([line for line in lines if line.startswith(ERROR)] or lines)[-LINES_TOLD:])
