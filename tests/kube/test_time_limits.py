"""Many time limits on one timer: each interrupts its own block, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from gatelift_kube.tasks import spawn
from gatelift_kube.time_limits import TimeLimits

SOON = 0.02
LATE = 60.0


@pytest.fixture
async def limits() -> TimeLimits:
    return TimeLimits(asyncio.get_running_loop())


async def waiting(limits: TimeLimits, seconds: float) -> str:
    try:
        with limits.until(limits.loop.time() + seconds):
            await asyncio.Event().wait()
    except TimeoutError:
        return "too late"
    return "never"


async def test_what_takes_too_long_is_interrupted_in_whatever_order_it_began(limits: TimeLimits) -> None:
    patient = spawn("patient", waiting(limits, LATE))
    hasty = [spawn(f"hasty {number}", waiting(limits, SOON * factor)) for number, factor in enumerate((3, 1, 2))]
    assert await asyncio.gather(*hasty) == ["too late"] * 3
    assert not patient.done()
    patient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await patient


async def test_what_ends_in_time_is_not_interrupted_later(limits: TimeLimits) -> None:
    with limits.until(limits.loop.time() + SOON):
        await asyncio.sleep(0)
    assert await waiting(limits, 2 * SOON) == "too late"  # the timer of the first one has rung meanwhile


async def test_a_limit_that_has_passed_before_it_begins_interrupts_the_first_wait(limits: TimeLimits) -> None:
    assert await waiting(limits, -1.0) == "too late"


async def test_a_task_that_somebody_cancels_is_cancelled_and_not_late(limits: TimeLimits) -> None:
    task = spawn("cancelled", waiting(limits, LATE))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_block_is_its_own(limits: TimeLimits) -> None:
    with pytest.raises(ValueError, match="own"), limits.until(limits.loop.time() + LATE):
        raise ValueError("own")


async def test_limits_nest_and_the_outer_one_goes_through_the_inner_one(limits: TimeLimits) -> None:
    with pytest.raises(TimeoutError), limits.until(limits.loop.time() + SOON):
        assert await waiting(limits, LATE) == "unreachable"
    assert asyncio.current_task() is not None
    await asyncio.sleep(0)  # nothing of the cancellation is left


async def test_closed_limits_leave_no_timer(limits: TimeLimits) -> None:
    with limits.until(limits.loop.time() + LATE):
        await asyncio.sleep(0)
    limits.close()
    limits.close()
    assert await waiting(limits, SOON) == "too late"


def test_a_limit_is_for_a_task() -> None:
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(RuntimeError, match="for a task"), TimeLimits(loop).until(1.0):
            pass
    finally:
        loop.close()
