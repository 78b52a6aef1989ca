"""`gatelift demo --keep`: what stays up is there for plain kubectl, and `gatelift down` ends all of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gatelift_sandbox import children
from gatelift_sandbox.ensemble import is_up
from support.stranger import DEMO_SECONDS_MAX, DEMO_TEST_SECONDS, Stranger

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(DEMO_TEST_SECONDS)]


async def test_what_the_demo_leaves_up_is_used_with_plain_kubectl_and_ended_by_down(tmp_path: Path) -> None:
    stranger = Stranger(tmp_path)
    ended = await stranger.gatelift("demo", "--provider", "local", "--keep", seconds=DEMO_SECONDS_MAX)
    try:
        assert (ended.code, ended.problem) == (0, ""), stranger.everything(ended)
        kubeconfig, kubectl = (
            re.findall(pattern, ended.out, re.MULTILINE)
            for pattern in (r"^ +export KUBECONFIG=(\S+)$", r"^ +(\S*kubectl) apply ")
        )
        assert (len(kubeconfig), len(kubectl)) == (1, 1), ended.out
        listing = (kubectl[0], "get", "workloads", "--namespace", "default", "--no-headers")
        listed = await stranger.runs(*listing, environment={"KUBECONFIG": kubeconfig[0]})
        assert (listed.code, listed.problem) == (0, "")
        assert "pod-long" in listed.out, "the demo's own work is still there to be looked at"
        running = stranger.processes()
        assert [child for child in running if not children.alive(child)] == []
    finally:
        down = await stranger.gatelift("down")
    assert (down.code, down.problem) == (0, "")
    assert [child for child in running if children.alive(child)] == []
    assert not is_up(stranger.home)
    again = await stranger.gatelift("down")
    assert again.code == 0
    assert "nothing is up" in again.out
