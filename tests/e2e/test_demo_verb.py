"""`gatelift demo` as a stranger runs it: it succeeds by itself, says what it did, and leaves nothing running."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gatelift_sandbox.ensemble import is_up
from support.e2e.stranger import DEMO_SECONDS, DEMO_SECONDS_MAX, DEMO_TEST_SECONDS, Stranger
from support.e2e.world import PROVIDER_ENVIRONMENT

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(DEMO_TEST_SECONDS)]

PROVIDER = os.environ.get(PROVIDER_ENVIRONMENT) or "local"


async def test_the_demo_keeps_its_promises_in_time_and_leaves_nothing_running(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    before = await stranger.slowness()
    ended = await stranger.gatelift("demo", "--provider", PROVIDER, seconds=DEMO_SECONDS_MAX)
    assert (ended.code, ended.problem) == (0, ""), stranger.everything(ended)
    if PROVIDER != "kind":
        assert ended.seconds < DEMO_SECONDS * max(before, await stranger.slowness()), "it is over in 90 s"
    assert len([line for line in ended.out.splitlines() if "[+]" in line]) == 8, ended.out
    assert "All 8 promises kept" in ended.out
    assert ended.out.count("the lease of the killed one has to run out first") == 1
    assert not is_up(stranger.home)
