"""The loop that processes run on."""

from __future__ import annotations

import asyncio

import pytest

from gatelift_kube.process import event_loop


def test_a_coroutine_runs_to_its_end_and_its_result_comes_back() -> None:
    async def main() -> str:
        await asyncio.sleep(0)
        return type(asyncio.get_running_loop()).__module__

    assert event_loop.run(main()).startswith(("uvloop", "asyncio"))


def test_what_a_coroutine_raises_is_raised() -> None:
    async def main() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        event_loop.run(main())
