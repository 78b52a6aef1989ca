"""Somebody with an empty directory and a shell, who runs our verbs as anybody would."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gatelift_sandbox.children import Child
from gatelift_sandbox.ensemble import DAEMONS, Standing, folder_of
from gatelift_sandbox.state import SandboxState
from support.e2e import log_tails

VERB_SECONDS = 240.0
"""No verb but the demo takes longer, on a busy machine."""
DEMO_SECONDS = 90.0
"""What the demo may take from its start to its end on a machine that has nothing else to do."""
DEMO_SECONDS_MAX = 1000.0
"""kind clusters take minutes to come up; and so does everything on a machine that is wanted by many."""
DEMO_TEST_SECONDS = DEMO_SECONDS_MAX + 3 * VERB_SECONDS
"""Time limit of a test with a demo in it: so that it is the demo's own words that tell what takes so long."""
HELP_SECONDS = 0.8
"""What the shortest verb takes on such a machine: mostly the start of Python, as of each of the demo's processes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A verb that has ended."""

    code: int | None
    out: str
    problem: str
    seconds: float


class Stranger:
    """Somebody with an empty directory and a shell."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home = directory / "home"

    async def runs(
        self, *command: str, seconds: float = VERB_SECONDS, environment: Mapping[str, str] | None = None
    ) -> Ended:
        """Run a command to its end; TimeoutError (and no process) after `seconds`."""
        began = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.directory,
            env={**os.environ, "GATELIFT_HOME": str(self.home), "COLUMNS": "100", **(environment or {})},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(seconds):
                out, problem = await process.communicate()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()
        return Ended(process.returncode, out.decode(), problem.decode(), time.monotonic() - began)

    async def gatelift(self, *arguments: str, seconds: float = VERB_SECONDS) -> Ended:
        """Run one of our verbs."""
        return await self.runs(sys.executable, "-m", "gatelift.cli.main", *arguments, seconds=seconds)

    async def slowness(self) -> float:
        """Return how much longer things take on this machine now than on one that has nothing else to do; at least 1.

        The load says how many want each processor, but not what else takes it away or makes it slow; the shortest verb
        says that, but not how it will be in a minute.
        """
        crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
        short = await self.gatelift("--help")
        return max(1.0, crowd, short.seconds / HELP_SECONDS)

    def everything(self, ended: Ended) -> str:
        """Return all that there is to read of a verb that went wrong."""
        return f"{ended.out}\n{ended.problem}\n{log_tails.told(folder_of(self.home))}"

    def processes(self) -> list[Child]:
        """Return what runs in the background, by what is written down of it."""
        clusters = [child for entry in SandboxState(self.home).entries() for child in entry.children.values()]
        standing = msgspec.json.decode((folder_of(self.home) / DAEMONS).read_bytes(), type=Standing)
        return [*clusters, *standing.daemons.values()]
