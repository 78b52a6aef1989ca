"""`gatelift demo` as a stranger runs it: it succeeds by itself, says what it did, and leaves nothing running."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from gatelift_sandbox.ensemble import is_up
from support.e2e_world import PROVIDER_ENVIRONMENT

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(420)]

DEMO_SECONDS = 400.0
"""Under a minute on an idle machine; kind clusters take minutes to come up."""


async def test_the_demo_keeps_its_promises_and_leaves_nothing_running(tmp_path: Path) -> None:
    environment = {**os.environ, "GATELIFT_HOME": str(tmp_path / "home"), "COLUMNS": "100"}
    provider = os.environ.get(PROVIDER_ENVIRONMENT) or "local"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gatelift.cli.main", "demo", "--provider", provider),
        cwd=tmp_path,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(DEMO_SECONDS):
            out, problem = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    assert (process.returncode, problem.decode()) == (0, ""), out.decode()
    assert "All 8 promises kept" in out.decode()
    assert not is_up(tmp_path / "home")
