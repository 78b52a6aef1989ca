"""Waiting for a condition with a limit, instead of sleeping."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

LIMIT_SECONDS = 60.0
"""A condition comes within milliseconds; the limit is for a machine on which everything else runs too."""
STEP_SECONDS = 0.005


async def until(condition: Callable[[], object], what: str = "", seconds: float = LIMIT_SECONDS) -> None:
    """Return as soon as `condition()` is true; AssertionError after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 - conditions of a test have no event of their own
                await asyncio.sleep(STEP_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not within {seconds:g} s: {what or condition}") from None
